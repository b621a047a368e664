/* SPDX-License-Identifier: Apache-2.0 */
/* Who is woken and offered a node first, and who is not. */
#include "extender/service/service_internal.h"
#include "rows.h"
#include "service_rig.h"

static struct rig rig;

/* In the order in which they were woken: "ns/name ". */
static char woken[1 << 16];

static void note_wake(struct rig *r, const struct gs_meta_patch *patch)
{
    size_t len = strlen(woken);
    snprintf(woken + len, sizeof(woken) - len, "%s/%s ", patch->ns, patch->name);
}

static int setup(void **state)
{
    rig_start_as(&rig, (struct gs_service_config){.reconcile_ns = INT64_MAX / 2});
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "old", 16, "n1", "0");
    service_tick(rig.service);
    rig.during_patch = note_wake;
    woken[0] = '\0';
    *state = &rig;
    return 0;
}

static void show(struct rig_pod pod)
{
    rig_feed(&rig, rig_json(&rig, pod), false);
}

/* It is shown, and refused on n1. */
static void refuse(struct rig_pod pod)
{
    show(pod);
    rig_expect(rig_filter(&rig, rig_json(&rig, pod), "\"n1\""), "\"NodeNames\":[]");
}

static void tick(int times)
{
    for (int i = 0; i < times; i++)
        rig_tick(&rig, GS_NS_PER_S / 10);
}

static void the_highest_priority_and_every_namespace_have_their_turn(void **state)
{
    char name[8], namespaces[5] = "";
    for (int i = 0; i < 16; i++) {
        const char ns[] = {(char)('a' + i / 4), '\0'};
        snprintf(name, sizeof(name), "p%d", i % 4);
        refuse((struct rig_pod){ns, name, 0});
    }
    refuse((struct rig_pod){"z", "p0", 9});
    refuse((struct rig_pod){"z", "p1", 9});
    tick(4);
    rig_pod_gone(&rig, "old");
    tick(1);
    assert_int_equal(rig.patches, 5);
    tick(1);
    assert_int_equal(rig.patches, 10);
    /* "z/p1 z/p0 …"; the fifth of each tick is whoever was woken least */
    assert_true(woken[0] == 'z' && woken[5] == 'z');
    const int turns[] = {2, 3, 5, 6};
    for (int i = 0; i < 4; i++) {
        char ns = woken[turns[i] * 5];
        assert_in_range(ns, 'a', 'd');
        assert_null(strchr(namespaces, ns));
        namespaces[i] = ns;
    }
}

/* As behind a webhook that does not answer: meanwhile other threads go on. */
static bool hangs;

static void hang(struct rig *r, const struct gs_meta_patch *patch)
{
    note_wake(r, patch);
    assert_int_equal(patch->deadline_ns, r->now_ns + 2 * GS_NS_PER_S);
    if (strcmp(patch->ns, "slow") != 0)
        return;
    assert_false(hangs); /* one of a namespace */
    hangs = true;
    for (int i = 0; i < 20; i++)
        rig_tick(r, GS_NS_PER_S / 10);
    hangs = false;
}

static void a_namespace_whose_patches_hang_holds_up_only_itself(void **state)
{
    char name[8];
    rig.during_patch = hang;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        refuse((struct rig_pod){"slow", name, 9});
    }
    refuse((struct rig_pod){"a", "p0", 0});
    tick(4);
    rig_pod_gone(&rig, "old");
    tick(1);
    assert_non_null(strstr(woken, "a/p0 "));
}

static unsigned depth, deepest;

static void last(struct gs_service *service, const char *uid)
{
    rig.now_ns += GS_NS_PER_S;
}

static void last_meanwhile(struct gs_service *service, const char *uid)
{
    deepest = ++depth > deepest ? depth : deepest;
    gs_patches_tick(service); /* of another thread */
    last(service, uid);
    depth--;
}

static void quick(struct gs_service *service, const char *uid)
{
}

static void slow_patches_leave_threads_free(void **state)
{
    enum { SHARES = 2 * GS_PATCH_THREADS };
    static const struct {
        gs_patch_fn *write;
        unsigned deepest;
    } rounds[] = {{last, 0},
                  {last_meanwhile, GS_PATCH_THREADS * 3 / 4},
                  {quick, 0},
                  {last_meanwhile, SHARES}};
    GS_FOR_EACH_ROW (r, rounds) {
        deepest = 0;
        for (uint32_t share = 0; share < SHARES; share++)
            gs_patches_add(&rig.service->patches, GS_PATCH_REQUEUE, share, "u", r->write);
        for (int i = 0; i < SHARES; i++)
            gs_patches_tick(rig.service);
        assert_int_equal(deepest, r->deepest);
    }
}

