/* SPDX-License-Identifier: Apache-2.0 */
#include "election.h"

#include <stdio.h>

#include "gpushare/base/num.h"

struct gs_election {
    struct gs_election_config config;
    atomic_llong leads_until_ns; /* monotonic; 0: does not lead */
    atomic_ullong terms;
    atomic_ullong falls;
    /* The lease as it was last seen, and when it last changed by our clock: other replicas' clocks
     * are not trusted. */
    struct gs_lease seen;
    int64_t changed_ns;
    bool known;
    int64_t taken_until_ns; /* what another holds, as it was last seen, has run out then; 0: none */
    int64_t looked_ns;      /* when the last look that was answered began */
    /* Following. */
    bool renewed;       /* it changed since the first look, so that renewed_ns means something */
    int64_t renewed_ns; /* its last renewal was not before this */
    int64_t from_ns;    /* binds of the holder before are over */
};

struct gs_election *gs_election_new(const struct gs_election_config *config)
{
    struct gs_election *election = calloc(1, sizeof(*election));
    if (election)
        election->config = *config;
    return election;
}

void gs_election_free(struct gs_election *election)
{
    free(election);
}

int64_t gs_election_until_ns(const struct gs_election *election)
{
    return atomic_load(&election->leads_until_ns);
}

bool gs_election_leads(const struct gs_election *election)
{
    return gs_election_until_ns(election) > gs_clock_now_ns(election->config.clock);
}

uint64_t gs_election_terms(const struct gs_election *election)
{
    return atomic_load(&election->terms);
}

uint64_t gs_election_falls(const struct gs_election *election)
{
    return atomic_load(&election->falls);
}

static bool is_older(const struct gs_lease *a, const struct gs_lease *b)
{
    uint64_t version, than;
    return gs_parse_u64(a->resource_version, strlen(a->resource_version), &version) &&
           gs_parse_u64(b->resource_version, strlen(b->resource_version), &than) && version < than;
}

static bool same_lease(const struct gs_lease *a, const struct gs_lease *b)
{
    return strcmp(a->holder, b->holder) == 0 && a->renew_ns == b->renew_ns &&
           a->transitions == b->transitions &&
           strcmp(a->resource_version, b->resource_version) == 0;
}

static bool is_ours(const struct gs_election *election, const struct gs_lease *lease)
{
    const char *identity = election->config.identity;
    size_t len = strlen(identity);
    if (election->config.follows)
        return strncmp(lease->holder, identity, len) == 0 && lease->holder[len] == '_';
    return strcmp(lease->holder, identity) == 0;
}

static int64_t duration_of(const struct gs_lease *lease)
{
    return lease->duration_s > 0 ? lease->duration_s * GS_NS_PER_S : GS_ELECTION_LEASE_NS;
}

/* By its holder, who leads no more: client-go's LeaderElector.release() leaves one second, too. */
static bool is_given_back(const struct gs_lease *lease)
{
    return lease->resource_version[0] && !lease->holder[0] && lease->duration_s <= 1;
}

/* A first look that finds nobody, and a Lease that nobody gave back, may have missed the holder:
 * one whose Lease was deleted or emptied by hand learns of it when it renews. */
static void note(struct gs_election *election, const struct gs_lease *lease, int64_t now_ns)
{
    if (!election->known || !same_lease(&election->seen, lease))
        election->changed_ns = now_ns;
    if (is_ours(election, lease) || is_given_back(lease))
        election->taken_until_ns = 0;
    else if (lease->holder[0] || !election->known)
        election->taken_until_ns = election->changed_ns + duration_of(lease);
    if (election->known && is_older(lease, &election->seen))
        atomic_fetch_add(&election->falls, 1);
    election->seen = *lease;
    election->known = true;
}

/* 0 with the lease as it is, an empty one when there is none. */
static int look(struct gs_election *election, struct gs_lease *ret, struct gs_error *err)
{
    const struct gs_kube *kube = &election->config.kube;
    struct gs_error why = {0};
    *ret = (struct gs_lease){.ns = election->config.ns, .name = election->config.name};
    if (kube->ops->get_lease(kube->ctx, ret, &why) < 0 && why.code != GS_ENOENT)
        return gs_fail(err, why.code, "%s", why.msg);
    return 0;
}

static int take(struct gs_election *election, struct gs_lease *lease, struct gs_error *err)
{
    const struct gs_election_config *config = &election->config;
    int64_t wall_ns = config->clock->wall_ns(config->clock->ctx);
    if (!is_ours(election, lease)) {
        lease->transitions += lease->holder[0] != '\0';
        lease->acquire_ns = wall_ns;
        snprintf(lease->holder, sizeof(lease->holder), "%s", config->identity);
    }
    lease->renew_ns = wall_ns;
    lease->duration_s = (int32_t)(GS_ELECTION_LEASE_NS / GS_NS_PER_S);
    return config->kube.ops->put_lease(config->kube.ctx, lease, err);
}

