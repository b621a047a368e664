/* SPDX-License-Identifier: Apache-2.0 */
#include "common/process.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gpushare/base/log.h"

#define LOOK_NS (100 * GS_NS_PER_MS)

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
    int number, error = sigwait(&set, &number);
    if (error) { /* a seccomp profile without it */
        gs_log(GS_LOG_ERROR, "cannot wait for signals", GS_INT("errno", error));
        _exit(1);
    }
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
    prctl(PR_SET_DUMPABLE, 0);
}

bool process_sleep_until(int64_t due_ns, const atomic_bool *stop)
{
    int64_t left_ns;
    while (!atomic_load(stop) && (left_ns = due_ns - gs_clock_now_ns(gs_clock_system())) > 0)
        nanosleep(&(const struct timespec){.tv_nsec = left_ns < LOOK_NS ? left_ns : LOOK_NS}, NULL);
    return !atomic_load(stop);
}
