/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Folders that containers left behind, until they are removed: one folder on the file system of
 * those that come into it. Coming in is one rename, whatever is inside. Removing takes bounded work
 * and three descriptors at most, however deep the folders are. What belongs to other users stays
 * where root has no capabilities, and is counted.
 *
 *   a folder   comes in by                      leaves by
 *   waiting    trash_take(), or lay in another  trash_empty() removes it; when it cannot: stuck
 *   stuck      trash_empty() could not          the same, of a later pass; root on the node
 *
 * One thread. All zero is the start.
 */
struct trash {
    DIR *pass;     /* NULL: none is under way */
    uint32_t seen; /* folders that this pass left */
    uint32_t left; /* that the last one left, or this one so far */
    bool moved;    /* this pass removed something: another is worth it at once */
};

/* Moves name, a folder in the folder from, to the trash, which is there. False: errno. */
bool trash_take(const char *path, int from, const char *name);

/* Removes some. True: more can be removed now. */
bool trash_empty(struct trash *trash, const char *path);

void trash_release(struct trash *trash);
