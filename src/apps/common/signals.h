/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_SIGNALS_H
#define GPUSHARE_APPS_COMMON_SIGNALS_H

#include <signal.h>

/* SIGTERM and SIGINT: those that ask for an end. */
sigset_t gs_signals_stop_set(void);

/* Blocks SIGTERM, SIGINT and SIGHUP in this thread and all that it starts from now on, and ignores
 * SIGPIPE. Call before the first thread. */
void gs_signals_block(void);

/* Waits for SIGTERM or SIGINT; its number. */
int gs_signals_wait(void);

#endif
