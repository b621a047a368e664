/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner agrees with jansson about any bytes. */
#include "fuzz.h"
#include "scan_compare.h"

FUZZ_TEXT(text)
{
    const char *problem = scan_compare(text.at, text.len);
    if (problem)
        fprintf(stderr, "differs: %s\n", problem);
    FUZZ_CHECK(!problem);
}
