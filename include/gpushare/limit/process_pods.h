/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/limit/pod_tree.h"
#include "gpushare/model/gpu.h"

/*
 * Whose pod a process is that the driver names by its PID: by its cgroup (/proc/PID/cgroup,
 * cgroups(7)), whose name has the pod's UID (limit/pod_tree.h). A PID is a number that others get
 * when its process has ended, so what is remembered from one list of the driver's to the next is
 * when each process began (/proc/PID/stat, proc_pid_stat(5), field 22).
 *
 *   a PID     comes by                                          is told       leaves by
 *   listed    its process is there, and began before the list   its pod       a list without it
 *   young     its process is there, and is younger than the     nobody's pod  a later list
 *             list: perhaps it began meanwhile
 *   lost      it is listed and there is no process, or another  nobody's pod  a list without it
 *             than when the list before had it
 *
 * A list that the driver refuses is none without it: of the PIDs that were in that GPU's last one
 * everything is remembered.
 *
 * The one that opened the driver may be gone while a child of it holds its memory on: then the
 * driver goes on naming a PID that is anybody's by now. So what is lost stays lost.
 *
 *   gs_process_pods_begin(pods);
 *   if (gs_process_pods_find(pods, gpu, boot_ns, pid, uid)) ...
 *   gs_process_pods_end(pods);
 *
 * Used by one thread; writes nothing.
 */
struct gs_process_pods;

enum { GS_PROCESS_PODS_MAX = 4096 }; /* PIDs in one list; of more nobody's pod is told */

/* proc: "/proc", of the host's PID namespace; *borrowed* for its life. *caller frees*; NULL: out
 * of memory. */
struct gs_process_pods *gs_process_pods_new(const char *proc);
void gs_process_pods_free(struct gs_process_pods *pods);

/* A list begins. */
void gs_process_pods_begin(struct gs_process_pods *pods);

/* A PID of the list of that GPU, for which the driver was asked at that time by CLOCK_BOOTTIME;
 * asked again in the same list it gets the same answer. False: no pod's, or it is not known whose;
 * ret_uid is untouched. ret_uid: as the pod's cgroup has it, of a static pod its config hash. */
bool gs_process_pods_find(struct gs_process_pods *pods, uint32_t gpu, int64_t boot_ns, uint32_t pid,
                          char ret_uid[GS_POD_UID_BYTES]);

/* Which PIDs are on that GPU is not told this time. */
void gs_process_pods_refused(struct gs_process_pods *pods, uint32_t gpu);

/* The list is over: PIDs that were not asked for, and may not be listed any more, are forgotten. */
void gs_process_pods_end(struct gs_process_pods *pods);
