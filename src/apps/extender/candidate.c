/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/candidate.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/model/names.h"

struct candidate {
    struct gs_election_config config;
    struct gs_election *election;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* stop or ended; both guarded by lock */
    bool stop, ended;
    enum gs_code failure; /* of the last step */
    enum gs_code label_failure;
    int labelled; /* what the pod's label says: 1, 0, or -1 while that is not known */
};

const struct gs_election *candidate_election(const struct candidate *candidate)
{
    return candidate->election;
}

/* Brings the label in line; what fails is tried again at the next step. */
static void put_label(struct candidate *candidate, bool leads)
{
    const struct gs_kube *kube = &candidate->config.kube;
    if (candidate->config.follows || candidate->labelled == (int)leads)
        return;
    const struct gs_kv label = {GS_LEADER_LABEL, leads ? "true" : NULL};
    const struct gs_meta_patch patch = {.ns = candidate->config.ns,
                                        .name = candidate->config.identity,
                                        .labels = &label,
                                        .label_count = 1};
    struct gs_error err = {0};
    if (kube->ops->patch_pod(kube->ctx, &patch, &err) == 0)
        candidate->labelled = leads;
    else if (err.code != candidate->label_failure)
        gs_log(GS_LOG_WARN, "leader's label not written", GS_STR("why", err.msg));
    candidate->label_failure = err.code;
}

static void step(struct candidate *candidate, int64_t *ret_next_ns)
{
    struct gs_error err = {0};
    bool led = gs_election_leads(candidate->election);
    *ret_next_ns = gs_election_step(candidate->election, &err);
    bool leads = gs_election_leads(candidate->election);
    if (err.code && err.code != candidate->failure) /* once, not every second */
        gs_log(GS_LOG_WARN, candidate->config.follows ? "lease not read" : "lease not held",
               GS_STR("why", err.msg));
    candidate->failure = err.code;
    if (led != leads)
        gs_log(GS_LOG_INFO, leads ? "leading" : "standing by",
               GS_STR("as", candidate->config.identity));
    put_label(candidate, leads);
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
    gs_election_resign(candidate->election);
    put_label(candidate, false);
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
    candidate->labelled = -1;
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

bool candidate_resign(struct candidate *candidate, int64_t timeout_ns)
{
    if (!candidate || !candidate->running)
        return true;
    const struct timespec until =
        gs_clock_wait_until(gs_clock_now_ns(gs_clock_system()) + timeout_ns);
    int error = 0;
    pthread_mutex_lock(&candidate->lock);
    candidate->stop = true;
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
        candidate_resign(candidate, 0);
        pthread_join(candidate->thread, NULL);
    }
    gs_election_free(candidate->election);
    pthread_cond_destroy(&candidate->changed);
    pthread_mutex_destroy(&candidate->lock);
    free(candidate);
}
