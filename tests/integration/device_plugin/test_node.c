/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin makes of a node: its unit, and what is read before anything is written. */
#include "node_rig.h"

static const struct gs_gpu card_a = {.idx = 0,
                                     .uuid = "GPU-a",
                                     .mem_mib = 16384,
                                     .pci = "0000:41:00.0",
                                     .healthy = true,
                                     .schedulable = true,
                                     .numa = -1};
static const struct gs_gpu card_b = {.idx = 1,
                                     .uuid = "GPU-b",
                                     .mem_mib = 16384,
                                     .pci = "0000:c1:00.0",
                                     .healthy = true,
                                     .schedulable = true,
                                     .numa = -1};

static struct gs_gpu at(struct gs_gpu gpu, uint32_t idx)
{
    gpu.idx = idx;
    return gpu;
}

static void restart(struct node *node)
{
    node_kill(node);
    node_start(node);
    node_run(node, 15);
}

static void expect_unit(const struct node *node, const char *unit)
{
    char words[32];
    snprintf(words, sizeof(words), "\"unit\":\"%s\"", unit);
    if (!strstr(node->inventory, words))
        fail_msg("%s is not the unit of %s", unit, node->inventory);
}

static void expect_limit(struct node *node, const struct node_pod *pod, const char *region,
                         uint64_t mib)
{
    uint64_t bytes = node_limit(node, pod, region);
    if (bytes != mib << 20)
        fail_msg("the limit of %s is %llu bytes, not %llu MiB", pod->name,
                 (unsigned long long)bytes, (unsigned long long)mib);
}

static void a_pod_is_given_what_it_was_bound_to(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 8, 1);
    assert_string_equal(node_env(p, "NVIDIA_VISIBLE_DEVICES"), "GPU-b");
    expect_limit(&node, p, REGION_1, 8192);
    assert_true(node_limit(&node, p, REGION_0) == UINT64_MAX);
    restart(&node);
    expect_limit(&node, p, REGION_1, 8192);
    node_free(&node);
}

/* A card that is gone has no say in the label; where all are gone nobody is kept to anything. */
static void without_a_card_the_node_has_no_label(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 8, 1);
    node_run(&node, 15);
    assert_string_equal(node.label, "dmem");
    node_set_gpus(&node, &card_b, 1);
    node_run(&node, 15);
    assert_string_equal(node.label, "dmem");
    node_set_gpus(&node, NULL, 0);
    node_run(&node, 15);
    assert_string_equal(node.label, "");
    node_set_gpus(&node, &card_b, 1);
    node_run(&node, 75);
    assert_string_equal(node.label, "dmem");
    expect_limit(&node, p, REGION_1, 8192);
    node_free(&node);
}

/* The plugin was restarted between its bind and its Allocate: it has nothing, and needs no cgroup.
 */
static void a_pod_that_was_not_taken_in_yet_says_nothing(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    node_pod(&node, "p", 8, 1);
    struct node_pod *bound = node_bind(&node, "bound", 4, GS_GPU_BIT(1), 0);
    restart(&node);
    node_run(&node, 75);
    assert_string_equal(node.label, "dmem");
    assert_null(strstr(node.inventory, "enforcedReason"));
    assert_true(node_admit(&node, bound) && node_starts(&node, bound));
    expect_limit(&node, bound, REGION_1, 4096);
    node_free(&node);
}

/* What a driver keeps for itself is nobody's to request. */
static void a_reserve_is_taken_off_every_gpu(void **state)
{
    static const struct {
        const char *row;
        uint32_t reserve_mib, overhead_mib, slots, devices;
    } rows[] = {
        {"none", 0, 0, 0, 32},
        {"less than a unit takes a whole one", 1, 0, 0, 30},
        {"a unit", 1024, 0, 0, 30},
        {"more than a unit", 1025, 0, 0, 28},
        {"beside what containers have beside their requests", 600, 400, 2, 28},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        node.settings.gpu_reserve_mib = r->reserve_mib;
        node.settings.overhead_mib = r->overhead_mib;
        node.settings.overhead_slots = r->slots;
        node_start(&node);
        row_equal(r->row, node.device_count, r->devices);
        node_free(&node);
    }
}

/* A pod that has a whole card when a part of each is kept back: it is larger than any GPU offers.
 */
