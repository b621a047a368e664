/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gpushare/codec/rfc3339.h"
#include "patch.h"
#include "rules.h"
#include "store.h"

/* Another write may come first this often before a writer gives up; each time somebody else got
 * forward, so this is far beyond what happens. */
enum { TRIES_MAX = 1000 };

static int fail_busy(struct gs_error *err)
{
    return gs_fail(err, GS_EINTERNAL, "the object changes too fast");
}

int gs_sim_get(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
               const char *name, struct gs_sim_object **ret_object, struct gs_error *err)
{
    struct gs_sim_object *object = gs_sim_store_get(cluster, kind, ns, name);
    if (!object)
        return gs_sim_fail_not_found(kind, name, err);
    if (ret_object)
        *ret_object = object;
    else
        gs_sim_object_unref(object);
    return 0;
}

/* ---- creation ---- */

static int64_t wall_ns(const struct gs_sim_cluster *cluster)
{
    return cluster->clock->wall_ns(cluster->clock->ctx);
}

static int check_type(enum gs_sim_kind kind, const json_t *root, struct gs_error *err)
{
    const struct gs_sim_resource *res = gs_sim_resource(kind);
    const char *given = gs_sim_tree_str(root, "kind");
    const char *version = gs_sim_tree_str(root, "apiVersion");
    if ((given[0] && strcmp(given, res->kind) != 0) ||
        (version[0] && given[0] && gs_sim_kind_of_type(version, given) != kind))
        return gs_fail(err, GS_EPROTO,
                       "the API version in the data (%.40s, %.40s) does not match the expected API "
                       "version (%s)",
                       version, given, res->kind);
    return 0;
}

/* The name given, or one made from generateName: five characters as in
 * k8s.io/apiserver/pkg/storage/names. */
static void pick_name(struct gs_sim_cluster *cluster, const json_t *meta, char ret[300])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    const char *name = gs_sim_tree_str(meta, "name");
    const char *stem = gs_sim_tree_str(meta, "generateName");
    if (name[0] || !stem[0]) {
        snprintf(ret, 300, "%.299s", name);
        return;
    }
    char uid[37], tail[6];
    gs_sim_store_uid(cluster, uid);
    for (size_t i = 0; i < 5; i++)
        tail[i] = letters[(size_t)(unsigned char)(uid[2 * i + (i > 3)] * 7 + uid[24 + 2 * i]) %
                          (sizeof(letters) - 1)];
    tail[5] = 0;
    snprintf(ret, 300, "%.248s%s", stem, tail);
}

static int prepare(enum gs_sim_kind kind, json_t *root, const char *name, bool trusted,
                   struct gs_error *err)
{
    if (kind == GS_SIM_PODS)
        return gs_sim_pod_prepare(root, name, trusted, err);
    if (kind == GS_SIM_NAMESPACES && !gs_sim_tree_object(root, "status") &&
        json_object_set_new(root, "status", json_pack("{s:s}", "phase", "Active")) < 0)
        return gs_fail_nomem(err);
    return 0;
}

/* A namespace comes into being with its first object. Losing a race for it is fine. */
static int need_namespace(struct gs_sim_cluster *cluster, const char *ns, struct gs_error *err)
{
    struct gs_sim_object *there = gs_sim_store_get(cluster, GS_SIM_NAMESPACES, "", ns);
    gs_sim_object_unref(there);
    if (there)
        return 0;
    char body[400];
    int len = snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%.253s\"}}", ns);
    struct gs_error own = {0};
    if (strpbrk(ns, "\"\\") ||
        gs_sim_create(cluster, GS_SIM_NAMESPACES, "", (struct gs_slice){body, (size_t)len}, NULL,
                      &own) < 0) {
        if (own.code != GS_EEXIST)
            return gs_fail(err, own.code ? own.code : GS_EINVAL, "namespace: %.200s", own.msg);
    }
    return 0;
}

