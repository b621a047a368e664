/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "gpushare/grpc/device_plugin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_arena arena = {0};
    const char *value = "untouched";
    struct gs_error err = {0};
    if (gs_dp_answer_env(&arena, data, size, "IDX", &value, &err) < 0)
        FUZZ_CHECK(err.code != GS_OK && strcmp(value, "untouched") == 0);
    else
        FUZZ_CHECK(!value || strlen(value) < size);
    gs_arena_release(&arena);
    return 0;
}