static void overhead_changes_no_unit(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *big = node_pod(&node, "big", 16, 0), *idle = node_pod(&node, "idle", 8, 1);
    node.settings.overhead_mib = 800;
    node.settings.overhead_slots = 4;
    restart(&node);
    expect_unit(&node, "GiB");
    expect_limit(&node, big, REGION_0, 16384 + 800);
    expect_limit(&node, idle, REGION_1, 8192 + 800);
    assert_true(node_told(&node, "GpuCapacityReduced", "ns/big"));
    assert_false(node_told(&node, "GpuCapacityReduced", "ns/idle"));
    uint32_t told = 0;
    for (uint32_t i = 0; i < node.event_count; i++)
        told += strstr(node.events[i], "GpuCapacityReduced") != NULL;
    assert_int_equal(told, 1);
    assert_int_equal(node.device_count, 24 + 4); /* GPU-b's free ones are there */
    struct node_pod *next = node_bind(&node, "next", 1, GS_GPU_BIT(0), 0);
    assert_true(node_admit(&node, next)); /* where there is room */
    assert_string_equal(node_env(next, "NVIDIA_VISIBLE_DEVICES"), "GPU-b");
    node.settings.overhead_mib = node.settings.overhead_slots = 0;
    restart(&node);
    expect_unit(&node, "GiB");
    expect_limit(&node, big, REGION_0, 16384);
    expect_limit(&node, idle, REGION_1, 8192);
    node_free(&node);
}

static void who_was_not_placed_goes_to_no_cordoned_gpu(void **state)
{
    struct node node;
    node_make(&node);
    node.cordon = "0";
    node_start(&node);
    node_run(&node, 15);
    struct node_pod *by_hand = node_bind(&node, "by-hand", 4, 0, 0);
    assert_true(node_admit(&node, by_hand));
    assert_string_equal(node_env(by_hand, "NVIDIA_VISIBLE_DEVICES"), "GPU-b");
    expect_limit(&node, by_hand, REGION_1, 4096); /* before a container starts */
    node_free(&node);
}

/* A change of the unit waits, as it must; then the only card is away for a moment. */
static void the_only_card_lost_changes_no_unit(void **state)
{
    struct node node;
    node_make(&node);
    node_set_gpus(&node, &card_a, 1);
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 8, 0);
    node.settings.unit = GS_UNIT_MIB;
    restart(&node);
    expect_unit(&node, "GiB");
    node_set_gpus(&node, NULL, 0);
    node_run(&node, 15);
    node_set_gpus(&node, &card_a, 1);
    node_run(&node, 15);
    expect_unit(&node, "GiB");
    expect_limit(&node, p, REGION_0, 8192);
    assert_true(node_told(&node, "GpuMemoryUnitChangePending", "ns/p"));
    node_end(&node, p);
    node_run(&node, 15);
    expect_unit(&node, "MiB");
    node_free(&node);
}

/* The owner takes gpu-count off his pod of two GPUs, or writes one on a pod of one: while it runs,
 * while no plugin is there, or between its bind and its Allocate. */
static void a_tenants_edit_changes_nothing(void **state)
{
    enum moment { AWAY, RUNS, BOUND };
    static const char *const regions[] = {REGION_0, REGION_1};
    static const struct {
        const char *row;
        enum moment moment;
        uint32_t units, count, edited;
        gs_gpu_mask gpus;
        const char *visible;
        uint32_t each; /* units */
    } rows[] = {
        {"taken off while the plugin is away", AWAY, 24, 2, 0, 3, "GPU-a,GPU-b", 12},
        {"raised while the plugin is away", AWAY, 16, 0, 2, 1, "GPU-a", 16},
        {"taken off while it runs", RUNS, 24, 2, 0, 3, "GPU-a,GPU-b", 12},
        {"raised while it runs", RUNS, 8, 0, 2, 1, "GPU-a", 8},
        {"taken off once it is bound", BOUND, 24, 2, 0, 3, "GPU-a,GPU-b", 12},
        {"raised once it is bound", BOUND, 8, 0, 2, 1, "GPU-a", 8},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        node_start(&node);
        struct node_pod *victim = node_pod(&node, "victim", 4, 1);
        struct node_pod *tenant = node_bind(&node, "tenant", r->units, r->gpus, r->count);
        if (r->moment == BOUND) {
            tenant->count = r->edited;
            node_list_pods(&node);
        }
        row_true(r->row, node_admit(&node, tenant) && node_starts(&node, tenant));
        tenant->running = true;
        node_list_pods(&node);
        node_run(&node, 1);
        if (r->moment == AWAY)
            node_kill(&node);
        tenant->count = r->edited;
        node_list_pods(&node);
        if (r->moment == RUNS)
            node_run(&node, 15);
        if (r->moment != AWAY)
            node_kill(&node);
        /* and the kernel has forgotten */
        tree_put(&node.tree, "/kubepods/besteffort/podtenant", "dmem.max",
                 REGION_0 " max\n" REGION_1 " max\n");
        node_start(&node);
        node_run(&node, 15);
        expect_unit(&node, "GiB");
        row_true(r->row, strcmp(node_env(tenant, "NVIDIA_VISIBLE_DEVICES"), r->visible) == 0);
        expect_limit(&node, victim, REGION_1, 4096);
        for (uint32_t gpu = 0; gpu < 2; gpu++) {
            if (r->gpus & GS_GPU_BIT(gpu))
                expect_limit(&node, tenant, regions[gpu], (uint64_t)r->each << 10);
            else
                row_true(r->row, node_limit(&node, tenant, regions[gpu]) == UINT64_MAX);
        }
        struct gs_allocator_stats stats;
        gs_allocator_stats(plugin.alloc, &stats);
        row_equal(r->row, stats.used_units[0], r->each);
        row_equal(r->row, stats.used_units[1], 4 + (r->gpus & 2 ? r->each : 0));
        row_true(r->row, !node_told(&node, "GpuCapacityReduced", ""));
        node_free(&node);
    }
}

