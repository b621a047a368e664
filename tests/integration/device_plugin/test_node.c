/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin makes of a node: its unit, and what is read before anything is written. */
#include "node_rig.h"

static const struct gs_gpu large = {.idx = 0, .uuid = "GPU-a", .mem_mib = 81920, .pci = "0000:41:00.0", .healthy = true, .schedulable = true, .numa = -1};
static const struct gs_gpu card_a = {.idx = 0, .uuid = "GPU-a", .mem_mib = 16384, .pci = "0000:41:00.0", .healthy = true, .schedulable = true, .numa = -1};
static const struct gs_gpu card_b = {.idx = 1, .uuid = "GPU-b", .mem_mib = 16384, .pci = "0000:c1:00.0", .healthy = true, .schedulable = true, .numa = -1};

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

/* A pod that has a whole card when a part of each is kept back: it is larger than any GPU offers. */
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
    assert_true(node_told(&node, "GpuMemoryOverPromised", "ns/big"));
    assert_false(node_told(&node, "GpuMemoryOverPromised", "ns/idle"));
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

static void a_lost_card_changes_no_unit(void **state)
{
    struct node node;
    node_make(&node);
    node_set_gpus(&node, (struct gs_gpu[]){large, card_b}, 2);
    node_start(&node);
    struct node_pod *big = node_pod(&node, "big", 60, 0), *p = node_pod(&node, "p", 8, 1);
    node_set_gpus(&node, (struct gs_gpu[]){at(card_b, 0)}, 1);
    node_run(&node, 15);
    expect_unit(&node, "GiB");
    expect_limit(&node, p, REGION_1, 8192);
    restart(&node);
    expect_unit(&node, "GiB");
    expect_limit(&node, p, REGION_1, 8192);
    node_set_gpus(&node, (struct gs_gpu[]){large, card_b}, 2);
    node_run(&node, 15);
    expect_unit(&node, "GiB");
    expect_limit(&node, big, REGION_0, 60 << 10);
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
    assert_true(node_told(&node, "GpuMemoryUnitHeld", "ns/p"));
    node_end(&node, p);
    node_run(&node, 15);
    expect_unit(&node, "MiB");
    node_free(&node);
}

/* The owner takes gpu-count off his pod of two GPUs, or writes one on a pod of one, while no plugin
 * is there. */
static void a_tenants_edit_changes_nothing(void **state)
{
    static const struct {
        const char *row;
        uint32_t units, count, edited;
        gs_gpu_mask gpus;
        uint64_t mib;
    } rows[] = {
        {"taken off", 24, 2, 0, 3, 12288},
        {"raised", 16, 0, 2, 1, 16384},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct node node;
        node_make(&node);
        node_start(&node);
        struct node_pod *victim = node_pod(&node, "victim", 4, r->gpus == 1);
        struct node_pod *tenant = node_bind(&node, "tenant", r->units, r->gpus, r->count);
        row_true(r->row, node_admit(&node, tenant) && node_starts(&node, tenant));
        tenant->running = true;
        node_run(&node, 1);
        node_kill(&node);
        tenant->count = r->edited;
        node_start(&node);
        node_run(&node, 15);
        expect_unit(&node, "GiB");
        expect_limit(&node, victim, r->gpus == 1 ? REGION_1 : REGION_0, 4096);
        expect_limit(&node, tenant, REGION_0, r->mib);
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
    assert_false(plugin.stopping);
    assert_int_equal(strncmp(node.moved, "{}", 2), 0);
    node_free(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_given_what_it_was_bound_to),
        cmocka_unit_test(overhead_changes_no_unit),
        cmocka_unit_test(a_lost_card_changes_no_unit),
        cmocka_unit_test(the_only_card_lost_changes_no_unit),
        cmocka_unit_test(a_tenants_edit_changes_nothing),
        cmocka_unit_test(nothing_is_written_before_the_node_was_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
