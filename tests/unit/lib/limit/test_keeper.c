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

static void look(struct fixture *f)
{
    struct gs_region gpus[2];
    enum gs_enforced host = gs_limiter_look(f->limiter, addresses, 2, gpus);
    gs_keeper_gpus(f->keeper, host, gpus, 2);
}

static void open_keeper(struct fixture *f, enum gs_enforce mode, bool deny_foreign)
{
    tree_make(&f->tree);
    tree_mkdirs(&f->tree, "/kubepods/burstable/other", true);
    const struct gs_limiter_options options = {f->tree.mount, &f->tree.host};
    assert_int_equal(gs_limiter_new(&options, &f->limiter, NULL), 0);
    const struct gs_keeper_options rules = {f->limiter, mode, deny_foreign};
    f->keeper = gs_keeper_new(&rules);
    assert_non_null(f->keeper);
    look(f);
}

static void close_keeper(struct fixture *f)
{
    gs_keeper_free(f->keeper);
    gs_limiter_free(f->limiter);
    tree_rmdir(&f->tree, "");
}

static void make_pod(struct fixture *f, uint64_t used)
{
    char text[256];
    tree_mkdir(&f->tree, POD);
    snprintf(text, sizeof(text), REGION_0 " %llu\n" REGION_1 " 0\n", (unsigned long long)used);
    tree_put(&f->tree, POD, "dmem.current", text);
}

static void make_pod_use_less(struct fixture *f)
{
    tree_put(&f->tree, POD, "dmem.current", REGION_0 " 4096\n" REGION_1 " 0\n");
}

static const struct gs_share four = {"a", 1, 4 * GIB};

static struct gs_kept kept(struct fixture *f)
{
    struct gs_kept pod = {0};
    assert_true(gs_keeper_find(f->keeper, "a", &pod));
    return pod;
}

static bool limited(struct fixture *f)
{
    return strstr(tree_get(&f->tree, POD, "dmem.max"), REGION_0 " 4294967296\n") != NULL;
}

static bool has_limit(struct fixture *f, uint64_t bytes)
{
    char line[96];
    snprintf(line, sizeof(line), REGION_0 " %llu\n", (unsigned long long)bytes);
    return strstr(tree_get(&f->tree, POD, "dmem.max"), line) != NULL;
}

static void use(struct fixture *f, uint64_t bytes)
{
    char text[256];
    snprintf(text, sizeof(text), REGION_0 " %llu\n" REGION_1 " 0\n", (unsigned long long)bytes);
    tree_put(&f->tree, POD, "dmem.current", text);
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

/* Nothing is taken from it, and it gets no more. */
static void a_pod_that_runs_already_keeps_what_it_has(void **state)
{
    static const struct {
        const char *row;
        uint64_t used, limit;
        bool starts; /* another container of it, where limits are required */
    } rows[] = {
        {"uses nothing", 0, 4 * GIB, true},
        {"less than its share", 4 * GIB - 1, 4 * GIB, true},
        {"its share", 4 * GIB, 4 * GIB, true},
        {"a byte more", 4 * GIB + 1, 4 * GIB + 1, false},
        {"above its share", 9 * GIB, 9 * GIB, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        for (enum gs_enforce mode = GS_ENFORCE_PREFERRED; mode <= GS_ENFORCE_REQUIRED; mode++) {
            struct fixture f;
            struct gs_share share = four;
            const char *reason;
            share.runs = true;
            open_keeper(&f, mode, false);
            make_pod(&f, r->used);
            gs_keeper_share(f.keeper, &share, NULL);
            row_true(r->row, has_limit(&f, r->limit));
            row_text(r->row, kept(&f).reason,
                     r->starts ? "" : "the pod used more before it was limited");
            row_equal(r->row, gs_keeper_may_start(f.keeper, "a", &reason),
                      r->starts || mode == GS_ENFORCE_PREFERRED);
            row_equal(r->row, gs_keeper_enforces(f.keeper, 0), GS_ENFORCED_DMEM);
            make_pod_use_less(&f);
            gs_keeper_pass(f.keeper);
            row_true(r->row, limited(&f) && kept(&f).held);
            use(&f, r->used); /* it had it once: that is no right to it */
            gs_keeper_pass(f.keeper);
            row_true(r->row, limited(&f));
            close_keeper(&f);
        }
    }
}

/* As crun has it, whose first process is in the way for a moment. */
static void a_cgroup_that_is_made_later_is_shown_the_limit(void **state)
{
    struct gs_share share = four;
    struct fixture f;
    const char *reason;
    open_keeper(&f, GS_ENFORCE_PREFERRED, false);
    make_pod(&f, 0);
    share.one_user = true;
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
    close_keeper(&f);
}

static void pods_come_and_go_up_to_a_ceiling(void **state)
{
    struct cgroup_tree tree;
    struct gs_limiter *limiter;
    struct gs_kept pod;
    const char *reason;
    char uid[32];
    tree_make(&tree);
    const struct gs_limiter_options options = {tree.mount, &tree.host};
    assert_int_equal(gs_limiter_new(&options, &limiter, NULL), 0);
    const struct gs_keeper_options rules = {limiter, GS_ENFORCE_REQUIRED, false};
    struct gs_keeper *keeper = gs_keeper_new(&rules);
    assert_non_null(keeper);
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
    gs_keeper_free(keeper);
    gs_limiter_free(limiter);
    tree_rmdir(&tree, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_that_runs_already_keeps_what_it_has),
        cmocka_unit_test(a_cgroup_that_is_made_later_is_shown_the_limit),
        cmocka_unit_test(pods_come_and_go_up_to_a_ceiling),
    };
    return GS_RUN(tests);
}
