/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"

#include "gpushare/base/splitmix.h"
#include "gpushare/core/place.h"

/* ---- one node and one pod ---- */

enum {
    NO_PLUGIN = 1,
    NOT_READY = 2,
    CORDONED = 4,
    TAINTED = 8,
    STATE_TAINTED = 16,
    NO_INVENTORY = 32
};

/* A node with STATE_TAINTED alone has the first. */
static struct gs_taint taints[] = {{"node.kubernetes.io/not-ready", "", "NoSchedule"},
                                   {"team", "a", "NoSchedule"}};

static void set_node(struct gs_ledger *ledger, struct gs_node_facts *facts, const char *name,
                     const char *gpus, uint32_t state, int64_t cpu_milli)
{
    static struct test_node t;
    test_node_init(&t, name, gpus);
    t.node.cpu_milli = cpu_milli;
    t.node.ready = !(state & NOT_READY);
    t.node.allocatable_units = state & NO_PLUGIN ? 0 : 8;
    t.node.inventory = !(state & NO_INVENTORY);
    t.node.rules = (struct gs_node_rules){.name = name,
                                          .unschedulable = state & CORDONED,
                                          .taints = &taints[state & STATE_TAINTED ? 0 : 1],
                                          .taint_count = state & (TAINTED | STATE_TAINTED) ? 1 : 0};
    assert_int_equal(gs_ledger_set_node(ledger, &t.node, NULL), 0);
    const uint32_t slot = gs_ledger_view(ledger, name)->slot;
    assert_int_equal(gs_node_facts_set(facts, slot, &t.node, NULL), 0);
}

static struct gs_toleration any = {"", "", "", GS_OPERATOR_EXISTS};
static const struct gs_pod_rules none = {0},
                                 tolerant = {.tolerations = &any, .toleration_count = 1};
static struct gs_requirement pool = {.key = "pool", .op = GS_OPERATOR_EXISTS};
static const struct gs_pod_rules selective = {.selector = {&pool, 1}};

static const struct {
    const char *row;
    uint32_t state;
    int64_t cpu_milli; /* of the node; the pod asks for 2000 */
    const struct gs_pod_rules *rules;
    uint32_t units;
    enum gs_obstacle obstacle, open;
} verdicts[] = {
    {"nothing", 0, 8000, &none, 8, GS_OBSTACLE_NONE, GS_OBSTACLE_NONE},
    {"no room", 0, 8000, &none, 17, GS_OBSTACLE_GPU, GS_OBSTACLE_NONE},
    {"all that is allocatable", NO_INVENTORY, 8000, &none, 8, GS_OBSTACLE_NONE, GS_OBSTACLE_NONE},
    {"more than is allocatable", NO_INVENTORY, 8000, &none, 9, GS_OBSTACLE_GPU, GS_OBSTACLE_NONE},
    {"CPU", 0, 1999, &none, 8, GS_OBSTACLE_CPU, GS_OBSTACLE_NONE},
    {"CPU that nobody knows", 0, 0, &none, 8, GS_OBSTACLE_NONE, GS_OBSTACLE_NONE},
    {"no room and no CPU", 0, 1999, &none, 17, GS_OBSTACLE_GPU, GS_OBSTACLE_NONE},
    {"not ready", NOT_READY, 8000, &none, 8, GS_OBSTACLE_NOT_READY, GS_OBSTACLE_NOT_READY},
    {"not ready and no room", NOT_READY, 8000, &none, 17, GS_OBSTACLE_GPU, GS_OBSTACLE_NOT_READY},
    {"a cordon", CORDONED, 8000, &none, 8, GS_OBSTACLE_CORDONED, GS_OBSTACLE_CORDONED},
    {"a cordon, no rules known", CORDONED, 8000, NULL, 8, GS_OBSTACLE_CORDONED,
     GS_OBSTACLE_CORDONED},
    {"a cordon that is tolerated", CORDONED, 8000, &tolerant, 8, GS_OBSTACLE_NONE,
     GS_OBSTACLE_NONE},
    {"a taint", TAINTED, 8000, &none, 17, GS_OBSTACLE_TAINT, GS_OBSTACLE_TAINT},
    {"a taint that is tolerated", TAINTED, 8000, &tolerant, 8, GS_OBSTACLE_NONE, GS_OBSTACLE_NONE},
    {"a taint, no rules known", TAINTED, 8000, NULL, 8, GS_OBSTACLE_NONE, GS_OBSTACLE_NONE},
    {"a cordon and another pool", CORDONED, 8000, &selective, 8, GS_OBSTACLE_AFFINITY,
     GS_OBSTACLE_AFFINITY},
    {"not ready and another pool", NOT_READY, 8000, &selective, 8, GS_OBSTACLE_AFFINITY,
     GS_OBSTACLE_AFFINITY},
    {"not ready, with the taint of that", NOT_READY | STATE_TAINTED, 8000, &none, 8,
     GS_OBSTACLE_NOT_READY, GS_OBSTACLE_NOT_READY},
    {"ready, and the taint is still there", STATE_TAINTED, 8000, &none, 8, GS_OBSTACLE_TAINT,
     GS_OBSTACLE_TAINT},
    {"not ready, and a taint", NOT_READY | TAINTED, 8000, &none, 8, GS_OBSTACLE_TAINT,
     GS_OBSTACLE_TAINT},
    {"a cordon and a taint", CORDONED | TAINTED, 8000, &none, 8, GS_OBSTACLE_TAINT,
     GS_OBSTACLE_TAINT},
    {"no plugin", NO_PLUGIN, 8000, &none, 8, GS_OBSTACLE_NO_PLUGIN, GS_OBSTACLE_NO_PLUGIN},
    {"a cordon and no plugin", CORDONED | NO_PLUGIN, 8000, &none, 8, GS_OBSTACLE_CORDONED,
     GS_OBSTACLE_CORDONED},
};

