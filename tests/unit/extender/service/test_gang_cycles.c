/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of what kube-scheduler does with groups of pods, and random worlds of it: it filters and
 * assumes all members one after the other by the sums of nodes, which is all that it knows, reverts
 * that, and binds all of them at once, in any order, while it goes on with others. Before that it
 * may try the same members on other nodes first (placements), or only ask what would be (the dry
 * run of its preemption). A member whose bind failed is tried again alone, the binds of the others
 * still under way.
 *
 * What has to be so: no member is refused at bind, so no group runs in part, however others ask and
 * bind meanwhile; and 5 seconds after all is quiet nothing is promised.
 */
#include "service_rig.h"

#include "gpushare/base/log.h"

#include "extender/service/service_internal.h"

enum { NODES = 4, GPUS = 3, GROUPS = 30, MEMBERS_MAX = 4, SINGLES = 60, WORLDS = 150 };

struct unit { /* a pod */
    char name[24], group[16];
    unsigned units;
    int node; /* assumed or bound; -1: none */
    bool binding, bound;
};

static struct rig rig;
static uint64_t rng;
static unsigned sizes[NODES][GPUS];
static struct unit pods[GROUPS * MEMBERS_MAX + SINGLES];
static unsigned pod_count;
static struct {
    unsigned long groups, whole, refused_groups, members, member_refusals, single_refusals,
        dry_runs, placements, failed_binds;
} seen;

static unsigned any(unsigned below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)((rng >> 20) % below);
}

static const char *json_of(const struct unit *pod)
{
    char spec[64] = "";
    if (pod->group[0])
        snprintf(spec, sizeof(spec), "'schedulingGroup':{'podGroupName':'%s'},", pod->group);
    return rig_json(&rig, (struct rig_pod){.name = pod->name, .units = pod->units, .spec = spec});
}

static unsigned sum_of(int node)
{
    unsigned sum = 0;
    for (int g = 0; g < GPUS; g++)
        sum += sizes[node][g];
    return sum;
}

/* kube-scheduler's NodeResourcesFit: what is assumed and bound there. */
static unsigned taken(int node)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < pod_count; i++)
        sum += pods[i].node == node ? pods[i].units : 0;
    return sum;
}

/* One cycle of one pod among the nodes of `mask`; -1: unschedulable. */
static int ask(const struct unit *pod, unsigned mask)
{
    char names[128] = "", *answer, wanted[16];
    for (int n = 0; n < NODES; n++) {
        if ((mask & 1u << n) && sum_of(n) - taken(n) >= pod->units)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s\"n%d\"",
                     names[0] ? "," : "", n);
    }
    if (!names[0])
        return -1;
    int found[NODES], count = 0;
    answer = rig_filter(&rig, json_of(pod), names);
    char *list = strstr(answer, "\"NodeNames\":["), *end = strstr(answer, "],\"FailedNodes\"");
    assert_true(list && end);
    *end = '\0';
    for (int n = 0; n < NODES; n++) {
        snprintf(wanted, sizeof(wanted), "\"n%d\"", n);
        if (strstr(list, wanted))
            found[count++] = n;
    }
    free(answer);
    return count ? found[any((unsigned)count)] : -1;
}

/* Filters and assumes all; false: one does not fit, and all are reverted. */
static bool try_group(unsigned first, unsigned count, unsigned mask, int *ret_nodes)
{
    bool all = true;
    for (unsigned i = 0; i < count && all; i++) {
        ret_nodes[i] = pods[first + i].node = ask(&pods[first + i], mask);
        all = ret_nodes[i] >= 0;
    }
    for (unsigned i = 0; i < count; i++)
        pods[first + i].node = -1;
    return all;
}

static bool bind_one(struct unit *pod)
{
    char uid[32], node[16];
    snprintf(uid, sizeof(uid), "u%.20s", pod->name);
    snprintf(node, sizeof(node), "n%d", pod->node);
    char *answer = rig_try_bind(&rig, pod->name, uid, node);
    const bool done = strstr(answer, "\"Error\":\"\"") != NULL;
    free(answer);
    pod->binding = false;
    pod->bound = done;
    if (!done)
        pod->node = -1;
    return done;
}

/* For no want of room: the API server says no, or the node has gone. */
static void fail_bind(struct unit *pod)
{
    const int node = pod->node;
    if (any(2))
        rig.bind_code = GS_EBUSY;
    else
        pod->node = NODES;
    assert_false(bind_one(pod));
    rig.bind_code = GS_OK;
    seen.failed_binds++;
    pod->node = ask(pod, 1u << node);
    pod->binding = pod->node >= 0;
}

