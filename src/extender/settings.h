/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/policy.h"

/* What the command line, the environment and the file say. Strings live as long as the process. */
struct settings {
    const char *kubeconfig;
    const char *listen;
    const char *health_listen; /* NULL: none */
    const char *domain;
    enum gs_placement policy;
    bool nominate;
    bool names_one;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_client_ca;
    const char *tls_allowed_cn;
    bool plain_http_anywhere;
    bool any_client_anywhere;
    const char *scheduler_name;
    uint32_t kube_api_qps;
    bool leader_elect;
    const char *scheduler_lease;    /* NAMESPACE/NAME of kube-scheduler's, or NULL */
    const char *scheduler_lease_ns; /* its parts */
    const char *scheduler_lease_name;
    char host[256];            /* as kube-scheduler's identity in its Lease begins */
    const char *pod_name;      /* this replica's; identity in the election */
    const char *pod_namespace; /* its namespace, and the lease's */
    uint32_t bind_workers;
    bool gpu_metrics; /* two series per GPU of the cluster */
};

/* Exits on --help, --version and bad usage. */
void settings_read(struct settings *settings, int argc, char **argv);
