/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "kubeconfig_private.h"

/* users[].user.exec: client-go's tools/clientcmd/api/v1.ExecConfig. */

enum { WORDS_MAX = 1024 };

#define API_GROUP "client.authentication.k8s.io/"

static void words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        gs_secret_free(words[i], strlen(words[i]));
    free(words);
}

void gs_kube_exec_free(struct gs_kube_exec *exec)
{
    free(exec->command);
    words_free(exec->args);
    words_free(exec->env);
    free(exec->api_version);
    free(exec->install_hint);
    free(exec->cluster_config);
    free(exec);
}

/* One "NAME=value" of an env item. */
static int env_word(struct gs_yaml *yaml, const struct gs_yaml_node *item, char **ret,
                    struct gs_error *err)
{
    _cleanup_free_ char *name = NULL;
    _cleanup_free_ char *value = NULL;
    if (gs_yaml_string(yaml, item, "name", &name, err) < 0 ||
        gs_yaml_string(yaml, item, "value", &value, err) < 0)
        return -1;
    if (!name || !name[0] || strchr(name, '='))
        return gs_yaml_fail(yaml, item, err, "a variable of the plugin has no name");
    char *word;
    if (asprintf(&word, "%s=%s", name, value ? value : "") < 0)
        return gs_fail_nomem(err);
    *ret = word;
    return 0;
}

static int arg_word(struct gs_yaml *yaml, const struct gs_yaml_node *item, char **ret,
                    struct gs_error *err)
{
    const char *text = gs_yaml_scalar(item);
    if (!text)
        return gs_yaml_fail(yaml, item, err, "an argument of the plugin must be a string");
    char *copy = strdup(text);
    if (!copy)
        return gs_fail_nomem(err);
    *ret = copy;
    return 0;
}

typedef int word_fn(struct gs_yaml *yaml, const struct gs_yaml_node *item, char **ret,
                    struct gs_error *err);

/* The list under key as NULL-terminated words; empty when absent. *ret is set on failure too, so
 * that the caller's release finds what was made. */
static int read_words(struct gs_yaml *yaml, const struct gs_yaml_node *node, const char *key,
                      word_fn *word_of, char ***ret, struct gs_error *err)
{
    const struct gs_yaml_node *list;
    if (gs_yaml_sequence(yaml, node, key, &list, err) < 0)
        return -1;
    size_t count = 0;
    while (gs_yaml_item(yaml, list, count))
        if (++count > WORDS_MAX)
            return gs_yaml_fail(yaml, list, err, "%s has more than %d entries", key, WORDS_MAX);
    char **words = calloc(count + 1, sizeof(*words));
    if (!words)
        return gs_fail_nomem(err);
    *ret = words;
    for (size_t i = 0; i < count; i++)
        if (word_of(yaml, gs_yaml_item(yaml, list, i), &words[i], err) < 0)
            return -1;
    return 0;
}

static int read_interactive(struct gs_yaml *yaml, const struct gs_yaml_node *node, bool required,
                            enum gs_kube_interactive *ret, struct gs_error *err)
{
    static const char *const words[] = {
        [GS_KUBE_INTERACTIVE_NEVER] = "Never",
        [GS_KUBE_INTERACTIVE_IF_AVAILABLE] = "IfAvailable",
        [GS_KUBE_INTERACTIVE_ALWAYS] = "Always",
    };
    _cleanup_free_ char *mode = NULL;
    if (gs_yaml_string(yaml, node, "interactiveMode", &mode, err) < 0)
        return -1;
    if (!mode || !mode[0]) {
        if (required)
            return gs_yaml_fail(yaml, node, err,
                                "exec: interactiveMode is required with " API_GROUP "v1");
        *ret = GS_KUBE_INTERACTIVE_IF_AVAILABLE;
        return 0;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(mode, words[i]) == 0) {
            *ret = (enum gs_kube_interactive)i;
            return 0;
        }
    }
    return gs_yaml_fail(yaml, node, err,
                        "exec: interactiveMode is none of Never, IfAvailable, "
                        "Always");
}

static int read_command(struct gs_yaml *yaml, const struct gs_yaml_node *node,
                        struct gs_kube_exec *exec, struct gs_error *err)
{
    _cleanup_free_ char *command = NULL;
    if (gs_yaml_string(yaml, node, "command", &command, err) < 0)
        return -1;
    if (!command || !command[0])
        return gs_yaml_fail(yaml, node, err, "exec: command is missing");
    /* A bare name is looked up in $PATH; with a slash it is relative to the file. */
    exec->command = strchr(command, '/') ? gs_yaml_path(yaml, command) : gs_steal(&command);
    return exec->command ? 0 : gs_fail_nomem(err);
}

static int read_exec(struct gs_yaml *yaml, const struct gs_yaml_node *node,
                     struct gs_kube_exec *exec, struct gs_error *err)
{
    if (read_command(yaml, node, exec, err) < 0 ||
        gs_yaml_string(yaml, node, "apiVersion", &exec->api_version, err) < 0 ||
        gs_yaml_string(yaml, node, "installHint", &exec->install_hint, err) < 0 ||
        gs_yaml_bool(yaml, node, "provideClusterInfo", &exec->provide_cluster_info, err) < 0)
        return -1;
    bool v1 = exec->api_version && strcmp(exec->api_version, API_GROUP "v1") == 0;
    if (!v1 && (!exec->api_version || strcmp(exec->api_version, API_GROUP "v1beta1") != 0))
        return gs_yaml_fail(yaml, node, err,
                            "exec: apiVersion must be " API_GROUP "v1 or " API_GROUP "v1beta1");
    if (!exec->install_hint && !(exec->install_hint = strdup("")))
        return gs_fail_nomem(err);
    if (read_words(yaml, node, "args", arg_word, &exec->args, err) < 0 ||
        read_words(yaml, node, "env", env_word, &exec->env, err) < 0)
        return -1;
    return read_interactive(yaml, node, v1, &exec->interactive, err);
}

int gs_kubeconfig_exec(struct gs_yaml *yaml, const struct gs_yaml_node *user,
                       struct gs_kube_exec **ret, struct gs_error *err)
{
    const struct gs_yaml_node *node;
    if (gs_yaml_get(yaml, user, "exec", &node, err) < 0)
        return -1;
    if (!node)
        return 0;
    struct gs_kube_exec *exec = calloc(1, sizeof(*exec));
    if (!exec)
        return gs_fail_nomem(err);
    if (read_exec(yaml, node, exec, err) < 0) {
        gs_kube_exec_free(exec);
        return -1;
    }
    *ret = exec;
    return 0;
}

int gs_kubeconfig_cluster_extension(struct gs_yaml *yaml, const struct gs_yaml_node *cluster,
                                    struct gs_kube_exec *exec, struct gs_error *err)
{
    const struct gs_yaml_node *list, *item, *extension;
    if (gs_yaml_sequence(yaml, cluster, "extensions", &list, err) < 0)
        return -1;
    for (size_t i = 0; (item = gs_yaml_item(yaml, list, i)) != NULL; i++) {
        _cleanup_free_ char *name = NULL;
        if (gs_yaml_string(yaml, item, "name", &name, err) < 0 ||
            gs_yaml_get(yaml, item, "extension", &extension, err) < 0)
            return -1;
        if (name && strcmp(name, API_GROUP "exec") == 0 && extension && !exec->cluster_config)
            return gs_yaml_to_json(yaml, extension, &exec->cluster_config, err);
    }
    return 0;
}
