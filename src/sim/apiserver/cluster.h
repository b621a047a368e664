/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "object.h"

/*
 * A Kubernetes API server's storage in memory: objects, their versions and the log of changes, with
 * the rules that schedulers depend on. No sockets and no HTTP: api.h speaks the REST API on top of
 * it.
 *
 *   struct gs_sim_cluster *cluster;
 *   gs_sim_cluster_new(&(struct gs_sim_options){0}, &cluster, &err);
 *   gs_sim_create(cluster, GS_SIM_PODS, "default", gs_slice_of(pod_json), &pod, &err);
 *   gs_sim_bind(cluster, "default", "p1", gs_slice_of(binding_json), &err);
 *
 * Every function may be called from any thread. JSON is parsed and printed outside the one lock; a
 * write that met another one in between starts over, as etcd's clients do.
 *
 * What it keeps to (file names: k8s.io/apiserver or k8s.io/kubernetes 1.20 to 1.32):
 *   one counter gives every write its resourceVersion;
 *   a write to an object does not touch its status, one to its status does not touch its spec
 *   (pkg/registry/core/{pod,node}/strategy.go); of a pod's spec only tolerations and
 * schedulingGates change; metadata.uid and resourceVersion are preconditions (409); a binding is
 * refused with 409 for a pod that is bound or being deleted, copies its annotations in the same
 * transaction, and never asks whether the node exists (pkg/registry/core/pod/storage/storage.go:
 * BindingREST.assignPod); a list with limit is one snapshot over all its pages; a watch hands out
 * every change after a version in order, or fails with GS_EGONE when the log does not reach back
 * that far. What it leaves out: admission, defaults except those named at gs_sim_create(), garbage
 * collection, graceful deletion and finalizers (an object goes at once), generateName, Namespace
 * objects (every namespace is there).
 *
 * Errors, with the HTTP status that api.h gives them:
 *   GS_EPROTO 400 malformed JSON      GS_EINVAL 422 an object that breaks a rule
 *   GS_ENOENT 404                     GS_EEXIST 409 AlreadyExists    GS_ECONFLICT 409 Conflict
 *   GS_EGONE 410                      GS_ETOOBIG 413                 GS_ENOMEM, GS_EINTERNAL 500
 */
struct gs_sim_cluster;

/* 0 or NULL means the default in brackets. */
struct gs_sim_options {
    const struct gs_clock *clock; /* timestamps; borrowed for the cluster's life; [the machine's] */
    uint32_t log_max;             /* changes kept per kind for watches [65536] */
};

enum { GS_SIM_OBJECT_BYTES_MAX = 3 << 19 }; /* 1.5 MiB, as etcd's request limit */

/* *ret_cluster: *caller frees*. GS_ENOMEM. */
int gs_sim_cluster_new(const struct gs_sim_options *options, struct gs_sim_cluster **ret_cluster,
                       struct gs_error *err);

/* No other thread may use it or a watch of it any more. */
void gs_sim_cluster_free(struct gs_sim_cluster *cluster);
GS_DEFINE_CLEANUP(struct gs_sim_cluster *, gs_sim_cluster_free)

/* ---- one object ---- */

/* *ret_object: *caller unrefs*; ret_object may be NULL but here. */
int gs_sim_get(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
               const char *name, struct gs_sim_object **ret_object, struct gs_error *err);

/*
 * body: the object as JSON; kind and apiVersion may be absent. ns: of the request, "" for a
 * cluster-wide kind; the body's must agree or be absent.
 * uid, resourceVersion and creationTimestamp are ours. A pod's status becomes {"phase":"Pending"};
 * its restartPolicy, schedulerName and terminationGracePeriodSeconds, and requests that only stand
 * as limits, are filled in.
 */
int gs_sim_create(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
                  struct gs_slice body, struct gs_sim_object **ret_object, struct gs_error *err);

/* The same behind the API's back, to set a scene: status, uid, creationTimestamp and
 * deletionTimestamp are kept as given, and the namespace is the body's ("default" without one).
 * A gs_manifest_take (codec/manifest.h). GS_EINVAL: an unknown kind. */
int gs_sim_load_object(void *cluster, const char *version, const char *kind, struct gs_slice json,
                       struct gs_error *err);

enum gs_sim_part { GS_SIM_MAIN, GS_SIM_STATUS };

/* PUT. */
int gs_sim_update(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, enum gs_sim_part part,
                  const char *ns, const char *name, struct gs_slice body,
                  struct gs_sim_object **ret_object, struct gs_error *err);

