/* SPDX-License-Identifier: Apache-2.0 */
#include "mps/supervise.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/backoff.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"
#include "mps/pipes.h"

#define LOOK_NS        (500 * GS_NS_PER_MS) /* is the child still there? */
#define ASK_NS         (3 * GS_NS_PER_S)
#define START_NS       (15 * GS_NS_PER_S)
#define PATIENCE_NS    (10 * GS_NS_PER_S) /* of silence */
#define FIRST_PAUSE_NS (1 * GS_NS_PER_S)
#define LAST_PAUSE_NS  (60 * GS_NS_PER_S)
#define LONG_RUN_NS    (60 * GS_NS_PER_S) /* who ran so long did not fail at once */

struct supervisor {
    struct control_daemon daemon;
    struct control_daemon kept; /* the same, by names that no client can change */
    struct pipes pipes;
    const char *root;
    char uuid[GS_UUID_BYTES];
    pthread_t thread;
    pthread_mutex_t lock; /* guards stop */
    pthread_cond_t wake;
    bool stop;
    /* the thread's: */
    pid_t pid; /* 0: no daemon runs */
    int64_t started_ns, ask_ns, answered_ns;
    int64_t again_ns;  /* no daemon: the next start */
    uint32_t failures; /* in a row */
    bool left_alone;   /* it is silent, and has a server */
    struct mps_state said;
};

