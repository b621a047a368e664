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

/* ---- updates ---- */

static int merge(struct gs_sim_cluster *cluster, const char *body, struct gs_error *err)
{
    return gs_sim_patch(cluster, GS_SIM_PODS, GS_SIM_MAIN, GS_SIM_PATCH_MERGE, "default", "p",
                        gs_slice_of(body), NULL, err);
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

static void a_strategic_patch_merges_lists_by_key(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    assert_int_equal(
        gs_sim_load_object(cluster, "v1", "Node",
                           GS_SLICE("{\"metadata\":{\"name\":\"n\"},\"status\":{"
                                    "\"conditions\":[{\"type\":\"Ready\",\"status\":"
                                    "\"True\"},{\"type\":\"Gone\",\"status\":\"True\"}],"
                                    "\"images\":[1]}}"),
                           NULL),
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

/* ---- deletion ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_cluster(a_created_pod_gets_identity_version_and_defaults),
        test_with_cluster(a_bad_object_is_refused_with_its_code),
        test_with_cluster(a_pods_spec_is_fixed_but_for_a_few_fields),
        test_with_cluster(a_strategic_patch_merges_lists_by_key),
        test_with_cluster(a_write_that_changes_nothing_gets_no_version),
    };
    return GS_RUN(tests);
}
