/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

/* ---- creation ---- */

static void a_created_pod_gets_identity_version_and_defaults(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "p", "");
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    assert_string_equal(text_at(tree, "metadata", NULL, "namespace"), "default");
    assert_int_equal(strlen(text_at(tree, "metadata", NULL, "uid")), 36);
    assert_int_equal(strlen(text_at(tree, "metadata", NULL, "creationTimestamp")), 20);
    assert_true(text_at(tree, "metadata", NULL, "resourceVersion")[0] != 0);
    assert_string_equal(text_at(tree, "status", NULL, "phase"), "Pending");
    assert_string_equal(text_at(tree, "spec", NULL, "schedulerName"), "default-scheduler");
    json_t *resources = json_object_get(
        json_array_get(json_object_get(json_object_get(tree, "spec"), "containers"), 0),
        "resources");
    /* A number became the quantity that the API server stores, and the request its limit. */
    assert_string_equal(text_at(resources, "limits", NULL, "aliyun.com/gpu-mem"), "8");
    assert_string_equal(text_at(resources, "requests", NULL, "aliyun.com/gpu-mem"), "8");
}

static void versions_come_from_one_counter_and_uids_differ(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    uint64_t first = add_pod(cluster, "a", ""), second = add_pod(cluster, "b", "");
    assert_true(second == first + 1);
    json_auto_t *a = tree_of(cluster, GS_SIM_PODS, "default", "a");
    json_auto_t *b = tree_of(cluster, GS_SIM_PODS, "default", "b");
    assert_string_not_equal(text_at(a, "metadata", NULL, "uid"),
                            text_at(b, "metadata", NULL, "uid"));
    assert_int_equal(gs_sim_cluster_version(cluster), second);
    assert_int_equal(gs_sim_count(cluster, GS_SIM_PODS), 2);
}

static void a_create_request_cannot_choose_what_is_the_servers(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "p",
            ",\"uid\":\"mine\",\"creationTimestamp\":null,\"deletionTimestamp\":"
            "\"2026-01-01T00:00:00Z\",\"managedFields\":[{}]");
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    assert_string_not_equal(text_at(tree, "metadata", NULL, "uid"), "mine");
    assert_string_equal(text_at(tree, "metadata", NULL, "deletionTimestamp"), "");
    assert_null(json_object_get(json_object_get(tree, "metadata"), "managedFields"));
}

static void a_load_keeps_status_and_uid(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    struct gs_slice body =
        GS_SLICE("{\"metadata\":{\"name\":\"p\",\"namespace\":\"x\",\"uid\":\"u1\","
                 "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"nodeName\":\"n\","
                 "\"containers\":[{\"name\":\"c\"}]},\"status\":{\"phase\":\"Running\"}}");
    struct gs_sim_object *object;
    assert_int_equal(gs_sim_load(cluster, GS_SIM_PODS, body, &object, NULL), 0);
    assert_string_equal(object->uid, "u1");
    assert_string_equal(object->ns, "x");
    assert_string_equal(object->node, "n");
    assert_string_equal(object->phase, "Running");
    assert_true(object->deleting);
    gs_sim_object_unref(object);
}

