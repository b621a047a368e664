/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_EXEC_CREDENTIAL_H
#define GPUSHARE_KUBE_EXEC_CREDENTIAL_H

#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/kube/kubeconfig.h"

/*
 * Credential plugins: a program that prints an ExecCredential of client.authentication.k8s.io/v1 or
 * v1beta1 (client-go: plugin/pkg/client/auth/exec, pkg/apis/clientauthentication).
 */

enum { GS_EXEC_OUTPUT_BYTES_MAX = 1 << 20 };

/* What a plugin said. Plain data, strings owned, NULL when absent. */
struct gs_exec_credential {
    char *token;
    char *client_cert;  /* PEM */
    char *client_key;   /* PEM */
    int64_t expires_ns; /* Unix nanoseconds; INT64_MAX: it named no time */
};

/* Secrets are overwritten; the struct is as zeroed. */
void gs_exec_credential_release(struct gs_exec_credential *credential);

/*
 * Reads a plugin's output. GS_EPROTO: no JSON, another kind or apiVersion, no status, neither token
 * nor certificate, a certificate without key, a time that is none. *ret zeroed before.
 */
int gs_exec_credential_parse(const char *text, size_t len, const char *api_version,
                             struct gs_exec_credential *ret, struct gs_error *err);

/* Appends the KUBERNETES_EXEC_INFO object that the plugin is told; ca: the authority's PEM or NULL.
 * It holds no secret. */
void gs_exec_credential_input(const struct gs_kube_config *config, bool interactive, const char *ca,
                              size_t ca_len, struct gs_buf *buf);

/*
 * Runs config->exec and reads what it prints. Its stderr is ours; its stdin too when it may ask the
 * user and there is a terminal, and then it may take its time; else it is killed after timeout_ns.
 * GS_EAUTH: it cannot be run, failed or printed nonsense; GS_ETIMEOUT.
 */
int gs_exec_credential_run(const struct gs_kube_config *config, const char *ca, size_t ca_len,
                           const struct gs_clock *clock, int64_t timeout_ns,
                           struct gs_exec_credential *ret, struct gs_error *err);

#endif
