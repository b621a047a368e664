/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of election.scenarios mean: two replicas, a and b, and one lease that both see. */

#include "rows.h"
#include "scenario.h"

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
} api;

static int64_t read_now(void *ctx)
{
    return api.now_ns;
}

static const struct gs_clock clock_of_api = {read_now, read_now, NULL};

static struct scenario *running;

static int get_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    struct gs_lease then = api.lease;
    const bool reads_first = api.reads_first;
    if (api.away)
        return gs_fail(err, GS_EIO, "away");
    if (reads_first)
        scenario_now(running, "get");
    api.now_ns += api.answer_after_ns;
    if (!reads_first)
        scenario_now(running, "get");
    if (!api.exists)
        return gs_fail(err, GS_ENOENT, "none");
    *lease = reads_first ? then : api.lease;
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
static struct gs_election *replicas[2]; /* a and b */

static void start(bool follows)
{
    struct gs_election_config config = {.kube = {&ops, NULL},
                                        .clock = &clock_of_api,
                                        .ns = "kube-system",
                                        .name = "gpushare",
                                        .follows = follows};
    memset(&api, 0, sizeof(api));
    api.now_ns = 1000 * GS_NS_PER_S;
    api.lease = (struct gs_lease){.resource_version = "1", .duration_s = 1}; /* given back */
    api.version = !follows;
    api.exists = !follows;
    for (int i = 0; i < 2; i++) {
        config.identity = i ? "b" : "a";
        replicas[i] = gs_election_new(&config);
        assert_non_null(replicas[i]);
    }
}

static void begin(struct scenario *s)
{
    running = s;
    start(false);
}

static void end(void)
{
    gs_election_free(replicas[0]);
    gs_election_free(replicas[1]);
}

/* start followers: of kube-schedulers' lease, which does not exist yet. */
static void verb_start(struct scenario *s)
{
    end();
    start(scenario_has(s, "followers"));
}

/* "a", "b" or "none" */
static const char *leader(void)
{
    const bool a = gs_election_leads(replicas[0]), b = gs_election_leads(replicas[1]);
    if (a && b)
        scenario_fail(running, "both lead");
    return a ? "a" : b ? "b" : "none";
}

static struct gs_election *replica_named(struct scenario *s)
{
    return replicas[strcmp(scenario_word(s), "b") == 0];
}

/* client-go counts a transition when the holder is another one, and none when the lease is given
 * back (LeaderElector.release), so that both together are one. */
static void hold(const char *holder)
{
    if (holder[0] && strcmp(api.lease.holder, holder) != 0)
        api.lease.transitions++;
    snprintf(api.lease.holder, sizeof(api.lease.holder), "%s", holder);
    api.lease.duration_s = holder[0] ? 12 : 1;
    api.lease.renew_ns = api.now_ns;
    snprintf(api.lease.resource_version, sizeof(api.lease.resource_version), "%d", ++api.version);
    api.exists = true;
}

/* holds b_1: a kube-scheduler, or whoever writes the lease; holds none: it gives it back. */
static void verb_holds(struct scenario *s)
{
    hold(scenario_has(s, "none") ? "" : scenario_word(s));
}

/* By hand. */
static void verb_emptied(struct scenario *s)
{
    api.lease.holder[0] = '\0';
    snprintf(api.lease.resource_version, sizeof(api.lease.resource_version), "%d", ++api.version);
}

static void verb_deleted(struct scenario *s)
{
    verb_emptied(s);
    api.exists = false;
}

/* From a backup of etcd. */
static void verb_restored(struct scenario *s)
{
    api.version -= 6;
    snprintf(api.lease.resource_version, sizeof(api.lease.resource_version), "%d", api.version);
}

struct looks {
    int64_t each_ns;
    bool looks[2];
    const char *renews; /* at each, NULL: nobody */
};

/* by 1s a b renewing b_1 */
static struct looks read_looks(struct scenario *s)
{
    struct looks looks = {0};
    if (scenario_has(s, "by"))
        looks.each_ns = scenario_time(s);
    looks.looks[0] = scenario_has(s, "a");
    looks.looks[1] = scenario_has(s, "b");
    if (scenario_has(s, "renewing"))
        looks.renews = scenario_word(s);
    return looks;
}

static const char *look(const struct looks *looks)
{
    if (looks->renews)
        hold(looks->renews);
    api.now_ns += looks->each_ns;
    for (int i = 0; i < 2; i++) {
        if (looks->looks[i])
            gs_election_step(replicas[i], NULL);
    }
    return leader();
}

/* pass 12s by 1s a b renewing b_1 leading none: so long, looked at and renewed so often, and who
 * leads each time. */
