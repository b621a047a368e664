/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How long to wait before trying again, spread at random so that many clients of one broken API
 * server do not come back together (client-go: wait.NewExponentialBackoffManager).
 */

/* A small generator (splitmix64) for spreading only, never for secrets. Not thread-safe. */
struct gs_random {
    uint64_t state;
};

/* Seeded by getrandom(2). */
void gs_random_init(struct gs_random *random);

/* 0..bound-1; 0 for bound 0. */
uint64_t gs_random_below(struct gs_random *random, uint64_t bound);

/* min * 2^attempt, at most max; attempt counts from 0. For a client that is alone with its server.
 */
int64_t gs_pause_ns(uint32_t attempt, int64_t min_ns, int64_t max_ns);

/* gs_pause_ns(), then up to as much again at random, then at most max again: between min and max.
 */
int64_t gs_backoff_ns(struct gs_random *random, uint32_t attempt, int64_t min_ns, int64_t max_ns);

/*
 * A Retry-After header (RFC 9110, 10.2.3) in seconds, the form that API servers send. Dates and
 * anything else: false, *ret_ns untouched. The answer is at most max_ns.
 */
bool gs_retry_after_ns(const char *text, size_t len, int64_t max_ns, int64_t *ret_ns);
