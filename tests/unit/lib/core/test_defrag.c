/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/splitmix.h"
#include "gpushare/core/defrag.h"
#include "ledgers.h"
#include "policy_rig.h"

/*
 * Small worlds. A plan must be as cheap as the cheapest that an exhaustive judge finds, who tries
 * every set of pods of every node, each on a ledger that he builds anew.
 */
enum { NODES_MAX = 4, PODS_MAX = 14, MOVES_MAX = 5 };

struct bound {
    uint32_t node;
    gs_gpu_mask gpus;
    uint32_t units, gpu_count;
    int32_t priority;
    int64_t cpu_milli, age_s;
    bool alone; /* no controller */
    uint32_t cores_pct;
    bool leaving, excluded;
};

struct world {
    const char *gpus[NODES_MAX]; /* sizes, as views.h reads them */
    int64_t cpu_milli[NODES_MAX];
    bool closed[NODES_MAX];
    uint32_t node_count;
    struct bound pods[PODS_MAX];
    uint32_t pod_count;
    struct bound waiting; /* gpu_count GPUs; gpus and node mean nothing */
};

static const char *const node_names[NODES_MAX] = {"n0", "n1", "n2", "n3"};
static const char *const pod_names[PODS_MAX] = {"p0", "p1", "p2", "p3",  "p4",  "p5",  "p6",
                                                "p7", "p8", "p9", "p10", "p11", "p12", "p13"};

static struct gs_ask ask_of(const struct bound *pod)
{
    static const struct gs_pod_rules no_node = {.affine = true};
    return (struct gs_ask){.units = pod->units,
                           .gpu_count = pod->gpu_count,
                           .cores_pct = pod->cores_pct,
                           .priority = pod->priority,
                           .cpu_milli = pod->cpu_milli,
                           .rules = pod->excluded ? &no_node : NULL,
                           .uid = "w"};
}

static void charge(struct gs_ledger *ledger, const char *uid, const struct bound *pod)
{
    test_set_claim(ledger, (struct gs_claim){.uid = uid,
                                             .ns = "default",
                                             .name = uid,
                                             .node = node_names[pod->node],
                                             .gpus = pod->gpus,
                                             .units = pod->units,
                                             .cores_pct = pod->cores_pct,
                                             .priority = pod->priority,
                                             .leaving = pod->leaving,
                                             .cpu_milli = (uint32_t)pod->cpu_milli});
}

static struct gs_ledger *build(const struct world *world)
{
    struct gs_ledger *ledger = gs_ledger_new();
    struct gs_error err = {0};
    for (uint32_t n = 0; n < world->node_count; n++) {
        struct test_node t;
        test_node_init(&t, node_names[n], world->gpus[n]);
        t.node.cpu_milli = world->cpu_milli[n];
        assert_int_equal(gs_ledger_set_node(ledger, &t.node, &err), 0);
    }
    for (uint32_t i = 0; i < world->pod_count; i++)
        charge(ledger, pod_names[i], &world->pods[i]);
    return ledger;
}

/* ---- the judge ---- */

static bool fits_there(const struct gs_ledger *ledger, const struct gs_ask *ask, uint32_t node)
{
    const struct gs_node_view *view = gs_ledger_view(ledger, node_names[node]);
    return gs_view_cpu_left_milli(view) >= ask->cpu_milli && gs_fit(view, ask) == GS_FITS;
}

/* Binpack's best among the open nodes but one (-1: none is left out). */
static bool place(const struct world *world, struct gs_ledger *ledger, struct gs_policies *policies,
                  struct bound *pod, int but, const char *uid)
{
    struct gs_ask ask = ask_of(pod);
    struct gs_choice best = {0}, choice;
    int node = -1;
    for (uint32_t n = 0; n < world->node_count; n++) {
        const struct gs_node_view *view = gs_ledger_view(ledger, node_names[n]);
        if ((int)n == but || world->closed[n] || !fits_there(ledger, &ask, n) ||
            !test_policy_choose(policies, GS_PLACEMENT_BINPACK, view, &ask, &choice))
            continue;
        if (node < 0 || choice.loss < best.loss) {
            node = (int)n;
            best = choice;
        }
    }
    if (node < 0)
        return false;
    pod->node = (uint32_t)node;
    pod->gpus = best.gpus;
    charge(ledger, uid, pod);
    return true;
}