static int64_t now(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

/* ---- what is told ---- */

static void tell(struct supervisor *supervisor, bool ready, const char *why)
{
    struct mps_state state = {.ready = ready};
    snprintf(state.why, sizeof(state.why), "%s", why);
    if (!mps_state_write(supervisor->root, supervisor->uuid, &state, now()))
        gs_log(GS_LOG_ERROR, "cannot write the state of the MPS daemon",
               GS_STR("uuid", supervisor->uuid), GS_STR("error", strerror(errno)));
    if (state.ready == supervisor->said.ready && strcmp(state.why, supervisor->said.why) == 0)
        return;
    supervisor->said = state;
    gs_log(ready ? GS_LOG_INFO : GS_LOG_WARN, ready ? "MPS daemon ready" : "MPS daemon not ready",
           GS_STR("uuid", supervisor->uuid), GS_INT("pid", supervisor->pid), GS_STR("reason", why));
}

/* ---- the daemon ---- */

static void put_off(struct supervisor *supervisor)
{
    int64_t pause_ns = gs_pause_ns(supervisor->failures, FIRST_PAUSE_NS, LAST_PAUSE_NS);
    supervisor->failures += supervisor->failures < 16;
    supervisor->pid = 0;
    supervisor->left_alone = false;
    supervisor->again_ns = now() + pause_ns;
}

static void start_daemon(struct supervisor *supervisor)
{
    struct gs_error err = {0};
    pipes_clear(&supervisor->pipes);
    if (control_start(&supervisor->daemon, &supervisor->pid, &err) < 0) {
        tell(supervisor, false, err.msg);
        put_off(supervisor);
        return;
    }
    supervisor->started_ns = now();
    supervisor->ask_ns = supervisor->started_ns + LOOK_NS;
    supervisor->answered_ns = 0;
    tell(supervisor, false, "the MPS daemon is starting");
}

static void stop_daemon(struct supervisor *supervisor, const char *why)
{
    if (!GS_INVARIANT(!supervisor->left_alone,
                      "a daemon that does not respond is not stopped while its server runs"))
        return;
    tell(supervisor, false, why);
    if (supervisor->pid)
        control_stop(supervisor->pid);
    put_off(supervisor);
}

/* A server that failed takes nobody in, and those that it has cannot go on: when the last of them
 * has gone, the next one is a new one. */
static void take_answer(struct supervisor *supervisor, const struct control_answer *answer)
{
    supervisor->answered_ns = now();
    supervisor->left_alone = false;
    if (supervisor->answered_ns - supervisor->started_ns >= LONG_RUN_NS)
        supervisor->failures = 0;
    if (!answer->fault) {
        tell(supervisor, true, "");
        return;
    }
    if (answer->clients) {
        tell(supervisor, false,
             "the MPS server has failed: its clients have to end before it restarts");
        return;
    }
    control_quit(&supervisor->kept);
    stop_daemon(supervisor, "the MPS server has failed and restarts");
}

/* Any client can make the daemon silent, and its end would be that of all clients. */
static void take_silence(struct supervisor *supervisor, const struct gs_error *why)
{
    const bool met = supervisor->answered_ns;
    int64_t since_ns = met ? supervisor->answered_ns : supervisor->started_ns;
    bool over = now() - since_ns >= (met ? PATIENCE_NS : START_NS);
    supervisor->left_alone = over && control_serves(supervisor->pid);
    if (supervisor->left_alone)
        tell(
            supervisor, false,
            "the MPS daemon does not respond; it is not restarted, as its server may have clients");
    else if (over)
        stop_daemon(supervisor, why->msg);
    else
        tell(supervisor, false, met ? why->msg : "the MPS daemon is starting");
}

/* By its own folder where the tool does not find it by the other: that is not seen on a card. */
static bool answers(const struct supervisor *supervisor, struct control_answer *ret,
                    struct gs_error *err)
{
    if (control_ask(&supervisor->kept, ret, err) == 0)
        return true;
    if (err->code != GS_EIO)
        return false;
    gs_error_clear(err);
    return control_ask(&supervisor->daemon, ret, err) == 0;
}

static void ask_daemon(struct supervisor *supervisor)
{
    struct control_answer answer;
    struct gs_error err = {0};
    if (pipes_find(&supervisor->pipes, supervisor->pid, &err) == 0 &&
        answers(supervisor, &answer, &err))
        take_answer(supervisor, &answer);
    else
        take_silence(supervisor, &err);
    supervisor->ask_ns = now() + (supervisor->answered_ns ? ASK_NS : LOOK_NS);
}

static void look(struct supervisor *supervisor)
{
    if (supervisor->pid && control_ended(supervisor->pid)) {
        control_stop(supervisor->pid); /* its servers */
        put_off(supervisor);
        tell(supervisor, false, "the MPS daemon has exited and restarts");
    } else if (supervisor->pid && now() >= supervisor->ask_ns) {
        ask_daemon(supervisor);
        control_bound_logs(&supervisor->daemon);
    } else if (!supervisor->pid && now() >= supervisor->again_ns) {
        start_daemon(supervisor);
    }
}

/* ---- the thread ---- */

static bool pause_or_stop(struct supervisor *supervisor)
{
    const struct timespec until = gs_clock_wait_until(now() + LOOK_NS);
    int woken = 0;
    pthread_mutex_lock(&supervisor->lock);
    while (!supervisor->stop && woken == 0)
        woken = pthread_cond_timedwait(&supervisor->wake, &supervisor->lock, &until);
    bool stop = supervisor->stop;
    pthread_mutex_unlock(&supervisor->lock);
    return stop;
}

static void *run(void *ctx)
{
    struct supervisor *supervisor = ctx;
    do
        look(supervisor);
    while (!pause_or_stop(supervisor));
    tell(supervisor, false, "gpushare-mps has stopped");
    if (supervisor->pid)
        control_stop(supervisor->pid);
    return NULL;
}

static int make_names(struct supervisor *supervisor, const char *root, struct gs_error *err)
{
    char log[MPS_PATH_BYTES];
    struct control_daemon *daemon = &supervisor->daemon;
    const char *pipe = supervisor->pipes.folder;
    if (pipes_make(&supervisor->pipes, root, supervisor->uuid, err) < 0)
        return -1;
    mps_path(root, supervisor->uuid, "log", log);
    snprintf(daemon->visible, sizeof(daemon->visible), "CUDA_VISIBLE_DEVICES=%s", supervisor->uuid);
    snprintf(daemon->pipe, sizeof(daemon->pipe), "CUDA_MPS_PIPE_DIRECTORY=%.200s", pipe);
    snprintf(daemon->log, sizeof(daemon->log), "CUDA_MPS_LOG_DIRECTORY=%.200s", log);
    supervisor->kept = *daemon;
    snprintf(supervisor->kept.pipe, sizeof(daemon->pipe), "CUDA_MPS_PIPE_DIRECTORY=%.200s",
             supervisor->pipes.kept);
    return 0;
}

int supervisor_start(const struct control *control, const char *root, const struct gs_gpu *gpu,
                     struct supervisor **ret, struct gs_error *err)
{
    struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
    if (!supervisor)
        return gs_fail_nomem(err);
    supervisor->daemon.control = control;
    supervisor->root = root;
    memcpy(supervisor->uuid, gpu->uuid, sizeof(supervisor->uuid));
    pthread_mutex_init(&supervisor->lock, NULL);
    gs_clock_cond_init(&supervisor->wake);
    if (make_names(supervisor, root, err) < 0 ||
        pthread_create(&supervisor->thread, NULL, run, supervisor) != 0) {
        pthread_mutex_destroy(&supervisor->lock);
        pthread_cond_destroy(&supervisor->wake);
        free(supervisor);
        return err && err->code ? -1 : gs_fail_nomem(err);
    }
    *ret = supervisor;
    return 0;
}

void supervisor_ask_to_stop(struct supervisor *supervisor)
{
    pthread_mutex_lock(&supervisor->lock);
    supervisor->stop = true;
    pthread_cond_signal(&supervisor->wake);
    pthread_mutex_unlock(&supervisor->lock);
}

void supervisor_free(struct supervisor *supervisor)
{
    pthread_join(supervisor->thread, NULL);
    pthread_mutex_destroy(&supervisor->lock);
    pthread_cond_destroy(&supervisor->wake);
    free(supervisor);
}
