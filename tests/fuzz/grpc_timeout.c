/* SPDX-License-Identifier: Apache-2.0 */
/* A timeout is read whole or not at all. */
#include "fuzz.h"
#include "grpc/timeout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t ns = -1;
    if (!gs_grpc_timeout_parse((const char *)data, size, &ns)) {
        FUZZ_CHECK(ns == -1);
        return 0;
    }
    FUZZ_CHECK(ns >= 0 && size <= 9);
    return 0;
}
