/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/candidate.h"

#include "common/process.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"

#define LOOK_NS (10 * GS_NS_PER_MS)

/* Returns when the next one is due. */
static int64_t step(struct candidate *candidate)
{
    struct gs_error err = {0};
    const bool led = gs_election_leads(candidate->election);
    const int64_t next_ns = gs_election_step(candidate->election, &err);
    const bool leads = gs_election_leads(candidate->election);
    if (err.code && err.code != candidate->failure) /* once, not every second */
        gs_log(GS_LOG_WARN,
               candidate->config.follows ? "cannot read Lease" : "cannot acquire or renew Lease",
               GS_STR("error", err.msg));
    candidate->failure = err.code;
    if (led != leads)
        gs_log(GS_LOG_INFO, leads ? "became leader" : "on standby",
               GS_STR("as", candidate->config.identity));
    return next_ns;
}

static void *run(void *arg)
{
    struct candidate *candidate = arg;
    while (process_sleep_until(step(candidate), &candidate->stop))
        ;
    gs_election_resign(candidate->election, candidate->give_back);
    return NULL;
}

int candidate_start(struct candidate *candidate, const struct gs_election_config *config,
                    struct gs_error *err)
{
    candidate->config = *config;
    candidate->election = gs_election_new(config);
    candidate->running =
        candidate->election && pthread_create(&candidate->thread, NULL, run, candidate) == 0;
    return candidate->running ? 0 : gs_fail_nomem(err);
}

bool candidate_resign(struct candidate *candidate, bool give_back, int64_t timeout_ns)
{
    const struct gs_clock *clock = gs_clock_system();
    const int64_t until_ns = gs_clock_now_ns(clock) + timeout_ns;
    if (!candidate->running)
        return true;
    atomic_store(&candidate->give_back, give_back);
    atomic_store(&candidate->stop, true);
    while ((candidate->running = pthread_tryjoin_np(candidate->thread, NULL) != 0) &&
           gs_clock_now_ns(clock) < until_ns)
        gs_clock_sleep(clock, LOOK_NS);
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
