/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_KUBECONFIG_H
#define GPUSHARE_KUBE_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/error.h"

/*
 * Where the API server is and how to speak to it, found as kubectl finds it
 * (k8s.io/client-go/tools/clientcmd: loader.go, client_config.go, validation.go).
 *
 *   struct gs_kubeconfig_source source = {.path = options->kubeconfig, .env = gs_kube_getenv};
 *   _cleanup_(gs_kube_config_release) struct gs_kube_config config = {0};
 *   if (gs_kube_config_load(&source, &config, err) < 0) ...
 *   gs_kube_client_new(&config, &options, &client, err)
 *
 * Order: `path` alone when given; else every file of $KUBECONFIG; else $HOME/.kube/config; else the
 * pod's service account. Files named by $KUBECONFIG that do not exist are passed over. Of several
 * files the first that sets a name (cluster, user, context, current-context) wins, whole entry;
 * relative paths are relative to the file they stand in. Errors name file and line.
 * Not thread-safe per object; no globals.
 */

enum {
    GS_KUBECONFIG_BYTES_MAX = 16 << 20, /* per file; above it GS_ETOOBIG */
    GS_KUBECONFIG_FILES_MAX = 64,
};

/* A piece of PEM: inline bytes when data is not NULL, else a file, else neither. */
struct gs_kube_pem {
    char *data; /* NUL-terminated, len does not count the NUL */
    size_t len;
    char *file; /* absolute path */
};

/* Whether a credential plugin may ask the user (exec.interactiveMode). */
enum gs_kube_interactive {
    GS_KUBE_INTERACTIVE_NEVER,
    GS_KUBE_INTERACTIVE_IF_AVAILABLE,
    GS_KUBE_INTERACTIVE_ALWAYS,
};

/* users[].user.exec: a program that prints an ExecCredential. */
struct gs_kube_exec {
    char *command;      /* absolute, or a name to look up in $PATH */
    char **args;        /* NULL-terminated, without the command */
    char **env;         /* NULL-terminated, "NAME=value", added to ours */
    char *api_version;  /* "client.authentication.k8s.io/v1" or ".../v1beta1" */
    char *install_hint; /* "" when absent: shown when the command does not exist */
    bool provide_cluster_info;
    enum gs_kube_interactive interactive;
    char *cluster_config; /* JSON text of the cluster's exec extension, NULL when absent */
};

/* Everything resolved: plain data, all strings owned by the struct, NULL when absent. */
struct gs_kube_config {
    char *source;  /* for messages: the file of the cluster, or "in-cluster" */
    char *context; /* name of the context, NULL in a cluster */
    char *server;  /* "https://host:port[/prefix]", never a slash at the end */
    char *ns;      /* the context's namespace; "default" when it names none */
    struct gs_kube_pem ca;
    bool insecure; /* insecure-skip-tls-verify */
    char *tls_server_name;
    char *proxy_url; /* proxy-url: always used. Else the environment's, with no_proxy */
    char *no_proxy;  /* $NO_PROXY when the proxy comes from the environment */
    char *token;
    char *token_file; /* wins over token while it can be read */
    struct gs_kube_pem client_cert;
    struct gs_kube_pem client_key;
    char *username;
    char *password;
    struct gs_kube_exec *exec;
};

/* Like getenv(3); the answer is *borrowed* until the next call. */
typedef const char *gs_kube_getenv_fn(const char *name);
const char *gs_kube_getenv(const char *name);

struct gs_kubeconfig_source {
    const char *path;       /* --kubeconfig; must exist. NULL: search */
    const char *context;    /* --context; NULL or "": current-context */
    const char *ns;         /* --namespace; NULL or "": the context's */
    gs_kube_getenv_fn *env; /* KUBECONFIG, HOME, KUBERNETES_SERVICE_HOST and _PORT, HTTPS_PROXY …;
                               NULL: an empty environment */
    const char *service_account; /* NULL: /var/run/secrets/kubernetes.io/serviceaccount */
};

/*
 * Fills *ret, which must be zeroed. GS_EINVAL: malformed or contradictory, "FILE:LINE: what".
 * GS_ENOENT: no configuration anywhere, or a named file, context, cluster or user that is not
 * there. GS_EIO: a file that cannot be read. GS_ETOOBIG, GS_ENOMEM. Certificate and token files
 * are named, not read: the client reads them, again and again.
 */
int gs_kube_config_load(const struct gs_kubeconfig_source *source, struct gs_kube_config *ret,
                        struct gs_error *err);

/*
 * The same for one text that is in memory; name stands for the file in messages, and dir is what
 * relative paths are relative to. For the fuzzer and for tests.
 */
int gs_kube_config_parse(const char *text, size_t len, const char *name, const char *dir,
                         const char *context, struct gs_kube_config *ret, struct gs_error *err);

/* Only the pod's service account. GS_ENOENT: not in a cluster. */
int gs_kube_config_in_cluster(const struct gs_kubeconfig_source *source, struct gs_kube_config *ret,
                              struct gs_error *err);

/* A server without any credentials, such as "http://127.0.0.1:8080". *ret zeroed. */
int gs_kube_config_plain(const char *server, struct gs_kube_config *ret, struct gs_error *err);

/* Frees what it holds, secrets are overwritten; the struct is as zeroed. */
void gs_kube_config_release(struct gs_kube_config *config);

#endif
