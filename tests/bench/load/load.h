/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"

/*
 * bench_load: requests are complete bytes before the clock starts (requests.c), clients only write
 * them and read answers (client.c), so that little of what is measured is ours.
 */
enum load_verb {
    LOAD_FILTER,
    LOAD_PRIORITIZE,
    LOAD_BIND,   /* of pods that wait at the API server, each once */
    LOAD_DIRECT, /* the same binding without an extender: what bind costs beyond this is ours */
    LOAD_EVENT,  /* patches an annotation of a pod: an event for everybody who watches */
    LOAD_CREATE, /* new pods that wait */
    LOAD_VERBS,
};

struct load_settings {
    const char *extender; /* ADDR:PORT */
    const char *api;      /* http://ADDR:PORT */
    bool verbs[LOAD_VERBS];
    uint32_t clients;
    uint32_t rate; /* per second of all clients together; 0: as fast as answers come */
    uint32_t requests;
    uint32_t names;
    uint32_t classes;
    uint32_t node_bytes; /* of a Node object in the request; 0: names only */
    int64_t duration_ns;
    uint32_t warmup;
};

/* What one verb sends. Items lie one after the other in text; read by all clients. */
struct load_set {
    struct gs_buf text;
    size_t *ends; /* of each item in text */
    uint32_t count;
    bool once;        /* no item is sent twice */
    bool at_api;      /* else to the extender */
    const char *tail; /* how a good answer ends; NULL: its status says it all */
    atomic_uint next;
};

const char *load_verb_name(enum load_verb verb);

/* Fills the sets of the verbs that are asked for; asks the API server for pods where those need
 * some. Release each also after a failure. Errors: those of rest_call(); GS_ENOENT: it has no such
 * pods.
 */
int load_requests_make(const struct load_settings *set, struct load_set *sets,
                       struct gs_error *err);
void load_set_release(struct load_set *set);

/* Times in ns, in no order. */
struct load_samples {
    int64_t *ns;
    size_t count, room;
};

struct load_result {
    struct load_samples samples[LOAD_VERBS];
    uint64_t errors[LOAD_VERBS];
    char first_error[256];
    int64_t begin_ns, end_ns;
};

/* "ADDR:PORT", numeric IPv4. GS_EINVAL. */
int load_address(const char *text, struct sockaddr_in *ret, struct gs_error *err);

/* Runs all clients to the end and merges what they saw. GS_ENOMEM, GS_EIO. *ret: release. */
int load_run(const struct load_settings *set, struct load_set *sets, struct load_result *ret,
             struct gs_error *err);
void load_result_release(struct load_result *result);
