/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_tree.h"

/* On files that are no cgroups; tests/kernel has the real ones. */
static void a_file_system_that_is_no_cgroup_says_so(void **state)
{
    const struct gs_limit_host *host = &gs_limit_host_kernel;
    assert_int_equal(host->check(host->ctx, "/proc"), EMEDIUMTYPE);
    assert_int_equal(host->check(host->ctx, "/nonexistent"), ENOENT);
}

static void a_write_is_asked_for_without_being_made(void **state)
{
    const struct gs_limit_host *host = &gs_limit_host_kernel;
    struct cgroup_tree tree;
    char path[128];
    tree_make(&tree);
    tree_path(&tree, "", "dmem.max", path, sizeof(path));
    assert_int_equal(host->may_put(host->ctx, path), ENOENT);
    assert_false(tree_has(&tree, "", "dmem.max"));
    put_text(path, "a 1\n");
    assert_int_equal(host->may_put(host->ctx, path), 0);
    assert_string_equal(tree_get(&tree, "", "dmem.max"), "a 1\n");
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(host->may_put(host->ctx, path), geteuid() == 0 ? 0 : EACCES);
    tree_rmdir(&tree, "");
}

static void a_text_is_written_whole_into_what_is_there(void **state)
{
    const struct gs_limit_host *host = &gs_limit_host_kernel;
    struct cgroup_tree tree;
    char path[128];
    tree_make(&tree);
    tree_path(&tree, "", "dmem.max", path, sizeof(path));
    assert_int_equal(host->put(host->ctx, path, "a 1\n", 4), ENOENT);
    assert_false(tree_has(&tree, "", "dmem.max")); /* never made */
    put_text(path, "");
    assert_int_equal(host->put(host->ctx, path, "a 1\n", 4), 0);
    assert_string_equal(tree_get(&tree, "", "dmem.max"), "a 1\n");
    assert_int_equal(host->put(host->ctx, tree.mount, "a 1\n", 4), EISDIR);
    assert_int_equal(host->put(host->ctx, "/dev/full", "a 1\n", 4), ENOSPC);
    tree_rmdir(&tree, "");
}

/* The kernel would reclaim memory first; a FIFO that nobody reads stands for that. */
static void a_write_waits_for_nobody(void **state)
{
    const struct gs_limit_host *host = &gs_limit_host_kernel;
    struct cgroup_tree tree;
    char path[128];
    tree_make(&tree);
    tree_path(&tree, "", "fifo", path, sizeof(path));
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_int_equal(host->put(host->ctx, path, "a 1\n", 4), ENXIO);
    alarm(0);
    tree_rmdir(&tree, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_system_that_is_no_cgroup_says_so),
        cmocka_unit_test(a_write_is_asked_for_without_being_made),
        cmocka_unit_test(a_write_waits_for_nobody),
        cmocka_unit_test(a_text_is_written_whole_into_what_is_there),
    };
    return GS_RUN(tests);
}