/* Some of the binds that are under way, in any order. */
static void bind_some(unsigned chance)
{
    const unsigned from = pod_count ? any(pod_count) : 0;
    for (unsigned i = 0; i < pod_count; i++) {
        struct unit *pod = &pods[(from + i) % pod_count];
        if (!pod->binding || any(chance))
            continue;
        if (pod->group[0] && any(20) == 0) {
            fail_bind(pod);
            continue;
        }
        const bool done = bind_one(pod);
        if (pod->group[0] && !done) {
            seen.member_refusals++;
            print_error("%s of %s was refused\n", pod->name, pod->group);
        }
        seen.single_refusals += !pod->group[0] && !done;
    }
}

static void end_some(void)
{
    for (unsigned i = 0; i < pod_count; i++) {
        if (!pods[i].bound || any(12))
            continue;
        rig_pod_gone(&rig, pods[i].name);
        pods[i].bound = false;
        pods[i].node = -1;
    }
}

static struct unit *create(const char *group)
{
    struct unit *pod = &pods[pod_count];
    *pod = (struct unit){.units = 1 + any(12), .node = -1};
    snprintf(pod->name, sizeof(pod->name), "p%u", pod_count++);
    snprintf(pod->group, sizeof(pod->group), "%s", group);
    rig_feed(&rig, json_of(pod), false);
    return pod;
}

static void schedule_group(unsigned number)
{
    char name[16];
    int nodes[MEMBERS_MAX];
    const unsigned first = pod_count, count = 2 + any(MEMBERS_MAX - 1);
    unsigned mask = (1u << NODES) - 1;
    snprintf(name, sizeof(name), "g%u", number);
    for (unsigned i = 0; i < count; i++)
        create(name);
    for (unsigned tries = 0; any(3) == 0; tries++) { /* in vain, or nobody will bind it */
        try_group(first, count, tries % 2 ? mask : 1 + any(mask), nodes);
        seen.dry_runs++;
    }
    while (any(3) == 0) { /* placements, of which the last is taken */
        mask = 1 + any((1u << NODES) - 1);
        seen.placements++;
        if (try_group(first, count, mask, nodes))
            break;
    }
    seen.groups++;
    seen.members += count;
    if (!try_group(first, count, mask, nodes)) {
        seen.refused_groups++;
        return;
    }
    seen.whole++;
    for (unsigned i = 0; i < count; i++) {
        pods[first + i].node = nodes[i];
        pods[first + i].binding = true;
    }
}

static void schedule_single(void)
{
    struct unit *pod = create("");
    pod->node = ask(pod, (1u << NODES) - 1);
    pod->binding = pod->node >= 0;
}

static void play(uint64_t seed)
{
    unsigned groups = 0, singles = 0;
    rng = seed * 0x9e3779b97f4a7c15u + 1;
    pod_count = 0;
    rig_start_as(&rig, (struct gs_service_config){.policy = any(2) ? GS_PLACEMENT_BINPACK
                                                                   : GS_PLACEMENT_ROLLOUT});
    rig_lists(&rig);
    for (int n = 0; n < NODES; n++) {
        char name[16], text[64];
        for (int g = 0; g < GPUS; g++)
            sizes[n][g] = 4 + any(21);
        snprintf(name, sizeof(name), "n%d", n);
        snprintf(text, sizeof(text), "%u,%u,%u", sizes[n][0], sizes[n][1], sizes[n][2]);
        rig_node(&rig, name, text);
    }
    while (groups < GROUPS || singles < SINGLES) {
        if (groups < GROUPS && any(3) == 0)
            schedule_group(groups++);
        else if (singles < SINGLES && singles++ < SINGLES)
            schedule_single();
        bind_some(1 + any(4));
        if (any(3) == 0)
            end_some();
        rig_tick(&rig, any(40) * GS_NS_PER_MS);
    }
    bind_some(1);
    rig_tick(&rig, GS_GANG_RESERVATION_NS);
    assert_int_equal(gs_ledger_promises(rig.service->ledger), 0);
    rig_tick(&rig, GS_GANG_RESERVATION_NS);
    assert_null(rig.service->gangs.groups);
    rig_stop(&rig);
}

static void no_group_runs_in_part(void **state)
{
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    for (uint64_t seed = 1; seed <= WORLDS; seed++)
        play(seed);
    print_message("%lu groups of %lu members, %lu whole, %lu do not fit; %lu dry runs, %lu "
                  "placements, %lu failed binds; %lu of %u single pods refused at bind\n",
                  seen.groups, seen.members, seen.whole, seen.refused_groups, seen.dry_runs,
                  seen.placements, seen.failed_binds, seen.single_refusals, WORLDS * SINGLES);
    assert_int_equal(seen.member_refusals, 0);
    assert_true(seen.whole > seen.groups / 4 && seen.refused_groups > seen.groups / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_group_runs_in_part)};
    return GS_RUN(tests);
}