static uint32_t size_of(const struct bound *pod)
{
    return pod->units * pod->gpu_count;
}

/* Does it help when this set of pods of the node moves, large ones first? */
static bool helps(const struct world *world, uint32_t set, uint32_t node, bool cordon)
{
    struct gs_ledger *ledger = build(world);
    struct gs_policies *policies = gs_policies_new();
    struct gs_ask waiting = ask_of(&world->waiting);
    uint32_t left = set;
    bool works = true;
    while (left && works) {
        uint32_t largest = (uint32_t)__builtin_ctz(left);
        char uid[8];
        for (uint32_t i = 0; i < world->pod_count; i++) {
            if (left >> i & 1 && size_of(&world->pods[i]) > size_of(&world->pods[largest]))
                largest = i;
        }
        left &= ~(1u << largest);
        struct bound moved = world->pods[largest];
        snprintf(uid, sizeof(uid), "new%u", largest);
        works = place(world, ledger, policies, &moved, cordon ? (int)node : -1, uid);
    }
    for (uint32_t i = 0; i < world->pod_count; i++) {
        if (set >> i & 1)
            gs_ledger_remove(ledger, pod_names[i], NULL);
    }
    works = works && fits_there(ledger, &waiting, node);
    gs_policies_free(policies);
    gs_ledger_free(ledger);
    return works;
}

static bool may_move(const struct world *world, uint32_t set, uint32_t node, int64_t *ret_age_s)
{
    *ret_age_s = 0;
    for (uint32_t i = 0; i < world->pod_count; i++) {
        const struct bound *pod = &world->pods[i];
        if (!(set >> i & 1))
            continue;
        if (pod->node != node || pod->alone || pod->leaving ||
            pod->priority > world->waiting.priority)
            return false;
        *ret_age_s += pod->age_s;
    }
    return true;
}

struct verdict {
    int moves; /* -1: none helps */
    int64_t age_s;
};

static struct verdict judge(const struct world *world)
{
    struct verdict best = {-1, 0};
    for (uint32_t set = 0; set < 1u << world->pod_count; set++) {
        int moves = __builtin_popcount(set);
        for (uint32_t node = 0; node < world->node_count; node++) {
            int64_t age_s;
            if (world->closed[node] || moves > MOVES_MAX || !may_move(world, set, node, &age_s))
                continue;
            if (best.moves >= 0 &&
                (moves > best.moves || (moves == best.moves && age_s >= best.age_s)))
                continue;
            if (helps(world, set, node, true) || helps(world, set, node, false))
                best = (struct verdict){moves, age_s};
        }
    }
    return best;
}

/* ---- the planner on the same world ---- */

struct planned {
    enum gs_defrag_result result;
    struct gs_defrag_plan plan;
    int64_t age_s;
    struct gs_ledger *ledger;
};

struct planner {
    struct gs_ledger *ledger;
    struct gs_policies *policies;
    struct gs_node_facts facts;
    struct gs_place place;
    struct gs_defrag_pod pods[PODS_MAX];
    struct gs_defrag *defrag;
};

static void open_planner(struct planner *planner, const struct world *world)
{
    *planner = (struct planner){.ledger = build(world), .policies = gs_policies_new()};
    for (uint32_t n = 0; n < world->node_count; n++) {
        const struct gs_node node = {
            .ready = !world->closed[n], .allocatable_units = 1, .inventory = true};
        assert_int_equal(gs_node_facts_set(&planner->facts, n, &node, NULL), 0);
    }
    for (uint32_t i = 0; i < world->pod_count; i++)
        planner->pods[i] = (struct gs_defrag_pod){.uid = pod_names[i],
                                                  .ns = "default",
                                                  .name = pod_names[i],
                                                  .ask = ask_of(&world->pods[i]),
                                                  .age_s = world->pods[i].age_s,
                                                  .movable = !world->pods[i].alone};
    planner->place = (struct gs_place){planner->ledger, planner->policies, &planner->facts,
                                       GS_PLACEMENT_BINPACK, 0};
    planner->defrag = gs_defrag_new(&planner->place, planner->pods, world->pod_count);
    assert_non_null(planner->defrag);
}

