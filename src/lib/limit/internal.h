/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/limit/pod_tree.h"
#include "host.h"

/* Files of a cgroup: read whole, errors as errno. */
enum { LIMIT_TEXT_BYTES = 64 << 10 };

struct limit_text {
    size_t len;
    char data[LIMIT_TEXT_BYTES];
};

/* 0 or an errno; EFBIG: more than fits. ret is filled anew. */
int limit_read(const char *folder, const char *file, struct limit_text *ret);
/* The same of a path below an open folder, AT_FDCWD: of any path. */
int limit_read_at(int folder, const char *path, struct limit_text *ret);

/* Among words apart by blanks and newlines. */
bool limit_has_word(const struct limit_text *text, const char *word);

/* Writes "+dmem" to the cgroup.subtree_control of every folder from the mount down to the one above
 * path, which must lie below it, where it is missing. They hold no processes of their own, so the
 * kernel allows it. 0 or an errno. */
int limit_enable(const struct gs_limit_host *host, const char *mount, const char *path,
                 struct limit_text *text);