/* A card fell off before the start, so the driver counts anew, and the node's record is not to be
 * had: the other card's limit must not be written, nor 0 for the pod's own. */
static void nothing_is_written_before_the_node_was_read(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 16, 1);
    node_kill(&node);
    node.settings.deny_foreign_gpus = true;
    node.tree.writes = 0;
    node.node_away = true;
    node_set_gpus(&node, (struct gs_gpu[]){at(card_b, 0)}, 1);
    node_start(&node);
    node_run(&node, 20);
    expect_limit(&node, p, REGION_1, 16384);
    assert_true(node_limit(&node, p, REGION_0) == UINT64_MAX);
    node.node_away = false;
    node_run(&node, 40);
    expect_limit(&node, p, REGION_1, 16384);
    assert_false(plugin.round.stopping);
    assert_int_equal(strncmp(node.moved, "{}", 2), 0);
    node_free(&node);
}

/* ---- no record ---- */

static void remove_file(const struct node *node)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/gpushare-aliyun.com/record.json", node->dir);
    unlink(path);
}

static void put_file(const struct node *node, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/gpushare-aliyun.com/record.json", node->dir);
    put_text(path, text);
}

/* What is left of a node that has a pod of 8 GiB, and the next start is told MiB. */
static void a_pod_keeps_its_unit_while_anything_tells_it(void **state)
{
    static const struct {
        const char *row;
        bool no_inventory, no_file, no_checkpoint;
        const char *file; /* in place of the file */
        const char *unit;
        bool doubted;
        const char *others;
    } rows[] = {
        {"all is there", false, false, false, NULL, "GiB", false},
        {"the annotation was deleted", true, false, false, NULL, "GiB", false},
        {"the file was deleted", false, true, false, NULL, "GiB", false},
        {"the file is torn", false, false, false, "{\"v\":1,\"unit\":\"Mi", "GiB", false},
        {"another node's file", false, false, false,
         "{\"v\":1,\"unit\":\"256MiB\",\"gpus\":[],\"node\":\"n2\",\"rev\":99}", "GiB", false},
        {"a file that says what nobody was given", false, false, false,
         "{\"v\":1,\"unit\":\"256MiB\",\"gpus\":[{\"idx\":0,\"uuid\":\"GPU-a\",\"mem\":64},"
         "{\"idx\":1,\"uuid\":\"GPU-b\",\"mem\":64}],\"node\":\"n1\",\"rev\":99}",
         "GiB", true},
        {"a file without GPUs", false, false, false,
         "{\"v\":1,\"unit\":\"256MiB\",\"gpus\":[],\"node\":\"n1\",\"rev\":99}", "GiB", false},
        {"an old file", false, false, false,
         "{\"v\":1,\"unit\":\"256MiB\",\"gpus\":[],\"node\":\"n1\",\"rev\":0}", "GiB", false},
        {"both were deleted", true, true, false, NULL, "GiB", true},
        {"both were deleted, and the GPUs left to another driver", true, true, false, NULL, "GiB",
         true, ",\"nvidia.com/gpu\":\"2\""},
        {"no record, no checkpoint: nobody holds anything", true, true, true, NULL, "MiB", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        node_start(&node);
        struct node_pod *p = node_pod(&node, "p", 8, 1);
        node_kill(&node);
        if (r->no_inventory)
            node.inventory[0] = '\0';
        if (r->no_file)
            remove_file(&node);
        if (r->file)
            put_file(&node, r->file);
        if (r->no_checkpoint) {
            char path[128];
            snprintf(path, sizeof(path), "%s/kubelet_internal_checkpoint", node.dir);
            unlink(path);
        }
        node.settings.unit = GS_UNIT_MIB;
        node.others = r->others;
        node_start(&node);
        node_run(&node, 15);
        node.others = NULL;
        node_run(&node, 75);
        if (!strstr(node.inventory, r->unit))
            fail_msg("%s: %s", r->row, node.inventory);
        row_equal(r->row, strstr(node.inventory, "\"unitConflict\":true") != NULL, r->doubted);
        row_equal(r->row, strstr(node.inventory, "\"schedulable\":true") == NULL, r->doubted);
        row_true(r->row,
                 r->no_checkpoint || node_told(&node, "GpuMemoryUnitChangePending", "ns/p"));
        row_true(r->row, !r->doubted || node_told(&node, "GpuMemoryUnitChangePending", "MiB, and"));
        if (!r->no_checkpoint)
            expect_limit(&node, p, REGION_1, 8192);
        restart(&node); /* and it stays so */
        row_equal(r->row, strstr(node.inventory, "\"unitConflict\":true") != NULL, r->doubted);
        node_end(&node, p);
        node_run(&node, 15);
        expect_unit(&node, "MiB");
        row_true(r->row, strstr(node.inventory, "\"schedulable\":true") != NULL);
        node_free(&node);
    }
}

/* A pod that the original's plugin served: its ids, its answer, and no record of the node. */
static struct node_pod *of_the_original(struct node *node, uint32_t units, uint32_t dev)
{
    struct node_pod *pod = &node->pods[node->pod_count++];
    *pod = (struct node_pod){.name = "old",
                             .units = units,
                             .record = GS_GPU_BIT(1),
                             .bound = true,
                             .running = true,
                             .admitted = true};
    for (uint32_t i = 0; i < units; i++)
        snprintf(pod->ids[i], sizeof(pod->ids[0]), "GPU-b-_-%u", i * (dev / units));
    snprintf(pod->env, sizeof(pod->env),
             "NVIDIA_VISIBLE_DEVICES=GPU-b\nALIYUN_COM_GPU_MEM_IDX=1\nALIYUN_COM_GPU_MEM_DEV=%u\n",
             dev);
    tree_mkdirs(&node->tree, "/kubepods/besteffort/podold", true);
    node_write_checkpoint(node);
    return pod;
}

static void the_originals_pods_keep_their_unit(void **state)
{
    static const char gib[] =
        "{\"v\":1,\"unit\":\"GiB\",\"gpus\":[{\"idx\":0,\"uuid\":\"GPU-a\",\"mem\":16},"
        "{\"idx\":1,\"uuid\":\"GPU-b\",\"mem\":16}]}";
    static const struct {
        const char *row;
        enum gs_unit wanted;
        uint32_t units, dev;
        const char *inventory; /* older than the original's time */
        const char *unit;
        bool doubted;
        uint64_t mib;
    } rows[] = {
        {"GiB, and so says the option", GS_UNIT_GIB, 8, 16, "", "GiB", false, 8192},
        {"MiB, and so says the option", GS_UNIT_MIB, 64, 16384, "", "MiB", false, 64},
        {"MiB, the option says GiB", GS_UNIT_GIB, 64, 16384, "", "MiB", true, 64},
        {"GiB, the option says MiB", GS_UNIT_MIB, 8, 16, "", "GiB", true, 8192},
        {"GiB, the option says 256MiB", GS_UNIT_256MIB, 8, 16, "", "GiB", true, 8192},
        {"MiB under an old inventory", GS_UNIT_GIB, 64, 16384, gib, "MiB", true, 64},
        {"GiB, of a node whose first card is larger", GS_UNIT_GIB, 8, 80, "", "GiB", false, 8192},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        snprintf(node.inventory, sizeof(node.inventory), "%s", r->inventory);
        node.settings.unit = r->wanted;
        struct node_pod *old = of_the_original(&node, r->units, r->dev);
        node_start(&node);
        node_run(&node, 15);
        for (int restarts = 0; restarts < 2; restarts++) {
            if (!strstr(node.inventory, r->unit))
                fail_msg("%s: %s", r->row, node.inventory);
            row_equal(r->row, strstr(node.inventory, "\"unitConflict\":true") != NULL, r->doubted);
            row_equal(r->row, strstr(node.inventory, "\"schedulable\":true") == NULL, r->doubted);
            row_equal(r->row,
                      node_told(&node, "GpuMemoryUnitChangePending", gs_unit_name(r->wanted)),
                      r->doubted);
            expect_limit(&node, old, REGION_1, r->mib);
            restart(&node);
        }
        struct node_pod *next = node_bind(&node, "next", 1, 0, 0); /* without a bind of ours */
        row_equal(r->row, node_admit(&node, next), !r->doubted);
        node_end(&node, old);
        node_end(&node, next);
        node_run(&node, 15);
        expect_unit(&node, gs_unit_name(r->wanted));
        row_true(r->row, strstr(node.inventory, "\"schedulable\":true") != NULL);
        node_free(&node);
    }
}

/* Neither the node's object nor a file says whose index is whose, and a card is away: containers
 * were told. */
static void what_containers_were_told_numbers_the_cards(void **state)
{
    struct node node;
    node_make(&node);
    node.settings.deny_foreign_gpus = true;
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 8, 0);
    struct node_pod *q = node_pod(&node, "q", 4, 1);
    node_kill(&node);
    remove_file(&node);
    node.inventory[0] = '\0';
    node_set_gpus(&node, (struct gs_gpu[]){at(card_b, 0)}, 1);
    node_start(&node);
    node_run(&node, 90);
    assert_non_null(strstr(node.inventory, "\"idx\":1,\"uuid\":\"GPU-b\""));
    assert_non_null(strstr(node.inventory, "\"uuid\":\"GPU-a\""));
    assert_null(strstr(node.inventory, "\"mem\":0"));
    expect_limit(&node, p, REGION_0, 8192);
    expect_limit(&node, p, REGION_1, 0);
    expect_limit(&node, q, REGION_1, 4096);
    node_set_gpus(&node, (struct gs_gpu[]){card_a, card_b}, 2);
    node_run(&node, 90);
    expect_limit(&node, p, REGION_0, 8192);
    expect_limit(&node, q, REGION_1, 4096);
    assert_string_equal(node.moved, "{\"p\":[0],\"q\":[1]}"); /* nobody said so before */
    node_free(&node);
}

