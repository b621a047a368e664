/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/nominating.h"

#include <jansson.h>
#include <string.h>

#include "extender/service/service.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/extender.h"

enum { ANSWER_BYTES_MAX = 1 << 16 };

/* Of {"major":"1","minor":"36+"}; 0: it does not say. */
static uint32_t minor_of(const json_t *version)
{
    const char *minor = json_string_value(json_object_get(version, "minor"));
    uint32_t number = 0;
    if (minor)
        gs_parse_u32(minor, strspn(minor, "0123456789"), &number);
    return number;
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
    json_auto_t *release = json_loadb(version.at, version.len, 0, NULL);
    json_auto_t *right = json_loadb(review.at, review.len, 0, NULL);
    *ret_why = NULL;
    if (minor_of(release) < GS_NOMINATES_SINCE_MINOR)
        *ret_why = "the API server is older than 1.23: keep percentageOfNodesToScore at 100";
    else if (!json_is_true(json_object_get(json_object_get(right, "status"), "allowed")))
        *ret_why = "no permission to patch pods/status: keep percentageOfNodesToScore at 100";
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
