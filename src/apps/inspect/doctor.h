/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_DOCTOR_H
#define GPUSHARE_APPS_INSPECT_DOCTOR_H

#include <jansson.h>

#include "inspect/common.h"
#include "inspect/doc.h"
#include "inspect/installed.h"
#include "inspect/snapshot.h"

/* What goes wrong in practice, looked at one by one. Each check says one line per finding: what is
 * so, and how to mend it. */
enum finding {
    FINDING_OK,
    FINDING_SKIP, /* could not be looked at */
    FINDING_WARN,
    FINDING_FAIL,
};

struct doctor {
    struct common common;
    const char *scheduler_config; /* file of kube-scheduler on this machine; NULL: look around */
    bool strict;                  /* warnings and skips fail, too */
    enum output_format format;
    struct doc doc;        /* when that is not text */
    uint32_t server_minor; /* of Kubernetes 1.x; 0: not known */
    char served[1024];     /* comma list of the schedulerNames that kube-scheduler's configuration
                              serves; "": not known */
    char labels[256];      /* of the nodes that the device plugin's DaemonSet selects, as "KEY=VALUE
                              KEY=VALUE"; "": it selects by something else */
    const struct installed_layout *layout; /* how the extender runs here */
    json_t *pods;                          /* the extender's; NULL: not known, pods_err says why */
    struct gs_error pods_err;
    struct snapshot snapshot;
    uint64_t broken; /* objects that could not be read */
    uint32_t counts[FINDING_FAIL + 1];
};

/* Prints "FAIL  topic: …", or an entry of the document. */
void doctor_say(struct doctor *doctor, enum finding finding, const char *topic, const char *fmt,
                ...) __attribute__((format(printf, 4, 5)));

/* Many may have the same trouble: the first ones are named. */
struct doctor_names {
    char text[1024];
    uint32_t count;
};

void doctor_add_name(struct doctor_names *names, const char *name);

/* "a, b, … (7 in all): what"; nothing without a name. */
void doctor_say_list(struct doctor *doctor, enum finding finding, const char *topic,
                     const struct doctor_names *names, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* doctor_api.c; -1: the API server cannot be asked at all. */
int doctor_check_api(struct doctor *doctor, struct gs_error *err);
void doctor_find_extender(struct doctor *doctor);
void doctor_check_extender(struct doctor *doctor);

/* Which nodes of the snapshot its DaemonSets select; where those cannot be read, and without any,
 * those labelled gpushare=true. */
void doctor_find_plugin_nodes(struct doctor *doctor);
/* Needs the snapshot. */
void doctor_check_asked(struct doctor *doctor);

/* doctor_rights.c: needs what doctor_find_extender() found. */
void doctor_check_rights(struct doctor *doctor);

/* doctor_scheduler.c */
void doctor_check_scheduler(struct doctor *doctor);

/* doctor_nodes.c: from the snapshot. */
void doctor_check_nodes(struct doctor *doctor);
void doctor_check_gpus(struct doctor *doctor);
void doctor_check_limits(struct doctor *doctor);
/* Who uses more than its request, by the device plugins' own word. */
void doctor_check_use(struct doctor *doctor);

/* doctor_pods.c: from the snapshot. */
void doctor_check_pods(struct doctor *doctor);
int doctor_check_waits(struct doctor *doctor, struct gs_error *err);

#endif
