/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_FORMATS_H
#define GPUSHARE_APPS_INSPECT_FORMATS_H

#include "common/options.h"

/* -o of the commands that tell in words. */
enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_YAML };

/* For OPT_CUSTOM; to: an enum format. */
bool format_parse(void *to, const char *text);

#define OPT_FORMAT(to)                                                                             \
    OPT_CUSTOM("output", OPT_IS(enum format, to), format_parse, "text|json|yaml",                  \
               "form of the output (text)", .key = 'o')

#endif