static void a_verdict_names_what_is_in_the_way(void **state)
{
    GS_FOR_EACH_ROW (r, verdicts) {
        struct gs_ledger *ledger = gs_ledger_new();
        struct gs_policies *policies = gs_policies_new();
        struct gs_node_facts facts = {0};
        const struct gs_place place = {ledger, policies, &facts, GS_PLACEMENT_BINPACK, 0};
        const struct gs_ask ask = {
            .units = r->units, .gpu_count = 1, .cpu_milli = 2000, .rules = r->rules};
        bool refused[1] = {false}, fits = r->obstacle == GS_OBSTACLE_NONE;
        enum gs_reason reason;
        uint32_t slot;
        gs_gpu_mask gpus;
        set_node(ledger, &facts, "n", "16", r->state, r->cpu_milli);
        row_equal(r->row, gs_place_judge(&place, &ask, gs_ledger_view_at(ledger, 0), &reason, NULL),
                  r->obstacle);
        row_equal(r->row, reason != GS_FITS, r->obstacle == GS_OBSTACLE_GPU);
        row_equal(r->row, gs_place_open(&place, &ask, 0), r->open);
        row_equal(r->row, gs_place_choose(&place, &ask, refused, &slot, &gpus), fits);
        row_equal(r->row, refused[0], !fits);
        row_equal(r->row, gs_place_count(&place, &ask, 0) > 0, fits);
        gs_node_facts_release(&facts);
        gs_policies_free(policies);
        gs_ledger_free(ledger);
    }
}

static void a_node_that_is_not_known_is_not_open(void **state)
{
    struct gs_node_facts facts = {0};
    const struct gs_ask ask = {.units = 1, .gpu_count = 1};
    struct gs_place place = {.facts = &facts};
    assert_int_equal(gs_place_open(&place, &ask, 7), GS_OBSTACLE_NOT_READY);
    place.facts = NULL;
    assert_int_equal(gs_place_open(&place, &ask, 7), GS_OBSTACLE_NONE);
}

/* ---- random worlds ---- */

enum { NODES = 4, WORLDS = 3000 };

static const char *const node_names[NODES] = {"n0", "n1", "n2", "n3"};

struct world {
    struct gs_ledger *ledger;
    struct gs_policies *policies;
    struct gs_node_facts facts;
    struct gs_place place;
    uint64_t random;
};

static uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)(gs_splitmix_below(&world->random, bound));
}