static void who_was_woken_least_goes_first(void **state)
{
    char name[8];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        refuse((struct rig_pod){"a", name, 0});
    }
    rig_pod_gone(&rig, "old");
    tick(100); /* all were, some three times */
    rig_pod(&rig, "again", 16, "n1", "0");
    refuse((struct rig_pod){"a", "late", 0});
    tick(10);
    rig_pod_gone(&rig, "again");
    woken[0] = '\0';
    tick(1);
    assert_memory_equal(woken, "a/late", 6);
}

/* The crowd fits by GPU on n2, and is refused by other filters for ever. */
static void crowd(unsigned count, int priority, const char *ns)
{
    char name[16];
    rig_node(&rig, "n2", "4");
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "c%u", i);
        refuse((struct rig_pod){ns, name, priority});
    }
    rig_pod(&rig, "x", 4, "n2", "0");
    rig_pod_gone(&rig, "x");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CROWD = 1000 }; /* some hundred times slower */
#else
enum { CROWD = 2500 };
#endif

static void whose_memory_came_free_is_woken_beside_thousands_of_others(void **state)
{
    static const struct {
        const char *row;
        int priority;
        const char *ns;
        int warm_ticks;
    } rows[] = {
        {"woken all of them", 0, "a", CROWD / 5 + 20},
        {"just begun", 0, "a", 20},
        {"another namespace's", 0, "b", 20},
        {"of higher priority", 9, "b", 20},
    };
    GS_FOR_EACH_ROW (r, rows) {
        rig_stop(&rig);
        setup(state);
        crowd(CROWD, r->priority, r->ns);
        tick(r->warm_ticks);
        refuse((struct rig_pod){"a", "honest", 0, NULL, 16});
        tick(10);
        rig_pod_gone(&rig, "old");
        woken[0] = '\0';
        tick(20);
        row_true(r->row, strstr(woken, "a/honest ") != NULL);
    }
}

/* n1 is full; n2 and n3 are not, and are offered. */
static void start_nominating(void)
{
    rig_stop(&rig);
    rig_start_as(&rig,
                 (struct gs_service_config){.nominates = true, .reconcile_ns = INT64_MAX / 2});
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_node(&rig, "n2", "16");
    rig_node(&rig, "n3", "16");
    rig_pod(&rig, "old", 16, "n1", "0");
    service_tick(rig.service);
}

enum { VAIN = 8 }; /* nominations.h */

/* A new one of these pods is refused; whether n2 is offered to it within a second. */
static bool n2_is_offered_to(const char *name)
{
    refuse((struct rig_pod){.name = name, .units = 12});
    snprintf(rig.nominated, sizeof(rig.nominated), "-");
    for (int i = 0; i < 10 && strcmp(rig.nominated, "n2") != 0; i++)
        tick(1);
    return strcmp(rig.nominated, "n2") == 0;
}

/* Other filters than ours refuse them there. A bind of one of them shows that it can be used. */
static void a_node_that_led_many_nowhere_is_not_offered_for_a_while(void **state)
{
    static const struct {
        const char *row;
        unsigned count, bound; /* each so-manieth is bound */
        bool offered;          /* the next */
    } rows[] = {{"none is bound", VAIN, 100, false}, {"some are bound", 3 * VAIN, 4, true}};
    GS_FOR_EACH_ROW (r, rows) {
        char name[16], uid[32];
        start_nominating();
        rig_pod(&rig, "full", 16, "n3", "0");
        for (unsigned i = 0; i < r->count; i++) {
            snprintf(name, sizeof(name), "q%u", i);
            snprintf(uid, sizeof(uid), "u%s", name);
            row_true(r->row, n2_is_offered_to(name));
            if (i % r->bound == r->bound - 1)
                rig_expect(rig_try_bind(&rig, name, uid, "n2"), "\"Error\":\"\"");
            tick(40);
            rig_pod_gone(&rig, name);
        }
        row_equal(r->row, n2_is_offered_to("next"), r->offered);
        rig_pod_gone(&rig, "next");
        rig_tick(&rig, 60 * GS_NS_PER_S);
        row_true(r->row, n2_is_offered_to("last"));
        tick(40);
        row_true(r->row, n2_is_offered_to("another")); /* those before are forgotten */
    }
}

/* The crowd is offered what came free as well, and nothing comes of it: each offer of a small place
 * is in the way of who wants all of it. */
static void what_came_free_is_not_kept_by_offers_to_a_crowd(void **state)
{
    static const struct {
        const char *row;
        int warm_ticks;
    } rows[] = {{"its first offers stand", 20}, {"it was offered much", 100}};
    GS_FOR_EACH_ROW (r, rows) {
        char name[16];
        start_nominating();
        for (unsigned i = 0; i < CROWD; i++) {
            snprintf(name, sizeof(name), "c%u", i);
            refuse((struct rig_pod){"b", name, 0});
        }
        tick(r->warm_ticks);
        rig_pod(&rig, "all", 16, "n2", "0");
        rig_pod(&rig, "half", 8, "n3", "0");
        refuse((struct rig_pod){"a", "honest", 0, NULL, 16});
        tick(50);
        rig_pod_gone(&rig, "all");
        rig.during_patch = note_wake;
        woken[0] = '\0';
        tick(20);
        row_true(r->row, strstr(woken, "a/honest ") != NULL);
    }
}

