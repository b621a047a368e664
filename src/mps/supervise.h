/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/model/gpu.h"
#include "mps/control.h"

/*
 * Keeps one GPU's MPS daemon running, on a thread of its own, and writes down how it is every three
 * seconds (common/mps_state.h).
 *
 *   a daemon    goes to     when
 *   starting    ready       it answers
 *               stopped     it is silent for 15 s, and has no server
 *   ready       away        it is silent, or says FAULT of its server
 *   away        ready       it answers, without a FAULT
 *               stopped     silent for 10 s, it has no server; or after a FAULT it has no client
 *   any         stopped     it has ended
 *   stopped     starting    after a pause that doubles from one second to a minute
 *
 * Whoever stops a daemon stops its clients, and any client can make it silent, by connections on
 * which it says nothing: so silence alone ends no daemon that has a server, without which there is
 * no client, however long it lasts. Silent is who does not answer; that a client took its socket
 * away is undone (pipes.h).
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
