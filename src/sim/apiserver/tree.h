/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "object.h"

/*
 * Inside sim only: objects as jansson trees while they are changed, and drafts: trees turned back
 * into the text of a version that has no number yet.
 */

/* "" unless the member is there and a string; borrowed from the tree. */
const char *gs_sim_tree_str(const json_t *object, const char *key);

/* The member when it is an object, else NULL. */
json_t *gs_sim_tree_object(const json_t *object, const char *key);

/* The member object, made when absent; NULL when out of memory or of another type. */
json_t *gs_sim_tree_need(json_t *object, const char *key);

/* A JSON object from a request's body; *ret: decref. GS_EPROTO, GS_ETOOBIG, GS_ENOMEM. */
int gs_sim_tree_parse(struct gs_slice body, json_t **ret, struct gs_error *err);

/* The tree of a version, its resourceVersion included; NULL when out of memory. */
json_t *gs_sim_tree_of(const struct gs_sim_object *object);

/* Removes members that are null, at any depth. */
void gs_sim_tree_strip_nulls(json_t *tree);

/* What a request must not change. deleted: metadata.deletionTimestamp or NULL. */
struct gs_sim_identity {
    const char *ns;
    const char *name;
    const char *uid;
    const char *created;
    const char *deleted;
};

/*
 * Text in the form that gs_sim_object.json describes, the version's digits left out at
 * version_at. The strings of `id` and the fields are borrowed from the tree.
 */
struct gs_sim_draft {
    enum gs_sim_kind kind;
    char *text;
    size_t len;
    size_t version_at;
    const char *ns, *name, *uid, *node, *phase;
    bool deleting;
};

/* Replaces the tree's metadata by a checked, ordered copy with this identity and prints all of it.
 * GS_EPROTO (labels that are no strings …), GS_EINVAL, GS_ETOOBIG, GS_ENOMEM. *ret: release; it
 * borrows from root. */
int gs_sim_draft_make(enum gs_sim_kind kind, json_t *root, const struct gs_sim_identity *id,
                      struct gs_sim_draft *ret, struct gs_error *err);
void gs_sim_draft_release(struct gs_sim_draft *draft);

/* One reference; NULL when out of memory. */
struct gs_sim_object *gs_sim_object_of_draft(const struct gs_sim_draft *draft, uint64_t version);

/* The same content under another version; NULL when out of memory. */
struct gs_sim_object *gs_sim_object_renumber(const struct gs_sim_object *object, uint64_t version);

/* The two are the same but for the version. */
bool gs_sim_draft_unchanged(const struct gs_sim_draft *draft, const struct gs_sim_object *object);

/* The words of k8s.io/apimachinery/pkg/api/errors; all return -1. */
int gs_sim_fail_not_found(enum gs_sim_kind kind, const char *name, struct gs_error *err);
int gs_sim_fail_exists(enum gs_sim_kind kind, const char *name, struct gs_error *err);
int gs_sim_fail_conflict(enum gs_sim_kind kind, const char *name, const char *why,
                         struct gs_error *err);
int gs_sim_fail_invalid(enum gs_sim_kind kind, const char *name, const char *path, const char *why,
                        struct gs_error *err);
