/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled for a processor with AVX2 (src/CMakeLists.txt), and called on one only. */
#include "rollout_lanes.h"

#ifdef __AVX2__
#define PLAY_LANES 16
#include "rollout_play.h"

gs_lanes_play *gs_lanes_play_wide(void)
{
    return __builtin_cpu_supports("avx2") ? play_all : NULL;
}

#else

gs_lanes_play *gs_lanes_play_wide(void)
{
    return NULL;
}

#endif
