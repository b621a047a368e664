/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes that belong to somebody else: *borrowed* for as long as their owner says. */
struct gs_slice {
    const char *at;
    size_t len;
};

#define GS_SLICE(literal) ((struct gs_slice){(literal), sizeof(literal) - 1})

static inline struct gs_slice gs_slice_of(const char *text)
{
    return (struct gs_slice){text, strlen(text)};
}

static inline bool gs_slice_eq(struct gs_slice a, struct gs_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* What comes before the first sep, or all; *rest is what follows it, NULL where there is none. */
static inline struct gs_slice gs_slice_cut(struct gs_slice *rest, char sep)
{
    const char *end = rest->len ? memchr(rest->at, sep, rest->len) : NULL;
    struct gs_slice part = {rest->at, end ? (size_t)(end - rest->at) : rest->len};
    *rest = end ? (struct gs_slice){end + 1, rest->len - part.len - 1} : (struct gs_slice){0};
    return part;
}
