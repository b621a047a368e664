/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <string.h>

/* One annotation or label. value NULL in a patch: remove it. */
struct gs_kv {
    const char *key;
    const char *value;
};

/* For qsort() and bsearch() of what begins with a text. */
static inline int gs_text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