static void a_bad_object_is_refused_with_its_code(void **state)
{
    struct gs_sim_cluster *cluster = *state;
#define POD(meta, spec) "{\"metadata\":{" meta "},\"spec\":{" spec "}}"
#define C               "\"containers\":[{\"name\":\"c\"}]"
#define RES(res)        "\"containers\":[{\"name\":\"c\",\"resources\":{" res "}}]"
    static const struct {
        const char *row;
        const char *body;
        enum gs_code code;
    } rows[] = {
        {"nothing", "", GS_EPROTO},
        {"no JSON", "{\"metadata\":", GS_EPROTO},
        {"a list", "[]", GS_EPROTO},
        {"metadata is a number", "{\"metadata\":1,\"spec\":{" C "}}", GS_EPROTO},
        {"no name", POD("", C), GS_EINVAL},
        {"a name with a capital", POD("\"name\":\"Pod\"", C), GS_EINVAL},
        {"a name that ends in a dash", POD("\"name\":\"p-\"", C), GS_EINVAL},
        {"a name with a slash", POD("\"name\":\"a/b\"", C), GS_EINVAL},
        {"another namespace", POD("\"name\":\"p\",\"namespace\":\"other\"", C), GS_EPROTO},
        {"a version", POD("\"name\":\"p\",\"resourceVersion\":\"7\"", C), GS_EPROTO},
        {"another kind", "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"p\"}}",
         GS_EPROTO},
        {"no containers", POD("\"name\":\"p\"", "\"containers\":[]"), GS_EINVAL},
        {"a container without name", POD("\"name\":\"p\"", "\"containers\":[{}]"), GS_EINVAL},
        {"half a GPU unit",
         POD("\"name\":\"p\"", RES("\"limits\":{\"aliyun.com/gpu-mem\":\"0.5\"}")), GS_EINVAL},
        {"less than nothing", POD("\"name\":\"p\"", RES("\"limits\":{\"aliyun.com/gpu-mem\":-1}")),
         GS_EINVAL},
        {"no quantity", POD("\"name\":\"p\"", RES("\"limits\":{\"cpu\":\"much\"}")), GS_EPROTO},
        {"a GPU request without limit",
         POD("\"name\":\"p\"", RES("\"requests\":{\"aliyun.com/gpu-mem\":\"1\"}")), GS_EINVAL},
        {"a GPU request below its limit",
         POD("\"name\":\"p\"",
             RES("\"requests\":{\"x.org/y\":\"1\"},\"limits\":{\"x.org/y\":\"2\"}")),
         GS_EINVAL},
        {"a label that is a number", POD("\"name\":\"p\",\"labels\":{\"a\":1}", C), GS_EPROTO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_sim_object *object = (void *)1;
        struct gs_error err = {0};
        row_equal(
            r->row,
            gs_sim_create(cluster, GS_SIM_PODS, "default", gs_slice_of(r->body), &object, &err),
            -1);
        row_equal(r->row, err.code, r->code);
        row_equal(r->row, object == (void *)1, 1);
    }
    assert_int_equal(gs_sim_count(cluster, GS_SIM_PODS), 0);
}

static void an_object_above_the_ceiling_is_refused(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    char *text = test_malloc(GS_SIM_OBJECT_BYTES_MAX + 1);
    memset(text, ' ', GS_SIM_OBJECT_BYTES_MAX + 1);
    struct gs_error err = {0};
    assert_int_equal(gs_sim_create(cluster, GS_SIM_PODS, "default",
                                   (struct gs_slice){text, GS_SIM_OBJECT_BYTES_MAX + 1}, NULL,
                                   &err),
                     -1);
    assert_int_equal(err.code, GS_ETOOBIG);
    test_free(text);
}

static void a_name_is_taken_once_per_namespace(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    struct gs_error err = {0};
    add_pod(cluster, "p", "");
    assert_int_equal(gs_sim_create(cluster, GS_SIM_PODS, "default", pod_text("p", ""), NULL, &err),
                     -1);
    assert_int_equal(err.code, GS_EEXIST);
    assert_string_equal(err.msg, "pods \"p\" already exists");
    assert_int_equal(gs_sim_create(cluster, GS_SIM_PODS, "other", pod_text("p", ""), NULL, NULL),
                     0);
}

/* ---- updates ---- */

static int update(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, enum gs_sim_part part,
                  const char *ns, const char *name, const char *body, struct gs_error *err)
{
    return gs_sim_update(cluster, kind, part, ns, name, gs_slice_of(body), NULL, err);
}

static int merge(struct gs_sim_cluster *cluster, const char *body, struct gs_error *err)
{
    return gs_sim_patch(cluster, GS_SIM_PODS, GS_SIM_MAIN, GS_SIM_PATCH_MERGE, "default", "p",
                        gs_slice_of(body), NULL, err);
}

static void a_merge_patch_adds_changes_and_removes(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "p", ",\"annotations\":{\"keep\":\"1\",\"change\":\"1\",\"drop\":\"1\"}");
    assert_int_equal(merge(cluster,
                           "{\"metadata\":{\"annotations\":{\"change\":\"2\",\"drop\":null,"
                           "\"new\":\"3\"},\"labels\":{\"l\":\"4\"}}}",
                           NULL),
                     0);
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    assert_string_equal(text_at(tree, "metadata", "annotations", "keep"), "1");
    assert_string_equal(text_at(tree, "metadata", "annotations", "change"), "2");
    assert_string_equal(text_at(tree, "metadata", "annotations", "new"), "3");
    assert_string_equal(text_at(tree, "metadata", "labels", "l"), "4");
    assert_int_equal(
        json_object_size(json_object_get(json_object_get(tree, "metadata"), "annotations")), 3);
}

