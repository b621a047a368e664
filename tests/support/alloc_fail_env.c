/* SPDX-License-Identifier: Apache-2.0 */
/* For a whole program: its GS_FAIL_ALLOC-th allocation fails, and at its end it says whether there
 * was one. */
#include <stdio.h>
#include <stdlib.h>

#include "alloc_fail.h"

__attribute__((constructor)) static void begin(void)
{
    const char *n = getenv("GS_FAIL_ALLOC");
    if (n)
        alloc_fail_begin((unsigned)strtoul(n, NULL, 10));
}

__attribute__((destructor)) static void end(void)
{
    fprintf(stderr, "allocation %s\n", alloc_fail_end() ? "failed" : "not reached");
}
