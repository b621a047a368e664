/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/footprint.h"

#include <malloc.h>

void footprint_limit(void)
{
    mallopt(M_ARENA_MAX, 1); /* threads with little to do must not keep a heap each */
    mallopt(M_TRIM_THRESHOLD, 64 << 10);
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
}

void footprint_trim(void)
{
    malloc_trim(0);
}
