/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <ftw.h>
#include <sys/stat.h>

#include "rows.h"

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

static inline int fake_proc_remove_entry(const char *path, const struct stat *st, int flag,
                                         struct FTW *ftw)
{
    return remove(path);
}

/* All of it, or of a process. */
static inline void fake_proc_remove(const char *path)
{
    nftw(path, fake_proc_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
