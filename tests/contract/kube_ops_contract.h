/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "gpushare/model/names.h"
#include "gpushare/port/kube.h"

/*
 * What every implementation of include/gpushare/port/kube.h must do, as one cmocka suite. A
 * backend (the curl client against the simulator) brings an open function that makes an empty
 * cluster and says how to change it from outside, behind the port's back.
 *
 *   int main(void)
 *   {
 *       return gs_kube_ops_contract_run(&(struct gs_kube_backend){
 *           .name = "http", .open = open_http, .close = close_http});
 *   }
 *
 * All fixture functions return 0 or -1 and may be called from the test's thread while a watch runs
 * in another.
 */
struct gs_kube_backend;

struct gs_kube_fixture {
    const struct gs_kube_backend *backend; /* filled in by the suite */
    void *ctx;                             /* first argument of everything below */
    struct gs_kube kube;                   /* the port under test */
    const struct gs_names *names;          /* the domain the port was made with */

    /* A core/v1 object as JSON, status included; metadata.uid is kept when given, else made up.
     * A pod may have spec.nodeName. */
    int (*create_node_json)(void *ctx, const char *json);
    int (*create_pod_json)(void *ctx, const char *json);
    int (*delete_node)(void *ctx, const char *name);
    /* At once, no grace period. */
    int (*delete_pod)(void *ctx, const char *ns, const char *name);
    /* status.phase */
    int (*set_phase)(void *ctx, const char *ns, const char *name, const char *phase);
    /* The object as it stands, or all Events of a namespace as an EventList: JSON text, *caller
     * frees*; NULL when it does not exist. */
    char *(*pod_json)(void *ctx, const char *ns, const char *name);
    char *(*node_json)(void *ctx, const char *name);
    char *(*events_json)(void *ctx, const char *ns);
    /* A backend that has no such thing leaves these two NULL, and their tests are skipped. */
    /* Forgets all history, ends running watches: taking them up again meets "410 Expired" (or the
     * backend's own way to say it), so that they list anew. */
    int (*compact)(void *ctx);
    /* Ends running watches without losing history: they resume where they were. */
    int (*cut_watches)(void *ctx);
};

struct gs_kube_backend {
    const char *name;
    int (*open)(struct gs_kube_fixture *ret); /* *ret is zeroed */
    void (*close)(struct gs_kube_fixture *fixture);
};

/* Runs the suite; returns the number of failed tests, as cmocka does. */
int gs_kube_ops_contract_run(const struct gs_kube_backend *backend);
