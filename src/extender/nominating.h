/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/slice.h"
#include "gpushare/kube/client.h"

/* By the answer to /version; "" for one that could not be had. */
bool nominating_may(struct gs_slice version);

/*
 * Asks the API server whether pods may be nominated (service/pending.h): whether its release is
 * one whose kube-scheduler tries a nominated node first. -1: no answer yet.
 */
int nominating_ask(struct gs_kube_client *client, bool *ret_may, struct gs_error *err);
