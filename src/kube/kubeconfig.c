/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/kubeconfig.h"
#include "gpushare/base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "kubeconfig_private.h"

const char *gs_kube_getenv(const char *name)
{
    return getenv(name);
}

static const char *env_of(const struct gs_kubeconfig_source *source, const char *name)
{
    const char *value = source->env ? source->env(name) : NULL;
    return value && value[0] ? value : NULL;
}

static void files_release(struct gs_kubeconfig_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        gs_yaml_release(&files->files[i]);
    files->count = 0;
}

/* "/etc/kube/config" → "/etc/kube"; a name without a folder is in the current one. */
static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return getcwd(NULL, 0);
    char *dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!dir || dir[0] == '/')
        return dir;
    char *absolute = NULL;
    _cleanup_free_ char *cwd = getcwd(NULL, 0);
    if (!cwd || asprintf(&absolute, "%s/%s", cwd, dir) < 0)
        absolute = NULL;
    free(dir);
    return absolute;
}

static void wipe_text(char **text)
{
    gs_secret_free(*text, *text ? strlen(*text) : 0);
}

static int add_file(struct gs_kubeconfig_files *files, const char *path, bool must_exist,
                    struct gs_error *err)
{
    if (files->count == GS_KUBECONFIG_FILES_MAX)
        return gs_fail(err, GS_ETOOBIG, "more than %d files in KUBECONFIG",
                       GS_KUBECONFIG_FILES_MAX);
    _cleanup_(wipe_text) char *text = NULL;
    size_t len;
    struct gs_error why = {0};
    if (gs_file_read(path, GS_KUBECONFIG_BYTES_MAX, &text, &len, &why) < 0)
        return why.code == GS_ENOENT && !must_exist ? 0 : gs_fail(err, why.code, "%s", why.msg);
    _cleanup_free_ char *dir = dir_of(path);
    if (!dir)
        return gs_fail_nomem(err);
    if (gs_yaml_load(&files->files[files->count], text, len, path, dir, err) < 0)
        return -1;
    files->count++;
    return 0;
}

/* $KUBECONFIG: a list separated by ':'; a file named twice counts once. */
static int add_list(struct gs_kubeconfig_files *files, const char *list, struct gs_error *err)
{
    _cleanup_free_ char *copy = strdup(list);
    if (!copy)
        return gs_fail_nomem(err);
    char *rest = copy;
    for (char *path; (path = strsep(&rest, ":")) != NULL;) {
        bool seen = path[0] == '\0';
        for (size_t i = 0; i < files->count && !seen; i++)
            seen = strcmp(files->files[i].name, path) == 0;
        if (!seen && add_file(files, path, false, err) < 0)
            return -1;
    }
    return 0;
}

static int find_files(const struct gs_kubeconfig_source *source, struct gs_kubeconfig_files *files,
                      struct gs_error *err)
{
    if (source->path && source->path[0])
        return add_file(files, source->path, true, err);
    const char *list = env_of(source, "KUBECONFIG");
    if (list)
        return add_list(files, list, err);
    const char *home = env_of(source, "HOME");
    if (!home)
        return 0;
    _cleanup_free_ char *path = NULL;
    if (asprintf(&path, "%s/.kube/config", home) < 0) {
        path = NULL;
        return gs_fail_nomem(err);
    }
    return add_file(files, path, false, err);
}

static int set_namespace(const struct gs_kubeconfig_source *source, struct gs_kube_config *config,
                         struct gs_error *err)
{
    const char *chosen = source->ns && source->ns[0] ? source->ns : config->ns;
    char *copy = strdup(chosen ? chosen : "default");
    if (!copy)
        return gs_fail_nomem(err);
    free(config->ns);
    config->ns = copy;
    return 0;
}

static int load(const struct gs_kubeconfig_source *source, struct gs_kubeconfig_files *files,
                struct gs_kube_config *config, struct gs_error *err)
{
    if (find_files(source, files, err) < 0)
        return -1;
    bool searched = !(source->path && source->path[0]);
    bool named = source->context && source->context[0];
    if (files->count == 0 && searched && !named) {
        struct gs_error why = {0};
        if (gs_kube_config_in_cluster(source, config, &why) < 0)
            return gs_fail(err, why.code,
                           "no cluster configured: no --kubeconfig, nothing in $KUBECONFIG or "
                           "~/.kube/config, and %s",
                           why.msg);
        return 0;
    }
    if (gs_kubeconfig_resolve(files, source->context, config, err) < 0 ||
        gs_kube_config_finish(source->env, config, err) < 0)
        return -1;
    return set_namespace(source, config, err);
}

int gs_kube_config_load(const struct gs_kubeconfig_source *source, struct gs_kube_config *ret,
                        struct gs_error *err)
{
    _cleanup_free_ struct gs_kubeconfig_files *files = calloc(1, sizeof(*files));
    if (!files)
        return gs_fail_nomem(err);
    struct gs_kube_config config = {0};
    int result = load(source, files, &config, err);
    files_release(files);
    if (result < 0)
        gs_kube_config_release(&config);
    else
        *ret = config;
    return result;
}

int gs_kube_config_parse(const char *text, size_t len, const char *name, const char *dir,
                         const char *context, struct gs_kube_config *ret, struct gs_error *err)
{
    if (len > GS_KUBECONFIG_BYTES_MAX)
        return gs_fail(err, GS_ETOOBIG, "%s: larger than %d bytes", name, GS_KUBECONFIG_BYTES_MAX);
    _cleanup_free_ struct gs_kubeconfig_files *files = calloc(1, sizeof(*files));
    if (!files)
        return gs_fail_nomem(err);
    if (gs_yaml_load(&files->files[0], text, len, name, dir, err) < 0)
        return -1;
    files->count = 1;
    struct gs_kube_config config = {0};
    struct gs_kubeconfig_source nothing = {0};
    int result = gs_kubeconfig_resolve(files, context, &config, err) < 0 ||
                         gs_kube_config_finish(NULL, &config, err) < 0 ||
                         set_namespace(&nothing, &config, err) < 0
                     ? -1
                     : 0;
    files_release(files);
    if (result < 0)
        gs_kube_config_release(&config);
    else
        *ret = config;
    return result;
}
