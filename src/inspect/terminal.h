/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/error.h"

/* How the program talks to people: what the terminal can show, what went wrong. */
struct terminal {
    bool screen;    /* standard output is a terminal: tables fit its width */
    uint32_t width; /* columns; 0: no limit */
};

/* Looks at the environment and the terminal. */
struct terminal terminal_find(void);

#define PROGRAM "kubectl-inspect-gpushare"

/* One line on standard error: what failed, and what to do about it. Returns the exit code 1. */
int complain(const struct gs_error *err);

/* Sets "the output cannot be written"; returns -1. */
int fail_output(struct gs_error *err);

/* One line and the exit code 2. */
int complain_usage(const char *command, const char *what);
