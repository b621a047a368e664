/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "gpushare/base/clock.h"

/* SIGTERM and SIGINT: those that ask for an end. */
sigset_t process_stop_signals(void);

/* Blocks SIGTERM, SIGINT and SIGHUP in this thread and all that it starts from now on, and ignores
 * SIGPIPE. Call before the first thread. */
void process_block_signals(void);

/* Waits for SIGTERM or SIGINT; its number. */
int process_wait_for_stop(void);

/* Allows as many open files as the administrator does: the soft limit, often 1,024, is there for
 * programs that use select(2), and a server does not. Before the first server. */
void process_raise_files(void);

/* No core file, and no look into the memory by other processes of the same user: it holds tokens
 * and keys. A debugger that starts the program sees all the same. First of all in main(). */
void process_keep_secrets(void);

/* Sleeps until then, on gs_clock_system(); false: stop is set, which it looks at ten times a
 * second.
 */
bool process_sleep_until(int64_t due_ns, const atomic_bool *stop);