static void verb_pass(struct scenario *s)
{
    const int64_t all_ns = scenario_time(s);
    struct looks looks = read_looks(s);
    if (!looks.each_ns)
        looks.each_ns = all_ns;
    const char *leading = scenario_has(s, "leading") ? scenario_word(s) : NULL;
    for (int64_t ns = 0; ns < all_ns || ns == 0; ns += looks.each_ns ? looks.each_ns : 1) {
        const char *leads = look(&looks);
        if (leading)
            scenario_is_text(s, "the leader", leads, leading);
    }
}

/* renewed 10s a_1: by the kube-scheduler that lives, every other second; both look once a second,
 * or a alone. */
static void verb_renewed(struct scenario *s)
{
    const int64_t all_ns = scenario_time(s);
    const char *holder = scenario_word(s);
    const struct looks looks = {GS_NS_PER_S, {true, !scenario_has(s, "alone")}, NULL};
    for (int64_t ns = 0; ns < all_ns; ns += GS_NS_PER_S) {
        if (ns / GS_NS_PER_S % 2 == 0)
            hold(holder);
        look(&looks);
    }
}

/* until b by 1s b after 15s within 20s */
static void verb_until(struct scenario *s)
{
    const char *who = scenario_word(s);
    const struct looks looks = read_looks(s);
    const int64_t began_ns = api.now_ns;
    const int64_t after_ns = scenario_has(s, "after") ? scenario_time(s) : 0;
    const int64_t within_ns = scenario_has(s, "within") ? scenario_time(s) : 60 * GS_NS_PER_S;
    while (strcmp(look(&looks), who) != 0) {
        if (api.now_ns - began_ns > within_ns)
            scenario_fail(s, "it is not %s", who);
    }
    const int64_t took_ns = api.now_ns - began_ns;
    if (took_ns < after_ns || took_ns > within_ns)
        scenario_fail(s, "it took %lld ms", (long long)(took_ns / GS_NS_PER_MS));
    s->checked++;
}

/* api away, api back, api reads 9s (first: as it was before), api writes 9s, api behind 1s: the
 * holder's clock */
static void verb_api(struct scenario *s)
{
    api.away = scenario_has(s, "away");
    if (scenario_has(s, "reads")) {
        api.answer_after_ns = scenario_time(s);
        api.reads_first = scenario_has(s, "first");
    } else if (scenario_has(s, "writes")) {
        api.write_after_ns = scenario_time(s);
    } else if (scenario_has(s, "behind")) {
        api.lease.renew_ns -= scenario_time(s);
    } else {
        scenario_has(s, "back");
    }
}

/* during get STEP */
static void verb_during(struct scenario *s)
{
    scenario_put_off(s, scenario_word(s));
}

/* resign a, or resign a kept: a bind of its may still be carried out. */
static void verb_resign(struct scenario *s)
{
    struct gs_election *replica = replica_named(s);
    gs_election_resign(replica, !scenario_has(s, "kept"));
}

static void verb_expect(struct scenario *s)
{
    if (scenario_has(s, "leads"))
        scenario_is_text(s, "the leader", leader(), scenario_word(s));
    else if (scenario_has(s, "holder"))
        scenario_is_text(s, "the holder", api.lease.holder, scenario_word(s));
    else if (scenario_has(s, "terms"))
        scenario_is(s, "terms", (long)gs_election_terms(replica_named(s)));
    else if (scenario_has(s, "falls"))
        scenario_is(s, "falls", (long)gs_election_falls(replica_named(s)));
    else if (scenario_has(s, "left")) /* milliseconds */
        scenario_is(s, "what is left",
                    (gs_election_until_ns(replica_named(s)) - api.now_ns) / GS_NS_PER_MS);
    else if (scenario_has(s, "writes"))
        scenario_is(s, "writes", api.version);
    else
        scenario_is(s, scenario_word(s), api.lease.transitions);
}

static const struct scenario_verb verbs[] = {
    {"start", verb_start},
    {"holds", verb_holds},
    {"emptied", verb_emptied},
    {"deleted", verb_deleted},
    {"pass", verb_pass},
    {"renewed", verb_renewed},
    {"until", verb_until},
    {"api", verb_api},
    {"during", verb_during},
    {"resign", verb_resign},
    {"expect", verb_expect},
    {"restored", verb_restored},
    {NULL, NULL},
};

static const struct scenario_layer layer = {.verbs = verbs, .begin = begin, .end = end};

int main(void)
{
    static const char *const files[] = {"tests/unit/extender/service/election.scenarios", NULL};
    return scenario_main(&layer, files, NULL, 0);
}