static void preconditions_of_a_patch_count(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    uint64_t version = add_pod(cluster, "p", "");
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    char right_uid[128], right_version[128];
    snprintf(right_uid, sizeof(right_uid),
             "{\"metadata\":{\"uid\":\"%s\",\"labels\":{\"a\":\"1\"}}}",
             text_at(tree, "metadata", NULL, "uid"));
    snprintf(right_version, sizeof(right_version),
             "{\"metadata\":{\"resourceVersion\":\"%llu\",\"labels\":{\"a\":\"2\"}}}",
             (unsigned long long)version);
    const struct {
        const char *row;
        const char *body;
        enum gs_code code;
    } rows[] = {
        {"another uid", "{\"metadata\":{\"uid\":\"u\",\"labels\":{\"a\":\"x\"}}}", GS_ECONFLICT},
        {"another version", "{\"metadata\":{\"resourceVersion\":\"1\"}}", GS_ECONFLICT},
        {"the version", right_version, GS_OK},
        {"the version, now old", right_version, GS_ECONFLICT},
        {"the uid", right_uid, GS_OK},
        {"another name", "{\"metadata\":{\"name\":\"q\"}}", GS_EPROTO},
        {"no JSON", "{", GS_EPROTO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        row_equal(r->row, merge(cluster, r->body, &err), r->code ? -1 : 0);
        row_equal(r->row, err.code, r->code);
    }
}

static void a_pods_spec_is_fixed_but_for_a_few_fields(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "p", "");
    static const struct {
        const char *row;
        const char *body;
        enum gs_code code;
    } rows[] = {
        {"nodeName", "{\"spec\":{\"nodeName\":\"n\"}}", GS_EINVAL},
        {"a container's resources",
         "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
         "{\"aliyun.com/gpu-mem\":\"9\"}}}]}}",
         GS_EINVAL},
        {"no containers", "{\"spec\":{\"containers\":null}}", GS_EINVAL},
        {"a deadline", "{\"spec\":{\"activeDeadlineSeconds\":5}}", GS_OK},
        {"tolerations", "{\"spec\":{\"tolerations\":[{\"operator\":\"Exists\"}]}}", GS_OK},
        {"status through the pod", "{\"status\":{\"phase\":\"Failed\"}}", GS_OK},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        row_equal(r->row, merge(cluster, r->body, &err), r->code ? -1 : 0);
        row_equal(r->row, err.code, r->code);
    }
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    assert_string_equal(text_at(tree, "status", NULL, "phase"), "Pending");
}

static void a_status_write_leaves_the_spec(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "p", "");
    assert_int_equal(gs_sim_patch(cluster, GS_SIM_PODS, GS_SIM_STATUS, GS_SIM_PATCH_MERGE,
                                  "default", "p",
                                  GS_SLICE("{\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":"
                                           "\"Running\"}}"),
                                  NULL, NULL),
                     0);
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    assert_string_equal(text_at(tree, "status", NULL, "phase"), "Running");
    assert_string_equal(text_at(tree, "spec", NULL, "nodeName"), "");
}

static void a_strategic_patch_merges_lists_by_key(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    assert_int_equal(gs_sim_load(cluster, GS_SIM_NODES,
                                 GS_SLICE("{\"metadata\":{\"name\":\"n\"},\"status\":{"
                                          "\"conditions\":[{\"type\":\"Ready\",\"status\":"
                                          "\"True\"},{\"type\":\"Gone\",\"status\":\"True\"}],"
                                          "\"images\":[1]}}"),
                                 NULL, NULL),
                     0);
    assert_int_equal(
        gs_sim_patch(cluster, GS_SIM_NODES, GS_SIM_STATUS, GS_SIM_PATCH_STRATEGIC, "", "n",
                     GS_SLICE("{\"status\":{\"$setElementOrder/conditions\":[{\"type\":\"Ready\"}],"
                              "\"conditions\":[{\"type\":\"Ready\",\"reason\":\"new\"},{\"type\":"
                              "\"Gone\",\"$patch\":\"delete\"},{\"type\":\"GPU\",\"status\":"
                              "\"True\"}],\"images\":[2,3],\"capacity\":{\"x.org/y\":\"4\"}}}"),
                     NULL, NULL),
        0);
    json_auto_t *tree = tree_of(cluster, GS_SIM_NODES, "", "n");
    json_t *status = json_object_get(tree, "status");
    json_t *conditions = json_object_get(status, "conditions");
    json_auto_t *expected =
        json_loads("[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"new\"},"
                   "{\"type\":\"GPU\",\"status\":\"True\"}]",
                   0, NULL);
    assert_true(json_equal(conditions, expected));
    assert_int_equal(json_array_size(json_object_get(status, "images")), 2);
    assert_string_equal(text_at(tree, "status", "capacity", "x.org/y"), "4");
}

