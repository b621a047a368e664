/* SPDX-License-Identifier: Apache-2.0 */
/* What node.scenarios and limits.scenarios of the device plugin cannot show. */
#include "cgroup_tree.h"

#include "gpushare/limit/keeper.h"

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(pods_come_and_go_up_to_a_ceiling)};
    return GS_RUN(tests);
}
