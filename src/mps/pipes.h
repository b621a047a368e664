/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

#include "common/mps_state.h"
#include "gpushare/base/error.h"

/*
 * The folder with a daemon's sockets, which its clients have mounted read-only. The sockets have
 * second names (hard links) in a folder that no container has, by which the daemon is asked: what
 * else may write to the first folder cannot answer in its place.
 */
enum { PIPES_SOCKETS = 2 };

struct pipes {
    char folder[MPS_PATH_BYTES]; /* CUDA_MPS_PIPE_DIRECTORY */
    char kept[MPS_PATH_BYTES];   /* second names */
    bool known[PIPES_SOCKETS];
};

/* ROOT/shm becomes a file system of its own with a size, so that clients fill nothing of the
 * host's, unless something is mounted there. *ret_mounted: it was done now. GS_EIO. */
#define PIPES_SHM "size=1g,mode=1777"
int pipes_mount_shm(const char *root, bool *ret_mounted, struct gs_error *err);
void pipes_unmount_shm(const char *root);

/* Makes the folders of ROOT/UUID. GS_EINVAL: a name that is too long, or none; GS_EIO. */
int pipes_make(struct pipes *pipes, const char *root, const char *uuid, struct gs_error *err);

/* Before a start: nothing of an earlier daemon, or of anybody else, is there. */
void pipes_clear(struct pipes *pipes);

/* Looks for the sockets of this daemon, the leader of its process group, which has to be the one
 * that listens there (SO_PEERCRED). GS_EIO: that of clients is not known yet. */
int pipes_find(struct pipes *pipes, pid_t daemon, struct gs_error *err);
