/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_DOCTOR_H
#define GPUSHARE_APPS_INSPECT_DOCTOR_H

#include <jansson.h>

#include "inspect/common.h"
#include "inspect/snapshot.h"

/* What goes wrong in practice, looked at one by one. Each check says one line per finding: what is
 * so, and how to mend it. */
enum finding {
    FINDING_OK,
    FINDING_SKIP, /* could not be looked at */
    FINDING_WARN,
    FINDING_FAIL,
};

/* Where the extender may run: what its pods and their ServiceAccount are called, and what grants
 * their rights. */
struct doctor_layout {
    const char *name;
    const char *rbac;
};

struct doctor {
    struct common common;
    const char *system_ns;        /* where the extender and the plugin run */
    const char *scheduler_config; /* file of kube-scheduler on this machine; NULL: look around */
    const char *extender;         /* URL to ask directly; NULL: through the API server */
    const char *extender_ca;      /* files; NULL: the system's CAs, no certificate of our own */
    const char *extender_cert;
    const char *extender_key;
    const char *extender_name; /* what its certificate names; NULL: the URL's host */
    bool colour;
    const struct doctor_layout *layout; /* how the extender runs here */
    json_t *pods;                       /* the extender's; NULL: not known, pods_err says why */
    struct gs_error pods_err;
    struct source source;
    struct snapshot snapshot;
    uint64_t broken; /* objects that could not be read */
    uint32_t counts[FINDING_FAIL + 1];
};

/* Prints "FAIL  topic: …". */
void doctor_say(struct doctor *doctor, enum finding finding, const char *topic, const char *fmt,
                ...) __attribute__((format(printf, 4, 5)));

/* doctor_api.c; -1: the API server cannot be asked at all. */
int doctor_check_api(struct doctor *doctor, struct gs_error *err);
void doctor_find_extender(struct doctor *doctor);
void doctor_check_extender(struct doctor *doctor);

/* doctor_rights.c: needs what doctor_find_extender() found. */
void doctor_check_rights(struct doctor *doctor);

/* doctor_scheduler.c */
void doctor_check_scheduler(struct doctor *doctor);

/* doctor_asked.c: needs the snapshot. */
void doctor_check_asked(struct doctor *doctor);

/* doctor_limits.c: from the snapshot. */
void doctor_check_limits(struct doctor *doctor);

/* doctor_nodes.c: from the snapshot. */
void doctor_check_nodes(struct doctor *doctor);
void doctor_check_gpus(struct doctor *doctor);
void doctor_check_pods(struct doctor *doctor);

#endif
