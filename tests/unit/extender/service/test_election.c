/* SPDX-License-Identifier: Apache-2.0 */

#include "rows.h"

#include "extender/service/election.h"

/* One lease that several replicas see. */
static struct {
    struct gs_lease lease;
    bool exists, away;
    int version;
    int64_t now_ns;
    int64_t answer_after_ns; /* a read is carried out at its end, … */
    bool reads_first;        /* … or at its beginning */
    int64_t write_after_ns;  /* a write is carried out at its end */
    void (*meanwhile)(void); /* what happens during the read, once */
} api;

static int64_t read_now(void *ctx)
{
    return api.now_ns;
}

static const struct gs_clock clock_of_api = {read_now, read_now, NULL};

static int get_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    void (*meanwhile)(void) = api.meanwhile;
    api.meanwhile = NULL;
    struct gs_lease then = api.lease;
    if (api.away)
        return gs_fail(err, GS_EIO, "away");
    if (api.reads_first && meanwhile)
        meanwhile();
    api.now_ns += api.answer_after_ns;
    if (!api.reads_first && meanwhile)
        meanwhile();
    if (!api.exists)
        return gs_fail(err, GS_ENOENT, "none");
    *lease = api.reads_first ? then : api.lease;
    return 0;
}

static int put_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    if (api.away)
        return gs_fail(err, GS_EIO, "away");
    api.now_ns += api.write_after_ns;
    if (strcmp(lease->resource_version, api.exists ? api.lease.resource_version : "") != 0)
        return gs_fail(err, GS_ECONFLICT, "changed");
    snprintf(lease->resource_version, sizeof(lease->resource_version), "%d", ++api.version);
    api.lease = *lease;
    api.exists = true;
    return 0;
}

static const struct gs_kube_ops ops = {.get_lease = get_lease, .put_lease = put_lease};
static struct gs_election *a, *b;

static struct gs_election *replica(const char *name)
{
    const struct gs_election_config config = {.kube = {&ops, NULL},
                                              .clock = &clock_of_api,
                                              .ns = "kube-system",
                                              .name = "gpushare",
                                              .identity = name};
    return gs_election_new(&config);
}

static int setup(void **state)
{
    memset(&api, 0, sizeof(api));
    api.now_ns = 1000 * GS_NS_PER_S;
    api.lease = (struct gs_lease){.resource_version = "1", .duration_s = 1}; /* given back */
    api.version = 1;
    api.exists = true;
    a = replica("a");
    b = replica("b");
    return a && b ? 0 : -1;
}

static int teardown(void **state)
{
    gs_election_free(a);
    gs_election_free(b);
    return 0;
}

static void pass(int64_t ns, bool step_a, bool step_b)
{
    api.now_ns += ns;
    if (step_a)
        gs_election_step(a, NULL);
    if (step_b)
        gs_election_step(b, NULL);
    assert_false(gs_election_leads(a) && gs_election_leads(b));
}

static void the_first_takes_a_free_lease_and_keeps_it(void **state)
{
    pass(0, true, true);
    assert_true(gs_election_leads(a));
    for (int i = 0; i < 100; i++)
        pass(GS_ELECTION_RETRY_NS, true, true);
    assert_true(gs_election_leads(a));
    assert_int_equal(api.lease.transitions, 0);
    assert_int_equal(gs_election_terms(a), 1);
    assert_int_equal(gs_election_terms(b), 0);
}

static void a_dead_leader_is_followed_after_the_lease_ran_out(void **state)
{
    pass(0, true, true);
    int64_t died_ns = api.now_ns;
    while (!gs_election_leads(b)) {
        pass(GS_NS_PER_S, false, true);
        assert_true(api.now_ns - died_ns <= 20 * GS_NS_PER_S);
    }
    assert_false(gs_election_leads(a));
    assert_true(api.now_ns - died_ns >= GS_ELECTION_LEASE_NS);
    assert_int_equal(api.lease.transitions, 1);
}