static int add(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns, json_t *root,
               bool trusted, struct gs_sim_object **ret_object, struct gs_error *err)
{
    char name[300], uid[37], now[GS_RFC3339_BYTES];
    const json_t *meta = gs_sim_tree_object(root, "metadata");
    pick_name(cluster, meta, name);
    gs_sim_store_uid(cluster, uid);
    struct gs_sim_identity id = {
        .ns = ns,
        .name = name,
        .uid = uid,
        .created = gs_rfc3339_format(wall_ns(cluster), 0, now),
    };
    if (trusted) {
        const char *deleted = gs_sim_tree_str(meta, "deletionTimestamp");
        const char *created = gs_sim_tree_str(meta, "creationTimestamp");
        const char *given = gs_sim_tree_str(meta, "uid");
        id.deleted = deleted[0] ? deleted : NULL;
        id.created = created[0] ? created : id.created;
        id.uid = given[0] ? given : uid;
    }
    if (prepare(kind, root, name, trusted, err) < 0 ||
        (ns[0] && need_namespace(cluster, ns, err) < 0))
        return -1;
    struct gs_sim_draft draft;
    if (gs_sim_draft_make(kind, root, &id, &draft, err) < 0)
        return -1;
    int rc = gs_sim_store_put(cluster, NULL, &draft, ret_object, err);
    gs_sim_draft_release(&draft);
    return rc == 1 ? gs_sim_fail_exists(kind, name, err) : rc;
}

int gs_sim_create(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
                  struct gs_slice body, struct gs_sim_object **ret_object, struct gs_error *err)
{
    json_auto_t *root = NULL;
    if (gs_sim_tree_parse(body, &root, err) < 0 || check_type(kind, root, err) < 0)
        return -1;
    gs_sim_tree_strip_nulls(root);
    const json_t *meta = gs_sim_tree_object(root, "metadata");
    const char *given = gs_sim_tree_str(meta, "namespace");
    if (given[0] && gs_sim_resource(kind)->namespaced && strcmp(given, ns) != 0)
        return gs_fail(err, GS_EPROTO,
                       "the namespace of the provided object does not match the namespace sent on "
                       "the request");
    if (gs_sim_tree_str(meta, "resourceVersion")[0])
        return gs_fail(err, GS_EPROTO,
                       "resourceVersion should not be set on objects to be created");
    return add(cluster, kind, ns, root, false, ret_object, err);
}

int gs_sim_load(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, struct gs_slice body,
                struct gs_sim_object **ret_object, struct gs_error *err)
{
    json_auto_t *root = NULL;
    if (gs_sim_tree_parse(body, &root, err) < 0 || check_type(kind, root, err) < 0)
        return -1;
    gs_sim_tree_strip_nulls(root);
    const char *ns = "";
    if (gs_sim_resource(kind)->namespaced) {
        ns = gs_sim_tree_str(gs_sim_tree_object(root, "metadata"), "namespace");
        ns = ns[0] ? ns : "default";
    }
    return add(cluster, kind, ns, root, true, ret_object, err);
}

/* ---- changes ---- */

/* metadata.uid and resourceVersion of what was sent against what is there. */
static int check_preconditions(const struct gs_sim_object *before, const json_t *meta,
                               struct gs_error *err)
{
    const char *uid = gs_sim_tree_str(meta, "uid");
    const char *version = gs_sim_tree_str(meta, "resourceVersion");
    enum gs_sim_kind kind = (enum gs_sim_kind)before->kind;
    if (uid[0] && strcmp(uid, before->uid) != 0) {
        char why[160];
        snprintf(why, sizeof(why),
                 "Precondition failed: UID in precondition: %.40s, UID in object meta: %.40s", uid,
                 before->uid);
        return gs_sim_fail_conflict(kind, before->name, why, err);
    }
    if (version[0] && (strlen(version) != before->version_len ||
                       memcmp(version, before->json + before->version_at, before->version_len)))
        return gs_sim_fail_conflict(kind, before->name,
                                    "the object has been modified; please apply your changes to "
                                    "the latest version and try again",
                                    err);
    return 0;
}

