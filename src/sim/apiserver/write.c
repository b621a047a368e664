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

int gs_sim_get(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
               const char *name, struct gs_sim_object **ret_object, struct gs_error *err)
{
    struct gs_sim_object *object = gs_sim_store_get(cluster, kind, ns, name);
    if (!object)
        return gs_sim_fail_not_found(kind, name, err);
    *ret_object = object;
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

/* An object of a request's body. *ret: decref. */
static int parse(enum gs_sim_kind kind, struct gs_slice body, json_t **ret, struct gs_error *err)
{
    if (gs_sim_tree_parse(body, ret, err) < 0)
        return -1;
    gs_sim_tree_strip_nulls(*ret);
    return check_type(kind, *ret, err);
}

static int add(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns, json_t *root,
               bool trusted, struct gs_sim_object **ret_object, struct gs_error *err)
{
    char name[300], uid[37], now[GS_RFC3339_BYTES];
    const json_t *meta = gs_sim_tree_object(root, "metadata");
    snprintf(name, sizeof(name), "%.299s", gs_sim_tree_str(meta, "name"));
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
    if (kind == GS_SIM_PODS && gs_sim_pod_prepare(root, name, trusted, err) < 0)
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
    if (parse(kind, body, &root, err) < 0)
        return -1;
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

int gs_sim_load_object(void *cluster, const char *version, const char *kind, struct gs_slice json,
                       struct gs_error *err)
{
    json_auto_t *root = NULL;
    const enum gs_sim_kind at = gs_sim_kind_of_type(version, kind);
    if (at == GS_SIM_KINDS)
        return gs_fail(err, GS_EINVAL, "unknown kind \"%.40s\" of apiVersion \"%.40s\"", kind,
                       version);
    if (parse(at, json, &root, err) < 0)
        return -1;
    const char *ns = "";
    if (gs_sim_resource(at)->namespaced) {
        ns = gs_sim_tree_str(gs_sim_tree_object(root, "metadata"), "namespace");
        ns = ns[0] ? ns : "default";
    }
    return add(cluster, at, ns, root, true, NULL, err);
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

/* What a request wants of an object: the parsed body, and how it is applied. Trees are changed in
 * place, so that each try takes a copy. */
struct request {
    int (*once)(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                const struct request *request, struct gs_sim_object **ret_object,
                struct gs_error *err);
    enum gs_sim_part part;
    enum gs_sim_patch_type type;
    json_t *body;
};

/* As often as another write comes first. */
static int change(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
                  const char *name, const struct request *request,
                  struct gs_sim_object **ret_object, struct gs_error *err)
{
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *before =
            gs_sim_store_get(cluster, kind, ns, name);
        if (!before)
            return gs_sim_fail_not_found(kind, name, err);
        int rc = request->once(cluster, before, request, ret_object, err);
        if (rc <= 0)
            return rc;
    }
    return gs_fail(err, GS_EINTERNAL, "the object is modified too often");
}

static int update_once(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                       const struct request *request, struct gs_sim_object **ret_object,
                       struct gs_error *err)
{
    enum gs_sim_kind kind = (enum gs_sim_kind)before->kind;
    json_auto_t *root = json_deep_copy(request->body), *old = gs_sim_tree_of(before);
    if (!root || !old)
        return gs_fail_nomem(err);
    const json_t *meta = gs_sim_tree_object(root, "metadata");
    if (gs_sim_resource(kind)->needs_version && !gs_sim_tree_str(meta, "resourceVersion")[0])
        return gs_sim_fail_invalid(kind, before->name, "metadata.resourceVersion",
                                   "Invalid value: 0x0: must be specified for an update", err);
    if (check_names(before, root, err) < 0 || check_preconditions(before, meta, err) < 0 ||
        keep_other_part(before, old, root, request->part, err) < 0)
        return -1;
    return commit(cluster, before, old, root, ret_object, err);
}

int gs_sim_update(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, enum gs_sim_part part,
                  const char *ns, const char *name, struct gs_slice body,
                  struct gs_sim_object **ret_object, struct gs_error *err)
{
    json_auto_t *root = NULL;
    if (parse(kind, body, &root, err) < 0)
        return -1;
    const struct request request = {.once = update_once, .part = part, .body = root};
    return change(cluster, kind, ns, name, &request, ret_object, err);
}

static int patch_once(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                      const struct request *request, struct gs_sim_object **ret_object,
                      struct gs_error *err)
{
    json_auto_t *old = gs_sim_tree_of(before), *root = gs_sim_tree_of(before);
    json_auto_t *patch = json_deep_copy(request->body);
    if (!old || !root || !patch)
        return gs_fail_nomem(err);
    const json_t *meta = gs_sim_tree_object(patch, "metadata");
    if (check_preconditions(before, meta, err) < 0 || check_names(before, patch, err) < 0)
        return -1;
    if (request->type == GS_SIM_PATCH_STRATEGIC) {
        if (gs_sim_patch_strategic(root, patch, err) < 0)
            return -1;
    } else if (json_object_update_recursive(root, patch) < 0) {
        return gs_fail_nomem(err);
    }
    gs_sim_tree_strip_nulls(root); /* RFC 7386: a null removes the member */
    if (check_type((enum gs_sim_kind)before->kind, root, err) < 0)
        return -1;
    if (keep_other_part(before, old, root, request->part, err) < 0)
        return -1;
    return commit(cluster, before, old, root, ret_object, err);
}

int gs_sim_patch(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, enum gs_sim_part part,
                 enum gs_sim_patch_type type, const char *ns, const char *name,
                 struct gs_slice body, struct gs_sim_object **ret_object, struct gs_error *err)
{
    json_auto_t *patch = NULL;
    if (gs_sim_tree_parse(body, &patch, err) < 0)
        return -1;
    const struct request request = {patch_once, part, type, patch};
    return change(cluster, kind, ns, name, &request, ret_object, err);
}

/* ---- deletion ---- */

static int delete_once(struct gs_sim_cluster *cluster, struct gs_sim_object *before,
                       const struct request *request, struct gs_sim_object **ret_object,
                       struct gs_error *err)
{
    if (check_preconditions(before, gs_sim_tree_object(request->body, "preconditions"), err) < 0)
        return -1;
    return gs_sim_store_remove(cluster, before, ret_object, err);
}

int gs_sim_delete(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
                  const char *name, struct gs_slice body, struct gs_sim_object **ret_object,
                  struct gs_error *err)
{
    json_auto_t *options = NULL;
    if (body.len > 0 && gs_sim_tree_parse(body, &options, err) < 0)
        return -1;
    const struct request request = {.once = delete_once, .body = options};
    return change(cluster, kind, ns, name, &request, ret_object, err);
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
                     const struct request *request, struct gs_sim_object **ret_object,
                     struct gs_error *err)
{
    if (check_binding(request->body, before->name, err) < 0 ||
        check_preconditions(before, gs_sim_tree_object(request->body, "metadata"), err) < 0)
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
    if (gs_sim_pod_assign(root, request->body, wall_ns(cluster), err) < 0)
        return -1;
    return commit(cluster, before, old, root, ret_object, err);
}

int gs_sim_bind(struct gs_sim_cluster *cluster, const char *ns, const char *name,
                struct gs_slice body, struct gs_error *err)
{
    json_auto_t *binding = NULL;
    if (gs_sim_tree_parse(body, &binding, err) < 0)
        return -1;
    const struct request request = {.once = bind_once, .body = binding};
    return change(cluster, GS_SIM_PODS, ns, name, &request, NULL, err);
}
