/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "gpushare/kube/base64.h"
#include "kubeconfig_private.h"

/* Where an entry was found; yaml NULL: nowhere. */
struct entry {
    struct gs_yaml *yaml;
    const struct gs_yaml_node *node; /* the inner mapping; NULL when it is empty */
};

/* Looks for `name` in the list `kind` ("clusters") of one file; the item's own part is under
 * `part` ("cluster"). */
static int find_in_file(struct gs_yaml *yaml, const char *kind, const char *part, const char *name,
                        struct entry *ret, struct gs_error *err)
{
    const struct gs_yaml_node *list, *item;
    if (gs_yaml_sequence(yaml, gs_yaml_root(yaml), kind, &list, err) < 0)
        return -1;
    bool found = false;
    for (size_t i = 0; (item = gs_yaml_item(yaml, list, i)) != NULL; i++) {
        _cleanup_free_ char *item_name = NULL;
        if (gs_yaml_string(yaml, item, "name", &item_name, err) < 0)
            return -1;
        if (strcmp(item_name ? item_name : "", name) != 0)
            continue;
        if (found)
            return gs_yaml_fail(yaml, item, err, "%s names \"%s\" twice", kind, name);
        found = true;
        struct entry entry = {.yaml = yaml};
        if (gs_yaml_get(yaml, item, part, &entry.node, err) < 0)
            return -1;
        *ret = entry;
    }
    return 0;
}

/* The first file that has the name wins. */
static int find_entry(struct gs_kubeconfig_files *files, const char *kind, const char *part,
                      const char *name, struct entry *ret, struct gs_error *err)
{
    struct entry entry = {0};
    for (size_t i = 0; i < files->count && !entry.yaml; i++)
        if (find_in_file(&files->files[i], kind, part, name, &entry, err) < 0)
            return -1;
    *ret = entry;
    return 0;
}

static int current_context(struct gs_kubeconfig_files *files, char **ret, struct gs_error *err)
{
    for (size_t i = 0; i < files->count; i++) {
        struct gs_yaml *yaml = &files->files[i];
        _cleanup_free_ char *name = NULL;
        if (gs_yaml_string(yaml, gs_yaml_root(yaml), "current-context", &name, err) < 0)
            return -1;
        if (name && name[0]) {
            *ret = gs_steal(&name);
            return 0;
        }
    }
    const char *where = files->count > 0 ? files->files[0].name : "no file";
    return gs_fail(err, GS_ENOENT, "no current-context in %s, and no --context given", where);
}

/* KEY names a file, KEY-data holds it in base64. Having both contradicts itself. */
static int read_pem(const struct entry *entry, const char *key, struct gs_kube_pem *ret,
                    struct gs_error *err)
{
    char data_key[64];
    snprintf(data_key, sizeof(data_key), "%s-data", key);
    _cleanup_free_ char *file = NULL;
    _cleanup_free_ char *data = NULL;
    if (gs_yaml_string(entry->yaml, entry->node, key, &file, err) < 0 ||
        gs_yaml_string(entry->yaml, entry->node, data_key, &data, err) < 0)
        return -1;
    bool has_file = file && file[0], has_data = data && data[0];
    if (has_file && has_data)
        return gs_yaml_fail(entry->yaml, entry->node, err, "both %s and %s are given", key,
                            data_key);
    int result = 0;
    if (has_file && !(ret->file = gs_yaml_path(entry->yaml, file)))
        result = gs_fail_nomem(err);
    if (has_data && !gs_base64_decode(data, strlen(data), &ret->data, &ret->len))
        result = gs_yaml_fail(entry->yaml, entry->node, err, "%s is not base64", data_key);
    if (data)
        explicit_bzero(data, strlen(data));
    return result;
}

static int read_cluster(const struct entry *entry, struct gs_kube_config *config,
                        struct gs_error *err)
{
    struct gs_yaml *yaml = entry->yaml;
    const struct gs_yaml_node *node = entry->node;
    if (gs_yaml_string(yaml, node, "server", &config->server, err) < 0 ||
        gs_yaml_string(yaml, node, "tls-server-name", &config->tls_server_name, err) < 0 ||
        gs_yaml_string(yaml, node, "proxy-url", &config->proxy_url, err) < 0 ||
        gs_yaml_bool(yaml, node, "insecure-skip-tls-verify", &config->insecure, err) < 0 ||
        read_pem(entry, "certificate-authority", &config->ca, err) < 0)
        return -1;
    if (!config->server || !config->server[0])
        return node ? gs_yaml_fail(yaml, node, err, "the cluster has no server")
                    : gs_fail(err, GS_EINVAL, "%s: the cluster is empty", yaml->name);
    if (config->insecure && (config->ca.data || config->ca.file))
        return gs_yaml_fail(yaml, node, err,
                            "insecure-skip-tls-verify with a certificate-authority");
    config->source = strdup(yaml->name);
    return config->source ? 0 : gs_fail_nomem(err);
}

