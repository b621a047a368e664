/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/kubeconfig.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/yaml.h"
#include "gpushare/kube/base64.h"
#include "url.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

static const char *const cluster_words[] = {"server",
                                            "certificate-authority",
                                            "certificate-authority-data",
                                            "insecure-skip-tls-verify",
                                            "tls-server-name",
                                            "disable-compression",
                                            "extensions",
                                            NULL};
static const char *const user_words[] = {
    "token",      "tokenFile",       "client-certificate", "client-certificate-data",
    "client-key", "client-key-data", "extensions",         NULL};

/* A word that is set and not read here could change which account acts, or how it connects. */
static int refuse_others(struct gs_yaml_node map, const char *const *words, struct gs_error *err)
{
    struct gs_yaml_node key, value;
    for (size_t i = 0; gs_yaml_pair(map, i, &key, &value); i++) {
        const char *word = gs_yaml_scalar(key);
        const char *const *known = words;
        while (word && *known && strcmp(*known, word) != 0)
            known++;
        if (word && (*known || !gs_yaml_get(map, word).at))
            continue;
        return gs_yaml_fail(key, err,
                            "%.60s is not supported; use a token, a tokenFile or a client "
                            "certificate (docs/install.md)",
                            word ? word : "this key");
    }
    return 0;
}

/* *ret: "" when absent, *borrowed* from the file. */
static int read_text(struct gs_yaml_node map, const char *key, const char **ret,
                     struct gs_error *err)
{
    const struct gs_yaml_node node = gs_yaml_get(map, key);
    if (map.at && !gs_yaml_is_map(map))
        return gs_yaml_fail(map, err, "must be a mapping");
    *ret = node.at ? gs_yaml_scalar(node) : "";
    return *ret ? 0 : gs_yaml_fail(node, err, "%s must be a string", key);
}

/* The same, copied; NULL when absent. */
static int copy_text(struct gs_yaml_node map, const char *key, char **ret, struct gs_error *err)
{
    const char *text;
    if (read_text(map, key, &text, err) < 0)
        return -1;
    return text[0] && !(*ret = strdup(text)) ? gs_fail_nomem(err) : 0;
}

/* The item of the list `kind` ("clusters") with that name; its own part is under `part`. */
static int find_entry(struct gs_yaml_node root, const char *kind, const char *part,
                      const char *name, struct gs_yaml_node *ret, struct gs_error *err)
{
    const struct gs_yaml_node list = gs_yaml_get(root, kind);
    struct gs_yaml_node item, found = {0};
    if (list.at && !gs_yaml_is_list(list))
        return gs_yaml_fail(list, err, "%s must be a list", kind);
    for (size_t i = 0; gs_yaml_item(list, i, &item); i++) {
        const char *own;
        if (read_text(item, "name", &own, err) < 0)
            return -1;
        if (strcmp(own, name) != 0)
            continue;
        if (found.at)
            return gs_yaml_fail(item, err, "%s: duplicate name \"%s\"", kind, name);
        found = item;
    }
    if (!found.at)
        return gs_fail(err, GS_ENOENT, "%s: %s \"%s\" does not exist", root.of->name, part, name);
    *ret = gs_yaml_get(found, part);
    return 0;
}

/* A file that the kubeconfig names, relative to its folder; NULL when out of memory. */
static char *join_path(struct gs_yaml_node map, const char *file)
{
    const char *name = map.of->name, *slash = strrchr(name, '/');
    char *path;
    if (!slash || file[0] == '/')
        return strdup(file);
    return asprintf(&path, "%.*s/%s", (int)(slash - name), name, file) < 0 ? NULL : path;
}

