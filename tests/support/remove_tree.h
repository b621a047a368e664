/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <ftw.h>

#include "rows.h"

static inline int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    return remove(path);
}

/* A folder with all that lies in it; one that is not there is none to remove. */
static inline void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
