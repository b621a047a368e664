/* SPDX-License-Identifier: Apache-2.0 */
/* A timeout is read whole or not at all. */
#include "fuzz.h"
#include "grpc/timeout.h"

FUZZ_TEXT(text)
{
    int64_t ns = -1;
    if (!gs_grpc_timeout_parse(text.at, text.len, &ns)) {
        FUZZ_CHECK(ns == -1);
        return;
    }
    FUZZ_CHECK(ns >= 0 && text.len <= 9);
}
