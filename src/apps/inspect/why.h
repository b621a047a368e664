/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_WHY_H
#define GPUSHARE_APPS_INSPECT_WHY_H

#include "inspect/common.h"
#include "inspect/formats.h"
#include "inspect/usage.h"
#include "inspect/waits.h"

/* Why a pod waits, or where it is and beside whom: what was asked, what was found, how it is told.
 */
struct why {
    struct common common;
    const struct app *app;
    const char *name; /* "POD" or "NAMESPACE/POD"; NULL: all that wait */
    char ns[256];
    enum format format;
    struct source source;
    struct snapshot snapshot;
    struct gs_pod pod;
    struct usage usage; /* of its node, once it has one */
    char said[1024];    /* kube-scheduler's last word */
    char trouble[1024]; /* the kubelet's: why it failed, or what its container waits for */
};

/* kube-scheduler's words say that it could not ask the extender, or got no answer that counts. */
bool why_extender_is_away(const char *said);

/* why_tell.c: about why->pod, from the snapshot. */
void why_tell(const struct why *why);

/* Without the right to see nodes and other pods: what the pod itself tells. */
void why_tell_alone(const struct why *why);

/* why_document.c: the same for programs. -1: the output cannot be written. */
int why_document(const struct why *why);

/* why_list.c: all pods that wait. */
int why_list(struct why *why, struct gs_error *err);

#endif