/* Only its part of the object goes into the store; the other part stays as it is. */
static int keep_other_part(const struct gs_sim_object *before, const json_t *old, json_t *root,
                           enum gs_sim_part part, struct gs_error *err)
{
    enum gs_sim_kind kind = (enum gs_sim_kind)before->kind;
    const char *kept = part == GS_SIM_STATUS ? "spec" : "status";
    if (!gs_sim_resource(kind)->has_status)
        return 0;
    json_t *value = json_object_get(old, kept);
    if (!value)
        json_object_del(root, kept);
    else if (json_object_set(root, kept, value) < 0)
        return gs_fail_nomem(err);
    if (kind == GS_SIM_PODS && part == GS_SIM_MAIN)
        return gs_sim_pod_check_update(old, root, before->name, err);
    return 0;
}

static bool has_finalizers(const json_t *root)
{
    return json_array_size(json_object_get(gs_sim_tree_object(root, "metadata"), "finalizers")) > 0;
}

/* Puts the changed tree in place of `before`. 1: another write came first. */
static int commit(struct gs_sim_cluster *cluster, struct gs_sim_object *before, const json_t *old,
                  json_t *root, struct gs_sim_object **ret_object, struct gs_error *err)
{
    const json_t *meta = gs_sim_tree_object(old, "metadata");
    const char *deleted = gs_sim_tree_str(meta, "deletionTimestamp");
    struct gs_sim_identity id = {
        .ns = before->ns,
        .name = before->name,
        .uid = before->uid,
        .created = gs_sim_tree_str(meta, "creationTimestamp"),
        .deleted = deleted[0] ? deleted : NULL,
    };
    if (before->deleting && has_finalizers(old) && !has_finalizers(root))
        return gs_sim_store_remove(cluster, before, ret_object, err);
    struct gs_sim_draft draft;
    if (gs_sim_draft_make((enum gs_sim_kind)before->kind, root, &id, &draft, err) < 0)
        return -1;
    int rc = 0;
    if (!gs_sim_draft_unchanged(&draft, before))
        rc = gs_sim_store_put(cluster, before, &draft, ret_object, err);
    else if (ret_object)
        *ret_object = gs_sim_object_ref(before);
    gs_sim_draft_release(&draft);
    return rc;
}

static int check_names(const struct gs_sim_object *before, const json_t *root, struct gs_error *err)
{
    const json_t *meta = gs_sim_tree_object(root, "metadata");
    const char *name = gs_sim_tree_str(meta, "name"), *ns = gs_sim_tree_str(meta, "namespace");
    if ((name[0] && strcmp(name, before->name) != 0) ||
        (ns[0] && before->ns[0] && strcmp(ns, before->ns) != 0))
        return gs_fail(err, GS_EPROTO,
                       "the name or namespace of the object does not match that of the request");
    return 0;
}

static int update_once(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                       enum gs_sim_part part, struct gs_slice body,
                       struct gs_sim_object **ret_object, struct gs_error *err)
{
    enum gs_sim_kind kind = (enum gs_sim_kind)before->kind;
    json_auto_t *root = NULL, *old = gs_sim_tree_of(before);
    if (!old)
        return gs_fail_nomem(err);
    if (gs_sim_tree_parse(body, &root, err) < 0 || check_type(kind, root, err) < 0)
        return -1;
    gs_sim_tree_strip_nulls(root);
    const json_t *meta = gs_sim_tree_object(root, "metadata");
    if (gs_sim_resource(kind)->needs_version && !gs_sim_tree_str(meta, "resourceVersion")[0])
        return gs_sim_fail_invalid(kind, before->name, "metadata.resourceVersion",
                                   "Invalid value: 0x0: must be specified for an update", err);
    if (check_names(before, root, err) < 0 || check_preconditions(before, meta, err) < 0 ||
        keep_other_part(before, old, root, part, err) < 0)
        return -1;
    return commit(cluster, before, old, root, ret_object, err);
}

