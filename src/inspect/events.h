/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/source.h"

enum { EVENTS_BYTES = 4096 };

/* Events of ours ("Gpu…") about that pod, or the node (ns NULL), the newest first, a line each;
 * else that there are none, or why they cannot be read. */
void events_ask(const struct source *source, const char *ns, const char *name,
                char to[EVENTS_BYTES]);
