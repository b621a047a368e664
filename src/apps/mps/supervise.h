/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_MPS_SUPERVISE_H
#define GPUSHARE_APPS_MPS_SUPERVISE_H

#include "gpushare/base/error.h"
#include "gpushare/model/gpu.h"
#include "mps/control.h"

/*
 * Keeps one GPU's MPS daemon running, on a thread of its own, and writes down how it is every three
 * seconds (common/mps_state.h).
 *
 *   starting ──answers──▶ ready ──no answer──▶ away ──▶ stopped ──pause──▶ starting
 *      │  no answer for 15 s │                  │ no clients when it last answered: at once;
 *      └──▶ stopped          │                  │ else after a minute
 *                            └──FAULT──▶ away ──┴ no client left: recycled
 *
 * Whoever stops a daemon stops its clients: so a fault is waited out, and a daemon that is silent
 * while it has clients has a minute to come back. Silent is who does not answer; that a client took
 * its socket away is undone (pipes.h). A daemon that ended is started again after a pause that
 * doubles from one second to a minute.
 */
struct supervisor;

/* Makes the GPU's folders and starts the thread. GS_EINVAL: a UUID or a folder that is no name for
 * a socket; GS_EIO, GS_ENOMEM. control is borrowed. */
int supervisor_start(const struct control *control, const char *root, const struct gs_gpu *gpu,
                     struct supervisor **ret, struct gs_error *err);

/* Ends the thread and its daemon, with its clients. Asks first, waits later, so that several end
 * together. */
void supervisor_ask_to_stop(struct supervisor *supervisor);
void supervisor_free(struct supervisor *supervisor);

#endif
