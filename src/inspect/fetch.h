/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/common.h"
#include "inspect/snapshot.h"

/* Lists from the API server, page by page, into a snapshot. */

struct fetch {
    const struct common *common;
    const char *node;     /* NULL: all */
    const char *selector; /* label selector of nodes; NULL: all */
    bool copies;          /* the snapshot keeps bound pods, too */
};

/*
 * Nodes, then pods that are not over yet. Objects that cannot be decoded are passed over and
 * counted in *ret_broken (NULL is fine). The codes of port/kube.h. Release *ret also then.
 */
int fetch_cluster(const struct fetch *fetch, struct snapshot *ret, uint64_t *ret_broken,
                  struct gs_error *err);

/* The pods of one namespace, or (ns NULL) of all, to a sink that has list_begin and pod. */
int fetch_pods(const struct fetch *fetch, const char *ns, const struct gs_watch_sink *sink,
               struct gs_error *err);