int gs_sim_update(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, enum gs_sim_part part,
                  const char *ns, const char *name, struct gs_slice body,
                  struct gs_sim_object **ret_object, struct gs_error *err)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *before =
            gs_sim_store_get(cluster, kind, ns, name);
        if (!before && gs_sim_resource(kind)->create_on_update && part == GS_SIM_MAIN)
            return gs_sim_create(cluster, kind, ns, body, ret_object, err);
        if (!before)
            return gs_sim_fail_not_found(kind, name, err);
        int rc = update_once(cluster, before, part, body, ret_object, err);
        if (rc <= 0)
            return rc;
    }
    return fail_busy(err);
}

static int patch_once(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                      enum gs_sim_part part, enum gs_sim_patch_type type, json_t *patch,
                      struct gs_sim_object **ret_object, struct gs_error *err)
{
    json_auto_t *old = gs_sim_tree_of(before), *root = gs_sim_tree_of(before);
    if (!old || !root)
        return gs_fail_nomem(err);
    const json_t *meta = gs_sim_tree_object(patch, "metadata");
    if (check_preconditions(before, meta, err) < 0 || check_names(before, patch, err) < 0)
        return -1;
    int rc = type == GS_SIM_PATCH_MERGE ? gs_sim_patch_merge(root, patch, err)
                                        : gs_sim_patch_strategic(root, patch, err);
    if (rc < 0 || check_type((enum gs_sim_kind)before->kind, root, err) < 0)
        return -1;
    gs_sim_tree_strip_nulls(root);
    if (keep_other_part(before, old, root, part, err) < 0)
        return -1;
    return commit(cluster, before, old, root, ret_object, err);
}

int gs_sim_patch(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, enum gs_sim_part part,
                 enum gs_sim_patch_type type, const char *ns, const char *name,
                 struct gs_slice body, struct gs_sim_object **ret_object, struct gs_error *err)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        /* Parsed again for each try: what was merged into the object shares nodes with it. */
        json_auto_t *patch = NULL;
        if (gs_sim_tree_parse(body, &patch, err) < 0)
            return -1;
        _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *before =
            gs_sim_store_get(cluster, kind, ns, name);
        if (!before)
            return gs_sim_fail_not_found(kind, name, err);
        int rc = patch_once(cluster, before, part, type, patch, ret_object, err);
        if (rc <= 0)
            return rc;
    }
    return fail_busy(err);
}

/* ---- deletion ---- */

/* Finalizers keep it: it is marked and stays. */
static int mark_deleted(struct gs_sim_cluster *cluster, struct gs_sim_object *before, json_t *root,
                        struct gs_sim_object **ret_object, struct gs_error *err)
{
    char now[GS_RFC3339_BYTES];
    struct gs_sim_identity id = {
        .ns = before->ns,
        .name = before->name,
        .uid = before->uid,
        .created = gs_sim_tree_str(gs_sim_tree_object(root, "metadata"), "creationTimestamp"),
        .deleted = gs_rfc3339_format(wall_ns(cluster), 0, now),
    };
    if (before->deleting) {
        if (ret_object)
            *ret_object = gs_sim_object_ref(before);
        return 0;
    }
    struct gs_sim_draft draft;
    if (gs_sim_draft_make((enum gs_sim_kind)before->kind, root, &id, &draft, err) < 0)
        return -1;
    int rc = gs_sim_store_put(cluster, before, &draft, ret_object, err);
    gs_sim_draft_release(&draft);
    return rc;
}

static int delete_once(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                       const json_t *preconditions, struct gs_sim_object **ret_object,
                       struct gs_error *err)
{
    if (check_preconditions(before, preconditions, err) < 0)
        return -1;
    json_auto_t *root = gs_sim_tree_of(before);
    if (!root)
        return gs_fail_nomem(err);
    if (has_finalizers(root))
        return mark_deleted(cluster, before, root, ret_object, err);
    return gs_sim_store_remove(cluster, before, ret_object, err);
}

/* What lies in a namespace goes with it. */
static int empty_namespace(struct gs_sim_cluster *cluster, const char *ns, struct gs_error *err)
{
    for (int kind = 0; kind < GS_SIM_KINDS; kind++) {
        struct gs_sim_query query = {.kind = (enum gs_sim_kind)kind, .ns = ns};
        struct gs_sim_list list;
        if (!gs_sim_resource(query.kind)->namespaced)
            continue;
        if (gs_sim_list(cluster, &query, 0, NULL, &list, err) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++) /* one that is gone already is fine */
            gs_sim_delete(cluster, query.kind, ns, list.items[i]->name, (struct gs_slice){0}, NULL,
                          NULL);
        gs_sim_list_release(&list);
    }
    return 0;
}