static const char rules[] =
    "'nodeSelector':{'k':''},'tolerations':[{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'"
    "key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'"
    "a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'"
    "key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'"
    "a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'"
    "key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'"
    "a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'"
    "key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'a'},{'key':'"
    "a'},{'key':'a'},{'key':'a'},{'key':'a'}],";

/* A thousand pods of "a" with 60 rules each, which no node fulfils. */
static void crowd_with_rules(void (*bring)(struct rig_pod pod))
{
    char name[16];
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "c%u", i);
        bring((struct rig_pod){"a", name, 0, rules, 1});
    }
    bring((struct rig_pod){"a", "end", 0});
    bring((struct rig_pod){"b", "p", 0, NULL, 16});
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "g%u", i);
        rig_node(&rig, name, "4");
    }
}

static void a_crowd_with_rules_is_searched_for_in_turns(void **state)
{
    rig_stop(&rig);
    rig_start(&rig);
    rig_lists(&rig);
    crowd_with_rules(show);
    rig.during_patch = note_wake;
    tick(100);
    assert_non_null(strstr(woken, "a/end "));
}

/* Of some 480 waiting pods, that fit nowhere, the last one's turn comes when its pass has no work
 * left. */
static void a_search_that_was_put_off_is_made_in_the_next_pass(void **state)
{
    char name[16];
    for (unsigned before = 470; before < 512; before++) {
        rig_stop(&rig);
        rig_start(&rig);
        rig_lists(&rig);
        rig_node(&rig, "n2", "4");
        for (unsigned i = 0; i < before; i++) {
            snprintf(name, sizeof(name), "c%u", i);
            show((struct rig_pod){"a", name, 0, NULL, 16});
        }
        show((struct rig_pod){"b", "end", 0});
        rig.during_patch = note_wake;
        woken[0] = '\0';
        tick(20);
        if (!strstr(woken, "b/end "))
            fail_msg("behind %u pods", before);
    }
}

/* More than one look's work: the others are compared in the next. */
static void every_node_that_came_is_compared(void **state)
{
    char name[16];
    refuse((struct rig_pod){"a", "p", 0, strstr(rules, "'tolerations'"), 16});
    tick(10);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "g%u", i);
        rig_node(&rig, name, "4");
    }
    rig_node(&rig, "last", "16");
    tick(5);
    assert_string_equal(woken, "a/p ");
}

/* It is compared with nodes that gain again and again. */
static void a_crowd_with_rules_holds_up_only_itself(void **state)
{
    char name[16], uid[16];
    crowd_with_rules(refuse);
    rig_pod_gone(&rig, "old");
    tick(4); /* refused just now, it is not woken in the first ones */
    assert_string_equal(woken, "b/p ");
    for (unsigned i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "g%u", i % 20);
        snprintf(uid, sizeof(uid), "x%u", i);
        rig_pod(&rig, uid, 4, name, "0");
        rig_pod_gone(&rig, uid);
        if (i % 20 == 0)
            tick(1);
    }
    assert_non_null(strstr(woken, "a/end "));
}

/* The work of a tick is bounded: who stands at the end of a long line is not seen in the first. */
static void a_tick_looks_at_some_thousands(void **state)
{
    char name[16];
    for (unsigned i = 0; i < 9000; i++) {
        snprintf(name, sizeof(name), "c%u", i);
        refuse((struct rig_pod){"a", name, 0});
    }
    refuse((struct rig_pod){"z", "last", 9});
    tick(10); /* the pass that was under way is over */
    rig_pod_gone(&rig, "old");
    tick(1);
    assert_null(strstr(woken, "z/last"));
    tick(3);
    assert_non_null(strstr(woken, "z/last"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_highest_priority_and_every_namespace_have_their_turn),
        T(a_namespace_whose_patches_hang_holds_up_only_itself),
        T(slow_patches_leave_threads_free),
        T(who_was_woken_least_goes_first),
        T(whose_memory_came_free_is_woken_beside_thousands_of_others),
        T(what_came_free_is_not_kept_by_offers_to_a_crowd),
        T(a_node_that_led_many_nowhere_is_not_offered_for_a_while),
        T(a_crowd_with_rules_is_searched_for_in_turns),
        T(every_node_that_came_is_compared),
        T(a_search_that_was_put_off_is_made_in_the_next_pass),
        T(a_crowd_with_rules_holds_up_only_itself),
        T(a_tick_looks_at_some_thousands),
    };
    return GS_RUN(tests);
}
