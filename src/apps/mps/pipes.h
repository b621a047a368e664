/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_MPS_PIPES_H
#define GPUSHARE_APPS_MPS_PIPES_H

#include <sys/types.h>

#include "common/mps_state.h"
#include "common/trash.h"
#include "gpushare/base/error.h"

/*
 * The folder with a daemon's sockets. Its clients have it mounted and write there, as root of their
 * containers: one of them may remove what is everybody's way to the daemon, or put something of its
 * own there. So the sockets have a second name (a hard link) in a folder that no container has, and
 * what a client did is undone at the next look: the daemon and all clients go on.
 *
 *   a socket  comes from                      goes to
 *   unknown   a start of the daemon           known: it is a socket, and the process that listens
 *                                             (SO_PEERCRED) is of the daemon's group
 *   known     that; linked again              lost: its name is gone, or another file's
 *   lost      a client                        known: what is in its place is thrown out
 *
 * Whoever is not known is never asked. With NVIDIA's daemon none of this was seen.
 */
enum { PIPES_SOCKETS = 2 };

struct pipes {
    char folder[MPS_PATH_BYTES]; /* CUDA_MPS_PIPE_DIRECTORY */
    char kept[MPS_PATH_BYTES];   /* second names */
    char trash_path[MPS_PATH_BYTES];
    bool known[PIPES_SOCKETS];
    mode_t modes[PIPES_SOCKETS]; /* of those that are known */
    struct trash trash;
};

/* Makes the folders of ROOT/UUID. GS_EINVAL: a name that is too long, or none; GS_EIO. */
int pipes_make(struct pipes *pipes, const char *root, const char *uuid, struct gs_error *err);

/* Before a start: nothing of an earlier daemon, or of anybody else, is there. */
void pipes_clear(struct pipes *pipes);

/* Undoes what clients did to the sockets of this daemon, the leader of its process group, and
 * empties a part of the trash. GS_EIO: its socket is not known yet, or cannot be brought back. */
int pipes_guard(struct pipes *pipes, pid_t daemon, struct gs_error *err);

void pipes_release(struct pipes *pipes);

#endif
