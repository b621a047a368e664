/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "cluster.h"
#include "gpushare/base/arena.h"

/*
 * Field and label selectors, parsed: k8s.io/apimachinery/pkg/fields and pkg/labels. A zeroed struct
 * matches everything.
 */
struct gs_sim_term {
    struct gs_sim_term *next;
    bool label;
    bool negated; /* "!=", "notin", "!" */
    const char *key;
    const char **values; /* NULL-terminated, one of them; NULL: it is there at all */
};

struct gs_sim_selector {
    struct gs_sim_term *terms;
    const char *ns; /* "" for all */
    struct gs_arena arena;
};

/* GS_EPROTO: not understood, as the API server's 400. *ret: release. */
int gs_sim_selector_parse(const struct gs_sim_query *query, struct gs_sim_selector *ret,
                          struct gs_error *err);
void gs_sim_selector_release(struct gs_sim_selector *selector);

/* Out of memory counts as no match. */
bool gs_sim_selector_matches(const struct gs_sim_selector *selector,
                             const struct gs_sim_object *object);
