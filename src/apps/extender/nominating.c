/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/nominating.h"

#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/extender.h"
#include "gpushare/codec/scan.h"
#include "gpushare/service/service.h"

enum { ANSWER_BYTES_MAX = 1 << 16 };

/* Of {"major":"1","minor":"36+"}; 0: it does not say. */
static uint32_t minor_of(struct gs_slice json)
{
    struct gs_scan scan;
    struct gs_scan_text key, text = {0};
    char minor[16] = "";
    uint32_t number = 0;
    gs_scan_init(&scan, json);
    gs_scan_object(&scan, "version");
    while (gs_scan_key(&scan, &key)) {
        if (gs_scan_text_is(key, "minor"))
            gs_scan_string(&scan, "minor", &text);
        else
            gs_scan_skip(&scan);
    }
    if (gs_scan_finish(&scan, NULL) < 0 || !gs_scan_text_copy(text, minor, sizeof(minor)))
        return 0;
    gs_parse_u32(minor, strspn(minor, "0123456789"), &number);
    return number;
}

static bool read_allowed(struct gs_scan *scan)
{
    struct gs_scan_text key;
    bool allowed = false;
    gs_scan_object(scan, "status");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "allowed"))
            gs_scan_bool(scan, "allowed", &allowed);
        else
            gs_scan_skip(scan);
    }
    return allowed;
}

/* Of a SelfSubjectAccessReview. */
static bool is_allowed(struct gs_slice json)
{
    struct gs_scan scan;
    struct gs_scan_text key;
    bool allowed = false;
    gs_scan_init(&scan, json);
    gs_scan_object(&scan, "review");
    while (gs_scan_key(&scan, &key)) {
        if (gs_scan_text_is(key, "status"))
            allowed = read_allowed(&scan);
        else
            gs_scan_skip(&scan);
    }
    return gs_scan_finish(&scan, NULL) == 0 && allowed;
}

/* Its answer; "" for what it does not know, or answers to others only. */
static int ask(struct gs_kube_client *client, const struct gs_kube_request *request,
               struct gs_buf *body, struct gs_error *err)
{
    int status = 0;
    if (gs_kube_request(client, request, &status, body, err) < 0)
        return -1;
    if (status == 403 || status == 404)
        gs_buf_reset(body);
    else if (status / 100 != 2)
        return gs_kube_fail_status(status, body->data, body->len, err);
    return 0;
}

bool nominating_may(struct gs_slice version, struct gs_slice review, const char **ret_why)
{
    *ret_why = NULL;
    if (minor_of(version) < GS_NOMINATES_SINCE_MINOR)
        *ret_why = "the API server is older than 1.23: keep percentageOfNodesToScore at 100";
    else if (!is_allowed(review))
        *ret_why = "patch of pods/status is not granted: keep percentageOfNodesToScore at 100";
    return !*ret_why;
}

int nominating_ask(struct gs_kube_client *client, bool *ret_may, const char **ret_why,
                   struct gs_error *err)
{
    static const char spec[] =
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
        "\"spec\":{\"resourceAttributes\":{\"verb\":\"patch\",\"resource\":\"pods\","
        "\"subresource\":\"status\"}}}";
    const struct gs_kube_request about_release = {.method = "GET", .path = "/version"};
    const struct gs_kube_request about_right = {
        .method = "POST",
        .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        .body = spec,
        .body_len = sizeof(spec) - 1};
    _cleanup_(gs_buf_release) struct gs_buf version = GS_BUF(ANSWER_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf review = GS_BUF(ANSWER_BYTES_MAX);
    if (ask(client, &about_release, &version, err) < 0 ||
        ask(client, &about_right, &review, err) < 0)
        return -1;
    *ret_may = nominating_may((struct gs_slice){version.data, version.len},
                              (struct gs_slice){review.data, review.len}, ret_why);
    return 0;
}
