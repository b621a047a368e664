/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/slice.h"
#include "inspect/usage.h"

/* The page /usage of one device plugin (docs/operate.md), in whose words nobody trusts. */

/* GS_EPROTO: it is not one whole JSON object; then nothing may be read from it. */
int usage_page_check(struct gs_slice text, struct gs_error *err);
/* Takes in what a checked page says of that node and its pods, and nothing of others'. */
void usage_page_read(struct usage *usage, struct usage_node *node, struct gs_slice text);
