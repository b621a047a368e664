/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/port/kube.h"

/*
 * Who binds, of several replicas. Leader election through a coordination.k8s.io/v1 Lease, by
 * client-go's rules (k8s.io/client-go/tools/leaderelection): a lease is taken when it is free or
 * was not renewed for its duration as seen by our own clock; it is renewed every retry period.
 *
 * Fencing: a leader is one only until its last renewal plus the renew deadline, which is shorter
 * than the lease. That is asked of the clock at every use, so a process that was stopped and goes
 * on knows at once that it leads no more, before anybody else can begin.
 *
 * Following: beside a kube-scheduler on loopback, the lease is kube-scheduler's own, and is read
 * only. A replica leads while the holder is the kube-scheduler of its own host (client-go's
 * identity is HOSTNAME_UUID) and was seen to renew. The same fence then holds for binds that an old
 * kube-scheduler, frozen and resumed, still has in hand. A new leader waits until the last binds of
 * the one before it are over, which it need not when that one's lease was seen to run out.
 *
 * A bind that began while its replica led is given up after GS_ELECTION_BIND_NS, which is before
 * anybody else can lead.
 *
 *   struct gs_election *election = gs_election_new(&config);
 *   one thread:  sleep until gs_election_step(election)
 *   any thread:  gs_election_leads(election)
 *   at the end:  gs_election_resign(election, true)
 */
struct gs_election;

#define GS_ELECTION_LEASE_NS    (15 * GS_NS_PER_S)
#define GS_ELECTION_DEADLINE_NS (10 * GS_NS_PER_S)
#define GS_ELECTION_RETRY_NS    (2 * GS_NS_PER_S)
#define GS_ELECTION_FOLLOW_NS   (1 * GS_NS_PER_S) /* between looks at a followed lease */
#define GS_ELECTION_BIND_NS     (4 * GS_NS_PER_S)
#define GS_ELECTION_BLIND_NS    (5 * GS_NS_PER_S) /* without the Lease: history may be another */

struct gs_election_config {
    struct gs_kube kube;          /* borrowed */
    const struct gs_clock *clock; /* borrowed */
    const char *ns;               /* of the lease; strings are borrowed */
    const char *name;
    const char *identity; /* unique among all processes, past ones too; following: the host's */
    bool follows;         /* read kube-scheduler's lease, take part in nothing */
};

/* *caller frees*; NULL when out of memory. */
struct gs_election *gs_election_new(const struct gs_election_config *config);
void gs_election_free(struct gs_election *election);

/* Takes, renews, watches or follows the lease: one or two calls to the API. Returns the monotonic
 * time of the next step. err, when not NULL, says why a renewal or attempt failed (being a standby
 * is no failure). One thread. */
int64_t gs_election_step(struct gs_election *election, struct gs_error *err);

/* This replica leads now. Any thread. */
bool gs_election_leads(const struct gs_election *election);

/* How often it began to lead. Any thread. */
uint64_t gs_election_terms(const struct gs_election *election);

/* How often the API server's history may have gone back: the Lease was seen in a lower version than
 * before (etcd was restored from a backup, or one API server is behind another), or by a standby
 * that had not seen it for GS_ELECTION_BLIND_NS. Any thread. */
uint64_t gs_election_falls(const struct gs_election *election);

/* The monotonic time until which it leads if it cannot renew; 0: it does not lead. Any thread. */
int64_t gs_election_until_ns(const struct gs_election *election);

/* Leads no more, whatever the API says. give_back: so that another replica need not wait the lease
 * out; not while a bind of ours may still be carried out, for the other one does not wait for that.
 * The thread of step. */
void gs_election_resign(struct gs_election *election, bool give_back);
