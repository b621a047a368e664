/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "kubeconfig_private.h"
#include "url.h"

/* The server's address, the proxy on the way to it, and the configuration inside a cluster. */

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

static const char *env_any(gs_kube_getenv_fn *env, const char *upper, const char *lower)
{
    const char *value = env ? env(upper) : NULL;
    if (env && !(value && value[0]))
        value = env(lower);
    return value && value[0] ? value : NULL;
}

/* Go's net/http.ProxyFromEnvironment, which kubectl uses: by scheme, never for loopback. */
static int proxy_from_environment(gs_kube_getenv_fn *env, struct gs_kube_config *config,
                                  const struct gs_url *url, struct gs_error *err)
{
    if (url->loopback)
        return 0;
    const char *proxy = url->tls ? env_any(env, "HTTPS_PROXY", "https_proxy")
                                 : env_any(env, "HTTP_PROXY", "http_proxy");
    if (!proxy)
        return 0;
    char *proxy_copy = strdup(proxy);
    const char *except = env_any(env, "NO_PROXY", "no_proxy");
    char *except_copy = strdup(except ? except : "");
    config->proxy_url = proxy_copy;
    config->no_proxy = except_copy;
    return proxy_copy && except_copy ? 0 : gs_fail_nomem(err);
}

static int check_proxy(const struct gs_kube_config *config, struct gs_error *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncasecmp(config->proxy_url, schemes[i], strlen(schemes[i])) == 0)
            return 0;
    return gs_fail(err, GS_EINVAL, "%s: proxy-url must begin with http://, https:// or socks5://",
                   config->source);
}

int gs_kube_config_finish(gs_kube_getenv_fn *env, struct gs_kube_config *config,
                          struct gs_error *err)
{
    /* A server without a scheme: https when anything speaks of TLS (client-go: DefaultServerURL).
     */
    if (!strstr(config->server, "://")) {
        bool tls = config->ca.data || config->ca.file || config->client_cert.data ||
                   config->client_cert.file || config->insecure;
        char *with_scheme;
        if (asprintf(&with_scheme, "%s://%s", tls ? "https" : "http", config->server) < 0)
            return gs_fail_nomem(err);
        free(config->server);
        config->server = with_scheme;
    }
    size_t len = strlen(config->server);
    while (len > 0 && config->server[len - 1] == '/')
        config->server[--len] = '\0';
    struct gs_url url;
    if (gs_url_parse(config->server, &url, err) < 0)
        return gs_error_prefix(err, "%s", config->source);
    if (config->proxy_url && config->proxy_url[0])
        return check_proxy(config, err);
    free(gs_steal(&config->proxy_url));
    return proxy_from_environment(env, config, &url, err);
}

int gs_kube_config_plain(const char *server, struct gs_kube_config *ret, struct gs_error *err)
{
    struct gs_kube_config config = {
        .source = strdup("server"), .server = strdup(server), .ns = strdup("default")};
    int result = config.source && config.server && config.ns
                     ? gs_kube_config_finish(NULL, &config, err)
                     : gs_fail_nomem(err);
    if (result < 0)
        gs_kube_config_release(&config);
    else
        *ret = config;
    return result;
}

/* The pod's namespace: what was asked for, $POD_NAMESPACE, the service account's. */
static char *own_namespace(const struct gs_kubeconfig_source *source, const char *dir)
{
    if (source->ns && source->ns[0])
        return strdup(source->ns);
    const char *env = source->env ? source->env("POD_NAMESPACE") : NULL;
    if (env && env[0])
        return strdup(env);
    char path[512];
    char *text;
    size_t len;
    snprintf(path, sizeof(path), "%s/namespace", dir);
    if (gs_file_read(path, 4096, &text, &len, NULL) < 0)
        return strdup("default");
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        text[--len] = '\0';
    if (len > 0)
        return text;
    free(text);
    return strdup("default");
}

static int fill_in_cluster(const struct gs_kubeconfig_source *source, const char *host,
                           const char *port, struct gs_kube_config *config, struct gs_error *err)
{
    const char *dir = source->service_account ? source->service_account : SERVICE_ACCOUNT;
    bool ipv6 = strchr(host, ':') != NULL;
    struct gs_file_mark mark;
    config->source = strdup("in-cluster");
    config->ns = own_namespace(source, dir);
    if (!config->source || !config->ns || asprintf(&config->token_file, "%s/token", dir) < 0 ||
        asprintf(&config->ca.file, "%s/ca.crt", dir) < 0 ||
        asprintf(&config->server, "https://%s%s%s:%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "",
                 port) < 0)
        return gs_fail_nomem(err);
    if (!gs_file_mark(config->token_file, &mark))
        return gs_fail(err, GS_ENOENT, "%s does not exist", config->token_file);
    if (!gs_file_mark(config->ca.file, &mark))
        free(gs_steal(&config->ca.file)); /* then the system's authorities count, as in client-go */
    return gs_kube_config_finish(source->env, config, err);
}

int gs_kube_config_in_cluster(const struct gs_kubeconfig_source *source, struct gs_kube_config *ret,
                              struct gs_error *err)
{
    const char *value = source->env ? source->env("KUBERNETES_SERVICE_HOST") : NULL;
    _cleanup_free_ char *host = value && value[0] ? strdup(value) : NULL;
    const char *port = source->env ? source->env("KUBERNETES_SERVICE_PORT") : NULL;
    if (!host || !port || !port[0])
        return gs_fail(err, GS_ENOENT, "this is no pod (KUBERNETES_SERVICE_HOST is not set)");
    struct gs_kube_config config = {0};
    int result = fill_in_cluster(source, host, port, &config, err);
    if (result < 0)
        gs_kube_config_release(&config);
    else
        *ret = config;
    return result;
}

static void pem_release(struct gs_kube_pem *pem)
{
    gs_secret_free(pem->data, pem->len);
    free(pem->file);
}

static void text_release(char *text)
{
    gs_secret_free(text, text ? strlen(text) : 0);
}

void gs_kube_config_release(struct gs_kube_config *config)
{
    free(config->source);
    free(config->context);
    free(config->server);
    free(config->ns);
    free(config->tls_server_name);
    text_release(config->proxy_url); /* may carry a password */
    free(config->no_proxy);
    text_release(config->token);
    free(config->token_file);
    free(config->username);
    text_release(config->password);
    pem_release(&config->ca);
    pem_release(&config->client_cert);
    pem_release(&config->client_key);
    if (config->exec)
        gs_kube_exec_free(config->exec);
    *config = (struct gs_kube_config){0};
}
