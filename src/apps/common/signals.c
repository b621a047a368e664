/* SPDX-License-Identifier: Apache-2.0 */
#include "common/signals.h"

#include <pthread.h>

sigset_t gs_signals_stop_set(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

void gs_signals_block(void)
{
    sigset_t set = gs_signals_stop_set();
    sigaddset(&set, SIGHUP); /* a closing terminal is no reason to leave a cluster alone */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int gs_signals_wait(void)
{
    sigset_t set = gs_signals_stop_set();
    int number;
    sigwait(&set, &number);
    return number;
}