/* The ledger stays, and is the caller's. */
static struct gs_ledger *close_planner(struct planner *planner)
{
    gs_defrag_free(planner->defrag);
    gs_policies_free(planner->policies);
    gs_node_facts_release(&planner->facts);
    return planner->ledger;
}

static struct planned plan_for(const struct world *world)
{
    struct planned planned = {0};
    struct planner planner;
    const struct gs_defrag_pod waiting = {.uid = "w", .ask = ask_of(&world->waiting)};
    open_planner(&planner, world);
    planned.result = gs_defrag_make_room(planner.defrag, &waiting, MOVES_MAX, &planned.plan);
    for (uint32_t i = 0; i < planned.plan.count; i++)
        planned.age_s += planner.pods[planned.plan.moves[i].pod].age_s;
    planned.ledger = close_planner(&planner);
    return planned;
}

/* The ledger holds what the plan says: everybody at his new place, the waiting pod too; when there
 * is no plan, what it held before. */
static void check_ledger(const char *row, const struct world *world, const struct planned *planned)
{
    struct world after = *world;
    bool placed = planned->result == GS_DEFRAG_FOUND || planned->result == GS_DEFRAG_FITS;
    for (uint32_t i = 0; i < planned->plan.count; i++) {
        after.pods[planned->plan.moves[i].pod].node = planned->plan.moves[i].slot;
        after.pods[planned->plan.moves[i].pod].gpus = planned->plan.moves[i].gpus;
    }
    struct gs_ledger *should = build(&after);
    if (placed) {
        after.waiting.node = planned->plan.slot;
        after.waiting.gpus = planned->plan.gpus;
        charge(should, "w", &after.waiting);
    }
    for (uint32_t n = 0; n < world->node_count; n++) {
        char text[1000];
        snprintf(text, sizeof(text), "%s", test_accounts(should, node_names[n]));
        row_text(row, test_accounts(planned->ledger, node_names[n]), text);
        row_equal(row, gs_ledger_view_at(planned->ledger, n)->cpu_used_milli,
                  gs_ledger_view_at(should, n)->cpu_used_milli);
        row_true(row, strstr(text, "0:-") == NULL);
    }
    row_equal(row, test_stats(planned->ledger).overfull_gpus, 0);
    gs_ledger_free(should);
}

static void release(struct planned *planned)
{
    gs_defrag_plan_release(&planned->plan);
    gs_ledger_free(planned->ledger);
}

/* ---- rows ---- */

static uint32_t number_at(const char **at)
{
    ++*at;
    return test_number(at);
}

/* What follows a pod's units: "c30" compute, "!9" priority, "a50" age, "m3000" CPU, "x" no
 * controller, "~" it is being deleted, "-" its node affinity excludes every node. */
static void read_words(const char **at, struct bound *pod)
{
    while (**at && **at != ' ') {
        switch (**at) {
        case 'c':
            pod->cores_pct = number_at(at);
            break;
        case '!':
            pod->priority = (int32_t)number_at(at);
            break;
        case 'a':
            pod->age_s = number_at(at);
            break;
        case 'm':
            pod->cpu_milli = number_at(at);
            break;
        default:
            pod->alone |= **at == 'x';
            pod->excluded |= **at == '-';
            pod->leaving |= *(*at)++ == '~';
        }
    }
}

/* "16x2c80": a pod of priority 5 that asks for 16 on each of two GPUs. */
static struct bound read_waiting(const char *text)
{
    struct bound waiting = {.units = test_number(&text), .gpu_count = 1, .priority = 5};
    if (*text == 'x')
        waiting.gpu_count = number_at(&text);
    read_words(&text, &waiting);
    return waiting;
}

/* Nodes "16 16/4000 | !16": GPUs as views.h reads them, CPU behind them, "!" before a closed one.
 * Pods "0@0,1:6a50": node, GPUs, units on each. */
