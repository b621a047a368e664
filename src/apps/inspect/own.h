/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_OWN_H
#define GPUSHARE_APPS_INSPECT_OWN_H

#include "gpushare/codec/annotation.h"
#include "inspect/common.h"
#include "inspect/waits.h"

/*
 * What a user gets who may not list nodes, or not the pods of others: pods with GPU memory and what
 * they and kube-scheduler say of them, of all namespaces or of one. No sums: without the rest of
 * the cluster nobody knows what is free.
 */
struct own_pod {
    struct gs_pod pod;
    char *said; /* kube-scheduler's last word; "" when there is none, or it has a node */
};

struct own {
    char ns[256]; /* "": pods of all namespaces */
    struct own_pod *pods;
    size_t count;
    size_t left_out; /* beyond OWN_PODS_MAX */
};
enum { OWN_PODS_MAX = 5000 };

struct own_query {
    const struct common *common;
    const char *ns;   /* NULL: all if that is allowed, else the context's namespace */
    const char *node; /* only pods of this node; NULL: of all, and of none */
    bool waiting;     /* only pods without a node */
};

/* By namespace and name. GS_EDENIED when not even these may be listed. Release it also then. */
int own_fetch(const struct own_query *query, struct own *ret, struct gs_error *err);
void own_release(struct own *own);

/* "you may not list nodes …": what is shown instead. */
enum { OWN_TEXT_BYTES = 512 };
void own_note(const struct own *own, char to[OWN_TEXT_BYTES]);

/* waits_asks(), waits_since(), and the GPUs of its record: "0,1", or "-". */
struct own_row {
    char asks[WAIT_SHORT_BYTES], since[WAIT_SHORT_BYTES], gpus[GS_IDX_TEXT_BYTES];
};
void own_row(const struct own_pod *pod, int64_t now_s, struct own_row *ret);

/* Both, for a command whose error it was that something may not be listed: any other error stays
 * as it is, and so does that one when the user may list nothing at all. */
int own_instead(const struct own_query *query, struct gs_error *err);

#endif