/* KEY names a file, KEY-data holds it in base64. Having both contradicts itself. */
static int read_pem(struct gs_yaml_node map, const char *key, struct gs_kube_pem *ret,
                    struct gs_error *err)
{
    char data_key[64];
    snprintf(data_key, sizeof(data_key), "%s-data", key);
    const char *file, *data;
    if (read_text(map, key, &file, err) < 0 || read_text(map, data_key, &data, err) < 0)
        return -1;
    if (file[0] && data[0])
        return gs_yaml_fail(map, err, "%s and %s are mutually exclusive", key, data_key);
    if (file[0] && !(ret->file = join_path(map, file)))
        return gs_fail_nomem(err);
    if (data[0] && (!gs_base64_decode(data, strlen(data), &ret->data, &ret->len) || ret->len == 0))
        return gs_yaml_fail(map, err, "%s is not valid base64", data_key);
    return 0;
}

static int read_cluster(struct gs_yaml_node map, struct gs_kube_config *config,
                        struct gs_error *err)
{
    const char *insecure;
    if (refuse_others(map, cluster_words, err) < 0 ||
        copy_text(map, "server", &config->server, err) < 0 ||
        copy_text(map, "tls-server-name", &config->tls_server_name, err) < 0 ||
        read_text(map, "insecure-skip-tls-verify", &insecure, err) < 0 ||
        read_pem(map, "certificate-authority", &config->ca, err) < 0)
        return -1;
    if (insecure[0] && !gs_parse_bool(insecure, strlen(insecure), &config->insecure))
        return gs_yaml_fail(gs_yaml_get(map, "insecure-skip-tls-verify"), err,
                            "insecure-skip-tls-verify must be true or false");
    if (!config->server)
        return gs_fail(err, GS_EINVAL, "%s: the cluster has no server", map.of->name);
    if (config->insecure && (config->ca.data || config->ca.file))
        return gs_yaml_fail(
            map, err, "insecure-skip-tls-verify and certificate-authority are mutually exclusive");
    return 0;
}

static int read_user(struct gs_yaml_node map, struct gs_kube_config *config, struct gs_error *err)
{
    const char *token_file;
    if (!map.at)
        return 0;
    if (refuse_others(map, user_words, err) < 0 ||
        copy_text(map, "token", &config->token, err) < 0 ||
        read_text(map, "tokenFile", &token_file, err) < 0 ||
        read_pem(map, "client-certificate", &config->client_cert, err) < 0 ||
        read_pem(map, "client-key", &config->client_key, err) < 0)
        return -1;
    if (token_file[0] && !(config->token_file = join_path(map, token_file)))
        return gs_fail_nomem(err);
    bool cert = config->client_cert.data || config->client_cert.file;
    bool key = config->client_key.data || config->client_key.file;
    if (cert != key)
        return gs_yaml_fail(map, err, "%s is missing", cert ? "client-key" : "client-certificate");
    return 0;
}

static int read_contexts(struct gs_yaml_node root, struct gs_kube_config *config,
                         struct gs_error *err)
{
    struct gs_yaml_node context, cluster, user = {0};
    const char *name, *cluster_name, *user_name;
    if (read_text(root, "current-context", &name, err) < 0)
        return -1;
    if (!name[0])
        return gs_fail(err, GS_ENOENT, "%s: current-context is not set", root.of->name);
    if (find_entry(root, "contexts", "context", name, &context, err) < 0 ||
        read_text(context, "cluster", &cluster_name, err) < 0 ||
        read_text(context, "user", &user_name, err) < 0 ||
        find_entry(root, "clusters", "cluster", cluster_name, &cluster, err) < 0 ||
        (user_name[0] && find_entry(root, "users", "user", user_name, &user, err) < 0) ||
        read_cluster(cluster, config, err) < 0)
        return -1;
    return read_user(user, config, err);
}

