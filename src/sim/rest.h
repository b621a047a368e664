/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "gpushare/base/error.h"
#include "gpushare/codec/manifest.h"
#include "gpushare/kube/client.h"
#include "sim/apiserver/tree.h"

/*
 * JSON over HTTP for the subcommands that play a client: whole answers as trees.
 */
enum { REST_BYTES_MAX = 256 << 20 };

/* A client of a plain URL; *ret: gs_kube_client_free(). */
int rest_connect(const char *url, const struct gs_names *names, struct gs_kube_client **ret,
                 struct gs_error *err);

/* body may be NULL; content_type NULL: JSON. *ret_tree (may be NULL): decref. -1 when no answer
 * came or it is no 2xx, then with the code of port/kube.h and the server's words. */
int rest_call(struct gs_kube_client *client, const char *method, const char *path,
              const char *content_type, const json_t *body, json_t **ret_tree,
              struct gs_error *err);

/* Each object of the files, apart by commas; none for NULL. */
int rest_read_listed(const char *paths, gs_manifest_take *each, void *ctx, struct gs_error *err);

/* The object's status condition of this type, borrowed; NULL when absent. */
const json_t *rest_condition(const json_t *object, const char *type);