static struct world read_world(const char *nodes, const char *pods, const char *waiting)
{
    static char texts[NODES_MAX][32];
    struct world world = {.waiting = read_waiting(waiting)};
    for (const char *at = nodes; *at; at += strspn(at, " |")) {
        const uint32_t n = world.node_count++;
        world.closed[n] = *at == '!';
        at += world.closed[n];
        const size_t len = strcspn(at, "/|");
        snprintf(texts[n], sizeof(texts[n]), "%.*s", (int)len, at);
        texts[n][strcspn(texts[n], "/")] = '\0';
        world.gpus[n] = texts[n];
        at += len;
        if (*at == '/')
            world.cpu_milli[n] = number_at(&at);
    }
    for (const char *at = pods; *at; at += *at == ' ') {
        struct bound *pod = &world.pods[world.pod_count++];
        pod->node = test_number(&at);
        while (*at != ':') {
            pod->gpus |= GS_GPU_BIT(number_at(&at));
            pod->gpu_count++;
        }
        pod->units = number_at(&at);
        read_words(&at, pod);
    }
    return world;
}

static const struct {
    const char *row, *nodes, *pods, *waiting;
    enum gs_defrag_result result;
    const char *moves; /* "pod>node/gpus", and "!" for a cordon */
} cases[] = {
    {"it fits as it is", "16", "", "8", GS_DEFRAG_FITS, ""},
    {"one pod goes to another node", "16 | 16", "0@0:6 1@0:10", "16", GS_DEFRAG_FOUND, "!p0>1/1"},
    {"within one node", "16 16", "0@0:6 0@1:10", "16", GS_DEFRAG_FOUND, "p0>0/2"},
    {"the younger of two", "16 | 16 | 16", "0@0:6a50 1@0:6a40 2@0:6a60", "16", GS_DEFRAG_FOUND,
     "!p1>0/1"},
    {"one old pod rather than two young ones", "16 | 16 | 16", "0@0:3 0@0:3 1@0:6a99 2@0:6a100",
     "16", GS_DEFRAG_FOUND, "!p2>0/1"},
    {"compute is what is missing", "16 | 16", "0@0:6c30a9 1@0:6c40", "4c80", GS_DEFRAG_FOUND,
     "!p1>0/1"},
    {"compute is missing everywhere", "16 | 16", "0@0:6c60 1@0:6c60", "4c80", GS_DEFRAG_NONE, ""},
    {"without a controller nobody moves", "16 | 16", "0@0:6x 1@0:6x", "16", GS_DEFRAG_NONE, ""},
    {"nobody of higher priority moves", "16 | 16", "0@0:6!6 1@0:6!6", "16", GS_DEFRAG_NONE, ""},
    {"the youngest, all together", "16 | 16 | 16 | 6 6",
     "0@0:6a99 0@0:6a1 1@0:6a40 1@0:6a40 2@0:6a1 2@0:6a99", "16", GS_DEFRAG_FOUND,
     "!p2>3/1 p3>3/2"},
    {"the sum is not there", "16 16x | 16", "0@0:9 1@0:8", "16", GS_DEFRAG_NO_SUM, ""},
    {"a cordoned node takes nobody", "16 | 16 | !16", "0@0:6 1@0:12", "12", GS_DEFRAG_NONE, ""},
    {"two GPUs, large pods first", "16 16 | 16 16", "0@0:4 0@1:8 1@0:8 1@1:12", "16x2",
     GS_DEFRAG_FOUND, "!p1>1/1 p0>1/2"},
    {"large over all its GPUs", "16 16 | 16 16", "0@0,1:4 0@0:6 1@0:12x 1@1:6x", "16x2",
     GS_DEFRAG_FOUND, "!p0>1/3 p1>1/2"},
    {"a pod on two GPUs frees both", "16 16 | 16 16", "0@0,1:4 1@0:8 1@1:8", "16x2",
     GS_DEFRAG_FOUND, "!p0>1/3"},
    {"who is being deleted stays where it is", "16 | 16", "0@0:6~ 1@0:10x", "16", GS_DEFRAG_NONE,
     ""},
    {"compute of which others have too much", "16 | 16", "0@0:3c100x 0@0:3c60x 0@0:6 1@0:8x", "10",
     GS_DEFRAG_FOUND, "!p2>1/1"},
    {"memory is there, CPU is made", "16 16/4000 | 16/4000", "0@0:4m3000 1@0:4m1000", "16m4000",
     GS_DEFRAG_FOUND, "!p0>1/1"},
    {"more sets of five than are tried", "28 | 2 1 1 1 1 1 1 1 1",
     "0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2 0@0:2", "10",
     GS_DEFRAG_TOO_MANY, ""},
};