/* ---- a start while the API server is away ---- */

static void the_record_on_the_host_serves_while_the_api_is_away(void **state)
{
    static const struct {
        const char *row;
        bool no_file;
    } rows[] = {{"a record", false}, {"none", true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        node_start(&node);
        struct node_pod *p = node_pod(&node, "p", 8, 1);
        node_kill(&node);
        if (r->no_file)
            remove_file(&node);
        node.node_away = node.pods_away = node.slices_away = true;
        node.settings.unit = GS_UNIT_MIB;
        node_set_gpus(&node, (struct gs_gpu[]){at(card_b, 0)}, 1);
        node_start(&node);
        node_run(&node, 20);
        row_equal(r->row, node.linked, !r->no_file);
        row_equal(r->row, strstr(plugin.pages.state.node_error, "waiting for the Node") != NULL,
                  r->no_file);
        expect_limit(&node, p, REGION_1, 8192);
        if (!r->no_file)
            row_true(r->row, node_starts(&node, p));
        node.node_away = node.pods_away = node.slices_away = false;
        node_list_pods(&node);
        node_run(&node, 40);
        row_true(r->row, node.linked && !plugin.round.stopping);
        row_equal(r->row, plugin.pages.state.node_error[0], '\0');
        expect_unit(&node, "GiB");
        expect_limit(&node, p, REGION_1, 8192);
        assert_string_equal(node.moved, "{}");
        row_true(r->row, node_starts(&node, p));
        node_free(&node);
    }
}

static void a_host_that_takes_no_record_costs_no_writes(void **state)
{
    struct node node;
    char path[160];
    node_make(&node);
    snprintf(path, sizeof(path), "%s/gpushare-aliyun.com", node.dir);
    put_text(path, "in the way");
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 8, 1);
    expect_limit(&node, p, REGION_1, 8192);
    node_run(&node, 30);
    int patches = node.node_patches;
    node_run(&node, 200);
    assert_int_equal(node.node_patches, patches);
    assert_non_null(strstr(node.inventory, "\"rev\":1}"));
    restart(&node);
    expect_limit(&node, p, REGION_1, 8192);
    node_free(&node);
}

