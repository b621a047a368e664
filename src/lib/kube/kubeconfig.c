/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/kubeconfig.h"

#include <ctype.h>
#include <jansson.h>
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

/* The file that is read, and the result. */
struct file {
    const char *name;
    struct gs_kube_config *config;
    struct gs_error *err;
};

static int fail_file(const struct file *file, const char *words, const char *of)
{
    return gs_fail(file->err, GS_EINVAL, "%s: %.60s%s", file->name, of, words);
}

/* A key that is set and not read here could change which account acts, or how it connects. */
static int refuse_others(const struct file *file, json_t *map, const char *const *words)
{
    const char *key;
    json_t *value;
    json_object_foreach(map, key, value)
    {
        const char *const *known = words;
        while (*known && strcmp(*known, key) != 0)
            known++;
        if (!*known && !json_is_null(value))
            return fail_file(file,
                             " is not supported; use a token, a tokenFile or a client certificate "
                             "(docs/install.md)",
                             key);
    }
    return 0;
}

/* *ret: "" when absent or null, *borrowed* from the file. */
static int read_text(const struct file *file, const json_t *map, const char *key, const char **ret)
{
    const json_t *value = json_object_get(map, key);
    if (map && !json_is_object(map) && !json_is_null(map))
        return fail_file(file, " must be in a mapping", key);
    *ret = value && !json_is_null(value) ? json_string_value(value) : "";
    return *ret ? 0 : fail_file(file, " must be a string", key);
}

/* The same, copied; NULL when absent. */
static int copy_text(const struct file *file, const json_t *map, const char *key, char **ret)
{
    const char *text;
    if (read_text(file, map, key, &text) < 0)
        return -1;
    return text[0] && !(*ret = strdup(text)) ? gs_fail_nomem(file->err) : 0;
}

/* The item of the list `kind` ("clusters") with that name; its own part is under `part`. */
static int find_entry(const struct file *file, const json_t *root, const char *kind,
                      const char *part, const char *name, json_t **ret)
{
    const json_t *list = json_object_get(root, kind);
    json_t *item, *found = NULL;
    size_t i;
    if (list && !json_is_array(list) && !json_is_null(list))
        return fail_file(file, " must be a list", kind);
    json_array_foreach(list, i, item)
    {
        const char *own;
        if (read_text(file, item, "name", &own) < 0)
            return -1;
        if (strcmp(own, name) != 0)
            continue;
        if (found)
            return gs_fail(file->err, GS_EINVAL, "%s: %s: duplicate name \"%s\"", file->name, kind,
                           name);
        found = item;
    }
    if (!found)
        return gs_fail(file->err, GS_ENOENT, "%s: %s \"%s\" does not exist", file->name, part,
                       name);
    *ret = json_object_get(found, part);
    return 0;
}

/* A file that the kubeconfig names, relative to its folder; NULL when out of memory. */
static char *join_path(const struct file *file, const char *path)
{
    const char *slash = strrchr(file->name, '/');
    char *joined;
    if (!slash || path[0] == '/')
        return strdup(path);
    return asprintf(&joined, "%.*s/%s", (int)(slash - file->name), file->name, path) < 0 ? NULL
                                                                                         : joined;
}

/* KEY names a file, KEY-data is its content in base64. Both together are an error. */
static int read_pem(const struct file *file, const json_t *map, const char *key,
                    struct gs_kube_pem *ret)
{
    char data_key[64];
    snprintf(data_key, sizeof(data_key), "%s-data", key);
    const char *path, *data;
    if (read_text(file, map, key, &path) < 0 || read_text(file, map, data_key, &data) < 0)
        return -1;
    if (path[0] && data[0])
        return fail_file(file, " cannot be used with the -data key of the same name", key);
    if (path[0] && !(ret->file = join_path(file, path)))
        return gs_fail_nomem(file->err);
    if (data[0] && (!gs_base64_decode(data, strlen(data), &ret->data, &ret->len) || ret->len == 0))
        return fail_file(file, " is not valid base64", data_key);
    return 0;
}

static int read_cluster(const struct file *file, json_t *map)
{
    struct gs_kube_config *config = file->config;
    const char *insecure;
    if (refuse_others(file, map, cluster_words) < 0 ||
        copy_text(file, map, "server", &config->server) < 0 ||
        copy_text(file, map, "tls-server-name", &config->tls_server_name) < 0 ||
        read_text(file, map, "insecure-skip-tls-verify", &insecure) < 0 ||
        read_pem(file, map, "certificate-authority", &config->ca) < 0)
        return -1;
    if (insecure[0] && !gs_parse_bool(insecure, &config->insecure))
        return fail_file(file, " must be true or false", "insecure-skip-tls-verify");
    if (!config->server)
        return fail_file(file, "the cluster has no server", "");
    if (config->insecure && (config->ca.data || config->ca.file))
        return fail_file(file, " and certificate-authority are mutually exclusive",
                         "insecure-skip-tls-verify");
    return 0;
}

static int read_user(const struct file *file, json_t *map)
{
    struct gs_kube_config *config = file->config;
    const char *token_file;
    if (refuse_others(file, map, user_words) < 0 ||
        copy_text(file, map, "token", &config->token) < 0 ||
        read_text(file, map, "tokenFile", &token_file) < 0 ||
        read_pem(file, map, "client-certificate", &config->client_cert) < 0 ||
        read_pem(file, map, "client-key", &config->client_key) < 0)
        return -1;
    if (token_file[0] && !(config->token_file = join_path(file, token_file)))
        return gs_fail_nomem(file->err);
    bool cert = config->client_cert.data || config->client_cert.file;
    bool key = config->client_key.data || config->client_key.file;
    return cert == key ? 0
                       : fail_file(file, " is missing", cert ? "client-key" : "client-certificate");
}

static int read_contexts(const struct file *file, const json_t *root)
{
    json_t *context, *cluster, *user = NULL;
    const char *name, *cluster_name, *user_name;
    if (read_text(file, root, "current-context", &name) < 0)
        return -1;
    if (!name[0])
        return gs_fail(file->err, GS_ENOENT, "%s: current-context is not set", file->name);
    if (find_entry(file, root, "contexts", "context", name, &context) < 0 ||
        read_text(file, context, "cluster", &cluster_name) < 0 ||
        read_text(file, context, "user", &user_name) < 0 ||
        find_entry(file, root, "clusters", "cluster", cluster_name, &cluster) < 0 ||
        (user_name[0] && find_entry(file, root, "users", "user", user_name, &user) < 0) ||
        read_cluster(file, cluster) < 0)
        return -1;
    return read_user(file, user);
}

/* Completes the configuration; after a failure, releases it. */
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
    const struct file file = {name, ret, err};
    json_t *root = gs_yaml_load((struct gs_slice){text, len}, name, err);
    if (!root)
        return -1;
    int result = read_contexts(&file, root);
    gs_yaml_free(root);
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
