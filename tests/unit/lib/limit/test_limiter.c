/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_tree.h"

#include "gpushare/limit/limiter.h"

#define UID_A "0a1b2c3d-0000-4000-8000-00000000000a"
#define POD_A "/kubepods/burstable/pod" UID_A

static const char pod_a[] = UID_A;
static const char *const addresses[] = {"00000000:41:00.0", "00000000:C1:00.0"};

struct fixture {
    struct cgroup_tree tree;
    struct gs_limiter *limiter;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    tree_make(&f->tree);
    tree_mkdirs(&f->tree, POD_A, true);
    const struct gs_limiter_options options = {f->tree.mount, &f->tree.host};
    *state = f;
    return gs_limiter_new(&options, &f->limiter, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gs_limiter_free(f->limiter);
    tree_rmdir(&f->tree, "");
    free(f);
    return 0;
}

static void a_mount_has_a_name(void **state)
{
    static const char *const rows[] = {"", "/sys/fs/cgroup/"};
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_limiter *limiter = (void *)1;
        struct gs_error err = {0};
        const struct gs_limiter_options options = {.mount = *r};
        row_equal(*r, gs_limiter_new(&options, &limiter, &err), -1);
        row_equal(*r, err.code, GS_EINVAL);
        row_true(*r, limiter == (void *)1);
    }
}

/* A security module lets access(2) through and refuses open(2). */
static void whether_limits_can_be_written_is_tried(void **state)
{
    static const struct {
        const char *row, *max; /* of the pods' folder; NULL: it has none */
        int put_error, may_put_error;
        bool writes;
        enum gs_enforced host;
        int tried;
    } rows[] = {
        {"it can", REGION_0 " max\n", 0, 0, true, GS_ENFORCED_DMEM, 1},
        {"refused", REGION_0 " max\n", EACCES, 0, true, GS_ENFORCED_DENIED, 1},
        {"read-only", REGION_0 " max\n", EROFS, 0, true, GS_ENFORCED_READ_ONLY, 1},
        {"refused, by one that only observes", REGION_0 " max\n", EACCES, 0, false,
         GS_ENFORCED_DMEM, 0},
        {"a limit of others is not touched", REGION_0 " 77\n", EACCES, 0, true, GS_ENFORCED_DMEM,
         0},
        {"the one without a limit is", REGION_0 " 77\n" REGION_1 " max\n", EACCES, 0, true,
         GS_ENFORCED_DENIED, 1},
        {"no such file", NULL, EACCES, 0, true, GS_ENFORCED_DMEM, 0},
        {"no such file, not permitted", NULL, 0, EPERM, true, GS_ENFORCED_DENIED, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct cgroup_tree tree;
        struct gs_limiter *limiter;
        struct gs_region gpus[2];
        char path[128];
        tree_make(&tree);
        tree_mkdirs(&tree, "/kubepods/burstable", true);
        tree_path(&tree, "/kubepods", "dmem.max", path, sizeof(path));
        unlink(path);
        if (r->max)
            tree_put(&tree, "/kubepods", "dmem.max", r->max);
        tree.put_error = r->put_error;
        tree.put_errors = -1;
        tree.may_put_error = r->may_put_error;
        const struct gs_limiter_options options = {tree.mount, &tree.host, r->writes};
        assert_int_equal(gs_limiter_new(&options, &limiter, NULL), 0);
        enum gs_enforced host = gs_limiter_look(limiter, addresses, 2, gpus);
        row_equal(r->row, host, r->host);
        row_equal(r->row, tree.writes, r->tried);
        row_equal(r->row, gpus[0].state, GS_ENFORCED_DMEM);
        row_equal(r->row, gpus[1].state, GS_ENFORCED_DMEM);
        row_text(r->row, tree_get(&tree, "/kubepods", "dmem.max"), r->max ? r->max : "");
        gs_limiter_free(limiter);
        tree_rmdir(&tree, "");
    }
}

/* An earlier driver's tree is left behind, and may come first. */
static void one_tree_that_can_be_written_is_enough(void **state)
{
    static const struct {
        const char *row, *locked;
        enum gs_enforced host;
    } rows[] = {
        {"both", NULL, GS_ENFORCED_DMEM},
        {"not that of cgroupfs", "/kubepods/", GS_ENFORCED_DMEM},
        {"not that of systemd", "/kubepods.slice/", GS_ENFORCED_DMEM},
        {"neither", "/kubepods", GS_ENFORCED_READ_ONLY},
    };
    GS_FOR_EACH_ROW (r, rows) {
        void *own = NULL;
        struct gs_region gpus[2];
        assert_int_equal(setup(&own), 0);
        struct fixture *f = own;
        tree_mkdirs(&f->tree, "/kubepods.slice", true);
        f->tree.locked = r->locked;
        row_equal(r->row, gs_limiter_look(f->limiter, addresses, 2, gpus), r->host);
        teardown(&own);
    }
}

static void dmem_is_passed_on_to_pods_that_lack_it(void **state)
{
    static const char *const levels[] = {"", "/kubepods", "/kubepods/burstable"};
    struct fixture *f = *state;
    const struct gs_limit limit = {REGION_0, GIB};
    struct gs_limit_result result;
    char path[256];
    tree_path(&f->tree, POD_A, "dmem.max", path, sizeof(path));
    unlink(path);
    GS_FOR_EACH_ROW (r, levels)
        tree_put(&f->tree, *r, "cgroup.subtree_control", "memory pids\n");
    assert_int_equal(gs_limiter_verify(f->limiter, pod_a, &limit, 1, &result), GS_LIMIT_NO_FILES);
    assert_int_equal(f->tree.enablings, 0);
    assert_int_equal(gs_limiter_hold(f->limiter, pod_a, &limit, 1, &result), GS_LIMIT_HELD);
    assert_int_equal(f->tree.enablings, 3);
    GS_FOR_EACH_ROW (r, levels)
        row_text(*r, tree_get(&f->tree, *r, "cgroup.subtree_control"), "memory pids dmem\n");
    /* not in the pod itself: that is its containers' affair */
    assert_string_equal(tree_get(&f->tree, POD_A, "cgroup.subtree_control"), "memory pids\n");
}

static void dmem_that_cannot_be_passed_on_has_its_reason(void **state)
{
    static const struct {
        const char *row;
        int error;
        enum gs_limit_outcome outcome;
    } rows[] = {
        {"a folder with processes", EBUSY, GS_LIMIT_NO_FILES},
        {"the folder above does not", ENOENT, GS_LIMIT_NO_FILES},
        {"no such controller", EINVAL, GS_LIMIT_NO_FILES},
        {"not permitted", EACCES, GS_LIMIT_DENIED},
        {"read-only", EROFS, GS_LIMIT_READ_ONLY},
    };
    struct fixture *f = *state;
    const struct gs_limit limit = {REGION_0, GIB};
    char path[256];
    tree_path(&f->tree, POD_A, "dmem.max", path, sizeof(path));
    unlink(path);
    tree_put(&f->tree, "/kubepods", "cgroup.subtree_control", "memory pids\n");
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_limit_result result;
        f->tree.put_error = r->error;
        f->tree.put_errors = -1;
        enum gs_limit_outcome outcome = gs_limiter_hold(f->limiter, pod_a, &limit, 1, &result);
        row_equal(r->row, outcome, r->outcome);
    }
}