static void a_write_that_changes_nothing_gets_no_version(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    uint64_t version = add_pod(cluster, "p", ",\"labels\":{\"a\":\"1\"}");
    assert_int_equal(merge(cluster, "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}", NULL), 0);
    assert_int_equal(gs_sim_cluster_version(cluster), version);
    assert_int_equal(merge(cluster, "{\"metadata\":{\"labels\":{\"a\":\"2\"}}}", NULL), 0);
    assert_int_equal(gs_sim_cluster_version(cluster), version + 1);
}

static void a_lease_is_replaced_only_under_its_version(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    struct gs_sim_object *lease;
    struct gs_error err = {0};
    assert_int_equal(gs_sim_create(cluster, GS_SIM_LEASES, "kube-system",
                                   GS_SLICE("{\"metadata\":{\"name\":\"l\"},\"spec\":{"
                                            "\"holderIdentity\":\"a\"}}"),
                                   &lease, NULL),
                     0);
    char body[160];
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%llu\"},\"spec\":{"
             "\"holderIdentity\":\"b\"}}",
             (unsigned long long)lease->version);
    gs_sim_object_unref(lease);
    assert_int_equal(update(cluster, GS_SIM_LEASES, GS_SIM_MAIN, "kube-system", "l",
                            "{\"metadata\":{\"name\":\"l\"}}", &err),
                     -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_int_equal(update(cluster, GS_SIM_LEASES, GS_SIM_MAIN, "kube-system", "l", body, NULL),
                     0);
    gs_error_clear(&err);
    assert_int_equal(update(cluster, GS_SIM_LEASES, GS_SIM_MAIN, "kube-system", "l", body, &err),
                     -1);
    assert_int_equal(err.code, GS_ECONFLICT);
    gs_error_clear(&err);
    assert_int_equal(update(cluster, GS_SIM_LEASES, GS_SIM_MAIN, "kube-system", "m", body, &err),
                     -1);
    assert_int_equal(err.code, GS_ENOENT);
}

/* ---- deletion ---- */

static void a_deleted_object_is_gone_at_once(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    uint64_t version = add_pod(cluster, "p", "");
    struct gs_sim_object *last;
    struct gs_error err = {0};
    assert_int_equal(
        gs_sim_delete(cluster, GS_SIM_PODS, "default", "p", (struct gs_slice){0}, &last, NULL), 0);
    assert_int_equal(last->version, version + 1);
    assert_non_null(strstr(last->json, "gpu-mem"));
    gs_sim_object_unref(last);
    assert_int_equal(gs_sim_get(cluster, GS_SIM_PODS, "default", "p", NULL, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    assert_string_equal(err.msg, "pods \"p\" not found");
    gs_error_clear(&err);
    assert_int_equal(
        gs_sim_delete(cluster, GS_SIM_PODS, "default", "p", (struct gs_slice){0}, NULL, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
}

static void preconditions_of_a_deletion_count(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    struct gs_error err = {0};
    add_pod(cluster, "p", "");
    assert_int_equal(gs_sim_delete(cluster, GS_SIM_PODS, "default", "p",
                                   GS_SLICE("{\"preconditions\":{\"uid\":\"u\"}}"), NULL, &err),
                     -1);
    assert_int_equal(err.code, GS_ECONFLICT);
    assert_int_equal(gs_sim_count(cluster, GS_SIM_PODS), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_cluster(a_created_pod_gets_identity_version_and_defaults),
        test_with_cluster(versions_come_from_one_counter_and_uids_differ),
        test_with_cluster(a_create_request_cannot_choose_what_is_the_servers),
        test_with_cluster(a_load_keeps_status_and_uid),
        test_with_cluster(a_bad_object_is_refused_with_its_code),
        test_with_cluster(an_object_above_the_ceiling_is_refused),
        test_with_cluster(a_name_is_taken_once_per_namespace),
        test_with_cluster(a_merge_patch_adds_changes_and_removes),
        test_with_cluster(preconditions_of_a_patch_count),
        test_with_cluster(a_pods_spec_is_fixed_but_for_a_few_fields),
        test_with_cluster(a_status_write_leaves_the_spec),
        test_with_cluster(a_strategic_patch_merges_lists_by_key),
        test_with_cluster(a_write_that_changes_nothing_gets_no_version),
        test_with_cluster(a_lease_is_replaced_only_under_its_version),
        test_with_cluster(a_deleted_object_is_gone_at_once),
        test_with_cluster(preconditions_of_a_deletion_count),
    };
    return GS_RUN(tests);
}
