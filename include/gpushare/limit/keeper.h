/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/limit/limiter.h"
#include "gpushare/model/gpu.h"

/*
 * Which pods of a node are held to their share, and which would be: the rules above the limiter. It
 * remembers what each pod was given, writes the limit when the pod's cgroup appears, says before a
 * container starts whether it may, and repairs in passes what was lost. No time and no thread of
 * its own; the caller brings events and calls gs_keeper_pass() every some seconds. Used by one
 * thread.
 *
 *   a pod        comes by                            is told   leaves by
 *   known        gs_keeper_share(), no cgroup yet    -         its cgroup, or a start
 *   not found    it starts or runs: no cgroup        not held  its cgroup is found: any look
 *                it was taken for one that starts              gs_keeper_share(), not given
 *   limited      read back, in its only cgroup       held      a look that reads something else
 *   over         ran above it before its limit       not held  it uses less: the limit follows
 *   not limited  refused, several cgroups, no file   not held  any look at which it is written
 *   gone         its cgroup was there and is not     -         a start; the list without it
 *
 * A look is every event below, and each pass: what is told is what the last one read, and a GPU
 * with a pod that is not found or not limited has not the word dmem.
 *
 *   gs_keeper_gpus(keeper, host, gpus, count);             after gs_limiter_look()
 *   gs_keeper_list_begin(keeper);                          the pods that have GPUs, as they change
 *   gs_keeper_share(keeper, &share, &err); ...
 *   gs_keeper_list_end(keeper);
 *   gs_keeper_appeared(keeper, uid);                       from the pod watch
 *   if (!gs_keeper_may_start(keeper, uid, &reason)) ...    PreStartContainer
 *   while (gs_keeper_show_again(keeper)) ...               soon after a start
 *   gs_keeper_pass(keeper);                                every some seconds
 *   while (gs_keeper_next_news(keeper, &news)) ...         what people should be told
 */
struct gs_keeper;

enum gs_enforce {
    GS_ENFORCE_OFF,       /* nothing is read and nothing written */
    GS_ENFORCE_OBSERVE,   /* reads use, and tells who would be refused */
    GS_ENFORCE_PREFERRED, /* writes limits; a pod that cannot be limited starts all the same */
    GS_ENFORCE_REQUIRED,  /* its containers are blocked */
};

/* "off", "observe", "preferred", "required". */
const char *gs_enforce_name(enum gs_enforce mode);

struct gs_keeper_options {
    struct gs_limiter *limiter; /* borrowed */
    enum gs_enforce mode;
    bool deny_foreign; /* 0 for every GPU of the node that is not the pod's */
};

enum { GS_KEEPER_PODS_MAX = 4096 };

/* *caller frees*; NULL when out of memory. */
struct gs_keeper *gs_keeper_new(const struct gs_keeper_options *options);
void gs_keeper_free(struct gs_keeper *keeper);

/* By GPU index, copied: what gs_limiter_look() said; host: its result. count at most GS_GPUS_MAX.
 */
void gs_keeper_gpus(struct gs_keeper *keeper, enum gs_enforced host, const struct gs_region *gpus,
                    size_t count);

/* Whether limits are written and hold on this GPU, or why not: what was read back of the pods there
 * when they were last looked at. */
enum gs_enforced gs_keeper_enforces(const struct gs_keeper *keeper, uint32_t gpu);

struct gs_share {
    const char *uid; /* as its cgroup has it; of a static pod its config hash. Copied */
    gs_gpu_mask gpus;
    uint64_t bytes; /* on each of them */
    bool required;  /* the pod itself requires it, whatever the mode */
    bool one_user;  /* one container at a time uses GPUs: its own cgroup shows the limit, too */
    bool given; /* the kubelet has asked for its GPUs: else no container of it starts, and the one
                   that was taken for its was another pod's */
    bool runs;  /* some container of it runs already: what it uses over its request by now is not
                   taken from it, nor does it get more */
};

/* A pod and what it was given. One that is new, or was given something else, is limited if its
 * cgroup is there; nothing is done when nothing changed. GS_ENOMEM; GS_ETOOBIG: more than
 * GS_KEEPER_PODS_MAX; GS_EINVAL: its UID. */
int gs_keeper_share(struct gs_keeper *keeper, const struct gs_share *share, struct gs_error *err);
/* Around all of them: pods not named between the two are gone. */
void gs_keeper_list_begin(struct gs_keeper *keeper);
void gs_keeper_list_end(struct gs_keeper *keeper);

/* Its cgroup was made, or one of a container in it. Pods without a share are passed over. */
void gs_keeper_appeared(struct gs_keeper *keeper, const char *uid);

/* Before a container of the pod starts. False: it must wait, for this reason (as above). A pod that
 * is not known may start. */
bool gs_keeper_may_start(struct gs_keeper *keeper, const char *uid, const char **ret_reason);

/* Every some ten milliseconds while it says true, after gs_keeper_may_start(): a container's own
 * cgroup may be made later than the one that appeared, and be closed to us for a moment. The looks
 * become rare, and end. */
bool gs_keeper_show_again(struct gs_keeper *keeper);

/* Reads what every pod uses, and repairs limits. */
void gs_keeper_pass(struct gs_keeper *keeper);

/* What is known of a pod since the last call about it, or pass. */
struct gs_kept {
    const char *uid;               /* *borrowed* until the keeper is changed */
    enum gs_limit_outcome outcome; /* of the last look at its cgroup */
    enum gs_enforced by;           /* what limits its GPUs */
    bool held;           /* all its limits were read back, and it uses no more than they allow */
    const char *reason;  /* why not; "" when held */
    uint64_t bytes;      /* its share on each GPU */
    uint64_t used_bytes; /* the most that it uses on one of them */
    gs_gpu_mask counted; /* of the GPUs: the kernel counts what the pod uses there */
    /* By GPU index, of those: now, and the most ever. *Borrowed* likewise */
    const uint64_t *used_on, *peak_on;
};

/* The one with that UID; false: it has no share. */
bool gs_keeper_find(const struct gs_keeper *keeper, const char *uid, struct gs_kept *ret);

enum gs_verdict {
    GS_VERDICT_FINE,
    GS_VERDICT_WOULD_BE_REFUSED, /* it uses more than its request, and nothing holds it */
    GS_VERDICT_NOT_HELD,         /* it should be held and is not, though the kernel counts its GPUs'
                                    memory or requires it; also when it has no cgroup and starts */
};

/* A pod about which there is something to say; each verdict is told once of a pod. */
bool gs_keeper_next_news(struct gs_keeper *keeper, struct gs_kept *ret,
                         enum gs_verdict *ret_verdict);

struct gs_keeper_stats {
    uint32_t held;    /* pods */
    uint32_t over;    /* pods that use more than their request: would be refused, or are */
    uint64_t repairs; /* limits that were found lost and written again */
    uint64_t writes;  /* limits written for the first time */
    uint32_t unheld;  /* pods that should be held and are not */
};
void gs_keeper_stats(const struct gs_keeper *keeper, struct gs_keeper_stats *ret);
