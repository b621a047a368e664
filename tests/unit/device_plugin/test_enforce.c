/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin makes of the limiter's words, on a tree of plain files; tests/kernel has the
 * rest. */
#include <poll.h>

#include "allocate_rig.h"
#include "cgroup_tree.h"
#include "device_plugin/plugin.h"
#include "fake_limits.h"

#define POD "/kubepods/besteffort/podp"

static struct plugin plugin;

struct fixture {
    struct cgroup_tree tree;
    struct fake_limits driver;
    struct rig rig;
};

static void open_fixture(struct fixture *f, enum gs_enforce mode)
{
    tree_make(&f->tree);
    tree_mkdirs(&f->tree, "/kubepods/besteffort/other", true);
    rig_up(&f->rig);
    plugin = (struct plugin){.alloc = f->rig.alloc, .restored = true, .round.wake_ns = INT64_MAX};
    plugin.devices.have_gpus = true;
    plugin.settings.enforce = mode;
    plugin.devices.unit = GS_UNIT_GIB;
    plugin.devices.unit_state = UNIT_HELD;
    assert_int_equal(gs_loop_new(gs_clock_system(), &plugin.loop, NULL), 0);
    plugin.devices.set = (struct gs_gpu_set){
        .count = 1, .gpus = {{.idx = 0, .uuid = "GPU-a", .pci = "0000:41:00.0", .healthy = true}}};
    plugin.enforce.look_due = true;
    if (mode == GS_ENFORCE_OFF)
        return;
    f->driver = (struct fake_limits){.set_error = EOPNOTSUPP};
    const struct gs_limiter_options options = {
        .mount = f->tree.mount, .host = &f->tree.host, .driver = fake_limits_port(&f->driver)};
    assert_int_equal(gs_limiter_new(&options, &plugin.enforce.limiter, NULL), 0);
    const struct gs_keeper_options rules = {plugin.enforce.limiter, mode, false};
    plugin.enforce.keeper = gs_keeper_new(&rules);
    assert_non_null(plugin.enforce.keeper);
}

static void close_fixture(struct fixture *f)
{
    enforce_release(&plugin);
    gs_loop_free(plugin.loop);
    gs_allocator_free(f->rig.alloc);
    tree_rmdir(&f->tree, "");
}

static void look(void)
{
    enforce_round(&plugin);
    guards_round(&plugin);
}

static void each_gpu_has_the_word_that_is_true(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        const char *uuid;
        int may_put_error;
        enum gs_enforced enforced;
    } rows[] = {
        {"held", GS_ENFORCE_PREFERRED, "GPU-a", 0, GS_ENFORCED_DMEM},
        {"off", GS_ENFORCE_OFF, "GPU-a", 0, GS_ENFORCED_NOT_ON},
        {"observed", GS_ENFORCE_OBSERVE, "GPU-a", 0, GS_ENFORCED_NOT_ON},
        {"observed, and it could not be", GS_ENFORCE_OBSERVE, "GPU-a", EROFS,
         GS_ENFORCED_READ_ONLY},
        {"the only instance of a card", GS_ENFORCE_REQUIRED, "MIG-a", 0, GS_ENFORCED_MIG},
        {"not permitted", GS_ENFORCE_REQUIRED, "GPU-a", EACCES, GS_ENFORCED_DENIED},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        open_fixture(&f, r->mode);
        f.tree.may_put_error = r->may_put_error;
        snprintf(plugin.devices.set.gpus[0].uuid, GS_UUID_BYTES, "%s", r->uuid);
        look();
        row_equal(r->row, plugin.devices.set.gpus[0].enforced, r->enforced);
        row_true(r->row, plugin.node.due);
        plugin.node.due = false;
        look(); /* nothing changed: nothing is written */
        row_true(r->row, !plugin.node.due);
        close_fixture(&f);
    }
}

