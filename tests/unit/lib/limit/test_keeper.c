/* SPDX-License-Identifier: Apache-2.0 */
/* What node.scenarios and limits.scenarios of the device plugin cannot show. */
#include "cgroup_tree.h"

#include "gpushare/limit/keeper.h"

#define POD "/kubepods/burstable/poda"

static const char *const addresses[] = {"0000:41:00.0", "0000:c1:00.0"};

struct fixture {
    struct cgroup_tree tree;
    struct gs_limiter *limiter;
    struct gs_keeper *keeper;
};

static void open_keeper(struct fixture *f, enum gs_enforce mode)
{
    struct gs_region gpus[2];
    tree_make(&f->tree);
    tree_mkdirs(&f->tree, "/kubepods/burstable/other", true);
    const struct gs_limiter_options options = {f->tree.mount, &f->tree.host};
    assert_int_equal(gs_limiter_new(&options, &f->limiter, NULL), 0);
    const struct gs_keeper_options rules = {f->limiter, mode, false};
    f->keeper = gs_keeper_new(&rules);
    assert_non_null(f->keeper);
    gs_keeper_gpus(f->keeper, gs_limiter_look(f->limiter, addresses, 2, gpus), gpus, 2);
}

static void close_keeper(struct fixture *f)
{
    gs_keeper_free(f->keeper);
    gs_limiter_free(f->limiter);
    tree_rmdir(&f->tree, "");
}

static bool is_shown(struct fixture *f)
{
    const char *max = tree_get(&f->tree, POD "/c/container", "dmem.max");
    return strstr(max, REGION_0 " 4294967296\n") != NULL;
}

/* How often it was looked until the last time. */
static int look_until(struct fixture *f, bool shown)
{
    int ticks = 0;
    while (ticks < 1000 && is_shown(f) == !shown && gs_keeper_show_again(f->keeper))
        ticks++;
    return ticks;
}

/* As crun has it, whose first process is in the way for a moment. */
static void a_cgroup_that_is_made_later_is_shown_the_limit(void **state)
{
    const struct gs_share share = {.uid = "a", .gpus = 1, .bytes = 4 * GIB, .one_user = true};
    struct fixture f;
    const char *reason;
    open_keeper(&f, GS_ENFORCE_PREFERRED);
    tree_mkdir(&f.tree, POD);
    gs_keeper_share(f.keeper, &share, NULL);
    gs_keeper_appeared(f.keeper, "a");
    assert_false(gs_keeper_show_again(f.keeper)); /* nothing starts */
    assert_true(gs_keeper_may_start(f.keeper, "a", &reason));
    for (int i = 0; i < 100; i++)
        assert_true(gs_keeper_show_again(f.keeper));
    tree_mkdir(&f.tree, POD "/c");
    gs_keeper_appeared(f.keeper, "a"); /* after a while: from the beginning */
    tree_put(&f.tree, POD "/c", "cgroup.procs", "7\n");
    tree_mkdir(&f.tree, POD "/c/container");
    int before = f.tree.enablings;
    for (int i = 0; i < 10; i++)
        assert_true(gs_keeper_show_again(f.keeper));
    assert_int_equal(f.tree.enablings - before, 4); /* the 1st, 2nd, 4th, 8th time */
    assert_false(is_shown(&f));
    tree_put(&f.tree, POD "/c", "cgroup.procs", "");
    assert_int_equal(look_until(&f, true), 16 - 10);
    assert_true(is_shown(&f));
    assert_int_equal(look_until(&f, false), 128 - 16 - 1);
    assert_false(gs_keeper_show_again(f.keeper));
    const struct gs_region second[] = {{.state = GS_ENFORCED_SHARED},
                                       {.state = GS_ENFORCED_DMEM, .name = REGION_1}};
    const struct gs_share both = {.uid = "a", .gpus = 3, .bytes = 4 * GIB};
    struct gs_kept pod;
    gs_keeper_gpus(f.keeper, GS_ENFORCED_DMEM, second, 2);
    gs_keeper_share(f.keeper, &both, NULL);
    assert_true(gs_keeper_find(f.keeper, "a", &pod) && !pod.held);
    assert_string_equal(pod.reason, gs_enforced_reason(GS_ENFORCED_SHARED));
    const struct gs_share one = {.uid = "a", .gpus = 2, .bytes = 4 * GIB};
    gs_keeper_share(f.keeper, &one, NULL);
    assert_true(gs_keeper_find(f.keeper, "a", &pod) && pod.held && pod.by == GS_ENFORCED_DMEM);
    close_keeper(&f);
}

/* Also where it is not known that the kubelet asked for its GPUs. */
static void what_ran_before_keeps_what_it_uses(void **state)
{
    static const struct {
        const char *row, *limit;
        bool given, runs;
    } pods[] = {
        {"it runs", REGION_0 " 5368709120\n", false, true},
        {"it is to start", REGION_0 " 4294967296\n", true, false},
    };
    GS_FOR_EACH_ROW (r, pods) {
        const struct gs_share share = {
            .uid = "a", .gpus = 1, .bytes = 4 * GIB, .given = r->given, .runs = r->runs};
        struct fixture f;
        open_keeper(&f, GS_ENFORCE_PREFERRED);
        tree_mkdir(&f.tree, POD);
        tree_put(&f.tree, POD, "dmem.current", REGION_0 " 5368709120\n");
        gs_keeper_share(f.keeper, &share, NULL);
        row_true(r->row, strstr(tree_get(&f.tree, POD, "dmem.max"), r->limit) != NULL);
        close_keeper(&f);
    }
}

static void pods_come_and_go_up_to_a_ceiling(void **state)
{
    struct fixture f;
    struct gs_kept pod;
    const char *reason;
    char uid[32];
    open_keeper(&f, GS_ENFORCE_REQUIRED);
    struct gs_keeper *keeper = f.keeper;
    const struct gs_region one[] = {{.state = GS_ENFORCED_DMEM, .name = REGION_0}};
    gs_keeper_gpus(keeper, GS_ENFORCED_DMEM, one, 1);
    assert_int_equal(gs_keeper_enforces(keeper, 0), GS_ENFORCED_DMEM);
    assert_int_equal(gs_keeper_enforces(keeper, 1), GS_ENFORCED_ABSENT); /* no such GPU */
    for (int first = 0; first <= 1; first++) { /* for the last, one that never ran goes */
        gs_keeper_list_begin(keeper);
        for (int i = first; i <= GS_KEEPER_PODS_MAX - first; i++) {
            snprintf(uid, sizeof(uid), "p%d", i);
            const struct gs_share share = {uid, 1, GIB};
            assert_int_equal(gs_keeper_share(keeper, &share, NULL), 0);
        }
    }
    gs_keeper_list_end(keeper);
    assert_false(gs_keeper_find(keeper, "p0", &pod));
    assert_true(gs_keeper_may_start(keeper, "p0", &reason)); /* not ours */
    assert_false(gs_keeper_may_start(keeper, "p1", &reason));
    struct gs_error err = {0};
    const struct gs_share wrong = {"../x", 1, GIB};
    assert_int_equal(gs_keeper_share(keeper, &wrong, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    close_keeper(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cgroup_that_is_made_later_is_shown_the_limit),
        cmocka_unit_test(what_ran_before_keeps_what_it_uses),
        cmocka_unit_test(pods_come_and_go_up_to_a_ceiling),
    };
    return GS_RUN(tests);
}
