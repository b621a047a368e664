/* SPDX-License-Identifier: Apache-2.0 */
#include "common/api.h"

#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/kube/kubeconfig.h"

int api_connect(const char *kubeconfig, const char *context, const struct gs_kube_options *options,
                struct gs_kube_client **ret, struct gs_error *err)
{
    const struct gs_kubeconfig_source source = {
        .path = kubeconfig, .context = context, .env = gs_kube_getenv};
    struct gs_kube_config config = {0};
    int result = gs_kube_config_load(&source, &config, err);
    if (result == 0)
        result = gs_kube_client_new(&config, options, ret, err);
    if (result == 0)
        gs_log(GS_LOG_INFO, "API server", GS_STR("server", config.server),
               GS_STR("source", config.source));
    gs_kube_config_release(&config);
    return result;
}

enum { TENTHS = 10 };

void api_watch_until_stopped(struct gs_kube kube, const struct gs_watch_spec *spec,
                             const struct gs_watch_sink *sink, const atomic_bool *stop)
{
    while (!atomic_load(stop)) {
        struct gs_error err = {0};
        if (kube.ops->watch(kube.ctx, spec, sink, stop, &err) == 0)
            return;
        gs_log(GS_LOG_ERROR, "watch cannot begin",
               GS_STR("kind", spec->kind == GS_KIND_POD ? "pods" : "nodes"),
               GS_STR("why", err.msg));
        for (int i = 0; i < TENTHS && !atomic_load(stop); i++)
            nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_S / TENTHS}, NULL);
    }
}