/* With --mps-by-label. */
static void the_record_knows_whether_mps_was_chosen(void **state)
{
    static const struct {
        const char *row;
        bool label, no_file, changed;
        bool starts, ends;
    } rows[] = {
        {"chosen", true, false, false, true, false},
        {"not chosen", false, false, false, true, false},
        {"no record: a guess would limit nobody", true, true, false, false, false},
        {"the label was changed meanwhile", false, false, true, true, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        node.mps = r->label;
        node.settings.mps_by_label = true;
        node.settings.mps_root = "/nonexistent";
        row_true(r->row, node_start(&node));
        node_run(&node, 5);
        node_kill(&node);
        if (r->no_file)
            remove_file(&node);
        node.mps ^= r->changed;
        node.node_away = node.pods_away = node.slices_away = true;
        bool starts = node_start(&node);
        row_equal(r->row, starts, r->starts);
        if (starts) {
            node_run(&node, 10);
            row_true(r->row, node.linked);
            row_equal(r->row, plugin.settings.mps_root != NULL, r->label);
            node.node_away = node.pods_away = node.slices_away = false;
            node_list_pods(&node);
            node_run(&node, 40);
            row_equal(r->row, plugin.round.stopping, r->ends);
        }
        node_free(&node);
    }
}

/* Its limit stands in the kernel, and the kubelet's checkpoint says whose ids these are. */
static void what_the_kernel_limits_starts_again_while_the_api_is_away(void **state)
{
    static const struct {
        const char *row, *limit;
        bool starts;
    } rows[] = {
        {"its limit stands", REGION_0 " max\n" REGION_1 " 8589934592\n", true},
        {"none, it was lost", REGION_0 " max\n" REGION_1 " max\n", false},
        {"another GPU's", REGION_0 " 8589934592\n" REGION_1 " max\n", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        node.settings.enforce = GS_ENFORCE_REQUIRED;
        node_start(&node);
        struct node_pod *p = node_pod(&node, "p", 8, 1);
        node_kill(&node);
        tree_put(&node.tree, "/kubepods/besteffort/podp", "dmem.max", r->limit);
        node.node_away = node.pods_away = node.slices_away = true;
        node_start(&node);
        node_run(&node, 10);
        row_true(r->row, node.linked);
        row_equal(r->row, node_starts(&node, p), r->starts);
        node_free(&node);
    }
}

/* Of a pod that nobody has told of nothing is known but where the kubelet wrote that it is. */
static void what_only_the_checkpoint_names_keeps_its_place(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 12, 0);
    struct node_pod *both = node_bind(&node, "both", 6, GS_GPU_BIT(0) | GS_GPU_BIT(1), 2);
    assert_true(node_admit(&node, both) && node_starts(&node, both));
    both->running = true;
    node_kill(&node);
    node.node_away = node.pods_away = node.slices_away = true;
    node_start(&node);
    node_run(&node, 20);
    struct node_pod *q = node_bind(&node, "q", 8, GS_GPU_BIT(0), 0);
    assert_true(node_admit(&node, q));
    assert_string_equal(node_env(q, "NVIDIA_VISIBLE_DEVICES"), "GPU-b");
    struct node_pod *r = node_bind(&node, "r", 6, GS_GPU_BIT(0), 0);
    assert_true(node_admit(&node, r));
    assert_false(node_starts(&node, r)); /* on trust, as one of them may have ended */
    node_end(&node, r);
    node_end(&node, p);
    struct node_pod *s = node_bind(&node, "s", 12, GS_GPU_BIT(0), 0);
    assert_true(node_admit(&node, s));
    assert_string_equal(node_env(s, "NVIDIA_VISIBLE_DEVICES"), "GPU-a");
    node.node_away = node.pods_away = node.slices_away = false;
    node_list_pods(&node);
    node_run(&node, 90);
    assert_true(node_starts(&node, q) && node_starts(&node, s) && node_starts(&node, both));
    expect_limit(&node, q, REGION_1, 8192);
    expect_limit(&node, s, REGION_0, 12288);
    expect_limit(&node, both, REGION_0, 3072);
    node_free(&node);
}

static void starts_that_come_together_read_the_checkpoint_once(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 8, 0);
    node.more_starts = 99;
    node.readings = 0;
    assert_true(node_starts(&node, p));
    assert_int_equal(node.readings, 1);
    node_free(&node);
}

