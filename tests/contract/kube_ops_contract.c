/* SPDX-License-Identifier: Apache-2.0 */
#include "contract_scene.h"

#include "gpushare/base/cleanup.h"
#include "watch_recorder.h"

/* JSON is searched as text without spaces, so that the suite needs no reader of its own. */
static void remove_spaces(char *text)
{
    bool quoted = false;
    char *to = text;
    for (char *from = text; *from; from++) {
        if (*from == '"' && (from == text || from[-1] != '\\'))
            quoted = !quoted;
        if (quoted || !strchr(" \n\r\t", *from))
            *to++ = *from;
    }
    *to = '\0';
}

int contract_open(void **state)
{
    const struct gs_kube_backend *backend = *state;
    struct gs_kube_fixture *fixture = calloc(1, sizeof(*fixture));
    if (!fixture || backend->open(fixture) < 0) {
        free(fixture);
        return -1;
    }
    fixture->backend = backend;
    *state = fixture;
    return 0;
}

int contract_close(void **state)
{
    struct gs_kube_fixture *fixture = *state;
    recorder_stop_all();
    fixture->backend->close(fixture);
    free(fixture);
    return 0;
}

void make_node(struct gs_kube_fixture *f, const char *name, unsigned units, unsigned count)
{
    _cleanup_free_ char *json = NULL;
    assert_true(asprintf(&json,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\","
                         "\"labels\":{\"gpushare\":\"true\"}},\"status\":{"
                         "\"capacity\":{\"cpu\":\"8\",\"memory\":\"16Gi\",\"%s\":\"%u\","
                         "\"%s\":\"%u\"},\"allocatable\":{\"cpu\":\"8\",\"memory\":\"16Gi\","
                         "\"%s\":\"%u\",\"%s\":\"%u\"},\"conditions\":[{\"type\":\"Ready\","
                         "\"status\":\"True\"}],\"addresses\":[{\"type\":\"InternalIP\","
                         "\"address\":\"10.0.0.1\"}]}}",
                         name, f->names->gpu_mem, units, f->names->gpu_count, count,
                         f->names->gpu_mem, units, f->names->gpu_count, count) > 0);
    assert_int_equal(f->create_node_json(f->ctx, json), 0);
}

void make_pod(struct gs_kube_fixture *f, const char *ns, const char *name, unsigned units,
              const char *node)
{
    _cleanup_free_ char *json = NULL;
    _cleanup_free_ char *limits = NULL;
    _cleanup_free_ char *bound = NULL;
    assert_true(asprintf(&limits, ",\"%s\":\"%u\"", f->names->gpu_mem, units) > 0);
    assert_true(asprintf(&bound, "\"nodeName\":\"%s\",", node) > 0);
    assert_true(asprintf(&json,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
                         "\"namespace\":\"%s\"},\"spec\":{%s\"containers\":[{\"name\":\"c\","
                         "\"image\":\"busybox\",\"resources\":{\"limits\":{\"cpu\":\"1\"%s}}}]},"
                         "\"status\":{\"phase\":\"Pending\"}}",
                         name, ns, node[0] ? bound : "", units > 0 ? limits : "") > 0);
    assert_int_equal(f->create_pod_json(f->ctx, json), 0);
}

void uid_of_pod(struct gs_kube_fixture *f, const char *ns, const char *name, char ret[UID_BYTES])
{
    struct gs_pod pod = {0};
    struct gs_error err = {0};
    expect_ok(f->kube.ops->get_pod(f->kube.ctx, ns, name, &pod, &err), &err);
    snprintf(ret, UID_BYTES, "%s", pod.uid);
    gs_pod_release(&pod);
}

bool pod_says(struct gs_kube_fixture *f, const char *ns, const char *name, const char *words)
{
    _cleanup_free_ char *json = f->pod_json(f->ctx, ns, name);
    assert_non_null(json);
    remove_spaces(json);
    return strstr(json, words) != NULL;
}

bool node_says(struct gs_kube_fixture *f, const char *name, const char *words)
{
    _cleanup_free_ char *json = f->node_json(f->ctx, name);
    assert_non_null(json);
    remove_spaces(json);
    return strstr(json, words) != NULL;
}

int gs_kube_ops_contract_run(const struct gs_kube_backend *backend)
{
    size_t count = contract_object_test_count + contract_watch_test_count;
    struct CMUnitTest *tests = calloc(count, sizeof(*tests));
    if (!tests)
        return -1;
    for (size_t i = 0; i < count; i++) {
        tests[i] = i < contract_object_test_count
                       ? contract_object_tests[i]
                       : contract_watch_tests[i - contract_object_test_count];
        tests[i].initial_state = (void *)(uintptr_t)backend;
    }
    int failed = _cmocka_run_group_tests(backend->name, tests, count, NULL, NULL);
    free(tests);
    return failed;
}