static const char *words_of(const struct planned *planned)
{
    static char text[512];
    size_t len = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < planned->plan.count; i++) {
        const struct gs_defrag_move *move = &planned->plan.moves[i];
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s>%u/%llx", i ? " " : "",
                                !i && planned->plan.cordon ? "!" : "", pod_names[move->pod],
                                move->slot, (unsigned long long)move->gpus);
    }
    return text;
}

static void the_cheapest_moves_make_room(void **state)
{
    GS_FOR_EACH_ROW (r, cases) {
        const struct world world = read_world(r->nodes, r->pods, r->waiting);
        struct planned planned = plan_for(&world);
        row_equal(r->row, planned.result, r->result);
        row_text(r->row, words_of(&planned), r->moves);
        check_ledger(r->row, &world, &planned);
        if (r->result != GS_DEFRAG_NO_SUM && r->result != GS_DEFRAG_TOO_MANY)
            row_equal(r->row, judge(&world).moves,
                      r->result == GS_DEFRAG_NONE ? -1 : (int)planned.plan.count);
        release(&planned);
    }
}

/* ---- random worlds ---- */

static const char *const shapes[] = {"16", "16 16", "16 16 16", "24 24", "16 16x 16"};

/* Where there is room; false when there is none. */
static bool settle(struct world *world, struct bound *pod, uint64_t *random)
{
    struct gs_ledger *ledger = build(world);
    struct gs_ask ask = ask_of(pod);
    uint32_t start = (uint32_t)gs_splitmix_below(random, world->node_count);
    bool found = false;
    for (uint32_t n = 0; n < world->node_count && !found; n++) {
        uint32_t node = (start + n) % world->node_count;
        const struct gs_node_view *view = gs_ledger_view(ledger, node_names[node]);
        if (!fits_there(ledger, &ask, node))
            continue;
        pod->node = node;
        pod->gpus = gs_splitmix_below(random, 2) ? gs_pick_emptiest(view, &ask)
                                                 : gs_pick_tightest(view, &ask);
        found = true;
    }
    gs_ledger_free(ledger);
    return found;
}

static struct bound draw_pod(uint64_t *random)
{
    return (struct bound){
        .units = 2 + (uint32_t)gs_splitmix_below(random, 12),
        .gpu_count = gs_splitmix_below(random, 6) ? 1 : 2,
        .priority = gs_splitmix_below(random, 5) ? 0 : 9,
        .cpu_milli = (int64_t)gs_splitmix_below(random, 4) * 1000,
        .age_s = (int64_t)gs_splitmix_below(random, 1000),
        .alone = gs_splitmix_below(random, 6) == 0,
    };
}

/* In every other world pods ask for compute, too. */
static uint32_t draw_cores(uint64_t seed, const struct bound *pod, uint64_t *random)
{
    return seed % 2 && pod->gpu_count == 1 ? 30 * (uint32_t)gs_splitmix_below(random, 4) : 0;
}

static struct world draw_world(uint64_t seed)
{
    uint64_t random = seed;
    struct world world = {.node_count = 2 + (uint32_t)gs_splitmix_below(&random, 3)};
    for (uint32_t n = 0; n < world.node_count; n++) {
        world.gpus[n] = shapes[gs_splitmix_below(&random, GS_COUNT_OF(shapes))];
        world.cpu_milli[n] = 6000 + (int64_t)gs_splitmix_below(&random, 8) * 1000;
        world.closed[n] = gs_splitmix_below(&random, 8) == 0;
    }
    uint32_t wanted = 3 + (uint32_t)gs_splitmix_below(&random, 6);
    for (uint32_t i = 0; i < wanted; i++) {
        struct bound pod = draw_pod(&random);
        pod.cores_pct = draw_cores(seed, &pod, &random);
        if (settle(&world, &pod, &random))
            world.pods[world.pod_count++] = pod;
    }
    world.waiting = (struct bound){
        .units = 10 + (uint32_t)gs_splitmix_below(&random, 7),
        .gpu_count = 1 + (uint32_t)gs_splitmix_below(&random, 3),
        .priority = 5,
        .cpu_milli = (int64_t)gs_splitmix_below(&random, 5) * 1000,
    };
    if (seed % 4 == 1) /* small in memory, so that compute is what is missing */
        world.waiting.units -= 8;
    world.waiting.cores_pct = draw_cores(seed, &world.waiting, &random);
    return world;
}