/* Nobody but its holder gives it back. */
static void a_lease_that_was_deleted_or_emptied_by_hand_is_waited_out(void **state)
{
    for (int emptied = 0; emptied < 2; emptied++) {
        teardown(NULL);
        setup(NULL);
        pass(0, true, true);
        api.exists = emptied;
        api.lease.holder[0] = '\0';
        snprintf(api.lease.resource_version, sizeof(api.lease.resource_version), "%d",
                 ++api.version);
        pass(GS_NS_PER_S, false, true);
        assert_false(gs_election_leads(b));
        pass(GS_NS_PER_S, true, true); /* its holder takes it again, and goes on */
        assert_true(gs_election_leads(a));
        assert_int_equal(gs_election_terms(a), 1);
        api.exists = emptied;
        api.lease.holder[0] = '\0';
        for (int i = 0; i < 12; i++) {
            pass(GS_NS_PER_S, false, true);
            assert_false(gs_election_leads(b));
        }
        for (int i = 0; i < 5; i++)
            pass(GS_NS_PER_S, false, true);
        assert_true(gs_election_leads(b)); /* a is dead */
    }
}

/* So is one that a replica finds so at its first look: it may have a holder who does not know yet.
 */
static void who_finds_no_holder_at_first_waits_as_if_there_were_one(void **state)
{
    for (int emptied = 0; emptied < 2; emptied++) {
        teardown(NULL);
        setup(NULL);
        pass(0, true, false);
        api.exists = emptied;
        api.lease.holder[0] = '\0';
        api.lease.resource_version[0] = '9';
        for (int i = 0; i < 12; i++) {
            pass(GS_NS_PER_S, false, true);
            assert_false(gs_election_leads(b));
        }
        for (int i = 0; i < 5; i++)
            pass(GS_NS_PER_S, false, true);
        assert_true(gs_election_leads(b));
    }
}

static void a_frozen_leader_knows_at_once_that_it_leads_no_more(void **state)
{
    pass(0, true, true);
    api.now_ns += GS_ELECTION_DEADLINE_NS;
    assert_false(gs_election_leads(a)); /* without a step: it is asked first thing after the thaw */
    for (int i = 0; i < 4; i++)
        pass(GS_ELECTION_RETRY_NS, false, true);
    assert_true(gs_election_leads(b));
    pass(0, true, false);
    assert_false(gs_election_leads(a));
}

static void a_leader_without_the_api_stops_before_another_can_begin(void **state)
{
    pass(0, true, true);
    api.away = true;
    for (int i = 0; i < 4; i++)
        pass(GS_ELECTION_RETRY_NS, true, true);
    assert_true(gs_election_leads(a));
    pass(GS_ELECTION_RETRY_NS, true, true);
    assert_false(gs_election_leads(a));
    api.away = false;
    pass(GS_ELECTION_RETRY_NS, true, true);
    assert_true(gs_election_leads(a)); /* nobody else took it: it is its own still */
    assert_int_equal(gs_election_terms(a), 2);
}

/* etcd may have been restored meanwhile, and have come further than it was. */
static void who_was_out_of_touch_and_does_not_lead_trusts_no_history(void **state)
{
    static const struct {
        int away_s, falls_of_leader, falls_of_standby;
    } rows[] = {{4, 0, 0}, {6, 0, 1}, {12, 1, 1}};
    GS_FOR_EACH_ROW (r, rows) {
        teardown(NULL);
        setup(NULL);
        pass(0, true, true);
        api.away = true;
        for (int s = 0; s < r->away_s - 1; s++)
            pass(GS_NS_PER_S, true, true);
        api.away = false;
        pass(GS_NS_PER_S, true, true);
        assert_int_equal(gs_election_falls(a), r->falls_of_leader);
        assert_int_equal(gs_election_falls(b), r->falls_of_standby);
        pass(GS_NS_PER_S, true, true);
        assert_int_equal(gs_election_falls(a) + gs_election_falls(b),
                         r->falls_of_leader + r->falls_of_standby);
    }
}

static void resigning_lets_the_next_begin_at_once(void **state)
{
    pass(0, true, true);
    gs_election_resign(a, true);
    assert_false(gs_election_leads(a));
    pass(GS_ELECTION_RETRY_NS, false, true);
    assert_true(gs_election_leads(b));
}

static void of_two_that_try_at_once_one_wins(void **state)
{
    struct gs_lease stale = {.ns = "kube-system", .name = "gpushare"};
    pass(0, true, false);
    assert_int_equal(put_lease(NULL, &stale, NULL), -1);
    assert_true(gs_election_leads(a));
}

static void a_renews(void)
{
    int64_t after_ns = api.answer_after_ns;
    api.answer_after_ns = 0;
    gs_election_step(a, NULL);
    api.answer_after_ns = after_ns;
}