enum gs_sim_patch_type {
    GS_SIM_PATCH_MERGE,     /* RFC 7386 */
    GS_SIM_PATCH_STRATEGIC, /* k8s.io/apimachinery/pkg/util/strategicpatch: lists of objects merge
                               by key, $patch: delete */
};

int gs_sim_patch(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, enum gs_sim_part part,
                 enum gs_sim_patch_type type, const char *ns, const char *name,
                 struct gs_slice body, struct gs_sim_object **ret_object, struct gs_error *err);

/* body: meta/v1 DeleteOptions (preconditions count) or empty. *ret_object: the last version, whose
 * resourceVersion is that of the deletion. */
int gs_sim_delete(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
                  const char *name, struct gs_slice body, struct gs_sim_object **ret_object,
                  struct gs_error *err);

/* body: core/v1 Binding; its metadata.uid, when given, must be the pod's. */
int gs_sim_bind(struct gs_sim_cluster *cluster, const char *ns, const char *name,
                struct gs_slice body, struct gs_error *err);

/* Objects of a kind right now. */
uint32_t gs_sim_count(struct gs_sim_cluster *cluster, enum gs_sim_kind kind);

/* ---- many objects ---- */

/* Which objects a list or watch is about; strings borrowed for the call. */
struct gs_sim_query {
    enum gs_sim_kind kind;
    const char *ns;             /* NULL or "": every namespace */
    const char *field_selector; /* "spec.nodeName=n1,status.phase!=Failed" or NULL; every path of
                                   strings or numbers in the object may be asked for */
    const char *label_selector; /* "app=x,tier!=y,gone,!there,env in (a,b)" or NULL */
};

struct gs_sim_list {
    struct gs_sim_object *const *items; /* by namespace and name; borrowed until the release */
    size_t count;
    uint64_t version;   /* of the snapshot */
    uint64_t remaining; /* objects after this page */
    char next[48];      /* what to ask the next page with; "" on the last page */
    struct gs_sim_snapshot *snapshot;
};

/*
 * limit 0: everything. next: NULL or "" for the first page, else the previous page's token, which
 * is good until 32 other lists are under way: then GS_EGONE. *ret: release it.
 */
int gs_sim_list(struct gs_sim_cluster *cluster, const struct gs_sim_query *query, uint64_t limit,
                const char *next, struct gs_sim_list *ret, struct gs_error *err);
void gs_sim_list_release(struct gs_sim_list *list);

enum gs_sim_change { GS_SIM_ADDED, GS_SIM_MODIFIED, GS_SIM_DELETED };

/* A change as one watcher sees it: an object that starts to match its selector is ADDED, one that
 * stops is DELETED (with the content it had when it still matched, and the new version). */
struct gs_sim_event {
    enum gs_sim_change change;
    struct gs_sim_object *object; /* *caller unrefs* */
};

struct gs_sim_watch;

/* from: a resourceVersion; 0: first everything there is, as ADDED, in the order of a list.
 * A version that the log does not reach is told by the first gs_sim_watch_next(). *ret_watch:
 * *caller frees*, before the cluster. One thread at a time may use a watch. */
int gs_sim_watch_open(struct gs_sim_cluster *cluster, const struct gs_sim_query *query,
                      uint64_t from, struct gs_sim_watch **ret_watch, struct gs_error *err);
void gs_sim_watch_free(struct gs_sim_watch *watch);
GS_DEFINE_CLEANUP(struct gs_sim_watch *, gs_sim_watch_free)

/*
 * 1: *ret is the next change. 0: none came within wait_ns of real time, or gs_sim_cluster_wake()
 * was called since this watch last returned 0. -1: the watch is over: GS_EGONE (the log moved on),
 * GS_EIO (it was cut, which tests do), GS_ENOMEM.
 */
int gs_sim_watch_next(struct gs_sim_watch *watch, int64_t wait_ns, struct gs_sim_event *ret,
                      struct gs_error *err);

/* Everything up to this version has been handed out: what a bookmark says. */
uint64_t gs_sim_watch_version(const struct gs_sim_watch *watch);

/* The version of the newest write. */
uint64_t gs_sim_cluster_version(struct gs_sim_cluster *cluster);

/* Every gs_sim_watch_next() returns, or the next one will. */
void gs_sim_cluster_wake(struct gs_sim_cluster *cluster);
