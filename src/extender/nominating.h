/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "gpushare/base/slice.h"
#include "gpushare/kube/client.h"

/* By the answers to /version and to a SelfSubjectAccessReview; "" for one that could not be had. */
bool nominating_may(struct gs_slice version, struct gs_slice review, const char **ret_why);

/*
 * Asks the API server whether pods may be nominated (service/pending.h): its release is one
 * whose kube-scheduler tries a nominated node first, and this program may patch pods/status.
 * *ret_why is static text when they may not. -1: no answer yet.
 */
int nominating_ask(struct gs_kube_client *client, bool *ret_may, const char **ret_why,
                   struct gs_error *err);
