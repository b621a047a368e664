/* SPDX-License-Identifier: Apache-2.0 */
/* Limits by the driver, on a tree without the kernel's controller. */
#include "cgroup_tree.h"
#include "fake_limits.h"

#include "gpushare/limit/limiter.h"

#define UID_A "0a1b2c3d-0000-4000-8000-00000000000a"
#define POD_A "/kubepods/burstable/pod" UID_A
#define APP   POD_A "/app"
#define AGAIN "/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_00000000000a.slice"

static const char *const uuids[] = {"GPU-a", NULL, "GPU-c"};
static const char *const others[] = {"GPU-d", NULL, "GPU-c"};
static const struct gs_limit two[] = {{"GPU-a", GIB}, {"GPU-c", 2 * GIB}};

struct fixture {
    struct cgroup_tree tree;
    struct fake_limits driver;
    struct gs_limiter *limiter;
    struct gs_region gpus[3];
};

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.limiter = NULL};
    tree_make(&f->tree);
    tree_mkdirs(&f->tree, APP "/container", false);
    const struct gs_limiter_options options = {
        .mount = f->tree.mount, .host = &f->tree.host, .driver = fake_limits_port(&f->driver)};
    assert_int_equal(gs_limiter_new(&options, &f->limiter, NULL), 0);
}

static void close_fixture(struct fixture *f)
{
    gs_limiter_free(f->limiter);
    tree_rmdir(&f->tree, "");
}

static enum gs_enforced look(struct fixture *f)
{
    return gs_limiter_look_at_driver(f->limiter, uuids, 3, f->gpus);
}

static uint64_t limit_at(struct fixture *f, const char *gpu, const char *folder)
{
    char path[512];
    tree_path(&f->tree, folder, NULL, path, sizeof(path));
    const struct fake_limit *one = fake_limit_of(&f->driver, gpu, path);
    return one ? one->bytes : 0;
}

static void a_driver_that_limits_is_found_by_trying(void **state)
{
    static const struct {
        const char *row;
        int set_error, get_error, check_error;
        bool forgets, no_pods;
        enum gs_enforced host;
        const char *unable;
    } rows[] = {
        {"it can", 0, 0, 0, false, false, GS_ENFORCED_DRIVER},
        {"one card cannot", 0, 0, 0, false, false, GS_ENFORCED_DRIVER, "GPU-c"},
        {"too old, or a card that cannot", EOPNOTSUPP, 0, 0, false, false, GS_ENFORCED_NO_DRIVER},
        {"no capability", EPERM, 0, 0, false, false, GS_ENFORCED_NO_ADMIN},
        {"it only says so", 0, 0, 0, true, false, GS_ENFORCED_NO_DRIVER},
        {"nothing can be read back", 0, EIO, 0, false, false, GS_ENFORCED_NO_DRIVER},
        {"cgroup v1", 0, 0, EMEDIUMTYPE, false, false, GS_ENFORCED_NO_CGROUP2},
        {"no kubelet yet", 0, 0, 0, false, true, GS_ENFORCED_NO_PODS},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        char left[512];
        open_fixture(&f);
        f.driver.set_error = r->set_error;
        f.driver.get_error = r->get_error;
        f.driver.forgets = r->forgets;
        f.driver.unable = r->unable;
        f.tree.check_error = r->check_error;
        if (r->no_pods)
            tree_rmdir(&f.tree, "/kubepods");
        tree_path(&f.tree, "/kubepods/gpushare-limit-test", NULL, left, sizeof(left));
        if (r->unable) /* and a plugin was killed while it tried */
            assert_int_equal(mkdir(left, 0755), 0);
        row_equal(r->row, look(&f), r->host);
        row_true(r->row, !tree_has(&f.tree, "/kubepods", "gpushare-limit-test"));
        if (r->host == GS_ENFORCED_DRIVER) {
            row_equal(r->row, f.gpus[0].state, GS_ENFORCED_DRIVER);
            row_text(r->row, f.gpus[2].name, "GPU-c");
            row_equal(r->row, f.gpus[1].state, GS_ENFORCED_ABSENT);
            row_equal(r->row, limit_at(&f, "GPU-a", "/kubepods/gpushare-limit-test"),
                      GS_DMEM_NO_LIMIT);
            const int sets = f.driver.sets;
            row_equal(r->row, look(&f), GS_ENFORCED_DRIVER);
            row_equal(r->row, f.driver.sets,
                      sets + (r->unable != NULL)); /* what works is not tried again */
            f.driver.unable = "GPU-d";             /* which is where another was */
            row_equal(r->row, gs_limiter_look_at_driver(f.limiter, others, 3, f.gpus),
                      GS_ENFORCED_DRIVER);
            row_equal(r->row, f.gpus[0].state, GS_ENFORCED_NO_DRIVER);
            row_equal(r->row, f.gpus[2].state, GS_ENFORCED_DRIVER);
        }
        close_fixture(&f);
    }
}

