/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_OPTIONS_HELP_H
#define GPUSHARE_APPS_COMMON_OPTIONS_HELP_H

#include <argp.h>
#include <stdio.h>

#include "common/options.h"

/* What --help prints: usage, the command's text, and the rows of table in alphabetical order, which
 * ends with one without a name and is sorted in place. Lines are at most 79
 * columns wide; what follows a '\v' in the command's text stands at the end as it is. */
void options_help(FILE *out, const char *name, const struct gs_command *command,
                  struct argp_option *table);

#endif