static void lead_until(struct gs_election *election, int64_t now_ns, int64_t until_ns)
{
    if (until_ns > now_ns && now_ns >= atomic_load(&election->leads_until_ns))
        atomic_fetch_add(&election->terms, 1);
    atomic_store(&election->leads_until_ns, until_ns);
}

static bool starts_reign(const struct gs_election *election, const struct gs_lease *lease)
{
    return is_ours(election, lease) && (!is_ours(election, &election->seen) ||
                                        lease->transitions != election->seen.transitions);
}

/* When the holder before has no bind in flight. A lease that ran out before our eyes was long
 * enough for that; one that was given back, or whose end we missed, was not. Both look alike when
 * looks failed meanwhile: who gives a lease back leaves the number of transitions as it is
 * (client-go, LeaderElector.release), so that the next holder is one transition on. */
static int64_t last_binds_over_ns(const struct gs_election *election, const struct gs_lease *lease,
                                  int64_t now_ns)
{
    const struct gs_lease *before = &election->seen;
    int64_t over_ns = now_ns + GS_ELECTION_BIND_NS;
    int64_t ran_out_ns = election->changed_ns + duration_of(before);
    bool watched = election->known && before->holder[0] && !is_ours(election, before) &&
                   lease->transitions <= before->transitions + 1 &&
                   election->looked_ns >= ran_out_ns - 2 * GS_ELECTION_FOLLOW_NS;
    return watched && ran_out_ns < over_ns ? ran_out_ns : over_ns;
}

/*
 * The look began at begun_ns and was answered now. A renewal that it shows and the look before did
 * not came after that one began, whenever the two were answered; and nobody else takes the lease
 * before its duration has passed since: until then this replica's last bind must be over.
 * changed_ns is the other bound: the renewal came before that.
 */
static void follow(struct gs_election *election, const struct gs_lease *lease, int64_t begun_ns,
                   int64_t now_ns)
{
    bool first = !election->known;
    if (first || starts_reign(election, lease))
        election->from_ns = last_binds_over_ns(election, lease, now_ns);
    if (!first && !same_lease(&election->seen, lease)) {
        election->renewed = true;
        election->renewed_ns = election->looked_ns;
    }
    note(election, lease, now_ns);
    int64_t until_ns = election->renewed_ns + duration_of(lease) - GS_ELECTION_BIND_NS;
    bool leads = is_ours(election, lease) && election->renewed && now_ns >= election->from_ns;
    lead_until(election, now_ns, leads ? until_ns : 0);
}

/* etcd is not restored while its API servers run, and who was not told of an outage may find the
 * versions higher than before it. Who leads knows: it alone writes its Lease. */
static bool is_out_of_touch(const struct gs_election *election, int64_t begun_ns)
{
    return election->known && begun_ns - election->looked_ns > GS_ELECTION_BLIND_NS &&
           !gs_election_leads(election);
}

int64_t gs_election_step(struct gs_election *election, struct gs_error *err)
{
    struct gs_lease lease;
    int64_t begun_ns = gs_clock_now_ns(election->config.clock);
    bool follows = election->config.follows;
    int64_t next_ns = begun_ns + (follows ? GS_ELECTION_FOLLOW_NS : GS_ELECTION_RETRY_NS);
    if (look(election, &lease, err) < 0)
        return next_ns; /* leads_until_ns runs out by itself */
    int64_t now_ns = gs_clock_now_ns(election->config.clock);
    if (is_out_of_touch(election, begun_ns))
        atomic_fetch_add(&election->falls, 1);
    if (follows) {
        follow(election, &lease, begun_ns, now_ns);
        election->looked_ns = begun_ns;
        if (!lease.resource_version[0])
            gs_fail(err, GS_ENOENT,
                    "Lease %s/%s does not exist: check that kube-scheduler elects a leader",
                    lease.ns, lease.name);
        return next_ns;
    }
    /* What is new may have been written while the answer was under way: its time counts from
     * after the answer, or a slow API server would shorten it. */
    note(election, &lease, now_ns);
    election->looked_ns = begun_ns;
    /* Also when the Lease was deleted or emptied by hand, of which its holder learns when it
     * renews.
     */
    if (now_ns < election->taken_until_ns) {
        atomic_store(&election->leads_until_ns, 0);
        return next_ns;
    }
    /* The time counts from before the request: a slow answer does not lengthen the reign. */
    if (take(election, &lease, err) < 0)
        return next_ns;
    note(election, &lease, now_ns);
    lead_until(election, now_ns, now_ns + GS_ELECTION_DEADLINE_NS);
    return next_ns;
}

void gs_election_resign(struct gs_election *election, bool give_back)
{
    struct gs_lease lease;
    bool led = gs_election_leads(election);
    atomic_store(&election->leads_until_ns, 0);
    if (election->config.follows || !led || !give_back || look(election, &lease, NULL) < 0 ||
        !is_ours(election, &lease))
        return;
    lease.holder[0] = '\0';
    lease.duration_s = 1;
    lease.renew_ns = election->config.clock->wall_ns(election->config.clock->ctx);
    election->config.kube.ops->put_lease(election->config.kube.ctx, &lease, NULL);
}
