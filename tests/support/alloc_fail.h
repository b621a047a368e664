/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * Makes the n-th allocation fail. Linked in by gs_fail_allocations(<target>) of AllocFail.cmake,
 * which wraps malloc, calloc, realloc, reallocarray, strdup and strndup as our own objects call
 * them (foreign libraries' inner allocations are not counted). All threads count together.
 *
 *   for (unsigned n = 1;; n++) {
 *       struct thing *thing = fresh();
 *       alloc_fail_begin(n);
 *       int rc = operation(thing);
 *       if (!alloc_fail_end())
 *           break;                  it needed fewer than n: every one has failed once
 *       ... rc < 0, and thing is as it was
 *   }
 */

/* From here on the n-th allocation (1: the next) returns NULL, the others do not. */
void alloc_fail_begin(unsigned n);

/* The same, and every one after it fails too. */
void alloc_fail_begin_from(unsigned n);

/* In between, what others allocate in this process neither fails nor counts. */
void alloc_fail_pause(bool pause);

/* Back to normal. True when an allocation was made to fail. */
bool alloc_fail_end(void);
