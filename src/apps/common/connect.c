/* SPDX-License-Identifier: Apache-2.0 */
#include "common/connect.h"

#include "gpushare/base/log.h"
#include "gpushare/kube/kubeconfig.h"

int connect_api(const char *kubeconfig, const char *context, const struct gs_kube_options *options,
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
