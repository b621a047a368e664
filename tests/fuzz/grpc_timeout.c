/* SPDX-License-Identifier: Apache-2.0 */
/* A timeout that was read is written as one that is not shorter, in milliseconds of eight digits.
 */
#include "fuzz.h"
#include "grpc/timeout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t ns = -1, back = -1;
    char text[GS_GRPC_TIMEOUT_CHARS];
    if (!gs_grpc_timeout_parse((const char *)data, size, &ns)) {
        FUZZ_CHECK(ns == -1);
        return 0;
    }
    FUZZ_CHECK(ns >= 0 && size <= 9);
    size_t len = gs_grpc_timeout_format(text, ns);
    FUZZ_CHECK(len < sizeof(text) && gs_grpc_timeout_parse(text, len, &back));
    FUZZ_CHECK(back >= ns ? back - ns < 1000000 : back == 99999999000000);
    return 0;
}
