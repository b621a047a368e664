/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kubeconfig_private.h"

/* Each helper does nothing once a copy failed: *ok tells at the end. */
static char *copy_text(const char *text, bool *ok)
{
    char *copy = text && *ok ? strdup(text) : NULL;
    *ok = *ok && (!text || copy);
    return copy;
}

static struct gs_kube_pem copy_pem(const struct gs_kube_pem *pem, bool *ok)
{
    struct gs_kube_pem copy = {.len = pem->len, .file = copy_text(pem->file, ok)};
    if (pem->data && *ok) {
        copy.data = malloc(pem->len + 1);
        *ok = copy.data != NULL;
    }
    if (copy.data)
        memcpy(copy.data, pem->data, pem->len + 1);
    return copy;
}

static char **copy_words(char *const *words, bool *ok)
{
    size_t count = 0;
    while (words && words[count])
        count++;
    char **copy = words && *ok ? calloc(count + 1, sizeof(*copy)) : NULL;
    *ok = *ok && (!words || copy);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = copy_text(words[i], ok);
    return copy;
}

static struct gs_kube_exec *copy_exec(const struct gs_kube_exec *exec, bool *ok)
{
    struct gs_kube_exec *copy = exec && *ok ? calloc(1, sizeof(*copy)) : NULL;
    *ok = *ok && (!exec || copy);
    if (!copy)
        return NULL;
    *copy = (struct gs_kube_exec){
        .command = copy_text(exec->command, ok),
        .args = copy_words(exec->args, ok),
        .env = copy_words(exec->env, ok),
        .api_version = copy_text(exec->api_version, ok),
        .install_hint = copy_text(exec->install_hint, ok),
        .provide_cluster_info = exec->provide_cluster_info,
        .interactive = exec->interactive,
        .cluster_config = copy_text(exec->cluster_config, ok),
    };
    return copy;
}

int gs_kube_config_copy(const struct gs_kube_config *config, struct gs_kube_config *ret,
                        struct gs_error *err)
{
    bool ok = true;
    struct gs_kube_config copy = {
        .source = copy_text(config->source, &ok),
        .context = copy_text(config->context, &ok),
        .server = copy_text(config->server, &ok),
        .ns = copy_text(config->ns, &ok),
        .ca = copy_pem(&config->ca, &ok),
        .insecure = config->insecure,
        .tls_server_name = copy_text(config->tls_server_name, &ok),
        .proxy_url = copy_text(config->proxy_url, &ok),
        .no_proxy = copy_text(config->no_proxy, &ok),
        .token = copy_text(config->token, &ok),
        .token_file = copy_text(config->token_file, &ok),
        .client_cert = copy_pem(&config->client_cert, &ok),
        .client_key = copy_pem(&config->client_key, &ok),
        .username = copy_text(config->username, &ok),
        .password = copy_text(config->password, &ok),
        .exec = copy_exec(config->exec, &ok),
    };
    if (!ok) {
        gs_kube_config_release(&copy);
        return gs_fail_nomem(err);
    }
    *ret = copy;
    return 0;
}
