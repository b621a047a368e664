/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/lookup.h"

#include <stdarg.h>
#include <string.h>

/* In JSON a backslash stands in strings only. The scanner (codec/scan.h) reads it so, too. */
static void replace_nuls(char *text, size_t len)
{
    for (size_t i = 0; i + 6 <= len; i++) {
        if (text[i] == '\\' && memcmp(text + i, "\\u0000", 6) == 0)
            memcpy(text + i, "\\ufffd", 6);
        i += text[i] == '\\';
    }
}

json_t *lookup_parse(struct gs_buf *body)
{
    if (!body->len)
        return NULL;
    replace_nuls(body->data, body->len);
    return json_loadb(body->data, body->len, 0, NULL);
}

json_t *lookup_item(struct gs_scan *scan, size_t max, struct gs_error *err)
{
    struct gs_slice raw;
    if (!gs_scan_raw(scan, &raw))
        return NULL;
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(max);
    gs_buf_append(&text, raw.at, raw.len);
    json_t *item = gs_buf_failed(&text) ? NULL : lookup_parse(&text);
    if (!item)
        gs_fail(err, GS_EPROTO, "an object of the list is not JSON");
    return item;
}

json_t *lookup_json(const struct source *source, const char *path, const char *query,
                    struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    if (source_get(source, path, query, &body, err) < 0)
        return NULL;
    json_t *tree = lookup_parse(&body);
    if (!tree)
        gs_fail(err, GS_EPROTO, "the answer to %.120s is not JSON", path);
    return tree;
}

static char *review_of(const struct lookup_right *right, const char *account)
{
    json_auto_t *attributes = json_pack("{s:s,s:s,s:s,s:s,s:s*,s:s*}", "verb", right->verb, "group",
                                        right->group, "resource", right->resource, "subresource",
                                        right->sub, "namespace", right->ns, "name", right->name);
    json_auto_t *spec = json_pack("{s:O,s:s*}", "resourceAttributes", attributes, "user", account);
    if (account)
        json_object_set_new(spec, "groups",
                            json_pack("[s,s]", "system:serviceaccounts", "system:authenticated"));
    json_auto_t *body =
        json_pack("{s:s,s:s,s:O}", "apiVersion", "authorization.k8s.io/v1", "kind",
                  account ? "SubjectAccessReview" : "SelfSubjectAccessReview", "spec", spec);
    return body ? json_dumps(body, JSON_COMPACT) : NULL;
}

int lookup_allowed(const struct source *source, const struct lookup_right *right,
                   const char *account, int64_t timeout_ns, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(1 << 20);
    _cleanup_free_ char *review = review_of(right, account);
    const struct gs_kube_request request = {
        .method = "POST",
        .path = account ? "/apis/authorization.k8s.io/v1/subjectaccessreviews"
                        : "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        .body = review,
        .body_len = review ? strlen(review) : 0,
        .timeout_ns = timeout_ns};
    if (!review)
        return gs_fail_nomem(err);
    if (source_ask(source, &request, &answer, err) < 0)
        return -1;
    json_auto_t *tree = lookup_parse(&answer);
    return json_is_true(json_object_get(json_object_get(tree, "status"), "allowed"));
}

const char *lookup_text(const json_t *object, ...)
{
    va_list names;
    const char *name;
    va_start(names, object);
    while ((name = va_arg(names, const char *)))
        object = json_object_get(object, name);
    va_end(names);
    const char *text = json_string_value(object);
    return text ? text : "";
}

bool lookup_is_ready(const json_t *pod)
{
    size_t i;
    json_t *condition;
    json_array_foreach(json_object_get(json_object_get(pod, "status"), "conditions"), i, condition)
    {
        if (strcmp(lookup_text(condition, "type", NULL), "Ready") == 0)
            return strcmp(lookup_text(condition, "status", NULL), "True") == 0;
    }
    return false;
}
