/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_KUBECONFIG_PRIVATE_H
#define GPUSHARE_KUBE_KUBECONFIG_PRIVATE_H

#include "gpushare/codec/yaml.h"
#include "gpushare/kube/kubeconfig.h"

/* The files in the order of their precedence. Private to this folder. */
struct gs_kubeconfig_files {
    struct gs_yaml files[GS_KUBECONFIG_FILES_MAX];
    size_t count;
};

/* Takes context, cluster and user out of the files. ENOENT with no server anywhere. */
int gs_kubeconfig_resolve(struct gs_kubeconfig_files *files, const char *context,
                          struct gs_kube_config *ret, struct gs_error *err);

/* users[].user.exec of one user entry, which may be absent. */
int gs_kubeconfig_exec(struct gs_yaml *yaml, const struct gs_yaml_node *user,
                       struct gs_kube_exec **ret, struct gs_error *err);

/* Fills cluster_config from the cluster's extension for plugins, when it has one. */
int gs_kubeconfig_cluster_extension(struct gs_yaml *yaml, const struct gs_yaml_node *cluster,
                                    struct gs_kube_exec *exec, struct gs_error *err);

void gs_kube_exec_free(struct gs_kube_exec *exec);

/* A deep copy; *ret zeroed before. GS_ENOMEM. */
int gs_kube_config_copy(const struct gs_kube_config *config, struct gs_kube_config *ret,
                        struct gs_error *err);

/* Completes and checks the server's URL; finds the environment's proxy. */
int gs_kube_config_finish(gs_kube_getenv_fn *env, struct gs_kube_config *config,
                          struct gs_error *err);

#endif
