/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/mps_state.h"
#include "gpushare/base/error.h"

/*
 * NVIDIA's nvidia-cuda-mps-control (its manual page, and docs.nvidia.com/deploy/mps, appendix
 * "Tools and interface reference"): as a daemon in the foreground, and as the tool that talks to
 * one. Both are told by their environment which daemon is meant.
 *
 * The program and the driver's libraries are those of the driver root, where they are run after a
 * chroot, as NVIDIA's charts do: its nvidia-cuda-mps-server is then found as on the host.
 */
enum { CONTROL_PATH_BYTES = 64, CONTROL_LOG_BYTES_MAX = 4 << 20 };

struct control {
    const char *driver_root;          /* "/": no chroot; borrowed */
    char program[CONTROL_PATH_BYTES]; /* inside the driver root */
    bool multiuser;                   /* it knows -multiuser-server */
};

/* One daemon, as its environment names it. */
struct control_daemon {
    const struct control *control; /* borrowed */
    char visible[MPS_PATH_BYTES];  /* "CUDA_VISIBLE_DEVICES=GPU-…" */
    char pipe[MPS_PATH_BYTES];     /* "CUDA_MPS_PIPE_DIRECTORY=…" */
    char log[MPS_PATH_BYTES];      /* "CUDA_MPS_LOG_DIRECTORY=…" */
};

/* What a daemon says of itself. */
struct control_answer {
    uint32_t clients; /* processes */
    bool fault;       /* a server does not work any more, and takes no clients */
};

/* Looks for the program in the usual folders: in driver_root, or when that is NULL in /driver-root
 * and then in /. Asks it for its options. GS_ENOENT: there is none. */
int control_find(const char *driver_root, struct control *ret, struct gs_error *err);

/* Starts the daemon, a child in a process group of its own that ends with the calling process. */
int control_start(const struct control_daemon *daemon, pid_t *ret, struct gs_error *err);

/* Asks it for its servers and their clients, each question for at most 2 s. GS_ETIMEOUT: it does
 * not answer; GS_EIO: it is not there, or says what is not understood. */
int control_ask(const struct control_daemon *daemon, struct control_answer *ret,
                struct gs_error *err);

/* Empties those of its logs that are too long: each question of ours is a line of it, and it keeps
 * them for ever, in the memory of the node (/run). */
void control_bound_logs(const struct control_daemon *daemon);

/* Asks it to end. */
void control_quit(const struct control_daemon *daemon);

/* True: a server of the daemon lives, and may have clients. It is the kernel that is asked, not the
 * daemon; without its answer: true. */
bool control_serves(pid_t daemon);

/* True: the child has ended, and was waited for. */
bool control_ended(pid_t pid);

/* Ends a daemon with its servers, and waits for it: SIGTERM, and SIGKILL after 5 s. */
void control_stop(pid_t pid);