/* Who is not known yet has not ended: its entry frees no GPU in the extender's ledger. */
static void an_entry_of_gpu_moved_stays_until_all_pods_are_known(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    node_pod(&node, "p", 8, 0);
    node_kill(&node);
    snprintf(node.moved, sizeof(node.moved), "{\"p\":[0]}");
    node.pods_away = true;
    node_start(&node);
    node_run(&node, 90);
    assert_true(node.linked && plugin.devices.node_read);
    assert_string_equal(node.moved, "{\"p\":[0]}");
    node.pods_away = false;
    node_list_pods(&node);
    node_run(&node, 90);
    assert_string_equal(node.moved, "{\"p\":[0]}");
    node_free(&node);
}

/* Those that a quick list tells of are not all. */
static void limits_stand_as_they_are_until_all_pods_are_known(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *p = node_pod(&node, "p", 8, 0);
    node_kill(&node);
    node.pods_away = true;
    node_start(&node);
    struct node_pod *q = node_bind(&node, "q", 4, GS_GPU_BIT(1), 0);
    tree_put(&node.tree, node_folder(p), "dmem.max", REGION_0 " max\n" REGION_1 " max\n");
    node_run(&node, 6);
    node.pods_away = false;
    assert_true(node_admit(&node, q));
    node_run(&node, 20);
    assert_true(node_limit(&node, p, REGION_0) == UINT64_MAX);
    node_list_pods(&node);
    node_run(&node, 20);
    assert_true(node_limit(&node, p, REGION_0) == 8 * GIB);
    assert_true(node_limit(&node, q, REGION_1) == 4 * GIB);
    node_free(&node);
}

