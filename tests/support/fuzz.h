/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/slice.h"

/*
 * What a fuzz target includes. It defines LLVMFuzzerTestOneInput(), which returns 0, or
 * FUZZ_TEXT(text) { … }, and says with FUZZ_CHECK what must hold for any input.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define FUZZ_TEXT(text)                                                                            \
    static void fuzz_text(struct gs_slice text);                                                   \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                   \
    {                                                                                              \
        fuzz_text((struct gs_slice){(const char *)data, size});                                    \
        return 0;                                                                                  \
    }                                                                                              \
    static void fuzz_text(struct gs_slice text)

/* What was written, which did not fail. */
static inline struct gs_slice fuzz_written(const struct gs_buf *buf)
{
    FUZZ_CHECK(!gs_buf_failed(buf));
    return (struct gs_slice){buf->data, buf->len};
}
