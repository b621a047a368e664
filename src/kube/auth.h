/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_AUTH_H
#define GPUSHARE_KUBE_AUTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/kube/kubeconfig.h"

/*
 * What the client shows the server, and what it expects to be shown: token, client certificate,
 * authority. Follows files as they change, and plugins as their credentials expire. Thread-safe.
 * Private to this folder.
 */

/* One state of it. Immutable, counted. */
struct gs_creds {
    atomic_uint refs;
    char *token; /* NULL: none */
    char *ca;    /* PEM, NULL: the system's authorities */
    size_t ca_len;
    char *cert; /* PEM, NULL: none */
    size_t cert_len;
    char *key;
    size_t key_len;
};

void gs_creds_unref(struct gs_creds *creds);
GS_DEFINE_CLEANUP(struct gs_creds *, gs_creds_unref)

struct gs_auth;

/* config and clock are *borrowed* for its life. Reads every file once: GS_ENOENT, GS_EIO,
 * GS_ETOOBIG, GS_ENOMEM. Does not run the plugin. *ret_auth: *caller frees*. */
int gs_auth_new(const struct gs_kube_config *config, const struct gs_clock *clock,
                int64_t exec_timeout_ns, struct gs_auth **ret_auth, struct gs_error *err);
void gs_auth_free(struct gs_auth *auth);
GS_DEFINE_CLEANUP(struct gs_auth *, gs_auth_free)

/* What to use now; looks at the files at most once a second, runs the plugin when there is nothing
 * that is still good. A file that cannot be read any more leaves what was read from it before.
 * *ret: one reference for the caller. GS_EAUTH, GS_ETIMEOUT: the plugin; GS_ENOMEM. */
int gs_auth_get(struct gs_auth *auth, struct gs_creds **ret, struct gs_error *err);

/* The server answered 401 to these: files are read again and a plugin runs again at the next get,
 * unless that happened already. True: another attempt may help. */
bool gs_auth_refused(struct gs_auth *auth, const struct gs_creds *creds);

#endif