static void add_node(struct world *world, uint32_t n)
{
    char gpus[200] = "", uid[16];
    for (uint32_t g = 0, count = 1 + below(world, 4); g < count; g++) {
        size_t len = strlen(gpus);
        snprintf(gpus + len, sizeof(gpus) - len, "%s%u%s%s", g ? " " : "", 4 + below(world, 5) * 4,
                 below(world, 4) ? "" : "/2", below(world, 8) ? "" : "x");
    }
    set_node(world->ledger, &world->facts, node_names[n], gpus,
             below(world, 3) ? 0 : 1u << below(world, 4),
             below(world, 4) ? 1000 * (1 + below(world, 4)) : 0);
    for (uint32_t i = below(world, 4); i > 0; i--) {
        snprintf(uid, sizeof(uid), "c%u-%u", n, i);
        test_set_claim(world->ledger, (struct gs_claim){.uid = uid,
                                                        .ns = "",
                                                        .name = uid,
                                                        .node = node_names[n],
                                                        .gpus = 1,
                                                        .units = 1 + below(world, 6),
                                                        .cores_pct = below(world, 2) * 30,
                                                        .cpu_milli = below(world, 2) * 500,
                                                        .leaving = !below(world, 4)});
    }
    for (uint32_t i = below(world, 3); i > 0; i--) {
        snprintf(uid, sizeof(uid), "h%u-%u", n, i);
        const struct gs_hold hold = {.ask = {.uid = uid,
                                             .units = 1 + below(world, 12),
                                             .gpu_count = 1 + below(world, 2),
                                             .priority = (int32_t)below(world, 3) - 1,
                                             .cores_pct = below(world, 2) * 40},
                                     .node = node_names[n]};
        assert_int_equal(gs_ledger_hold(world->ledger, &hold, NULL), 0);
    }
}

static void make(struct world *world, uint64_t seed)
{
    *world =
        (struct world){.ledger = gs_ledger_new(), .policies = gs_policies_new(), .random = seed};
    world->place =
        (struct gs_place){world->ledger, world->policies, &world->facts,
                          below(world, 2) ? GS_PLACEMENT_BINPACK : GS_PLACEMENT_SPREAD, 0};
    for (uint32_t n = 0; n < NODES; n++)
        add_node(world, n);
}

/* The same words from judge, choose, count, and from placing one after the other; what is placed
 * does no harm, and is gone when it is taken back. */
static void all_answers_are_one(void **state)
{
    uint32_t none_fit = 0, many = 0, obstacles[GS_OBSTACLES] = {0};
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world world;
        make(&world, seed);
        const struct gs_ask ask = {.units = 1 + below(&world, 8),
                                   .gpu_count = 1 + !below(&world, 4),
                                   .cores_pct = below(&world, 3) ? 0 : 30,
                                   .cpu_milli = below(&world, 2) * 1500,
                                   .rules = below(&world, 2) ? &none : NULL};
        uint64_t counts[NODES], sum = 0, placed = 0;
        bool refused[NODES] = {false};
        gs_gpu_mask gpus;
        uint32_t slot;
        char row[32];
        uint64_t before[NODES];
        snprintf(row, sizeof(row), "seed %u", (unsigned)seed);
        for (uint32_t n = 0; n < NODES; n++) {
            bool others[NODES];
            enum gs_reason reason;
            enum gs_obstacle obstacle = gs_place_judge(
                &world.place, &ask, gs_ledger_view_at(world.ledger, n), &reason, NULL);
            obstacles[obstacle]++;
            for (uint32_t i = 0; i < NODES; i++)
                others[i] = i != n;
            sum += counts[n] = gs_place_count(&world.place, &ask, n);
            row_equal(row, counts[n] > 0, obstacle == GS_OBSTACLE_NONE);
            row_equal(row, gs_place_choose(&world.place, &ask, others, &slot, &gpus),
                      obstacle == GS_OBSTACLE_NONE);
            before[n] = gs_ledger_view_at(world.ledger, n)->sum_used_units;
        }
        while (gs_place_choose(&world.place, &ask, refused, &slot, &gpus)) {
            const struct gs_node_view *view = gs_ledger_view_at(world.ledger, slot);
            row_equal(row, gs_fit_chosen(world.ledger, view, &ask, gpus, NULL), GS_FITS);
            row_true(row, counts[slot]-- > 0);
            row_equal(row, gs_place_claim(&world.place, &ask, slot, gpus, NULL), 0);
            placed++;
        }
        row_equal(row, placed, sum);
        none_fit += !placed;
        many += placed > 3;
        gs_place_take_back(&world.place, 0);
        for (uint32_t n = 0; n < NODES; n++) {
            row_equal(row, gs_ledger_audit(world.ledger, n), 0);
            row_equal(row, gs_ledger_view_at(world.ledger, n)->sum_used_units, before[n]);
        }
        gs_node_facts_release(&world.facts);
        gs_policies_free(world.policies);
        gs_ledger_free(world.ledger);
    }
    assert_true(none_fit > WORLDS / 50 && many > WORLDS / 5); /* worlds of all sorts */
    for (int o = 0; o < GS_OBSTACLE_AFFINITY; o++)
        assert_true(obstacles[o] > WORLDS / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_names_what_is_in_the_way),
        cmocka_unit_test(a_node_that_is_not_known_is_not_open),
        cmocka_unit_test(all_answers_are_one),
    };
    return GS_RUN(tests);
}
