/* SPDX-License-Identifier: Apache-2.0 */
#define PLAY_LANES 8
#include "rollout_play.h"

uint64_t gs_lanes_play_narrow(const struct gs_lanes *lanes, const struct gs_lanes_start *start)
{
    return play_all(lanes, start);
}
