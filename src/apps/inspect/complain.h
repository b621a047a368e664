/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_COMPLAIN_H
#define GPUSHARE_APPS_INSPECT_COMPLAIN_H

#include "gpushare/base/error.h"

#define PROGRAM "kubectl-inspect-gpushare"

/* One line on standard error: what failed, and what to do about it. Returns the exit code 1. */
int complain(const struct gs_error *err);

/* One line and the exit code 2. */
int complain_usage(const char *command, const char *what);

#endif
