/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rows.h"

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/names.h"

/* The default domain's. */
static inline const struct gs_names *default_names(void)
{
    static struct gs_names names;
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    return &names;
}

/* JSON is easier to read with single quotes: each becomes a double one. *Borrowed until* the fourth
 * call after this one; of the text's own size, so that a sanitizer sees a read past its end. */
static inline struct gs_slice json_of(const char *text)
{
    static char *kept[4];
    static unsigned next;
    char **copy = &kept[next++ % GS_COUNT_OF(kept)];
    free(*copy);
    *copy = strdup(text);
    assert_non_null(*copy);
    for (char *at = *copy; *at; at++) {
        if (*at == '\'')
            *at = '"';
    }
    return gs_slice_of(*copy);
}

/* What was appended, compared in that spelling; empties the buffer. */
static inline void row_json(const char *row, struct gs_buf *out, const char *expected)
{
    row_true(row, !gs_buf_failed(out));
    row_text(row, out->data ? out->data : "", json_of(expected).at);
    gs_buf_release(out);
}

/* Text that is not what it should be: why is the message up to the number of the byte. */
static inline void row_refused(const char *row, const struct gs_error *err, const char *why)
{
    char said[sizeof(err->msg)];
    const char *byte = strstr(err->msg, " at byte ");
    row_equal(row, err->code, GS_EPROTO);
    row_true(row, byte != NULL);
    snprintf(said, sizeof(said), "%.*s", (int)(byte - err->msg), err->msg);
    row_text(row, said, why);
}
