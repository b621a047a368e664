/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_EXTENDER_CANDIDATE_H
#define GPUSHARE_APPS_EXTENDER_CANDIDATE_H

#include "gpushare/base/error.h"
#include "gpushare/port/cluster.h"
#include "gpushare/service/election.h"

/*
 * The thread of the election. When it takes part itself, it labels this replica's pod, which has
 * the name of its identity, gpushare/leader=true while it leads, so that a Service can select the
 * leader although standbys are ready too. Following kube-scheduler's lease, it only looks.
 */
struct candidate;

/* The config is copied; what it points to is borrowed until candidate_stop(). *ret_candidate:
 * *caller frees* with it. */
int candidate_start(const struct gs_election_config *config, struct candidate **ret_candidate,
                    struct gs_error *err);

/* Borrowed from the candidate. */
const struct gs_election *candidate_election(const struct candidate *candidate);

/* Gives the lease and the label back. The election says that it leads no more; the object lives on
 * for those who still ask it. False when that is still going on after so long, as it is while the
 * API server does not answer. NULL is fine. */
bool candidate_resign(struct candidate *candidate, int64_t timeout_ns);

/* Resigns, however long that takes, and frees. NULL is fine. */
void candidate_stop(struct candidate *candidate);

#endif