static void the_driver_limits_where_it_can_else_the_kernel(void **state)
{
    static const struct {
        const char *row;
        enum enforce_by by;
        int set_error;
        bool dmem;
        enum gs_enforced enforced;
    } rows[] = {
        {"both can", ENFORCE_BY_AUTO, 0, true, GS_ENFORCED_DRIVER},
        {"an old driver", ENFORCE_BY_AUTO, EOPNOTSUPP, true, GS_ENFORCED_DMEM},
        {"not permitted", ENFORCE_BY_AUTO, EPERM, true, GS_ENFORCED_DMEM},
        {"an old kernel", ENFORCE_BY_AUTO, 0, false, GS_ENFORCED_DRIVER},
        {"both old", ENFORCE_BY_AUTO, EOPNOTSUPP, false, GS_ENFORCED_NO_CONTROLLER},
        {"an old kernel, not permitted", ENFORCE_BY_AUTO, EPERM, false, GS_ENFORCED_NO_ADMIN},
        {"the driver alone", ENFORCE_BY_DRIVER, EOPNOTSUPP, true, GS_ENFORCED_NO_DRIVER},
        {"the kernel alone", ENFORCE_BY_DMEM, 0, true, GS_ENFORCED_DMEM},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        open_fixture(&f, GS_ENFORCE_PREFERRED);
        f.driver.set_error = r->set_error;
        plugin.settings.enforce_by = r->by;
        if (r->by != ENFORCE_BY_DMEM)
            plugin.enforce.driver = gs_nvml_limits_new("/nowhere");
        if (!r->dmem)
            tree_put(&f.tree, "", "cgroup.controllers", "cpu memory\n");
        look();
        row_equal(r->row, plugin.devices.set.gpus[0].enforced, r->enforced);
        row_equal(r->row, f.driver.sets > 0, r->by != ENFORCE_BY_DMEM);
        f.driver.sets = 0;
        plugin.node.upgrading = plugin.enforce.look_due = true; /* it is not touched any more */
        look();
        row_equal(r->row, f.driver.sets, 0);
        close_fixture(&f);
    }
}

static void observe_asks_the_kernel_whoever_limits(void **state)
{
    struct fixture f;
    open_fixture(&f, GS_ENFORCE_OBSERVE);
    plugin.settings.enforce_by = ENFORCE_BY_DRIVER;
    look();
    assert_int_equal(plugin.devices.set.gpus[0].enforced, GS_ENFORCED_NOT_ON);
    close_fixture(&f);
}

static void an_instance_has_its_word_from_who_is_in_it(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        const char *uuid;
        uint32_t pods;
        enum gs_enforced enforced;
        const char *hook;
    } rows[] = {
        {"nobody yet", GS_ENFORCE_PREFERRED, "MIG-a", 0, GS_ENFORCED_MIG},
        {"one alone", GS_ENFORCE_PREFERRED, "MIG-a", 1, GS_ENFORCED_MIG},
        {"one alone, limits off", GS_ENFORCE_OFF, "MIG-a", 1, GS_ENFORCED_MIG},
        {"two", GS_ENFORCE_PREFERRED, "MIG-a", 2, GS_ENFORCED_INSTANCE},
        {"two, limits off", GS_ENFORCE_OFF, "MIG-a", 2, GS_ENFORCED_INSTANCE},
        {"one alone on a card", GS_ENFORCE_OFF, "GPU-a", 1, GS_ENFORCED_NOT_ON},
        {"one alone, with a hook", GS_ENFORCE_OFF, "MIG-a", 1, GS_ENFORCED_MIG, "/l"},
        {"two, with a hook", GS_ENFORCE_OFF, "MIG-a", 2, GS_ENFORCED_HOOK, "/l"},
        {"a card with a hook", GS_ENFORCE_OFF, "GPU-a", 1, GS_ENFORCED_HOOK, "/l"},
        {"two on a card", GS_ENFORCE_PREFERRED, "GPU-a", 2, GS_ENFORCED_DMEM},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static const char *const names[] = {"p", "q"};
        struct fixture f;
        open_fixture(&f, r->mode);
        snprintf(plugin.devices.set.gpus[0].uuid, GS_UUID_BYTES, "%s", r->uuid);
        plugin.settings.hook_library = r->hook;
        plugin.hook.ready = true;
        for (uint32_t i = 0; i < r->pods; i++)
            give_pod(&f.rig, &(struct given_pod){names[i], {4}, 0});
        look();
        row_equal(r->row, plugin.devices.set.gpus[0].enforced, r->enforced);
        close_fixture(&f);
    }
}

