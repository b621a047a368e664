/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpushare/base/error.h"

/*
 * Where the API server is, and the credentials that are shown to it.
 *
 *   struct gs_kube_config config = {0};
 *   if (gs_kube_config_load(settings->kubeconfig, &config, err) < 0) ...
 *   gs_kube_client_new(&config, &options, &client, err)        takes it
 *
 * Read of a kubeconfig (k8s.io/client-go/tools/clientcmd/api/v1, one file): current-context, the
 * cluster's server, certificate-authority, tls-server-name and insecure-skip-tls-verify, the user's
 * token, tokenFile, client-certificate and client-key. Every other word of the user or cluster is
 * refused by its name (exec, auth-provider, as, proxy-url, username, ...): to pass over it would
 * change which account acts, or how it connects. Environment proxies are not used.
 * Not thread-safe per object; no globals.
 */

enum { GS_KUBECONFIG_BYTES_MAX = 16 << 20 /* above it GS_ETOOBIG */ };

/* A piece of PEM: inline bytes when data is not NULL, else a file, else neither. */
struct gs_kube_pem {
    char *data; /* NUL-terminated, len does not count the NUL */
    size_t len;
    char *file; /* path; a relative one is read against the working folder */
};

/* Plain data, all strings owned by the struct, NULL when absent. */
struct gs_kube_config {
    char *source;      /* for messages: the kubeconfig's path, "in-cluster", "server" */
    char *server;      /* "https://host:port[/prefix]", never a slash at the end */
    char *unix_socket; /* path: every connection goes there, whatever the server's address */
    char *ns;          /* in a cluster: the pod's namespace; else NULL */
    struct gs_kube_pem ca;
    bool insecure; /* insecure-skip-tls-verify */
    char *tls_server_name;
    char *token;
    char *token_file; /* wins over token while it can be read */
    struct gs_kube_pem client_cert;
    struct gs_kube_pem client_key;
};

/*
 * The file at path; NULL: the pod's service account. Fills *ret, which must be zeroed. GS_EINVAL:
 * malformed, contradictory, or a word that is not supported, "FILE:LINE: what". GS_ENOENT: no such
 * file, context, cluster or user, or not in a cluster. GS_EIO: the file cannot be read. GS_ETOOBIG,
 * GS_ENOMEM. Certificate and token files are named, not read: the client reads them, again and
 * again.
 */
int gs_kube_config_load(const char *path, struct gs_kube_config *ret, struct gs_error *err);

/*
 * The same for one text that is in memory; name stands for the file, in messages and as what
 * relative paths are relative to. For the fuzzer and for tests.
 */
int gs_kube_config_parse(const char *text, size_t len, const char *name, struct gs_kube_config *ret,
                         struct gs_error *err);

/* The service account in that folder; NULL: /var/run/secrets/kubernetes.io/serviceaccount.
 * Reads $KUBERNETES_SERVICE_HOST and _PORT. GS_ENOENT: not in a cluster. */
int gs_kube_config_in_cluster(const char *folder, struct gs_kube_config *ret, struct gs_error *err);

/* A server without any credentials, such as "http://127.0.0.1:8080". *ret zeroed. */
int gs_kube_config_plain(const char *server, struct gs_kube_config *ret, struct gs_error *err);

/* Frees what it holds, secrets are overwritten; the struct is as zeroed. */
void gs_kube_config_release(struct gs_kube_config *config);