static void a_limit_that_cannot_be_set_has_its_reason(void **state)
{
    static const struct {
        const char *row;
        int set_error;
        uint64_t old, used; /* old: 0: none */
        enum gs_limit_outcome outcome;
        const char *unable;
    } rows[] = {
        {"more is in use", 0, 4 * GIB, 3 * GIB, GS_LIMIT_OTHER},
        {"more is in use, without a limit", 0, 0, 3 * GIB, GS_LIMIT_FAILED},
        {"no capability", EPERM, 0, 0, GS_LIMIT_DENIED},
        {"the controller is off there", ENOENT, 0, 0, GS_LIMIT_NO_FILES},
        {"else", EIO, 0, 0, GS_LIMIT_FAILED},
        {"one of two", 0, 0, 0, GS_LIMIT_FAILED, "GPU-c"},
        {"one, and of the other more is in use", 0, 4 * GIB, 3 * GIB, GS_LIMIT_FAILED, "GPU-a"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_limit old[] = {{"GPU-a", r->old}, {"GPU-c", r->old}};
        struct gs_limit_result results[2];
        struct fixture f;
        open_fixture(&f);
        look(&f);
        if (r->old)
            gs_limiter_hold(f.limiter, UID_A, old, 2, results);
        f.driver.set_error = r->set_error;
        f.driver.used = r->used;
        f.driver.unable = r->unable;
        row_equal(r->row, gs_limiter_hold(f.limiter, UID_A, two, 2, results), r->outcome);
        close_fixture(&f);
    }
}

static void a_containers_own_limit_is_no_way_around_the_pods(void **state)
{
    static const struct {
        const char *row;
        uint64_t own;
        bool nests; /* the kernel's controller is there */
        enum gs_limit_outcome first;
        uint64_t left;
        bool foreign; /* a GPU on which its pod has nothing */
    } rows[] = {
        {"above", 8 * GIB, false, GS_LIMIT_CONTAINER, GIB - 4096}, /* the pod's would be nobody's */
        {"on a GPU of others", 8 * GIB, false, GS_LIMIT_CONTAINER, 0, true},
        {"none at all", GS_DMEM_NO_LIMIT, false, GS_LIMIT_CONTAINER, GIB - 4096},
        {"below", GIB / 2, false, GS_LIMIT_HELD, GIB / 2},
        {"above, and the kernel nests them", 8 * GIB, true, GS_LIMIT_HELD, 8 * GIB},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_limit limit = {"GPU-a", r->foreign ? 0 : GIB};
        struct gs_limit_result result;
        char path[512];
        struct fixture f;
        open_fixture(&f);
        look(&f);
        gs_limiter_hold(f.limiter, UID_A, &limit, 1, &result);
        tree_path(&f.tree, APP, NULL, path, sizeof(path));
        fake_limits_set(&f.driver, "GPU-a", path, r->own);
        fake_limit_of(&f.driver, "GPU-a", path)->used = 7;
        tree_path(&f.tree, POD_A "/beside", NULL, path, sizeof(path));
        tree_mkdirs(&f.tree, POD_A "/beside", false);
        if (r->nests)
            tree_put(&f.tree, POD_A "/beside", "dmem.max", "");
        fake_limits_set(&f.driver, "GPU-a", path, r->own);
        fake_limit_of(&f.driver, "GPU-a", path)->used = 5;
        for (int deep = 0; r->nests && deep < 2; deep++)
            tree_put(&f.tree, deep ? APP "/container" : APP, "dmem.max", "");
        row_equal(r->row, gs_limiter_hold(f.limiter, UID_A, &limit, 1, &result), r->first);
        row_equal(r->row, limit_at(&f, "GPU-a", APP), r->left);
        row_equal(r->row, result.apart_bytes, r->nests ? 0 : 12); /* crun's is the same again */
        row_equal(r->row, gs_limiter_hold(f.limiter, UID_A, &limit, 1, &result), GS_LIMIT_HELD);
        gs_limiter_show(f.limiter, UID_A, &limit,
                        1); /* several containers would have more together */
        row_true(r->row, limit_at(&f, "GPU-a", APP) <= r->left);
        close_fixture(&f);
    }
}

/* The driver is asked for the one after the other, and programs go on and end meanwhile. */
static void a_container_that_changes_meanwhile_has_no_limit_of_its_own(void **state)
{
    char path[512];
    struct gs_limit_result result;
    struct fixture f;
    open_fixture(&f);
    look(&f);
    gs_limiter_hold(f.limiter, UID_A, two, 1, &result);
    f.driver.grows = 5;
    assert_int_equal(gs_limiter_hold(f.limiter, UID_A, two, 1, &result), GS_LIMIT_HELD);
    assert_int_equal(result.apart_bytes, 0);
    tree_path(&f.tree, APP, NULL, path, sizeof(path));
    f.driver.odd = path;
    f.driver.odd_error = ENOENT; /* it has ended */
    assert_int_equal(gs_limiter_hold(f.limiter, UID_A, two, 1, &result), GS_LIMIT_HELD);
    f.driver.odd_error = EIO;
    assert_int_equal(gs_limiter_hold(f.limiter, UID_A, two, 1, &result), GS_LIMIT_FAILED);
    close_fixture(&f);
}

static void use_is_known_where_the_driver_counts(void **state)
{
    static const char *const gpus[] = {"GPU-a", "GPU-c"};
    struct gs_limit_result results[2];
    uint64_t used[2] = {7, 7};
    struct fixture f;
    open_fixture(&f);
    look(&f);
    f.driver.used = 5;
    assert_int_equal(gs_limiter_use(f.limiter, UID_A, gpus, 2, used), GS_LIMIT_NO_FILES);
    assert_int_equal(used[0], 7);
    gs_limiter_hold(f.limiter, UID_A, two, 2, results);
    assert_int_equal(gs_limiter_use(f.limiter, UID_A, gpus, 2, used), GS_LIMIT_HELD);
    assert_int_equal(used[1], 5);
    GS_EACH_OF (one, f.driver.all, f.driver.count)
        one->bytes = UINT64_MAX; /* where the kernel counts, it does without a limit */
    used[0] = 7;
    assert_int_equal(gs_limiter_use(f.limiter, UID_A, gpus, 2, used), GS_LIMIT_HELD);
    assert_int_equal(used[0], 5);
    assert_int_equal(gs_limiter_peak(f.limiter, UID_A, gpus, 2, used), GS_LIMIT_NO_FILES);
    tree_mkdirs(&f.tree, AGAIN, false);
    look(&f);
    assert_int_equal(gs_limiter_hold(f.limiter, UID_A, two, 2, results), GS_LIMIT_TWICE);
    assert_int_equal(gs_limiter_use(f.limiter, UID_A, gpus, 2, used), GS_LIMIT_HELD);
    assert_int_equal(used[0], 10); /* of both */
    f.driver.get_error = EIO;
    assert_int_equal(gs_limiter_use(f.limiter, UID_A, gpus, 2, used), GS_LIMIT_FAILED);
    close_fixture(&f);
}

static void the_kernels_files_are_used_after_a_look_at_them(void **state)
{
    static const char *const addresses[] = {"00000000:41:00.0"};
    struct gs_limit_result result;
    struct fixture f;
    open_fixture(&f);
    look(&f);
    gs_limiter_look(f.limiter, addresses, 1, f.gpus);
    assert_int_not_equal(gs_limiter_hold(f.limiter, UID_A, two, 1, &result), GS_LIMIT_HELD);
    assert_int_equal(limit_at(&f, "GPU-a", POD_A), 0);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_that_limits_is_found_by_trying),
        cmocka_unit_test(a_limit_that_cannot_be_set_has_its_reason),
        cmocka_unit_test(a_containers_own_limit_is_no_way_around_the_pods),
        cmocka_unit_test(a_container_that_changes_meanwhile_has_no_limit_of_its_own),
        cmocka_unit_test(use_is_known_where_the_driver_counts),
        cmocka_unit_test(the_kernels_files_are_used_after_a_look_at_them),
    };
    return GS_RUN(tests);
}
