/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/candidate.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"

struct candidate {
    struct gs_election_config config;
    struct gs_election *election;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* stop or ended; all guarded by lock */
    bool stop, give_back, ended;
    enum gs_code failure; /* of the last step */
};

const struct gs_election *candidate_election(const struct candidate *candidate)
{
    return candidate->election;
}

static void step(struct candidate *candidate, int64_t *ret_next_ns)
{
    struct gs_error err = {0};
    bool led = gs_election_leads(candidate->election);
    *ret_next_ns = gs_election_step(candidate->election, &err);
    bool leads = gs_election_leads(candidate->election);
    if (err.code && err.code != candidate->failure) /* once, not every second */
        gs_log(GS_LOG_WARN,
               candidate->config.follows ? "cannot read Lease" : "cannot acquire or renew Lease",
               GS_STR("error", err.msg));
    candidate->failure = err.code;
    if (led != leads)
        gs_log(GS_LOG_INFO, leads ? "became leader" : "on standby",
               GS_STR("as", candidate->config.identity));
}

static void *run(void *arg)
{
    struct candidate *candidate = arg;
    pthread_mutex_lock(&candidate->lock);
    while (!candidate->stop) {
        int64_t next_ns;
        pthread_mutex_unlock(&candidate->lock);
        step(candidate, &next_ns);
        pthread_mutex_lock(&candidate->lock);
        const struct timespec until = gs_clock_wait_until(next_ns);
        if (!candidate->stop)
            pthread_cond_timedwait(&candidate->changed, &candidate->lock, &until);
    }
    bool give_back = candidate->give_back;
    pthread_mutex_unlock(&candidate->lock);
    gs_election_resign(candidate->election, give_back);
    pthread_mutex_lock(&candidate->lock);
    candidate->ended = true;
    pthread_cond_signal(&candidate->changed);
    pthread_mutex_unlock(&candidate->lock);
    return NULL;
}

int candidate_start(const struct gs_election_config *config, struct candidate **ret_candidate,
                    struct gs_error *err)
{
    struct candidate *candidate = calloc(1, sizeof(*candidate));
    if (!candidate)
        return gs_fail_nomem(err);
    candidate->config = *config;
    pthread_mutex_init(&candidate->lock, NULL);
    gs_clock_cond_init(&candidate->changed);
    candidate->election = gs_election_new(config);
    int error =
        candidate->election ? pthread_create(&candidate->thread, NULL, run, candidate) : ENOMEM;
    candidate->running = error == 0;
    if (error) {
        candidate_stop(candidate);
        return gs_fail_nomem(err);
    }
    *ret_candidate = candidate;
    return 0;
}

bool candidate_resign(struct candidate *candidate, bool give_back, int64_t timeout_ns)
{
    if (!candidate || !candidate->running)
        return true;
    const struct timespec until =
        gs_clock_wait_until(gs_clock_now_ns(gs_clock_system()) + timeout_ns);
    int error = 0;
    pthread_mutex_lock(&candidate->lock);
    candidate->stop = true;
    candidate->give_back = give_back;
    pthread_cond_signal(&candidate->changed);
    while (!candidate->ended && error == 0)
        error = pthread_cond_timedwait(&candidate->changed, &candidate->lock, &until);
    bool ended = candidate->ended;
    pthread_mutex_unlock(&candidate->lock);
    return ended;
}

void candidate_stop(struct candidate *candidate)
{
    if (!candidate)
        return;
    if (candidate->running) {
        candidate_resign(candidate, false, 0);
        pthread_join(candidate->thread, NULL);
    }
    gs_election_free(candidate->election);
    pthread_cond_destroy(&candidate->changed);
    pthread_mutex_destroy(&candidate->lock);
    free(candidate);
}
