/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <string.h>

#include "gpushare/codec/quantity.h"
#include "gpushare/codec/rfc3339.h"
#include "patch.h"
#include "tree.h"

/* ---- creation ---- */

static int set_default(json_t *object, const char *key, json_t *value)
{
    const json_t *given = json_object_get(object, key);
    if (given && !json_is_null(given)) {
        json_decref(value);
        return 0;
    }
    return json_object_set_new(object, key, value);
}

static int fail_resource(const char *pod, const char *why, struct gs_error *err)
{
    return gs_sim_fail_invalid(GS_SIM_PODS, pod, "spec.containers.resources", why, err);
}

/* kube-scheduler and the kubelet count these in whole devices: IsExtendedResourceName. */
static bool extended(const char *resource)
{
    return strchr(resource, '/') && !strstr(resource, "kubernetes.io/");
}

/* Quantities as strings, as the API server stores them. */
static int check_quantities(json_t *map, const char *pod, struct gs_error *err)
{
    const char *key;
    void *next;
    json_t *value;
    json_object_foreach_safe(map, next, key, value)
    {
        if (json_is_number(value)) {
            _cleanup_free_ char *digits = json_dumps(value, JSON_ENCODE_ANY);
            if (!digits || json_object_set_new(map, key, json_string(digits)) < 0)
                return gs_fail_nomem(err);
            value = json_object_get(map, key);
        }
        if (!json_is_string(value))
            return gs_fail(err, GS_EPROTO, "a resource quantity is neither a string nor a number");
        struct gs_slice text = gs_slice_of(json_string_value(value));
        int64_t amount;
        enum gs_quantity verdict =
            gs_quantity_read(text, extended(key) ? GS_QUANTITY_WHOLE : GS_QUANTITY_MILLI, &amount);
        if (verdict == GS_QUANTITY_MALFORMED)
            return gs_fail(err, GS_EPROTO,
                           "quantities must match the regular expression "
                           "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        if (verdict == GS_QUANTITY_FRACTION)
            return fail_resource(pod, "Invalid value: must be an integer", err);
        if (verdict == GS_QUANTITY_OK && amount < 0)
            return fail_resource(pod, "Invalid value: must be greater than or equal to 0", err);
    }
    return 0;
}

/* Requests that only stand as limits are filled in; extended resources cannot be overcommitted. */
static int check_resources(json_t *container, const char *pod, struct gs_error *err)
{
    json_t *resources = gs_sim_tree_object(container, "resources");
    json_t *limits = gs_sim_tree_object(resources, "limits");
    json_t *requests = gs_sim_tree_object(resources, "requests");
    if (check_quantities(limits, pod, err) < 0 || check_quantities(requests, pod, err) < 0)
        return -1;
    const char *key;
    json_t *value;
    json_object_foreach(requests, key, value)
    {
        if (extended(key) && !json_object_get(limits, key))
            return fail_resource(
                pod, "Required value: Limit must be set for non overcommitable resources", err);
    }
    json_object_foreach(limits, key, value)
    {
        if (!requests)
            requests = gs_sim_tree_need(resources, "requests");
        if (!requests || set_default(requests, key, json_incref(value)) < 0)
            return gs_fail_nomem(err);
        if (extended(key) && !json_equal(json_object_get(requests, key), value))
            return fail_resource(pod, "Invalid value: must be equal to the limit", err);
    }
    return 0;
}

static int check_containers(json_t *list, const char *path, const char *pod, struct gs_error *err)
{
    json_t *container;
    size_t i;
    json_array_foreach(list, i, container)
    {
        const char *name = gs_sim_tree_str(container, "name");
        if (!json_is_object(container))
            return gs_fail(err, GS_EPROTO, "%s has an element that is not an object", path);
        if (!name[0])
            return gs_sim_fail_invalid(GS_SIM_PODS, pod, path, "Required value: name", err);
        if (check_resources(container, pod, err) < 0)
            return -1;
    }
    return 0;
}

static int set_defaults(json_t *pod, json_t *spec, bool keep_status)
{
    int failed = set_default(spec, "restartPolicy", json_string("Always"));
    failed |= set_default(spec, "terminationGracePeriodSeconds", json_integer(30));
    failed |= set_default(spec, "schedulerName", json_string("default-scheduler"));
    if (!keep_status)
        failed |= json_object_set_new(pod, "status", json_object());
    json_t *status = gs_sim_tree_need(pod, "status");
    return failed || !status ? -1 : set_default(status, "phase", json_string("Pending"));
}

int gs_sim_pod_prepare(json_t *pod, const char *name, bool keep_status, struct gs_error *err)
{
    json_t *spec = gs_sim_tree_object(pod, "spec");
    json_t *containers = json_object_get(spec, "containers");
    json_t *init = json_object_get(spec, "initContainers");
    if (json_array_size(containers) == 0)
        return gs_sim_fail_invalid(GS_SIM_PODS, name, "spec.containers", "Required value", err);
    if (init && !json_is_array(init))
        return gs_fail(err, GS_EPROTO, "spec.initContainers is not a list");
    if (check_containers(containers, "spec.containers", name, err) < 0 ||
        check_containers(init, "spec.initContainers", name, err) < 0)
        return -1;
    return set_defaults(pod, spec, keep_status) < 0 ? gs_fail_nomem(err) : 0;
}

/* ---- updates ---- */

int gs_sim_pod_check_update(const json_t *before, json_t *after, const char *name,
                            struct gs_error *err)
{
    static const char *const free_fields[] = {"tolerations", "schedulingGates"};
    if (gs_sim_pod_prepare(after, name, true, err) < 0)
        return -1;
    const json_t *old = json_object_get(before, "spec");
    json_auto_t *spec = json_deep_copy(json_object_get(after, "spec"));
    if (!spec)
        return gs_fail_nomem(err);
    for (size_t i = 0; i < sizeof(free_fields) / sizeof(free_fields[0]); i++) {
        json_t *value = json_object_get(old, free_fields[i]);
        if (!value)
            json_object_del(spec, free_fields[i]);
        else if (json_object_set(spec, free_fields[i], value) < 0)
            return gs_fail_nomem(err);
    }
    if (!json_equal(old, spec))
        return gs_sim_fail_invalid(
            GS_SIM_PODS, name, "spec",
            "Forbidden: pod updates may not change fields other than tolerations and "
            "schedulingGates",
            err);
    return 0;
}

/* ---- binding ---- */

int gs_sim_pod_assign(json_t *pod, const json_t *binding, int64_t now_ns, struct gs_error *err)
{
    char now[GS_RFC3339_BYTES];
    json_t *extra = gs_sim_tree_object(gs_sim_tree_object(binding, "metadata"), "annotations");
    json_t *node = json_object_get(gs_sim_tree_object(binding, "target"), "name");
    json_auto_t *patch = json_pack(
        "{s:{s:O*},s:{s:O},s:{s:[{s:s,s:s,s:n,s:n,s:s}]}}", "metadata", "annotations", extra,
        "spec", "nodeName", node, "status", "conditions", "type", "PodScheduled", "status", "True",
        "reason", "message", "lastTransitionTime", gs_rfc3339_format(now_ns, 0, now));
    if (!patch)
        return gs_fail_nomem(err);
    int rc = gs_sim_patch_strategic(pod, patch, err);
    gs_sim_tree_strip_nulls(pod);
    return rc;
}
