/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_EXTENDER_CANDIDATE_H
#define GPUSHARE_APPS_EXTENDER_CANDIDATE_H

#include "gpushare/base/error.h"
#include "gpushare/port/kube.h"
#include "gpushare/service/election.h"

/*
 * The thread of the election: it renews the Lease, or looks at kube-scheduler's, and does nothing
 * else, for whatever holds it up ends the lead.
 */
struct candidate;

/* The config is copied; what it points to is borrowed until candidate_stop(). *ret_candidate:
 * *caller frees* with it. */
int candidate_start(const struct gs_election_config *config, struct candidate **ret_candidate,
                    struct gs_error *err);

/* Borrowed from the candidate. */
const struct gs_election *candidate_election(const struct candidate *candidate);

/* The election says that it leads no more, and gives the lease back (gs_election_resign()); the
 * object lives on for those who still ask it. False when that is still going on after so long, as
 * it is while the API server does not answer. NULL is fine. */
bool candidate_resign(struct candidate *candidate, bool give_back, int64_t timeout_ns);

/* Leads no more, and frees. NULL is fine. */
void candidate_stop(struct candidate *candidate);

#endif