static void containers_are_shown_the_limits_of_their_pod(void **state)
{
    static const char expected[] = REGION_0 " 1073741824\n" REGION_1 " 2147483648\n";
    static const char *const containers[] = {POD_A "/sandbox", POD_A "/cri-containerd-x.scope"};
    struct fixture *f = *state;
    const struct gs_limit limits[] = {{REGION_0, GIB}, {REGION_1, 2 * GIB}};
    gs_limiter_show(f->limiter, pod_a, limits, 2); /* none yet */
    GS_FOR_EACH_ROW (container, containers)
        tree_mkdir(&f->tree, *container);
    tree_put(&f->tree, POD_A, "cgroup.procs", "");
    assert_int_equal(f->tree.writes + f->tree.enablings, 0);
    gs_limiter_show(f->limiter, pod_a, limits, 2);
    GS_FOR_EACH_ROW (container, containers)
        row_text(*container, tree_get(&f->tree, *container, "dmem.max"), expected);
    /* by the pod's own folder, whose limit is not touched */
    assert_string_equal(tree_get(&f->tree, POD_A, "cgroup.subtree_control"), "memory pids dmem\n");
    assert_string_equal(tree_get(&f->tree, POD_A, "dmem.max"), REGION_0 " max\n" REGION_1 " max\n");
    assert_int_equal(f->tree.enablings, 1);
    gs_limiter_show(f->limiter, pod_a, limits, 2);
    assert_int_equal(f->tree.writes, 4); /* nothing twice */
    gs_limiter_show(f->limiter, "b", limits, 2);
    gs_limiter_show(f->limiter, pod_a, limits, GS_LIMITS_MAX + 1);
    assert_int_equal(f->tree.writes, 4);
}

#define in_tree(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mount_has_a_name),
        cmocka_unit_test(whether_limits_can_be_written_is_tried),
        cmocka_unit_test(one_tree_that_can_be_written_is_enough),
        in_tree(dmem_is_passed_on_to_pods_that_lack_it),
        in_tree(dmem_that_cannot_be_passed_on_has_its_reason),
        in_tree(containers_are_shown_the_limits_of_their_pod),
    };
    return GS_RUN(tests);
}
