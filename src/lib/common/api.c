/* SPDX-License-Identifier: Apache-2.0 */
#include "common/api.h"

#include "common/list_watch.h"
#include "common/process.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/kube/kubeconfig.h"

int api_connect(const char *kubeconfig, const struct gs_kube_options *options,
                struct gs_kube_client **ret, struct gs_error *err)
{
    struct gs_kube_config config = {0};
    if (gs_kube_config_load(kubeconfig, &config, err) < 0)
        return -1;
    gs_log(GS_LOG_INFO, "API server", GS_STR("server", config.server),
           GS_STR("source", config.source));
    struct gs_kube_options logging = *options;
    logging.passed_over = list_watch_log_passed_over;
    return gs_kube_client_new(&config, &logging, ret, err);
}

void api_watch_until_stopped(struct gs_kube kube, const struct gs_watch_spec *spec,
                             const struct gs_watch_sink *sink, const atomic_bool *stop)
{
    do {
        struct gs_error err = {0};
        if (kube.ops->watch(kube.ctx, spec, sink, stop, &err) == 0)
            return;
        gs_log(GS_LOG_ERROR, "cannot start watch",
               GS_STR("kind", spec->kind == GS_KIND_POD ? "pods" : "nodes"),
               GS_STR("error", err.msg));
    } while (process_sleep_until(gs_clock_now_ns(gs_clock_system()) + GS_NS_PER_S, stop));
}
