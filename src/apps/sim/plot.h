/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_SIM_PLOT_H
#define GPUSHARE_APPS_SIM_PLOT_H

#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/sim/replay.h"

/* One line of a chart of allocation against arrived demand. */
struct plot_line {
    const char *name;
    const struct gs_replay_result *result;
};

/* GS_EINVAL unless the name ends in .svg or .png: to be asked before hours of work. */
int plot_check(const char *path, struct gs_error *err);

/* Draws the lines into a file with gnuplot. GS_ENOENT: gnuplot is not installed; GS_EINVAL as
 * plot_check(); GS_EIO: gnuplot failed. */
int plot_draw(const char *path, const struct plot_line *lines, uint32_t count,
              struct gs_error *err);

#endif
