/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/stat.h>

#include "remove_tree.h"

/* A folder in place of /proc. */

static inline void fake_proc_put(const char *dir, uint32_t pid, const char *file, const char *text,
                                 size_t len)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%u", dir, pid);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/%u/%s", dir, pid, file);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fwrite(text, 1, len, out);
    fclose(out);
}