/* ---- a kubelet that tells no pods ---- */

/* Two of one size, taken in in the other order: whose the container is that starts says the
 * checkpoint. Where that cannot be read one is taken for the other until it can. */
static void of_two_that_are_equal_the_one_that_starts_is_limited(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforce enforce;
        bool no_notes;
    } rows[] = {{"preferred", GS_ENFORCE_PREFERRED, false},
                {"required", GS_ENFORCE_REQUIRED, false},
                {"no checkpoint", GS_ENFORCE_PREFERRED, true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        char path[160];
        node_make(&node);
        node.settings.deny_foreign_gpus = true;
        node.settings.enforce = r->enforce;
        node_start(&node);
        node_run(&node, 15);
        struct node_pod *first = node_bind(&node, "first", 8, GS_GPU_BIT(0), 0);
        struct node_pod *second = node_bind(&node, "second", 8, GS_GPU_BIT(1), 0);
        first->late = true;
        assert_true(node_admit(&node, second));
        assert_string_equal(node_env(second, "NVIDIA_VISIBLE_DEVICES"), "GPU-a");
        snprintf(path, sizeof(path), "%s/kubelet_internal_checkpoint", node.dir);
        if (r->no_notes)
            unlink(path);
        row_true(r->row, node_starts(&node, second));
        node_run(&node, 15);
        row_equal(r->row, plugin.pages.state.kept.unheld, r->no_notes ? 1 : 0);
        node_write_checkpoint(&node);
        node_run(&node, 75);
        row_equal(r->row, plugin.pages.state.kept.unheld, 0);
        expect_limit(&node, second, REGION_0, 8192);
        expect_limit(&node, second, REGION_1, 0);
        node_free(&node);
    }
}

/* ---- GPUs of a DRA driver ---- */

#define SLICE                                                                                      \
    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.nvidia.com\",\"nodeName\":\"n1\","  \
    "\"devices\":[{\"name\":\"g\",\"attributes\":{\"uuid\":{\"string\":\"GPU-b\"}}}]}}"

static void what_slices_named_is_not_offered_before_they_answer(void **state)
{
    struct node node;
    node_make(&node);
    snprintf(node.slices, sizeof(node.slices), "%s", SLICE);
    node_start(&node);
    node_run(&node, 5);
    assert_null(strstr(node.inventory, "GPU-b"));
    node.slices_away = true;
    restart(&node);
    assert_null(strstr(node.inventory, "GPU-b"));
    assert_int_equal(node.device_count, 16);
    node.slices_away = false;
    node.slices[0] = '\0';
    node_run(&node, 15);
    assert_non_null(strstr(node.inventory, "GPU-b"));
    node_free(&node);
}

/* A kubelet that starts wipes the slices of its node until their driver has registered again. */
static void slices_that_come_late_are_seen_soon(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    node_run(&node, 2);
    assert_non_null(strstr(node.inventory, "GPU-b"));
    snprintf(node.slices, sizeof(node.slices), "%s", SLICE);
    node_run(&node, 3);
    assert_null(strstr(node.inventory, "GPU-b"));
    assert_true(node_told(&node, "GpuManagedByOtherDriver", "ResourceSlice"));
    node_run(&node, 130);
    node.slices[0] = '\0';
    node_run(&node, 3);
    assert_non_null(strstr(node.inventory, "GPU-b"));
    node.slices_away = true;
    node.slice_requests = 0;
    node_run(&node, 100);
    assert_in_range(node.slice_requests, 9, 12);
    assert_non_null(strstr(node.inventory, "GPU-b"));
    node_free(&node);
}

static void a_unit_is_in_force_when_the_kubelet_was_told(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    node_kill(&node);
    node.settings.unit = GS_UNIT_MIB;
    node.pods_away = true; /* until they are listed there may be some */
    node_start(&node);
    expect_unit(&node, "GiB");
    node.pods_away = false;
    node.lists_fail = true;
    node_list_pods(&node);
    node_run(&node, 5);
    assert_int_equal(plugin.devices.unit, GS_UNIT_GIB);
    node.lists_fail = false;
    node_run(&node, 60);
    assert_int_equal(plugin.devices.unit, GS_UNIT_MIB);
    node_free(&node);
}

