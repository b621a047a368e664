/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "inspect/common.h"
#include "inspect/installed.h"
#include "inspect/snapshot.h"

/* Checks of the installation. Each reports findings: what is so, and how to fix it. */
enum level {
    FINDING_OK,
    FINDING_SKIP, /* could not be checked */
    FINDING_WARN,
    FINDING_FAIL,
};

enum { FINDING_NAMED = 5 }; /* objects */
struct finding {
    enum level level;
    const char *topic;
    uint32_t count;   /* objects that it is about; 0: none is named */
    char names[2048]; /* the first ones */
    char what[4096];  /* with words of servers, pods and files in it */
};

struct doctor {
    struct common common;
    const char *scheduler_config; /* kube-scheduler's file on this machine; NULL: a ConfigMap */
    bool strict;                  /* warnings and skips fail, too */
    enum output_format format;
    uint32_t server_minor; /* of Kubernetes 1.x; 0: not known */
    json_t *served;        /* an object with the schedulerNames that kube-scheduler's configuration
                              serves; NULL: not known */
    bool second;           /* the extender runs beside the second scheduler */
    json_t *pods;          /* the extender's; NULL: not known, pods_err says why */
    struct gs_error pods_err;
    struct snapshot snapshot;
    uint64_t broken; /* objects that could not be read */
    struct finding *findings;
    uint32_t count, cap;
    bool failed; /* out of memory */
};

/* findings.c: adds "FAIL  topic: …". */
#define doctor_say(doctor, level, topic, ...) doctor_say_of(doctor, level, topic, NULL, __VA_ARGS__)

/* The same of an object: objects of which the same is said share a line, "a, b, … (7 total): …". */
void doctor_say_of(struct doctor *doctor, enum level level, const char *topic, const char *name,
                   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* No finding of the topic so far is worse than ok. */
bool doctor_is_ok(const struct doctor *doctor, const char *topic);

/* doctor_api.c; -1: the API server cannot be asked at all. */
int doctor_check_api(struct doctor *doctor, struct gs_error *err);
void doctor_find_extender(struct doctor *doctor);
/* Needs the snapshot, too. */
void doctor_check_extender(struct doctor *doctor);

/* Which nodes of the snapshot its DaemonSets select; where those cannot be read, and without any,
 * those labelled gpushare=true. */
void doctor_find_plugin_nodes(struct doctor *doctor);

/* doctor_rights.c: needs what doctor_find_extender() found. */
void doctor_check_rights(struct doctor *doctor);

/* doctor_scheduler.c */
void doctor_check_scheduler(struct doctor *doctor);

/* doctor_nodes.c: nodes, GPUs and their limits, from the snapshot. */
void doctor_check_nodes(struct doctor *doctor);

/* doctor_pods.c: from the snapshot, and what device plugins report that pods use. */
int doctor_check_pods(struct doctor *doctor, struct gs_error *err);