/* b's read takes 9 s, and a renews just before its end. */
static void a_slow_answer_does_not_make_a_lease_older_than_it_is(void **state)
{
    pass(0, true, true);
    api.answer_after_ns = 9 * GS_NS_PER_S;
    api.meanwhile = a_renews;
    pass(0, false, true);
    api.answer_after_ns = 0;
    for (int i = 0; i < 9; i++)
        pass(GS_NS_PER_S, false, true); /* says that not both lead */
    assert_true(gs_election_leads(a));
    assert_int_equal(gs_election_until_ns(a) - api.now_ns, GS_NS_PER_S);
    pass(6 * GS_NS_PER_S, false, true);
    assert_true(gs_election_leads(b));
}

/* The API server writes the renewal after 9 s, and its time is that of the request. */
static void a_slow_renewal_does_not_lengthen_a_reign(void **state)
{
    pass(0, true, true);
    int64_t asked_ns = api.now_ns;
    api.write_after_ns = 9 * GS_NS_PER_S;
    gs_election_step(a, NULL);
    assert_int_equal(gs_election_until_ns(a), asked_ns + GS_ELECTION_DEADLINE_NS);
    api.write_after_ns = 11 * GS_NS_PER_S; /* b may take it 4 s after that was answered */
    gs_election_step(a, NULL);
    assert_false(gs_election_leads(a));
}

/* Whoever wrote it: an administrator, or a replica that began when our clock stood still. */
static void a_lease_that_another_holds_ends_the_reign_at_once(void **state)
{
    pass(0, true, true);
    snprintf(api.lease.holder, sizeof(api.lease.holder), "b");
    snprintf(api.lease.resource_version, sizeof(api.lease.resource_version), "%d", ++api.version);
    pass(GS_ELECTION_RETRY_NS, true, false);
    assert_false(gs_election_leads(a));
}

/* As another process of the same pod: the names begin alike. */
static void only_the_whole_identity_is_ones_own(void **state)
{
    pass(0, true, true);
    snprintf(api.lease.holder, sizeof(api.lease.holder), "a_2");
    snprintf(api.lease.resource_version, sizeof(api.lease.resource_version), "%d", ++api.version);
    pass(GS_ELECTION_RETRY_NS, true, false);
    assert_false(gs_election_leads(a));
    assert_string_equal(api.lease.holder, "a_2");
}

static void a_lease_that_is_kept_back_is_waited_out(void **state)
{
    pass(0, true, true);
    gs_election_resign(a, false); /* a bind of its may still be carried out */
    assert_false(gs_election_leads(a));
    assert_string_equal(api.lease.holder, "a");
    pass(GS_ELECTION_RETRY_NS, false, true);
    assert_false(gs_election_leads(b));
}

static void anothers_clock_is_not_trusted(void **state)
{
    pass(0, true, false);
    api.lease.renew_ns -= 3600 * GS_NS_PER_S; /* a's clock is an hour behind */
    pass(GS_NS_PER_S, false, true);
    assert_false(gs_election_leads(b));
}

/* kube-schedulers of two hosts, and what follows them. */
enum { KUBE_LEASE_S = 12 };

/* client-go counts a transition when the holder is another one, and none when the lease is given
 * back (LeaderElector.release), so that both together are one. */
static void holds(const char *holder)
{
    if (holder[0] && strcmp(api.lease.holder, holder) != 0)
        api.lease.transitions++;
    snprintf(api.lease.holder, sizeof(api.lease.holder), "%s", holder);
    api.lease.duration_s = holder[0] ? KUBE_LEASE_S : 1;
    api.lease.renew_ns = api.now_ns;
    snprintf(api.lease.resource_version, sizeof(api.lease.resource_version), "%d", ++api.version);
    api.exists = true;
}

static int setup_followers(void **state)
{
    struct gs_election_config config = {.kube = {&ops, NULL},
                                        .clock = &clock_of_api,
                                        .ns = "kube-system",
                                        .name = "kube-scheduler",
                                        .identity = "a",
                                        .follows = true};
    memset(&api, 0, sizeof(api));
    api.now_ns = 1000 * GS_NS_PER_S;
    a = gs_election_new(&config);
    config.identity = "b";
    b = gs_election_new(&config);
    return a && b ? 0 : -1;
}

/* Both look once a second; a holder that lives renews every other second. */
static void seconds(int count, const char *renews)
{
    for (int i = 0; i < count; i++) {
        if (renews && i % 2 == 0)
            holds(renews);
        pass(GS_NS_PER_S, true, true);
    }
}

