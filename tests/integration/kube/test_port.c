/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

/* What each operation of the port sends, and what its errors become. */

#define POD_JSON                                                                                   \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u\"},\"spec\":{\"nodeName\":"     \
    "\"n1\"}}"
#define LEASE_JSON                                                                                 \
    "{\"metadata\":{\"name\":\"l\",\"namespace\":\"d\",\"resourceVersion\":\"77\"},\"spec\":{"     \
    "\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15}}"

enum op {
    OP_BIND,
    OP_GET_POD,
    OP_GET_NODE,
    OP_PATCH_POD,
    OP_NOMINATE,
    OP_PATCH_NODE,
    OP_PATCH_STATUS,
    OP_EVENT,
    OP_GET_LEASE,
    OP_CREATE_LEASE,
    OP_PUT_LEASE,
    OPS,
};

/* Runs one operation on an object of this namespace and name. */
static int run_op(struct fixture *f, enum op op, const char *ns, const char *name,
                  struct gs_error *err)
{
    struct gs_kv kv = {"k", "v"};
    struct gs_binding binding = {.ns = ns, .name = name, .uid = "u", .node = "n1"};
    struct gs_meta_patch patch = {
        .ns = ns, .name = name, .uid = "u", .annotations = &kv, .annotation_count = 1};
    struct gs_node_status_patch status = {.node = name, .capacity = &kv, .capacity_count = 1};
    struct gs_event event = {.kind = "Pod",
                             .ns = ns,
                             .name = name,
                             .uid = "u",
                             .reason = "R",
                             .message = "m",
                             .component = "c"};
    struct gs_lease lease = {.ns = ns, .name = name};
    struct gs_pod pod = {0};
    struct gs_node node = {0};
    const struct gs_kube_ops *ops = f->kube.ops;
    int result = -2;
    switch (op) {
    case OP_BIND:
        return ops->bind(f->kube.ctx, &binding, err);
    case OP_GET_POD:
        result = ops->get_pod(f->kube.ctx, ns, name, &pod, err);
        gs_pod_release(&pod);
        return result;
    case OP_GET_NODE:
        result = ops->get_node(f->kube.ctx, name, &node, err);
        gs_node_release(&node);
        return result;
    case OP_PATCH_POD:
        return ops->patch_pod(f->kube.ctx, &patch, err);
    case OP_NOMINATE:
        patch.nominated_node = "n1";
        return ops->patch_pod(f->kube.ctx, &patch, err);
    case OP_PATCH_NODE:
        return ops->patch_node(f->kube.ctx, &patch, err);
    case OP_PATCH_STATUS:
        return ops->patch_node_status(f->kube.ctx, &status, err);
    case OP_EVENT:
        return ops->create_event(f->kube.ctx, &event, err);
    case OP_GET_LEASE:
        return ops->get_lease(f->kube.ctx, &lease, err);
    case OP_PUT_LEASE:
        snprintf(lease.resource_version, sizeof(lease.resource_version), "76");
        return ops->put_lease(f->kube.ctx, &lease, err);
    case OP_CREATE_LEASE:
        return ops->put_lease(f->kube.ctx, &lease, err);
    case OPS:
        break;
    }
    return result;
}

static const struct op_row {
    const char *row;
    enum op op;
    const char *request; /* its first line */
    const char *type;    /* of the body, NULL: no body */
    const char *answer;
} ops[] = {
    {"bind", OP_BIND, "POST /api/v1/namespaces/d/pods/o/binding HTTP/1.1\r\n", "application/json",
     "{}"},
    {"get_pod", OP_GET_POD, "GET /api/v1/namespaces/d/pods/o HTTP/1.1\r\n", NULL, POD_JSON},
    {"get_node", OP_GET_NODE, "GET /api/v1/nodes/o HTTP/1.1\r\n", NULL,
     "{\"metadata\":{\"name\":\"o\"}}"},
    {"patch_pod", OP_PATCH_POD, "PATCH /api/v1/namespaces/d/pods/o HTTP/1.1\r\n",
     "application/merge-patch+json", "{}"},
    {"patch_pod of its status", OP_NOMINATE,
     "PATCH /api/v1/namespaces/d/pods/o/status HTTP/1.1\r\n", "application/merge-patch+json", "{}"},
    {"patch_node", OP_PATCH_NODE, "PATCH /api/v1/nodes/o HTTP/1.1\r\n",
     "application/merge-patch+json", "{}"},
    {"patch_node_status", OP_PATCH_STATUS, "PATCH /api/v1/nodes/o/status HTTP/1.1\r\n",
     "application/strategic-merge-patch+json", "{}"},
    {"create_event", OP_EVENT, "POST /api/v1/namespaces/d/events HTTP/1.1\r\n", "application/json",
     "{}"},
    {"get_lease", OP_GET_LEASE,
     "GET /apis/coordination.k8s.io/v1/namespaces/d/leases/o HTTP/1.1\r\n", NULL, LEASE_JSON},
    {"put_lease that is new", OP_CREATE_LEASE,
     "POST /apis/coordination.k8s.io/v1/namespaces/d/leases HTTP/1.1\r\n", "application/json",
     LEASE_JSON},
    {"put_lease", OP_PUT_LEASE,
     "PUT /apis/coordination.k8s.io/v1/namespaces/d/leases/o HTTP/1.1\r\n", "application/json",
     LEASE_JSON},
};

