/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_tree.h"

#include "gpushare/limit/limiter.h"

#define UID_A "0a1b2c3d-0000-4000-8000-00000000000a"
#define AGAIN "/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_00000000000a.slice"
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

static void a_host_can_limit_or_says_why_not(void **state)
{
    static char endless[80 << 10] = "dmem";
    static const struct {
        const char *row;
        int check_error;
        const char *controllers, *capacity; /* NULL: no such file */
        enum gs_enforced host;
        enum gs_enforced gpu;
    } rows[] = {
        {"ready", 0, "cpu dmem\n", REGION_0 " 16\n", GS_ENFORCED_DMEM, GS_ENFORCED_DMEM},
        {"nothing there", ENOENT, "cpu dmem\n", REGION_0 " 16\n", GS_ENFORCED_NO_MOUNT,
         GS_ENFORCED_ABSENT},
        {"cgroup v1", EMEDIUMTYPE, "cpu dmem\n", REGION_0 " 16\n", GS_ENFORCED_NO_CGROUP2,
         GS_ENFORCED_ABSENT},
        {"a word that only begins so", 0, "dmemory cdmem\n", REGION_0 " 16\n",
         GS_ENFORCED_NO_CONTROLLER, GS_ENFORCED_ABSENT},
        {"unreadable", 0, NULL, REGION_0 " 16\n", GS_ENFORCED_NO_MOUNT, GS_ENFORCED_ABSENT},
        {"longer than is read", 0, endless, REGION_0 " 16\n", GS_ENFORCED_NO_MOUNT,
         GS_ENFORCED_ABSENT},
        {"no root file yet", 0, "dmem\n", NULL, GS_ENFORCED_DMEM, GS_ENFORCED_ABSENT},
        {"a file that is not the kernel's", 0, "dmem\n", "what\n", GS_ENFORCED_DMEM,
         GS_ENFORCED_ABSENT},
    };
    struct fixture *f = *state;
    memset(endless + 4, ' ', sizeof(endless) - 5);
    GS_FOR_EACH_ROW (r, rows) {
        char path[128];
        struct gs_region gpus[2];
        f->tree.check_error = r->check_error;
        tree_path(&f->tree, "", "cgroup.controllers", path, sizeof(path));
        unlink(path);
        tree_path(&f->tree, "", "dmem.capacity", path, sizeof(path));
        unlink(path);
        if (r->controllers)
            tree_put(&f->tree, "", "cgroup.controllers", r->controllers);
        if (r->capacity)
            tree_put(&f->tree, "", "dmem.capacity", r->capacity);
        enum gs_enforced host = gs_limiter_look(f->limiter, addresses, 2, gpus);
        row_equal(r->row, host, r->host);
        row_equal(r->row, gpus[0].state, r->gpu);
        row_equal(r->row, gpus[1].state, GS_ENFORCED_ABSENT);
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

/* Its processes may be in either, and what they use is that of both. */
static void a_pod_with_two_cgroups_is_limited_in_both_and_held_by_none(void **state)
{
    static const char *const regions[] = {REGION_0};
    struct fixture *f = *state;
    struct gs_region gpus[2];
    struct gs_limit_result result;
    const struct gs_limit limit = {REGION_0, GIB};
    uint64_t used = 77;
    tree_mkdirs(&f->tree, "/kubepods.slice", true);
    tree_put(&f->tree, "/kubepods.slice", "cgroup.subtree_control", "memory pids dmem\n");
    tree_mkdir(&f->tree, AGAIN);
    tree_put(&f->tree, AGAIN, "dmem.current", REGION_0 " 5\n");
    tree_put(&f->tree, POD_A, "dmem.current", REGION_0 " 7\n");
    gs_limiter_look(f->limiter, addresses, 2, gpus);
    assert_int_equal(gs_limiter_hold(f->limiter, pod_a, &limit, 1, &result), GS_LIMIT_TWICE);
    assert_int_equal(result.outcome, GS_LIMIT_TWICE);
    assert_non_null(strstr(tree_get(&f->tree, POD_A, "dmem.max"), REGION_0 " 1073741824\n"));
    assert_non_null(strstr(tree_get(&f->tree, AGAIN, "dmem.max"), REGION_0 " 1073741824\n"));
    assert_int_equal(gs_limiter_use(f->limiter, pod_a, regions, 1, &used), GS_LIMIT_HELD);
    assert_int_equal(used, 12);
    tree_rmdir(&f->tree, AGAIN);
    assert_int_equal(gs_limiter_hold(f->limiter, pod_a, &limit, 1, &result), GS_LIMIT_HELD);
}

/* Every row begins with a pod whose first GPU has no limit. */
static void a_limit_is_held_only_when_the_kernel_says_so(void **state)
{
    static const struct {
        const char *row;
        const char *uid;
        const char *region;
        uint64_t bytes;
        int put_error, put_errors;
        bool lies;
        enum gs_limit_outcome outcome, verified;
        bool written;
        int writes;
    } rows[] = {
        {"nothing allowed", UID_A, REGION_0, 0, 0, 0, false, GS_LIMIT_HELD, GS_LIMIT_HELD, true, 1},
        {"no limit wanted, none there", UID_A, REGION_0, GS_DMEM_NO_LIMIT, 0, 0, false,
         GS_LIMIT_HELD, GS_LIMIT_HELD, false, 0},
        {"a write that changes nothing", UID_A, REGION_0, GIB, 0, 0, true, GS_LIMIT_OTHER,
         GS_LIMIT_OTHER, true, 1},
        {"no UID", "../burstable", REGION_0, GIB, 0, 0, false, GS_LIMIT_NO_POD, GS_LIMIT_NO_POD,
         false, 0},
        {"a region that is gone", UID_A, "nvidia/0000:42:00/vidmem", GIB, 0, 0, false,
         GS_LIMIT_NO_REGION, GS_LIMIT_NO_REGION, false, 0},
        {"a region that goes during the write", UID_A, REGION_0, GIB, EINVAL, -1, false,
         GS_LIMIT_NO_REGION, GS_LIMIT_OTHER, false, 1},
        {"not permitted in a cgroup namespace", UID_A, REGION_0, GIB, EPERM, -1, false,
         GS_LIMIT_DENIED, GS_LIMIT_OTHER, false, 1},
        {"removed meanwhile", UID_A, REGION_0, GIB, ENODEV, -1, false, GS_LIMIT_NO_POD,
         GS_LIMIT_OTHER, false, 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        void *own = NULL;
        assert_int_equal(setup(&own), 0);
        struct fixture *f = own;
        const struct gs_limit limit = {r->region, r->bytes};
        struct gs_limit_result result = {.found_bytes = 77}, seen;
        f->tree.put_error = r->put_error;
        f->tree.put_errors = r->put_errors;
        f->tree.lies = r->lies;
        enum gs_limit_outcome outcome = gs_limiter_hold(f->limiter, r->uid, &limit, 1, &result);
        row_equal(r->row, outcome, r->outcome);
        row_equal(r->row, result.outcome, r->outcome);
        row_equal(r->row, result.written, r->written);
        row_equal(r->row, f->tree.writes, r->writes);
        row_equal(r->row, *gs_limit_outcome_reason(outcome) == '\0', outcome == GS_LIMIT_HELD);
        outcome = gs_limiter_verify(f->limiter, r->uid, &limit, 1, &seen);
        row_equal(r->row, outcome, r->verified);
        row_true(r->row, !seen.written);
        row_equal(r->row, f->tree.writes, r->writes);
        teardown(&own);
    }
}

static void a_lost_limit_is_written_again_and_only_that(void **state)
{
    struct fixture *f = *state;
    const struct gs_limit limits[] = {{REGION_0, GIB}, {REGION_1, 2 * GIB}};
    struct gs_limit_result results[2];
    assert_int_equal(gs_limiter_hold(f->limiter, pod_a, limits, 2, results), GS_LIMIT_HELD);
    /* what the driver does when it registers a region anew: it moves to the end, without limit */
    tree_put(&f->tree, POD_A, "dmem.max", REGION_1 " 2147483648\n" REGION_0 " max\n");
    assert_int_equal(gs_limiter_verify(f->limiter, pod_a, limits, 2, results), GS_LIMIT_OTHER);
    assert_true(results[0].found_bytes == GS_DMEM_NO_LIMIT);
    assert_int_equal(gs_limiter_hold(f->limiter, pod_a, limits, 2, results), GS_LIMIT_HELD);
    assert_true(results[0].written && !results[1].written);
    assert_int_equal(f->tree.writes, 3);
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

static void use_is_read_whether_there_is_a_limit_or_not(void **state)
{
    static const char *const regions[] = {REGION_1, "gone", REGION_0};
    struct fixture *f = *state;
    uint64_t bytes[] = {77, 77, 77};
    assert_int_equal(gs_limiter_use(f->limiter, "b", regions, 3, bytes), GS_LIMIT_NO_POD);
    assert_int_equal(bytes[0], 77);
    tree_put(&f->tree, POD_A, "dmem.current", REGION_0 " 4096\n" REGION_1 " 3221225472\n");
    assert_int_equal(gs_limiter_use(f->limiter, pod_a, regions, 3, bytes), GS_LIMIT_HELD);
    assert_true(bytes[0] == 3 * GIB && bytes[1] == 0 && bytes[2] == 4096);
    tree_put(&f->tree, POD_A, "dmem.current", "what\n");
    assert_int_equal(gs_limiter_use(f->limiter, pod_a, regions, 3, bytes), GS_LIMIT_FAILED);
}

static void more_limits_than_a_pod_can_have_are_refused(void **state)
{
    static struct gs_limit limits[GS_LIMITS_MAX + 1];
    static struct gs_limit_result results[GS_LIMITS_MAX + 1];
    struct fixture *f = *state;
    for (size_t i = 0; i <= GS_LIMITS_MAX; i++)
        limits[i] = (struct gs_limit){REGION_0, GIB};
    assert_int_equal(gs_limiter_hold(f->limiter, pod_a, limits, GS_LIMITS_MAX + 1, results),
                     GS_LIMIT_FAILED);
    assert_int_equal(results[GS_LIMITS_MAX].outcome, GS_LIMIT_FAILED);
    assert_int_equal(f->tree.writes, 0);
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
        in_tree(a_host_can_limit_or_says_why_not),
        cmocka_unit_test(whether_limits_can_be_written_is_tried),
        cmocka_unit_test(one_tree_that_can_be_written_is_enough),
        in_tree(a_pod_with_two_cgroups_is_limited_in_both_and_held_by_none),
        cmocka_unit_test(a_limit_is_held_only_when_the_kernel_says_so),
        in_tree(a_lost_limit_is_written_again_and_only_that),
        in_tree(dmem_is_passed_on_to_pods_that_lack_it),
        in_tree(dmem_that_cannot_be_passed_on_has_its_reason),
        in_tree(use_is_read_whether_there_is_a_limit_or_not),
        in_tree(containers_are_shown_the_limits_of_their_pod),
        in_tree(more_limits_than_a_pod_can_have_are_refused),
    };
    return GS_RUN(tests);
}