static int check_user(const struct entry *entry, const struct gs_kube_config *config,
                      struct gs_error *err)
{
    bool token = config->token && config->token[0];
    bool basic = config->username || config->password;
    bool cert = config->client_cert.data || config->client_cert.file;
    bool key = config->client_key.data || config->client_key.file;
    if (token && basic)
        return gs_yaml_fail(entry->yaml, entry->node, err,
                            "both a token and a user name: only one is allowed");
    if (cert != key)
        return gs_yaml_fail(entry->yaml, entry->node, err, "%s is missing",
                            cert ? "client-key" : "client-certificate");
    return 0;
}

static int read_user(const struct entry *entry, const struct entry *cluster,
                     struct gs_kube_config *config, struct gs_error *err)
{
    struct gs_yaml *yaml = entry->yaml;
    const struct gs_yaml_node *node = entry->node, *provider;
    _cleanup_free_ char *token_file = NULL;
    if (!node)
        return 0;
    if (gs_yaml_string(yaml, node, "token", &config->token, err) < 0 ||
        gs_yaml_string(yaml, node, "tokenFile", &token_file, err) < 0 ||
        gs_yaml_string(yaml, node, "username", &config->username, err) < 0 ||
        gs_yaml_string(yaml, node, "password", &config->password, err) < 0 ||
        read_pem(entry, "client-certificate", &config->client_cert, err) < 0 ||
        read_pem(entry, "client-key", &config->client_key, err) < 0 ||
        gs_yaml_get(yaml, node, "auth-provider", &provider, err) < 0)
        return -1;
    if (provider)
        return gs_yaml_fail(yaml, provider, err,
                            "auth-provider is no longer supported: use an exec plugin");
    if (token_file && token_file[0] && !(config->token_file = gs_yaml_path(yaml, token_file)))
        return gs_fail_nomem(err);
    if (check_user(entry, config, err) < 0)
        return -1;
    /* The plugin's extension stands in the cluster's file, which may be another one. */
    if (gs_kubeconfig_exec(yaml, node, &config->exec, err) < 0)
        return -1;
    if (config->exec && config->exec->provide_cluster_info)
        return gs_kubeconfig_cluster_extension(cluster->yaml, cluster->node, config->exec, err);
    return 0;
}

static int read_context(struct gs_kubeconfig_files *files, const char *name,
                        struct gs_kube_config *config, struct gs_error *err)
{
    struct entry context, cluster, user = {0};
    _cleanup_free_ char *cluster_name = NULL;
    _cleanup_free_ char *user_name = NULL;
    if (find_entry(files, "contexts", "context", name, &context, err) < 0)
        return -1;
    if (!context.yaml)
        return gs_fail(err, GS_ENOENT, "context \"%s\" does not exist in %s", name,
                       files->count > 0 ? files->files[0].name : "any kubeconfig");
    if (gs_yaml_string(context.yaml, context.node, "cluster", &cluster_name, err) < 0 ||
        gs_yaml_string(context.yaml, context.node, "user", &user_name, err) < 0 ||
        gs_yaml_string(context.yaml, context.node, "namespace", &config->ns, err) < 0)
        return -1;
    if (!cluster_name || !context.node)
        return gs_fail(err, GS_EINVAL, "%s: context \"%s\" names no cluster", context.yaml->name,
                       name);
    if (find_entry(files, "clusters", "cluster", cluster_name, &cluster, err) < 0)
        return -1;
    if (!cluster.yaml)
        return gs_yaml_fail(context.yaml, context.node, err, "cluster \"%s\" does not exist",
                            cluster_name);
    if (user_name && user_name[0] && find_entry(files, "users", "user", user_name, &user, err) < 0)
        return -1;
    if (user_name && user_name[0] && !user.yaml)
        return gs_yaml_fail(context.yaml, context.node, err, "user \"%s\" does not exist",
                            user_name);
    if (read_cluster(&cluster, config, err) < 0)
        return -1;
    return read_user(&user, &cluster, config, err);
}

int gs_kubeconfig_resolve(struct gs_kubeconfig_files *files, const char *context,
                          struct gs_kube_config *ret, struct gs_error *err)
{
    if (context && context[0]) {
        if (!(ret->context = strdup(context)))
            return gs_fail_nomem(err);
    } else if (current_context(files, &ret->context, err) < 0) {
        return -1;
    }
    return read_context(files, ret->context, ret, err);
}
