/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner agrees with jansson about any bytes. */
#include "fuzz.h"
#include "scan_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *problem = scan_compare((const char *)data, size);
    if (problem)
        fprintf(stderr, "differs: %s\n", problem);
    FUZZ_CHECK(!problem);
    return 0;
}