/* REGION_0 is that of 41:00. */
static void one_present_gpu_has_an_address(void **state)
{
    static const struct {
        const char *row;
        struct {
            const char *uuid, *pci;
            bool gone;
            enum gs_enforced enforced;
        } gpus[3];
    } rows[] = {
        {"MIG was switched off",
         {{"MIG-1", "0000:41:00.0", true, GS_ENFORCED_MIG},
          {"MIG-2", "0000:41:00.0", true, GS_ENFORCED_MIG},
          {"GPU-a", "0000:41:00.0", false, GS_ENFORCED_DMEM}}},
        {"MIG was switched on",
         {{"GPU-a", "0000:41:00.0", true, GS_ENFORCED_ABSENT},
          {"MIG-1", "0000:41:00.0", false, GS_ENFORCED_MIG},
          {"MIG-2", "0000:41:00.0", false, GS_ENFORCED_MIG}}},
        {"a card was replaced",
         {{"GPU-a", "0000:41:00.0", true, GS_ENFORCED_ABSENT},
          {"GPU-b", "0000:c1:00.0", false, GS_ENFORCED_DMEM},
          {"GPU-z", "0000:41:00.0", false, GS_ENFORCED_DMEM}}},
        {"a card with one instance",
         {{"MIG-1", "0000:41:00.0", false, GS_ENFORCED_MIG},
          {"GPU-b", "0000:c1:00.0", false, GS_ENFORCED_DMEM},
          {"GPU-c", "0000:e1:00.0", true, GS_ENFORCED_ABSENT}}},
        {"two that are there",
         {{"GPU-a", "0000:41:00.0", false, GS_ENFORCED_SHARED},
          {"GPU-b", "0000:41:00.0", false, GS_ENFORCED_SHARED},
          {"GPU-c", "0000:c1:00.0", false, GS_ENFORCED_DMEM}}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        open_fixture(&f, GS_ENFORCE_REQUIRED);
        plugin.devices.set = (struct gs_gpu_set){.count = 3};
        for (uint32_t i = 0; i < 3; i++) {
            struct gs_gpu *gpu = &plugin.devices.set.gpus[i];
            gpu->idx = i;
            snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", r->gpus[i].uuid);
            snprintf(gpu->pci, sizeof(gpu->pci), "%s", r->gpus[i].pci);
            plugin.devices.set.gone |= r->gpus[i].gone ? GS_GPU_BIT(i) : 0;
        }
        look();
        for (uint32_t i = 0; i < 3; i++) {
            row_equal(r->row, plugin.devices.set.gpus[i].enforced, r->gpus[i].enforced);
            row_equal(r->row, plugin.enforce.gpus[i].state == GS_ENFORCED_DMEM,
                      r->gpus[i].enforced == GS_ENFORCED_DMEM);
        }
        close_fixture(&f);
    }
}

/* Whose descriptor is not read, the loop turns at full speed. */
static void the_pods_folders_are_read_with_and_without_gpus(void **state)
{
    static const struct {
        const char *row;
        bool have_gpus, stopping;
    } rows[] = {{"GPUs", true, false}, {"no GPU", false, false}, {"it ends", true, true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        struct gs_pod_tree tree;
        struct gs_error err = {0};
        open_fixture(&f, GS_ENFORCE_OFF);
        plugin.settings.enforce = GS_ENFORCE_OBSERVE;
        plugin.settings.cgroup_root = f.tree.mount;
        assert_int_equal(enforce_start(&plugin, &err), 0);
        plugin.enforce.look_due = false;
        plugin.enforce.look_ns = INT64_MAX;
        assert_int_equal(gs_pod_tree_learn(f.tree.mount, &tree, &err), 0);
        gs_cgroup_watch_follow(plugin.enforce.watch, &tree);
        plugin.devices.have_gpus = r->have_gpus;
        plugin.round.stopping = r->stopping;
        tree_mkdir(&f.tree, POD);
        assert_int_equal(gs_loop_step(plugin.loop, GS_NS_PER_S, &err), 0);
        look();
        struct pollfd fd = {.fd = gs_cgroup_watch_fd(plugin.enforce.watch), .events = POLLIN};
        row_equal(r->row, poll(&fd, 1, 0), 0);
        row_equal(r->row, plugin.enforce.look_due, !r->have_gpus || r->stopping);
        close_fixture(&f);
    }
}

/* How many Events for that reason. */
static int says(struct rig *rig, const char *reason)
{
    struct gs_allocator_write write;
    int found = 0;
    while (gs_allocator_next_write(rig->alloc, false, &write)) {
        found += write.event && strcmp(write.reason, reason) == 0;
        gs_allocator_write_done(rig->alloc, write.number, true);
    }
    return found;
}

/* A pod of 4 GiB: bound, given its GPU, its cgroup made and used, and a container to be started. */
static void a_pod_is_held_and_people_are_told(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        uint64_t used;
        int put_error;
        bool may_start, limited;
        const char *event; /* "": none */
        int events;        /* of the pod; and of its controller */
    } rows[] = {
        {"off", GS_ENFORCE_OFF, 5 * GIB, 0, true, false, "", 0},
        {"observe", GS_ENFORCE_OBSERVE, 5 * GIB, 0, true, false, "GpuMemoryWouldBeBlocked", 2},
        {"preferred", GS_ENFORCE_PREFERRED, 0, 0, true, true, "", 0},
        {"preferred, not permitted", GS_ENFORCE_PREFERRED, 0, EACCES, true, false,
         "GpuMemoryLimitNotSet", 1},
        {"required, not permitted", GS_ENFORCE_REQUIRED, 0, EACCES, false, false,
         "GpuMemoryLimitNotSet", 1},
        {"required, used before", GS_ENFORCE_REQUIRED, 5 * GIB, 0, false, true,
         "GpuMemoryLimitNotSet", 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        char texts[64][24], used[64];
        const char *ids[64];
        struct gs_error err = {0};
        open_fixture(&f, r->mode);
        look();
        give_pod(&f.rig, &(struct given_pod){"p", {4}, 0, .replica_set = "web-7f"});
        row_equal(r->row, allocate(&f.rig, 4, NULL, NULL), 0);
        says(&f.rig, "");
        f.tree.put_error = r->put_error;
        f.tree.put_errors = -1;
        tree_mkdir(&f.tree, POD);
        enforce_allocated(&plugin);
        snprintf(used, sizeof(used), REGION_0 " %llu\n", (unsigned long long)r->used);
        tree_put(&f.tree, POD, "dmem.current", used);
        look();
        row_equal(r->row,
                  strstr(tree_get(&f.tree, POD, "dmem.max"), REGION_0 " 4294967296\n") != NULL,
                  r->limited);
        make_ids(0, 4, texts, ids);
        const struct gs_start_request request = {.ids = ids, .id_count = 4};
        row_equal(r->row, guards_may_start(&plugin, &request, &err), r->may_start);
        row_equal(r->row, err.code, r->may_start ? GS_OK : GS_EBUSY);
        look();
        row_equal(r->row, says(&f.rig, r->event), r->events);
        close_fixture(&f);
    }
}

static bool wakes_soon(void)
{
    bool soon = plugin.round.wake_ns <= gs_loop_now_ns(plugin.loop) + GS_NS_PER_S;
    plugin.round.wake_ns = INT64_MAX;
    return soon;
}

/* A container's cgroup that nobody tells of. */
static void a_start_is_looked_at_again_soon(void **state)
{
    struct fixture f;
    char texts[64][24];
    const char *ids[64];
    struct gs_error err = {0};
    open_fixture(&f, GS_ENFORCE_PREFERRED);
    look();
    give_pod(&f.rig, &(struct given_pod){"p", {4}, 0, .qos = GS_QOS_BEST_EFFORT});
    assert_int_equal(allocate(&f.rig, 4, NULL, NULL), 0);
    tree_mkdir(&f.tree, POD);
    enforce_allocated(&plugin);
    look();
    assert_false(wakes_soon());
    make_ids(0, 4, texts, ids);
    const struct gs_start_request request = {.ids = ids, .id_count = 4};
    assert_true(guards_may_start(&plugin, &request, &err));
    assert_true(wakes_soon());
    tree_mkdir(&f.tree, POD "/c");
    for (int i = 0; i < 100 && !strstr(tree_get(&f.tree, POD "/c", "dmem.max"), " 4294967296\n");
         i++) {
        usleep(20000);
        look();
        assert_true(wakes_soon());
    }
    assert_non_null(strstr(tree_get(&f.tree, POD "/c", "dmem.max"), REGION_0 " 4294967296\n"));
    close_fixture(&f);
}

/* It is looked for anew, too: a kubelet that was changed has made its folders since. */
static void a_start_without_a_cgroup_says_where_it_was_looked_for(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce mode;
        const char *made; /* after the last look */
        bool may_start, told, twice;
    } rows[] = {
        {"preferred", GS_ENFORCE_PREFERRED, NULL, true, true},
        {"required", GS_ENFORCE_REQUIRED, NULL, false, true},
        {"required, a limited pod has the same ids", GS_ENFORCE_REQUIRED, NULL, false, true, true},
        {"required, in a new tree", GS_ENFORCE_REQUIRED, "/kubepods.slice/kubepods-podp.slice",
         true, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        uint64_t key;
        char texts[64][24];
        const char *ids[64];
        struct gs_error err = {0};
        open_fixture(&f, r->mode);
        look();
        give_pod(&f.rig, &(struct given_pod){"p", {4}, 0});
        row_equal(r->row, allocate(&f.rig, 4, &key, NULL), 0);
        give_pod(&f.rig, &(struct given_pod){r->twice ? "q" : "p", {4}, 0});
        const struct gs_given given[] = {{"p", key, 4, 1}, {"q", key, 4, 1}};
        gs_allocator_observe(f.rig.alloc, given, 1 + r->twice, false);
        tree_mkdirs(&f.tree, "/kubepods/besteffort/podq", true);
        enforce_allocated(&plugin);
        look();
        says(&f.rig, "");
        if (r->made)
            tree_mkdirs(&f.tree, r->made, true);
        make_ids(0, 4, texts, ids);
        const struct gs_start_request request = {.ids = ids, .id_count = 4};
        row_equal(r->row, guards_may_start(&plugin, &request, &err), r->may_start);
        row_equal(r->row,
                  strstr(err.msg, "no cgroup on this node (searched /tmp/") != NULL &&
                      strstr(err.msg, "/kubepods)") != NULL,
                  !r->may_start);
        look();
        row_equal(r->row, plugin.devices.set.gpus[0].enforced,
                  r->told ? GS_ENFORCED_NOT_HELD : GS_ENFORCED_DMEM);
        row_equal(r->row, says(&f.rig, "GpuMemoryLimitNotSet"), r->told);
        close_fixture(&f);
    }
}

/* A pod of two containers with 3 and 1 GiB. */
static void every_container_has_its_overhead_beside_the_share(void **state)
{
    static const struct {
        const char *row;
        uint32_t overhead_mib;
        uint64_t used;
        const char *limit;
        bool may_start;
        enum gs_unit unit;
    } rows[] = {
        {"none", 0, 0, REGION_0 " 4294967296\n", true},
        {"units of a MiB", 0, 0, REGION_0 " 4194304\n", true, GS_UNIT_MIB},
        {"units of 256 MiB", 1, 0, REGION_0 " 1075838976\n", true, GS_UNIT_256MIB},
        {"800 MiB each", 800, 0, REGION_0 " 5972688896\n", true},
        {"used before, within the overhead", 800, 5 * GIB, REGION_0 " 5972688896\n", true},
        {"used before, above it", 800, 6 * GIB, REGION_0 " 5972688896\n", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f;
        char texts[64][24], used[64];
        const char *ids[64];
        struct gs_error err = {0};
        open_fixture(&f, GS_ENFORCE_REQUIRED);
        plugin.settings.overhead_mib = r->overhead_mib;
        plugin.devices.unit = r->unit ? r->unit : GS_UNIT_GIB;
        look();
        give_pod(&f.rig, &(struct given_pod){"p", {3, 1}, 0, .qos = GS_QOS_BEST_EFFORT});
        row_equal(r->row, allocate(&f.rig, 3, NULL, NULL), 0);
        tree_mkdir(&f.tree, POD);
        enforce_allocated(&plugin);
        snprintf(used, sizeof(used), REGION_0 " %llu\n", (unsigned long long)r->used);
        tree_put(&f.tree, POD, "dmem.current", used);
        look();
        row_true(r->row, strstr(tree_get(&f.tree, POD, "dmem.max"), r->limit) != NULL);
        make_ids(0, 3, texts, ids);
        const struct gs_start_request request = {.ids = ids, .id_count = 3};
        row_equal(r->row, guards_may_start(&plugin, &request, &err), r->may_start);
        close_fixture(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gpu_has_the_word_that_is_true),
        cmocka_unit_test(the_driver_limits_where_it_can_else_the_kernel),
        cmocka_unit_test(observe_asks_the_kernel_whoever_limits),
        cmocka_unit_test(an_instance_has_its_word_from_who_is_in_it),
        cmocka_unit_test(one_present_gpu_has_an_address),
        cmocka_unit_test(the_pods_folders_are_read_with_and_without_gpus),
        cmocka_unit_test(a_pod_is_held_and_people_are_told),
        cmocka_unit_test(a_start_is_looked_at_again_soon),
        cmocka_unit_test(a_start_without_a_cgroup_says_where_it_was_looked_for),
        cmocka_unit_test(every_container_has_its_overhead_beside_the_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