static void a_follower_leads_while_its_hosts_scheduler_renews(void **state)
{
    struct gs_error err = {0};
    gs_election_step(a, &err); /* no lease at all */
    assert_int_equal(err.code, GS_ENOENT);
    assert_false(gs_election_leads(a));
    seconds(10, "a_1");
    assert_true(gs_election_leads(a));
    assert_int_equal(api.version, 5); /* it only read */
    seconds(3, "a_2");                /* a restart: another scheduler of the same host */
    seconds(10, "a_2");
    assert_true(gs_election_leads(a));
    gs_election_resign(a, true);
    assert_false(gs_election_leads(a));
    assert_string_equal(api.lease.holder, "a_2");
}

static void hosts_whose_names_begin_alike_are_two(void **state)
{
    seconds(10, "ab_1");
    assert_false(gs_election_leads(a));
    seconds(10, "a");
    assert_false(gs_election_leads(a));
}

static void a_lease_that_is_never_renewed_leads_nobody(void **state)
{
    holds("a_1"); /* left behind by a scheduler that died, seen by a new extender */
    for (int i = 0; i < 30; i++) {
        pass(GS_NS_PER_S, true, true);
        assert_false(gs_election_leads(a));
    }
}

static void a_follower_stops_early_enough_for_its_last_bind(void **state)
{
    seconds(10, "a_1");
    holds("a_1");
    int64_t renewed_ns = api.now_ns; /* the last time: the scheduler is frozen */
    while (gs_election_leads(a))
        pass(GS_NS_PER_S / 10, false, true);
    assert_in_range(api.now_ns - renewed_ns, 0, (KUBE_LEASE_S * GS_NS_PER_S) - GS_ELECTION_BIND_NS);
    while (api.now_ns - renewed_ns < KUBE_LEASE_S * GS_NS_PER_S)
        pass(GS_NS_PER_S, true, true);
    holds("b_1");
    pass(GS_NS_PER_S, true, true);
    assert_true(gs_election_leads(b)); /* no need to wait: a's binds are over */
}

static void a_frozen_host_leads_no_more_when_it_wakes(void **state)
{
    seconds(10, "a_1");
    for (int i = 0; i < 20; i++) {
        if (i >= KUBE_LEASE_S && i % 2 == 0)
            holds("b_1");
        pass(GS_NS_PER_S, false, true);
    }
    assert_true(gs_election_leads(b));
    assert_false(gs_election_leads(a));
    pass(0, true, false);
    assert_false(gs_election_leads(a));
}

static void a_lease_that_was_given_back_has_binds_in_flight(void **state)
{
    seconds(10, "a_1");
    holds("");
    pass(GS_NS_PER_S, true, true);
    holds("b_1");
    int64_t taken_ns = api.now_ns;
    pass(GS_NS_PER_S, true, true);
    while (!gs_election_leads(b))
        seconds(1, "b_1");
    assert_true(api.now_ns - taken_ns >= GS_ELECTION_BIND_NS);
    assert_true(api.now_ns - taken_ns <= GS_ELECTION_BIND_NS + 2 * GS_NS_PER_S);
}

static void renewed_by_a(void)
{
    holds("a_1");
}

/* The answer says what was before the last renewal, and comes nine seconds after it. */
static void a_slow_look_does_not_lengthen_a_reign(void **state)
{
    seconds(10, "a_1");
    int64_t renewed_ns = api.now_ns;
    api.answer_after_ns = 9 * GS_NS_PER_S;
    api.reads_first = true;
    api.meanwhile = renewed_by_a;
    pass(0, true, false);
    api.answer_after_ns = 0;
    pass(0, true, false);
    int64_t until_ns = gs_election_until_ns(a);
    assert_true(until_ns <= renewed_ns + KUBE_LEASE_S * GS_NS_PER_S - GS_ELECTION_BIND_NS);
}

/* The API server was away; what it shows then may be as old as that. */
static void a_renewal_of_an_unknown_time_leads_nobody(void **state)
{
    seconds(10, "a_1");
    holds("a_1"); /* and is frozen */
    api.away = true;
    for (int i = 0; i < KUBE_LEASE_S; i++)
        pass(GS_NS_PER_S, true, true);
    api.away = false;
    pass(0, true, true);
    assert_false(gs_election_leads(a));
    seconds(3, "a_1");
    assert_true(gs_election_leads(a));
}