int gs_sim_delete(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
                  const char *name, struct gs_slice body, struct gs_sim_object **ret_object,
                  struct gs_error *err)
{
    json_auto_t *options = NULL;
    if (body.len > 0 && gs_sim_tree_parse(body, &options, err) < 0)
        return -1;
    const json_t *preconditions = gs_sim_tree_object(options, "preconditions");
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *before =
            gs_sim_store_get(cluster, kind, ns, name);
        if (!before)
            return gs_sim_fail_not_found(kind, name, err);
        if (kind == GS_SIM_NAMESPACES && empty_namespace(cluster, name, err) < 0)
            return -1;
        int rc = delete_once(cluster, before, preconditions, ret_object, err);
        if (rc <= 0)
            return rc;
    }
    return fail_busy(err);
}

/* ---- binding ---- */

static int fail_bind(const struct gs_sim_object *pod, struct gs_error *err, const char *what,
                     const char *node)
{
    return gs_fail(err, GS_ECONFLICT,
                   "Operation cannot be fulfilled on pods/binding \"%.60s\": pod %.60s is %s%s%s",
                   pod->name, pod->name, what, node, node[0] ? "\"" : "");
}

static int check_binding(const json_t *binding, const char *name, struct gs_error *err)
{
    const json_t *target = gs_sim_tree_object(binding, "target");
    const char *kind = gs_sim_tree_str(target, "kind");
    const char *given = gs_sim_tree_str(gs_sim_tree_object(binding, "metadata"), "name");
    if (given[0] && strcmp(given, name) != 0)
        return gs_fail(err, GS_EPROTO, "name in URL does not match name in Binding object");
    if (kind[0] && strcmp(kind, "Node") != 0)
        return gs_fail(err, GS_EINVAL,
                       "Binding \"%.60s\" is invalid: target.kind: Unsupported value", name);
    if (!gs_sim_tree_str(target, "name")[0])
        return gs_fail(err, GS_EINVAL, "Binding \"%.60s\" is invalid: target.name: Required value",
                       name);
    return 0;
}

static int bind_once(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                     const json_t *binding, struct gs_error *err)
{
    if (check_preconditions(before, gs_sim_tree_object(binding, "metadata"), err) < 0)
        return -1;
    if (before->deleting)
        return fail_bind(before, err, "being deleted, cannot be assigned to a host", "");
    if (before->node[0])
        return fail_bind(before, err, "already assigned to node \"", before->node);
    json_auto_t *old = gs_sim_tree_of(before), *root = gs_sim_tree_of(before);
    if (!old || !root)
        return gs_fail_nomem(err);
    if (json_array_size(json_object_get(gs_sim_tree_object(root, "spec"), "schedulingGates")) > 0)
        return fail_bind(before, err, "gated: it has non-empty .spec.schedulingGates", "");
    if (gs_sim_pod_assign(root, binding, wall_ns(cluster), err) < 0)
        return -1;
    return commit(cluster, before, old, root, NULL, err);
}

int gs_sim_bind(struct gs_sim_cluster *cluster, const char *ns, const char *name,
                struct gs_slice body, struct gs_error *err)
{
    json_auto_t *binding = NULL;
    if (gs_sim_tree_parse(body, &binding, err) < 0)
        return -1;
    if (!name[0])
        name = gs_sim_tree_str(gs_sim_tree_object(binding, "metadata"), "name");
    if (check_binding(binding, name, err) < 0)
        return -1;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *before =
            gs_sim_store_get(cluster, GS_SIM_PODS, ns, name);
        if (!before)
            return gs_sim_fail_not_found(GS_SIM_PODS, name, err);
        int rc = bind_once(cluster, before, binding, err);
        if (rc <= 0)
            return rc;
    }
    return fail_busy(err);
}
