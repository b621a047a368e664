/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_SIM_PLOT_H
#define GPUSHARE_APPS_SIM_PLOT_H

#include <stdint.h>

#include "gpushare/base/error.h"

struct plot_line {
    const char *name;
    const double *x, *y;
    uint32_t count;
};

struct plot_chart {
    const char *x, *y;  /* what the axes show */
    const char *ranges; /* gnuplot's commands for what is seen of them */
};

/* GS_EINVAL unless the name ends in .svg or .png: to be asked before hours of work. */
int plot_check(const char *path, struct gs_error *err);

/* Draws the lines into a file with gnuplot. GS_ENOENT: gnuplot is not installed; GS_EINVAL as
 * plot_check(); GS_EIO: gnuplot failed. */
int plot_draw(const char *path, const struct plot_chart *chart, const struct plot_line *lines,
              uint32_t count, struct gs_error *err);

#endif