static void every_operation_is_one_request(void **state)
{
    GS_FOR_EACH_ROW (r, ops) {
        struct fake_rule rules[] = {{.match = "", .status = 201, .body = r->answer}};
        struct fixture f = {0};
        struct gs_error err = {0};
        char type[128];
        fixture_start(&f, rules, 1);
        if (run_op(&f, r->op, "d", "o", &err) != 0)
            fail_msg("%s: %s", r->row, err.msg);
        row_equal(r->row, fake_api_count(f.api, ""), 1);
        const char *request = fake_api_request(f.api, "", 0);
        row_true(r->row, strncmp(request, r->request, strlen(r->request)) == 0);
        snprintf(type, sizeof(type), "\r\nContent-Type: %s\r\n", r->type ? r->type : "");
        row_equal(r->row, strstr(request, r->type ? type : "Content-Type") != NULL,
                  r->type != NULL);
        fixture_stop(&f);
    }
    assert_int_equal(GS_COUNT_OF(ops), OPS);
}

static const struct error_row {
    const char *row;
    struct fake_rule rule;
    enum gs_code code;
} errors[] = {
    {"404", {.status = 404}, GS_ENOENT},
    {"409", {.status = 409}, GS_ECONFLICT},
    {"429", {.status = 429, .headers = "Retry-After: 0\r\n"}, GS_EBUSY},
    {"500", {.status = 500}, GS_EIO},
    {"302", {.status = 302, .headers = "Location: http://127.0.0.1:1/\r\n"}, GS_EPROTO},
    {"cut", {.stream = "{", .end = FAKE_CUT}, GS_EIO},
};

static void every_operation_has_the_same_errors(void **state)
{
    GS_FOR_EACH_ROW (r, errors) {
        struct fake_rule rules[] = {r->rule};
        struct fixture f = {.clock = &sleepless};
        rules[0].match = "";
        fixture_start(&f, rules, 1);
        for (int op = 0; op < OPS; op++) {
            struct gs_error err = {0};
            /* An event that exists already is this one: it was sent twice. */
            bool fine = op == OP_EVENT && r->code == GS_ECONFLICT;
            row_equal(r->row, run_op(&f, (enum op)op, "d", "o", &err), fine ? 0 : -1);
            row_text(r->row, gs_code_name(err.code), gs_code_name(fine ? GS_OK : r->code));
        }
        fixture_stop(&f);
    }
}

static void an_answer_that_is_no_object_is_eproto(void **state)
{
    static const struct fake_rule rules[] = {{.match = "", .body = "<html>"}};
    static const enum op readers[] = {OP_GET_POD, OP_GET_NODE, OP_GET_LEASE, OP_PUT_LEASE};
    struct fixture f = {0};
    fixture_start(&f, rules, 1);
    GS_FOR_EACH_ROW (r, readers) {
        struct gs_error err = {0};
        assert_int_equal(run_op(&f, *r, "d", "o", &err), -1);
        assert_int_equal(err.code, GS_EPROTO);
    }
    fixture_stop(&f);
}

static void names_cannot_lead_to_another_path(void **state)
{
    static const char *const names[] = {"", ".", "..", NULL};
    static const struct fake_rule rules[] = {{.match = "", .body = POD_JSON}};
    struct fixture f = {0};
    fixture_start(&f, rules, 1);
    GS_FOR_EACH_ROW (r, names) {
        for (int op = 0; op < OPS; op++) {
            struct gs_error err = {0};
            if (op == OP_EVENT)
                continue; /* the object's name is in the body only */
            assert_int_equal(run_op(&f, (enum op)op, "d", *r, &err), -1);
            assert_int_equal(err.code, GS_EINVAL);
        }
    }
    assert_int_equal(fake_api_count(f.api, ""), 0);
    struct gs_error err = {0};
    assert_int_equal(run_op(&f, OP_GET_POD, "d/../x", "a/b?c#d e", &err), 0);
    assert_int_equal(fake_api_count(f.api, "GET /api/v1/namespaces/d%2F..%2Fx/pods/"
                                           "a%2Fb%3Fc%23d%20e HTTP"),
                     1);
    fixture_stop(&f);
}

/* API servers answer a patch whose UID is not the object's with 422, as if it were to be changed
 * (apimachinery: ValidateObjectMetaAccessorUpdate). */
static void another_uid_is_a_conflict(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "PATCH",
         .status = 422,
         .body =
             "{\"kind\":\"Status\",\"code\":422,\"reason\":\"Invalid\",\"message\":\"Pod \\\"o\\\" "
             "is invalid: metadata.uid: Invalid value: \\\"u\\\": field is immutable\"}"}};
    struct fixture f = {0};
    struct gs_error err = {0};
    fixture_start(&f, rules, 1);
    assert_int_equal(run_op(&f, OP_PATCH_POD, "d", "o", &err), -1);
    assert_int_equal(err.code, GS_ECONFLICT);
    fixture_stop(&f);
}

static void the_body_of_a_failed_write_is_the_reason(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "POST",
         .status = 409,
         .body =
             "{\"kind\":\"Status\",\"code\":409,\"message\":\"pod p is already assigned to node "
             "\\\"n2\\\"\"}"}};
    struct fixture f = {0};
    struct gs_error err = {0};
    fixture_start(&f, rules, 1);
    assert_int_equal(run_op(&f, OP_BIND, "d", "o", &err), -1);
    assert_string_equal(err.msg, "pod p is already assigned to node \"n2\"");
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_one_request),
        cmocka_unit_test(every_operation_has_the_same_errors),
        cmocka_unit_test(an_answer_that_is_no_object_is_eproto),
        cmocka_unit_test(names_cannot_lead_to_another_path),
        cmocka_unit_test(another_uid_is_a_conflict),
        cmocka_unit_test(the_body_of_a_failed_write_is_the_reason),
    };
    return GS_RUN(tests);
}
