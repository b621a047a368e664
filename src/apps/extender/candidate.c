/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/candidate.h"

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"

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
    pthread_mutex_unlock(&candidate->lock);
    gs_election_resign(candidate->election, candidate->give_back);
    return NULL;
}

int candidate_start(struct candidate *candidate, const struct gs_election_config *config,
                    struct gs_error *err)
{
    candidate->config = *config;
    pthread_mutex_init(&candidate->lock, NULL);
    gs_clock_cond_init(&candidate->changed);
    candidate->election = gs_election_new(config);
    candidate->running =
        candidate->election && pthread_create(&candidate->thread, NULL, run, candidate) == 0;
    return candidate->running ? 0 : gs_fail_nomem(err);
}

bool candidate_resign(struct candidate *candidate, bool give_back, int64_t timeout_ns)
{
    const struct timespec until =
        gs_clock_wait_until(gs_clock_now_ns(gs_clock_system()) + timeout_ns);
    if (!candidate->running)
        return true;
    pthread_mutex_lock(&candidate->lock);
    candidate->stop = true;
    candidate->give_back = give_back;
    pthread_cond_signal(&candidate->changed);
    pthread_mutex_unlock(&candidate->lock);
    candidate->running =
        pthread_clockjoin_np(candidate->thread, NULL, CLOCK_MONOTONIC, &until) != 0;
    return !candidate->running;
}

void candidate_stop(struct candidate *candidate)
{
    candidate_resign(candidate, false, 0);
    if (candidate->running)
        pthread_join(candidate->thread, NULL);
    if (candidate->election)
        gs_election_free(candidate->election);
}
