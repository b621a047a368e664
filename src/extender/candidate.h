/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extender/service/election.h"
#include "gpushare/base/error.h"

/*
 * The thread of the election: it renews the Lease, or looks at kube-scheduler's, and does nothing
 * else, for whatever holds it up ends the lead. Zeroed: there is no election.
 */
struct candidate {
    struct gs_election_config config; /* what it points to is borrowed */
    struct gs_election *election;     /* NULL: none */
    pthread_t thread;
    bool running;
    atomic_bool stop, give_back;
    enum gs_code failure; /* of the last step */
};

int candidate_start(struct candidate *candidate, const struct gs_election_config *config,
                    struct gs_error *err);

/* The election says that it leads no more, and gives the lease back (gs_election_resign()); the
 * object lives on for those who still ask it. False when that is still going on after so long, as
 * it is while the API server does not answer. */
bool candidate_resign(struct candidate *candidate, bool give_back, int64_t timeout_ns);

/* Leads no more, and frees. */
void candidate_stop(struct candidate *candidate);
