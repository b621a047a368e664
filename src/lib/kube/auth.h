/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/kube/kubeconfig.h"

/* Credentials: token, client certificate, certificate authority. Re-reads files when they change.
 * Thread-safe. Private to this folder. */
struct gs_auth;

/* config and clock are *borrowed* for its life. Reads every file once: GS_ENOENT, GS_EIO,
 * GS_ETOOBIG, GS_ENOMEM; GS_EAUTH: unusable, such as a key with a pass phrase. *ret_auth: *caller
 * frees*. */
int gs_auth_new(const struct gs_kube_config *config, const struct gs_clock *clock,
                struct gs_auth **ret_auth, struct gs_error *err);
void gs_auth_free(struct gs_auth *auth);
GS_DEFINE_CLEANUP(struct gs_auth *, gs_auth_free)

/* Sets certificates on easy if *shown, the generation of its last call (0: none), is outdated, and
 * appends the token if there is one. Checks the files at most once a second; if one cannot be read,
 * its last content is used. GS_EAUTH, GS_ENOMEM. */
int gs_auth_show(struct gs_auth *auth, CURL *easy, uint64_t *shown, struct gs_buf *token,
                 struct gs_error *err);

/* Call after a 401: re-reads the files unless another call has. True: worth another attempt. */
bool gs_auth_refused(struct gs_auth *auth, uint64_t shown);