static void b_takes_what_a_gives_back(void)
{
    holds("");
    holds("b_1");
}

static void a_handover_during_a_slow_look_has_binds_in_flight(void **state)
{
    seconds(10, "a_1");
    api.answer_after_ns = 6 * GS_NS_PER_S;
    api.meanwhile = b_takes_what_a_gives_back;
    pass(0, false, true);
    api.answer_after_ns = 0;
    int64_t taken_ns = api.now_ns;
    while (!gs_election_leads(b))
        seconds(1, "b_1");
    assert_true(api.now_ns - taken_ns >= GS_ELECTION_BIND_NS);
    assert_true(api.now_ns - taken_ns <= GS_ELECTION_BIND_NS + 2 * GS_NS_PER_S);
}

/* b's API server is started again, and b sees nothing; a leads and binds all the time, and gives
 * the lease back. What b sees next is one transition on, as if a's lease had run out. */
static void a_handover_that_failed_looks_missed_has_binds_in_flight(void **state)
{
    for (int failed_s = 1; failed_s <= 40; failed_s++) {
        teardown(NULL);
        setup_followers(NULL);
        seconds(10, "a_1");
        for (int i = 0; i < failed_s; i++) {
            if (i % 2 == 0)
                holds("a_1");
            pass(GS_NS_PER_S, true, false);
        }
        assert_true(gs_election_leads(a)); /* and begins a bind now */
        int64_t begun_ns = api.now_ns;
        b_takes_what_a_gives_back();
        for (int i = 0; !gs_election_leads(b); i++) {
            if (i % 2 == 0)
                holds("b_1");
            pass(GS_NS_PER_S, i > 0, true);
        }
        if (api.now_ns - begun_ns < GS_ELECTION_BIND_NS)
            fail_msg("looks failed for %d s: b leads %lld ms after a began to bind", failed_s,
                     (long long)((api.now_ns - begun_ns) / GS_NS_PER_MS));
    }
}

static void a_reign_that_was_missed_has_binds_in_flight(void **state)
{
    seconds(10, "a_1");
    api.now_ns += 60 * GS_NS_PER_S; /* the extender of a sleeps; b came and went */
    holds("b_1");
    holds("a_2");
    int64_t taken_ns = api.now_ns;
    while (!gs_election_leads(a)) {
        holds("a_2");
        pass(GS_NS_PER_S, true, true);
    }
    assert_true(api.now_ns - taken_ns >= GS_ELECTION_BIND_NS);
}

int main(void)
{
#define F(name) cmocka_unit_test_setup_teardown(name, setup_followers, teardown)
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_first_takes_a_free_lease_and_keeps_it),
        T(a_dead_leader_is_followed_after_the_lease_ran_out),
        T(a_lease_that_was_deleted_or_emptied_by_hand_is_waited_out),
        T(who_finds_no_holder_at_first_waits_as_if_there_were_one),
        T(a_frozen_leader_knows_at_once_that_it_leads_no_more),
        T(a_leader_without_the_api_stops_before_another_can_begin),
        T(who_was_out_of_touch_and_does_not_lead_trusts_no_history),
        T(resigning_lets_the_next_begin_at_once),
        T(of_two_that_try_at_once_one_wins),
        T(a_slow_answer_does_not_make_a_lease_older_than_it_is),
        T(a_slow_renewal_does_not_lengthen_a_reign),
        T(a_lease_that_another_holds_ends_the_reign_at_once),
        T(only_the_whole_identity_is_ones_own),
        T(a_lease_that_is_kept_back_is_waited_out),
        T(anothers_clock_is_not_trusted),
        F(a_follower_leads_while_its_hosts_scheduler_renews),
        F(hosts_whose_names_begin_alike_are_two),
        F(a_lease_that_is_never_renewed_leads_nobody),
        F(a_follower_stops_early_enough_for_its_last_bind),
        F(a_frozen_host_leads_no_more_when_it_wakes),
        F(a_lease_that_was_given_back_has_binds_in_flight),
        F(a_handover_that_failed_looks_missed_has_binds_in_flight),
        F(a_reign_that_was_missed_has_binds_in_flight),
        F(a_slow_look_does_not_lengthen_a_reign),
        F(a_renewal_of_an_unknown_time_leads_nobody),
        F(a_handover_during_a_slow_look_has_binds_in_flight),
    };
    return GS_RUN(tests);
}
