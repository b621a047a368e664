/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/installed.h"

#include <string.h>

#include "gpushare/base/clock.h"
#include "inspect/lookup.h"

/* A pod of the extender may be anybody's who may create pods in its namespace. */
#define EACH_NS (2 * GS_NS_PER_S)
#define ALL_NS  (5 * GS_NS_PER_S)
enum { PAGE_BYTES_MAX = 1 << 20 };

json_t *installed_extenders(const struct common *common, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    source_pods(&path, common->system_ns, NULL);
    if (gs_buf_failed(&path)) {
        gs_fail_nomem(err);
        return NULL;
    }
    return lookup_json(&common->source, path.data,
                       "labelSelector=app.kubernetes.io%2Fname%20in%20%28gpushare-extender%2C"
                       "gpushare-scheduler%29",
                       err);
}

int installed_get(const struct common *common, const char *pod, const char *page,
                  struct gs_buf *body, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    source_pods(&path, common->system_ns, pod);
    gs_buf_puts(&path, page);
    const struct gs_kube_request request = {
        .method = "GET", .path = path.data, .timeout_ns = EACH_NS};
    return gs_buf_failed(&path) ? gs_fail_nomem(err)
                                : source_ask(&common->source, &request, body, err);
}

enum gs_placement installed_policy(const struct common *common)
{
    struct gs_error ignored = {0};
    json_auto_t *pods = installed_extenders(common, &ignored);
    const int64_t end_ns = gs_clock_now_ns(gs_clock_system()) + ALL_NS;
    enum gs_placement policy = GS_PLACEMENT_DEFAULT;
    size_t i;
    json_t *pod;
    json_array_foreach(json_object_get(pods, "items"), i, pod)
    {
        _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(PAGE_BYTES_MAX);
        const char *name = lookup_text(pod, "metadata", "name", NULL);
        struct gs_error away = {0};
        if (policy != GS_PLACEMENT_DEFAULT || gs_clock_now_ns(gs_clock_system()) > end_ns ||
            !lookup_is_ready(pod) ||
            installed_get(common, name, INSTALLED_EXTENDER("reservations"), &body, &away) < 0)
            continue;
        json_auto_t *answer = lookup_parse(&body);
        const char *word = lookup_text(answer, "policy", NULL);
        gs_placement_parse(word, strlen(word), &policy);
    }
    return policy;
}
