/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What gpushare-mps leaves for the device plugin in the folder that both mount (docs/limits.md):
 *
 *   ROOT/UUID/pipe     CUDA_MPS_PIPE_DIRECTORY of the GPU's daemon
 *   ROOT/UUID/log      its CUDA_MPS_LOG_DIRECTORY
 *   ROOT/UUID/kept     second names of its sockets: no container has these (mps/pipes.h)
 *   ROOT/UUID/state    one line: "ready SECONDS" or "away SECONDS why", replaced in one step
 *   ROOT/shm           /dev/shm of the daemons and of their clients
 *
 * SECONDS are those since the node was booted (CLOCK_BOOTTIME, the same in all containers): a line
 * that is older than MPS_STATE_MAX_S is nobody's word any more.
 */
enum { MPS_STATE_MAX_S = 30, MPS_WHY_BYTES = 120, MPS_PATH_BYTES = 256 };

/* The longest folder whose sockets have a name that fits (unix(7): 108 bytes with the NUL), the
 * longest of them being control_privileged. */
enum { MPS_PIPE_MAX = 107 - (int)sizeof("/control_privileged") + 1 };

struct mps_state {
    bool ready;
    char why[MPS_WHY_BYTES]; /* when it is not: a clause for people */
};

/* ROOT/UUID/LEAF, or ROOT/LEAF with uuid NULL. False: too long, or the UUID is no file's name. */
bool mps_path(const char *root, const char *uuid, const char *leaf, char ret[MPS_PATH_BYTES]);

/* Replaces the state of a GPU; false with errno when it cannot. */
bool mps_state_write(const char *root, const char *uuid, const struct mps_state *state,
                     int64_t now_ns);

/* Always fills *ret: no file, an old one and one that is not understood are "away", with a why. */
void mps_state_read(const char *root, const char *uuid, int64_t now_ns, struct mps_state *ret);

/* The same from the line; for a parser's test. */
void mps_state_parse(const char *line, size_t len, int64_t now_ns, struct mps_state *ret);
