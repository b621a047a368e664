/* SPDX-License-Identifier: Apache-2.0 */
#include "common/process.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

sigset_t process_stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

void process_block_signals(void)
{
    sigset_t set = process_stop_signals();
    sigaddset(&set, SIGHUP); /* a closing terminal is no reason to leave a cluster alone */
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int process_wait_for_stop(void)
{
    sigset_t set = process_stop_signals();
    int number;
    sigwait(&set, &number);
    return number;
}

void process_raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* refused: the server lowers its own limits */
}

void process_keep_secrets(void)
{
    struct rlimit core;
    prctl(PR_SET_DUMPABLE, 0);
    if (getrlimit(RLIMIT_CORE, &core) < 0)
        return;
    core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &core);
}