/* It starts while a change of the unit waits for the last pod to end. */
static void a_pod_that_was_not_shown_keeps_its_unit(void **state)
{
    struct node node;
    node_make(&node);
    node_start(&node);
    struct node_pod *last = node_pod(&node, "last", 8, 0);
    node.settings.unit = GS_UNIT_MIB;
    restart(&node);
    node_end(&node, last);
    node.pods_away = node.node_away = true;
    struct node_pod *unknown = node_bind(&node, "unknown", 4, GS_GPU_BIT(0), 0);
    assert_true(node_admit(&node, unknown));
    node_run(&node, 15);
    assert_int_equal(plugin.devices.unit, GS_UNIT_GIB);
    node_free(&node);
}

static void a_driver_that_was_replaced_is_tried_anew(void **state)
{
    struct node node;
    node_make(&node);
    node.by_driver = true;
    node_start(&node);
    node_run(&node, 5);
    assert_string_equal(node.label, "driver");
    for (int replaced = 0; replaced < 2; replaced++) {
        node.upgrading = !replaced;
        node.driver.set_error = EOPNOTSUPP; /* 580; the kernel can */
        node_run(&node, 150);
    }
    assert_string_equal(node.label, "dmem");
    node_free(&node);
}

static void a_pod_without_any_limit_takes_the_label_off(void **state)
{
    struct node node;
    node_make(&node);
    node.by_driver = true;
    node_start(&node);
    node.driver.set_error = EINVAL; /* not only for what is in use */
    struct node_pod *pod = node_pod(&node, "p", 8, 0);
    node_run(&node, 60);
    assert_int_equal(node_limit(&node, pod, REGION_0), UINT64_MAX);
    assert_string_equal(node.label, "");
    node_free(&node);
}

static void use_under_a_containers_own_limit_is_the_pods(void **state)
{
    struct node node;
    struct gs_kept kept;
    char path[512];
    node_make(&node);
    node.by_driver = true;
    node_start(&node);
    struct node_pod *pod = node_pod(&node, "p", 8, 1);
    tree_path(&node.tree, node_folder(pod), "c", path, sizeof(path));
    assert_int_equal(mkdir(path, 0755), 0);
    fake_limits_set(&node.driver, "GPU-b", path, GIB);
    fake_limit_of(&node.driver, "GPU-b", path)->used = 7;
    node_run(&node, 15);
    assert_true(gs_keeper_find(plugin.enforce.keeper, "p", &kept) && kept.held);
    assert_int_equal(kept.used_on[1], 7);
    node_free(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(use_under_a_containers_own_limit_is_the_pods),
        cmocka_unit_test(a_pod_is_given_what_it_was_bound_to),
        cmocka_unit_test(without_a_card_the_node_has_no_label),
        cmocka_unit_test(a_pod_that_was_not_taken_in_yet_says_nothing),
        cmocka_unit_test(a_unit_is_in_force_when_the_kubelet_was_told),
        cmocka_unit_test(a_pod_that_was_not_shown_keeps_its_unit),
        cmocka_unit_test(a_reserve_is_taken_off_every_gpu),
        cmocka_unit_test(overhead_changes_no_unit),
        cmocka_unit_test(who_was_not_placed_goes_to_no_cordoned_gpu),
        cmocka_unit_test(the_only_card_lost_changes_no_unit),
        cmocka_unit_test(a_tenants_edit_changes_nothing),
        cmocka_unit_test(nothing_is_written_before_the_node_was_read),
        cmocka_unit_test(a_pod_keeps_its_unit_while_anything_tells_it),
        cmocka_unit_test(the_originals_pods_keep_their_unit),
        cmocka_unit_test(the_record_on_the_host_serves_while_the_api_is_away),
        cmocka_unit_test(a_host_that_takes_no_record_costs_no_writes),
        cmocka_unit_test(the_record_knows_whether_mps_was_chosen),
        cmocka_unit_test(what_the_kernel_limits_starts_again_while_the_api_is_away),
        cmocka_unit_test(what_only_the_checkpoint_names_keeps_its_place),
        cmocka_unit_test(starts_that_come_together_read_the_checkpoint_once),
        cmocka_unit_test(an_entry_of_gpu_moved_stays_until_all_pods_are_known),
        cmocka_unit_test(limits_stand_as_they_are_until_all_pods_are_known),
        cmocka_unit_test(what_containers_were_told_numbers_the_cards),
        cmocka_unit_test(of_two_that_are_equal_the_one_that_starts_is_limited),
        cmocka_unit_test(slices_that_come_late_are_seen_soon),
        cmocka_unit_test(a_driver_that_was_replaced_is_tried_anew),
        cmocka_unit_test(a_pod_without_any_limit_takes_the_label_off),
        cmocka_unit_test(what_slices_named_is_not_offered_before_they_answer),
    };
    return GS_RUN(tests);
}
