/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * How long to wait before trying again, spread at random so that many clients of one broken API
 * server do not come back together (client-go: wait.NewExponentialBackoffManager).
 */

/* min * 2^attempt, at most max; attempt counts from 0. For a client that is alone with its server.
 */
int64_t gs_pause_ns(uint32_t attempt, int64_t min_ns, int64_t max_ns);

/* gs_pause_ns(), then up to as much again at random, then at most max again: between min and max.
 * Any thread. */
int64_t gs_backoff_ns(uint32_t attempt, int64_t min_ns, int64_t max_ns);
