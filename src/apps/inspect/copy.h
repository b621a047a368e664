/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_COPY_H
#define GPUSHARE_APPS_INSPECT_COPY_H

#include "gpushare/model/names.h"
#include "inspect/lookup.h"

/*
 * Of a node or a pod only what placing looks at. What is kept is named here, member by member; all
 * else stays behind: environment, arguments, images, volumes, addresses, other labels and
 * annotations.
 */
struct copy_name;

struct copy {
    const struct gs_names *names;
    bool hash_names;
    struct copy_name *known; /* names that have their number */
    uint32_t count[4];
};

/* names is borrowed. */
void copy_init(struct copy *copy, const struct gs_names *names, bool hash_names);
void copy_release(struct copy *copy);

/* *caller decrefs*; NULL: out of memory. */
json_t *copy_node(struct copy *copy, const json_t *node);
json_t *copy_pod(struct copy *copy, const json_t *pod);

#endif
