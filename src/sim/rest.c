/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/rest.h"

#include <string.h>

#include "gpushare/kube/kubeconfig.h"

int rest_connect(const char *url, const struct gs_names *names, struct gs_kube_client **ret,
                 struct gs_error *err)
{
    const struct gs_kube_options options = {.program = "sim", .names = names};
    struct gs_kube_config config = {0};
    if (gs_kube_config_plain(url, &config, err) < 0)
        return -1;
    return gs_kube_client_new(&config, &options, ret, err);
}

static int parse_answer(const struct gs_buf *body, json_t **ret_tree, struct gs_error *err)
{
    json_error_t why;
    if (!ret_tree)
        return 0;
    json_t *tree = json_loadb(body->data ? body->data : "", body->len, 0, &why);
    if (!tree)
        return gs_fail(err, GS_EPROTO, "the response is not JSON: %s", why.text);
    *ret_tree = tree;
    return 0;
}

int rest_call(struct gs_kube_client *client, const char *method, const char *path,
              const char *content_type, const json_t *body, json_t **ret_tree, struct gs_error *err)
{
    _cleanup_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(REST_BYTES_MAX);
    int status = 0;
    if (body && !text)
        return gs_fail_nomem(err);
    const struct gs_kube_request request = {.method = method,
                                            .path = path,
                                            .content_type = content_type,
                                            .body = text,
                                            .body_len = text ? strlen(text) : 0};
    if (gs_kube_request(client, &request, &status, &answer, err) < 0)
        return -1;
    if (status < 200 || status > 299)
        return gs_kube_fail_status(status, answer.data ? answer.data : "", answer.len, err);
    return parse_answer(&answer, ret_tree, err);
}

int rest_read_listed(const char *paths, gs_manifest_take *each, void *ctx, struct gs_error *err)
{
    _cleanup_free_ char *all = strdup(paths ? paths : "");
    char *rest = all, *path;
    if (!all)
        return gs_fail_nomem(err);
    while ((path = strsep(&rest, ","))) {
        if (path[0] && gs_manifest_read(path, each, ctx, err) < 0)
            return -1;
    }
    return 0;
}

const json_t *rest_condition(const json_t *object, const char *type)
{
    json_t *condition;
    size_t i;
    json_array_foreach(json_object_get(gs_sim_tree_object(object, "status"), "conditions"), i,
                       condition)
    {
        if (strcmp(gs_sim_tree_str(condition, "type"), type) == 0)
            return condition;
    }
    return NULL;
}
