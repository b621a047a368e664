/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>

#include "gpushare/base/buf.h"
#include "gpushare/model/kv.h"

/* Private: pieces of JSON objects and arrays. */

/* Before each key and element: a comma, unless the object or array was just opened. */
static inline void gs_write_comma(struct gs_buf *out)
{
    const char last = out->len ? out->data[out->len - 1] : '{';
    if (last != '{' && last != '[')
        gs_buf_putc(out, ',');
}

static inline void gs_write_key(struct gs_buf *out, const char *key)
{
    gs_write_comma(out);
    gs_buf_json_text(out, key);
    gs_buf_putc(out, ':');
}

static inline void gs_write_string(struct gs_buf *out, const char *key, const char *value)
{
    gs_write_key(out, key);
    if (value)
        gs_buf_json_text(out, value);
    else
        gs_buf_puts(out, "null");
}

static inline void gs_write_number(struct gs_buf *out, const char *key, int64_t value)
{
    gs_write_key(out, key);
    gs_buf_printf(out, "%" PRId64, value);
}

static inline void gs_write_bool(struct gs_buf *out, const char *key, bool value)
{
    gs_write_key(out, key);
    gs_buf_puts(out, value ? "true" : "false");
}

/* Writes nothing for NULL and "". */
static inline void gs_write_optional(struct gs_buf *out, const char *key, const char *value)
{
    if (value && value[0])
        gs_write_string(out, key, value);
}

/* Writes "KEY":{…}, or nothing if there are no pairs. */
static inline void gs_write_map(struct gs_buf *out, const char *key, const struct gs_kv *kv,
                                size_t count)
{
    if (!count)
        return;
    gs_write_key(out, key);
    gs_buf_putc(out, '{');
    for (size_t i = 0; i < count; i++)
        gs_write_string(out, kv[i].key, kv[i].value);
    gs_buf_putc(out, '}');
}