static void no_set_of_moves_is_cheaper(void **state)
{
    enum { WORLDS = 250 };
    uint32_t found = 0, several = 0, none = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world world = draw_world(seed);
        struct planned planned = plan_for(&world);
        char row[32];
        snprintf(row, sizeof(row), "world %llu", (unsigned long long)seed);
        row_true(row, planned.result != GS_DEFRAG_TOO_MANY);
        check_ledger(row, &world, &planned);
        if (planned.result != GS_DEFRAG_NO_SUM) {
            struct verdict verdict = judge(&world);
            bool works = planned.result == GS_DEFRAG_FOUND || planned.result == GS_DEFRAG_FITS;
            row_equal(row, works ? (int)planned.plan.count : -1, verdict.moves);
            row_equal(row, planned.age_s, verdict.age_s);
        }
        found += planned.result == GS_DEFRAG_FOUND;
        several += planned.plan.count > 1;
        none += planned.result == GS_DEFRAG_NONE;
        release(&planned);
    }
    /* the worlds are of all sorts */
    assert_true(found > WORLDS / 20 && several > WORLDS / 100 && none > WORLDS / 20);
}

/* ---- one after another ---- */

/* What waits, and what comes of it. */
static const struct {
    const char *row, *nodes, *pods;
    struct {
        const char *waiting;
        enum gs_defrag_result result;
    } steps[3];
} rounds[] = {
    {"a plan may make room for what had none",
     "32 | 24",
     "0@0:22!6a1 1@0:1c60!6a99",
     {{"12c50", GS_DEFRAG_NONE}, {"12c50!6", GS_DEFRAG_FOUND}, {"12c50", GS_DEFRAG_FITS}}},
    {"a pod that was moved is where it went",
     "16/8000 | 16/8000 | 16/1000",
     "0@0:6 1@0:10m7000",
     {{"16m4000", GS_DEFRAG_FOUND}, {"6m4000", GS_DEFRAG_NONE}}},
    {"who asks for less compute is another",
     "16 | 16",
     "0@0:6c60 1@0:6c60",
     {{"4c80", GS_DEFRAG_NONE}, {"4c40", GS_DEFRAG_FITS}}},
    {"who may use other nodes is another",
     "16 | 16",
     "",
     {{"4-", GS_DEFRAG_NO_SUM}, {"4", GS_DEFRAG_FITS}}},
    {"who has another priority is another",
     "16 | 16",
     "0@0:6!6 1@0:6!6",
     {{"16", GS_DEFRAG_NONE}, {"16!6", GS_DEFRAG_FOUND}}},
};

static void plans_follow_one_another(void **state)
{
    GS_FOR_EACH_ROW (r, rounds) {
        const struct world world = read_world(r->nodes, r->pods, "1");
        struct planner planner;
        open_planner(&planner, &world);
        for (size_t i = 0; i < GS_COUNT_OF(r->steps) && r->steps[i].waiting; i++) {
            static struct gs_defrag_pod waiting[GS_COUNT_OF(r->steps)];
            static struct bound bound[GS_COUNT_OF(r->steps)];
            struct gs_defrag_plan plan = {0};
            bound[i] = read_waiting(r->steps[i].waiting);
            waiting[i] = (struct gs_defrag_pod){.uid = "w", .ask = ask_of(&bound[i])};
            row_equal(r->row, gs_defrag_make_room(planner.defrag, &waiting[i], MOVES_MAX, &plan),
                      r->steps[i].result);
            gs_defrag_plan_release(&plan);
        }
        gs_ledger_free(close_planner(&planner));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_moves_make_room),
        cmocka_unit_test(no_set_of_moves_is_cheaper),
        cmocka_unit_test(plans_follow_one_another),
    };
    return GS_RUN(tests);
}