/* The rest of it; or, when it failed so far or now, nothing of it is kept. */
static int finish(int result, struct gs_kube_config *config, const char *source,
                  struct gs_error *err)
{
    struct gs_url url;
    if (result == 0 && !(config->source = strdup(source)))
        result = gs_fail_nomem(err);
    size_t len = result == 0 ? strlen(config->server) : 0;
    while (len > 0 && config->server[len - 1] == '/')
        config->server[--len] = '\0';
    if (result == 0 && gs_url_parse(config->server, &url, err) < 0)
        result = gs_error_prefix(err, "%s", source);
    if (result < 0)
        gs_kube_config_release(config);
    return result;
}

int gs_kube_config_parse(const char *text, size_t len, const char *name, struct gs_kube_config *ret,
                         struct gs_error *err)
{
    struct gs_yaml yaml;
    if (gs_yaml_load(&yaml, text, len, name, err) < 0)
        return -1;
    int result = read_contexts(gs_yaml_root(&yaml), ret, err);
    gs_yaml_release(&yaml);
    return finish(result, ret, name, err);
}

int gs_kube_config_load(const char *path, struct gs_kube_config *ret, struct gs_error *err)
{
    if (!path || !path[0])
        return gs_kube_config_in_cluster(NULL, ret, err);
    char *text;
    size_t len;
    if (gs_file_read(path, GS_KUBECONFIG_BYTES_MAX, &text, &len, err) < 0)
        return -1;
    int result = gs_kube_config_parse(text, len, path, ret, err);
    gs_secret_free(text, len);
    return result;
}

int gs_kube_config_plain(const char *server, struct gs_kube_config *ret, struct gs_error *err)
{
    ret->server = strdup(server);
    return finish(ret->server ? 0 : gs_fail_nomem(err), ret, "server", err);
}

static char *own_namespace(const char *folder)
{
    char path[512];
    char *text;
    size_t len;
    snprintf(path, sizeof(path), "%s/namespace", folder);
    if (gs_file_read(path, 4096, &text, &len, NULL) < 0)
        return strdup("default");
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        text[--len] = '\0';
    return text;
}

static int fill_in_cluster(const char *folder, const char *host, const char *port,
                           struct gs_kube_config *config, struct gs_error *err)
{
    bool ipv6 = strchr(host, ':') != NULL;
    struct gs_file_mark mark;
    config->ns = own_namespace(folder);
    if (!config->ns || asprintf(&config->token_file, "%s/token", folder) < 0 ||
        asprintf(&config->ca.file, "%s/ca.crt", folder) < 0 ||
        asprintf(&config->server, "https://%s%s%s:%s", ipv6 ? "[" : "", host, ipv6 ? "]" : "",
                 port) < 0)
        return gs_fail_nomem(err);
    if (!gs_file_mark(config->token_file, &mark))
        return gs_fail(err, GS_ENOENT, "%s does not exist", config->token_file);
    if (!gs_file_mark(config->ca.file, &mark))
        free(gs_steal(&config->ca.file)); /* then the system's authorities count, as in client-go */
    return 0;
}

int gs_kube_config_in_cluster(const char *folder, struct gs_kube_config *ret, struct gs_error *err)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    if (!host || !host[0] || !port || !port[0])
        return gs_fail(
            err, GS_ENOENT,
            "--kubeconfig is not set, and this is not a pod (KUBERNETES_SERVICE_HOST is not set)");
    return finish(fill_in_cluster(folder ? folder : SERVICE_ACCOUNT, host, port, ret, err), ret,
                  "in-cluster", err);
}

static void release_pem(struct gs_kube_pem *pem)
{
    gs_secret_free(pem->data, pem->len);
    free(pem->file);
}

void gs_kube_config_release(struct gs_kube_config *config)
{
    free(config->source);
    free(config->server);
    free(config->unix_socket);
    free(config->ns);
    free(config->tls_server_name);
    gs_secret_free(config->token, config->token ? strlen(config->token) : 0);
    free(config->token_file);
    release_pem(&config->ca);
    release_pem(&config->client_cert);
    release_pem(&config->client_key);
    *config = (struct gs_kube_config){0};
}
