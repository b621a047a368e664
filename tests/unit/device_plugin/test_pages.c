/* SPDX-License-Identifier: Apache-2.0 */
/* What the program tells: a container's environment, and its own state on its pages. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_tree.h"
#include "device_plugin/container_env.h"
#include "gpushare/http/server.h"
#include "http_probe.h"
#include "rows.h"

static void gpus(struct gs_gpu_set *set)
{
    *set = (struct gs_gpu_set){.count = 4};
    for (uint32_t i = 0; i < 4; i++) {
        struct gs_gpu *gpu = &set->gpus[i];
        *gpu = (struct gs_gpu){.idx = i * 2, .mem_units = 16, .healthy = i != 1};
        set->source_idx[gpu->idx] = i + 5;
        if (i < 2)
            snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%u", i);
        else if (i == 3)
            snprintf(gpu->uuid, sizeof(gpu->uuid), "MIG-%u", i);
    }
}

#define MOUNTS    "/var/run/nvidia-container-devices"
#define SIMULATED "/var/run/simulated-container-devices"
enum {
    ENV = DEVICE_LIST_ENVVAR,
    MOUNT = DEVICE_LIST_VOLUME_MOUNTS,
    NOTE = DEVICE_LIST_CDI_ANNOTATIONS,
    CRI = DEVICE_LIST_CDI_CRI,
};

/* GPUs 0, 2, 4 and 6, to their driver 5 to 8; the third has no UUID, the last is an instance. */
static const struct {
    const char *row;
    unsigned lists;
    gs_gpu_mask gpus;
    const char *devices; /* NVIDIA_VISIBLE_DEVICES */
    const char *own;     /* ALIYUN_COM_GPU_MEM_GPUS; NULL: not set */
    const char *mounts[3], *cdi[3], *annotation;
    uint32_t vendor;
} rows[] = {
    {"a UUID", ENV, GS_GPU_BIT(2), "GPU-1"},
    {"an instance's UUID", ENV, GS_GPU_BIT(6), "MIG-3"},
    {"no UUID: the driver's index", ENV, GS_GPU_BIT(4), "7"},
    {"several, in the order of the indices", ENV, GS_GPU_BIT(4) | GS_GPU_BIT(0) | GS_GPU_BIT(2),
     "GPU-0,GPU-1,7"},
    {"a GPU that is gone meanwhile", ENV, GS_GPU_BIT(9), "9"},
    {"CDI beside the environment", ENV | CRI, GS_GPU_BIT(0), "GPU-0",
     .cdi = {"nvidia.com/gpu=GPU-0"}},
    {"CDI alone", CRI, GS_GPU_BIT(0) | GS_GPU_BIT(2), "void", "GPU-0,GPU-1",
     .cdi = {"nvidia.com/gpu=GPU-0", "nvidia.com/gpu=GPU-1"}},
    {"CDI in an annotation", NOTE, GS_GPU_BIT(0) | GS_GPU_BIT(2), "void", "GPU-0,GPU-1",
     .annotation = "nvidia.com/gpu=GPU-0,nvidia.com/gpu=GPU-1"},
    {"as the GPU Operator has it", NOTE | CRI, GS_GPU_BIT(6), "void", "MIG-3",
     .cdi = {"nvidia.com/gpu=MIG-3"}, .annotation = "nvidia.com/gpu=MIG-3"},
    {"mounts", MOUNT, GS_GPU_BIT(0) | GS_GPU_BIT(4), MOUNTS, "GPU-0,7",
     .mounts = {MOUNTS "/GPU-0", MOUNTS "/7"}},
    {"mounts win over the environment", ENV | MOUNT, GS_GPU_BIT(0), MOUNTS, "GPU-0",
     .mounts = {MOUNTS "/GPU-0"}},
    {"all of them", ENV | MOUNT | NOTE | CRI, GS_GPU_BIT(0), MOUNTS, "GPU-0",
     .mounts = {MOUNTS "/GPU-0"}, .cdi = {"nvidia.com/gpu=GPU-0"},
     .annotation = "nvidia.com/gpu=GPU-0"},
    {"another vendor's", ENV, GS_GPU_BIT(0), "GPU-0", .vendor = 1},
    {"its mounts", MOUNT, GS_GPU_BIT(0), SIMULATED, "GPU-0", {SIMULATED "/GPU-0"}, .vendor = 1},
    {"its CDI", CRI, GS_GPU_BIT(0), "none", "GPU-0", .cdi = {"simulated.gpushare/gpu=GPU-0"},
     .vendor = 1},
};

static const char *env(const struct gs_dp_container *container, const char *key)
{
    for (size_t i = 0; i < container->env_count; i++) {
        if (strcmp(container->envs[i].key, key) == 0)
            return container->envs[i].value;
    }
    return "(not set)";
}

static void expect_lists(size_t at, const struct gs_dp_container *container)
{
    size_t names = 0, mounts = 0;
    for (; names < 3 && rows[at].cdi[names]; names++)
        row_text(rows[at].row, container->cdi_devices[names], rows[at].cdi[names]);
    row_equal(rows[at].row, container->cdi_device_count, names);
    for (; mounts < 3 && rows[at].mounts[mounts]; mounts++) {
        row_text(rows[at].row, container->mounts[mounts].host, "/dev/null");
        row_text(rows[at].row, container->mounts[mounts].container, rows[at].mounts[mounts]);
    }
    row_equal(rows[at].row, container->mount_count, mounts);
    row_equal(rows[at].row, container->annotation_count, rows[at].annotation ? 1 : 0);
    if (!rows[at].annotation)
        return;
    row_text(rows[at].row, container->annotations[0].key, "cdi.k8s.io/gpushare_gpu");
    row_text(rows[at].row, container->annotations[0].value, rows[at].annotation);
}

static void a_container_is_told_its_gpus_and_units(void **state)
{
    static struct plugin plugin;
    assert_int_equal(gs_names_init(&plugin.names, "example.com", NULL), 0);
    gpus(&plugin.devices.set);
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_allocate_answer answer = {
            .gpus = r->gpus, .idx = "0,4", .dev_units = 16, .pod_units = 12, .units = 8};
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_dp_container container;
        plugin.settings.device_lists = r->lists;
        plugin.devices.set.vendor = r->vendor;
        assert_int_equal(container_env_build(&plugin, &answer, &arena, &container), 0);
        row_text(r->row, env(&container, gs_vendors[r->vendor].visible_devices), r->devices);
        row_text(r->row, env(&container, plugin.names.gpus), r->own ? r->own : "(not set)");
        row_equal(r->row, container.env_count, r->own ? 6 : 5);
        row_text(r->row, env(&container, plugin.names.idx), "0,4");
        row_text(r->row, env(&container, plugin.names.pod), "12");
        row_text(r->row, env(&container, plugin.names.container), "8");
        row_text(r->row, env(&container, plugin.names.dev), "16");
        expect_lists((size_t)(r - rows), &container);
    }
}

/* One file stands in for the node of GPU 0. */
static void device_nodes_go_with_all_but_cdi_alone(void **state)
{
    static const struct {
        const char *row;
        bool pass;
        unsigned lists;
        bool expected;
    } passed[] = {
        {"not asked for", false, ENV, false}, {"beside the environment", true, ENV, true},
        {"beside mounts", true, MOUNT, true}, {"CDI and the environment", true, ENV | CRI, true},
        {"CDI alone", true, CRI, false},      {"CDI alone, both forms", true, CRI | NOTE, false},
    };
    static struct plugin plugin;
    char root[] = "/tmp/gpushare-node-XXXXXX", dev[64], node[80];
    assert_non_null(mkdtemp(root));
    snprintf(dev, sizeof(dev), "%s/dev", root);
    snprintf(node, sizeof(node), "%s/nvidia77", dev);
    assert_int_equal(mkdir(dev, 0700), 0);
    assert_int_equal(mknod(node, S_IFREG | 0600, 0), 0);
    gpus(&plugin.devices.set);
    plugin.devices.set.gpus[0].node = 78;
    plugin.settings = (struct settings){.nvidia_dev_root = root};
    GS_FOR_EACH_ROW (r, passed) {
        const struct gs_allocate_answer answer = {.gpus = 1, .idx = "0"};
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_dp_container container;
        plugin.settings.pass_device_specs = r->pass;
        plugin.settings.device_lists = r->lists;
        row_equal(r->row, container_env_build(&plugin, &answer, &arena, &container), 0);
        row_equal(r->row, container.device_count > 0, r->expected);
        if (r->expected)
            row_text(r->row, container.devices[0].container, "/dev/nvidia77");
    }
    unlink(node);
    rmdir(dev);
    assert_int_equal(rmdir(root), 0);
}

static void strategies_are_read_as_a_list(void **state)
{
    static const struct {
        const char *row, *text;
        unsigned lists; /* 0: refused */
    } texts[] = {
        {"one", "envvar", ENV},
        {"another", "volume-mounts", MOUNT},
        {"all", "cdi-cri,envvar,volume-mounts,cdi-annotations", ENV | MOUNT | NOTE | CRI},
        {"nothing", "", 0},
        {"an unknown word", "envvar,cdi", 0},
        {"a part of a word", "env", 0},
        {"more than a word", "envvars", 0},
        {"an empty word", "envvar,", 0},
        {"another case", "ENVVAR", 0},
    };
    GS_FOR_EACH_ROW (r, texts) {
        unsigned lists = 77;
        row_equal(r->row, device_lists_parse(r->text, &lists), r->lists != 0);
        row_equal(r->row, lists, r->lists ? r->lists : 77);
    }
}

static void readiness_names_what_is_missing(void **state)
{
    static const struct {
        const char *row;
        struct pages_state state;
        unsigned status;
        const char *words;
    } pages[] = {
        {"all is well", {.pods_listed = true, .linked = true}, 200, "ok"},
        {"no GPUs",
         {.gpu_error = "no driver", .pods_listed = true, .linked = true},
         503,
         "no driver"},
        {"events are not heard",
         {.pods_listed = true, .linked = true, .set.deaf = true},
         200,
         "ok, but the driver reports no health events (XIDs): unhealthy GPUs are not noticed"},
        {"nobody's node",
         {.node_error = "no node n", .gpu_error = "no driver", .pods_listed = true, .linked = true},
         503,
         "no node n"},
        {"no pods yet", {.linked = true}, 503, "this node's pods have not been listed yet"},
        {"no kubelet", {.pods_listed = true}, 503, "the kubelet does not read the device list"},
    };
    GS_FOR_EACH_ROW (r, pages) {
        const char *why = NULL;
        assert_int_equal(pages_ready(&r->state, &why), r->status);
        assert_string_equal(why, r->words);
    }
}

static void every_figure_is_on_the_page(void **state)
{
    static const char *const lines[] = {
        "gpushare_device_plugin_gpu_memory_bytes{gpu=\"0\"} 17179869184",
        "gpushare_device_plugin_gpu_memory_allocated_bytes{gpu=\"2\"} 4294967296",
        "gpushare_device_plugin_gpu_memory_used_bytes{gpu=\"4\"} 1234567",
        "gpushare_device_plugin_gpu_healthy{gpu=\"0\"} 1",
        "gpushare_device_plugin_gpu_healthy{gpu=\"2\"} 0",
        "gpushare_device_plugin_allocations_total{outcome=\"matched\"} 7",
        "gpushare_device_plugin_allocations_total{outcome=\"unmatched\"} 3",
        "gpushare_device_plugin_allocations_total{outcome=\"insufficient_memory\"} 2",
        "gpushare_device_plugin_allocations_total{outcome=\"failed\"} 1",
        "gpushare_device_plugin_allocate_duration_seconds_count 12",
        "gpushare_device_plugin_allocation_swaps_total 4",
        "gpushare_device_plugin_blocked_starts_total 5",
        "gpushare_device_plugin_pods 6",
        "gpushare_device_plugin_unallocated_pods 8",
        "gpushare_device_plugin_pending_api_writes 9",
        "gpushare_device_plugin_ready 0",
        "gpushare_device_plugin_gpu_health_events_supported 1",
        "gpushare_device_plugin_registered 1",
        "gpushare_device_plugin_checkpoint_readable 1",
        "gpushare_device_plugin_registrations_total 13",
        "gpushare_device_plugin_foreign_device_ids 14",
        "gpushare_device_plugin_unit_change_pending 1",
        "gpushare_device_plugin_enforce_mode{mode=\"preferred\"} 1",
        "gpushare_device_plugin_gpu_enforced{gpu=\"0\"} 0",
        "gpushare_device_plugin_gpu_enforced{gpu=\"2\"} 1",
        "gpushare_device_plugin_pods_by_limit{state=\"limited\"} 5",
        "gpushare_device_plugin_pods_by_limit{state=\"not_limited\"} 1",
        "gpushare_device_plugin_pods_by_limit{state=\"over_request\"} 2",
        "gpushare_device_plugin_limits_written_total 9",
        "gpushare_device_plugin_limit_repairs_total 4",
    };
    static struct pages_state pages = {
        .linked = true,
        .checkpoint_read = true,
        .registrations = 13,
        .foreign_ids = 14,
        .unit_waits = true,
        .unit = GS_UNIT_GIB,
        .stats = {.allocated = 10,
                  .unclaimed = 3,
                  .no_room = 2,
                  .swaps = 4,
                  .held = 5,
                  .pods = 6,
                  .waiting = 8,
                  .writes_queued = 9},
        .calls = {.answered = 12, .failed = 1},
        .enforce = GS_ENFORCE_PREFERRED,
        .kept = {.held = 5, .over = 2, .unheld = 1, .repairs = 4, .writes = 9}};
    gpus(&pages.set);
    pages.set.gpus[0].enforced = GS_ENFORCED_ABSENT;
    pages.set.gpus[1].enforced = GS_ENFORCED_DMEM;
    pages.stats.used_units[2] = 4;
    pages.set.measured = GS_GPU_BIT(7); /* as the driver counts GPU 4 */
    pages.set.used_bytes[7] = 1234567;
    struct gs_buf page = GS_BUF(1 << 16);
    pages_metrics(&pages, &page);
    assert_int_equal(gs_buf_failed(&page), 0);
    GS_FOR_EACH_ROW (r, lines) {
        char line[160];
        snprintf(line, sizeof(line), "\n%s\n", *r);
        if (!strstr(page.data, line))
            fail_msg("%s is not in\n%s", *r, page.data);
    }
    gs_buf_release(&page);
}

/* By the number that pods are told, and by the name that others know the GPU by. */
static void every_gpu_of_a_pod_is_told_with_its_uuid(void **state)
{
    static struct gs_gpu_set set;
    struct usage usage;
    const struct gs_placed pod = {.ns = "team",
                                  .name = "train-0",
                                  .cgroup_uid = "hash",
                                  .gpus = GS_GPU_BIT(0) | GS_GPU_BIT(4) | GS_GPU_BIT(9)};
    gpus(&set);
    snprintf(set.gpus[0].uuid, sizeof(set.gpus[0].uuid), "GPU-a");
    usage_init(&usage);
    usage.set = &set;
    for (int i = 0; i < 200; i++)
        usage_add_pod(&usage, &pod);
    static const char first[] = "gpushare_device_plugin_pod_gpu_info{namespace=\"team\","
                                "pod=\"train-0\",UUID=\"GPU-a\",gpu=\"0\"} 1\n"
                                "gpushare_device_plugin_pod_gpu_info{namespace=\"team\","
                                "pod=\"train-0\",UUID=\"\",gpu=\"4\"} 1\n"
                                "gpushare_device_plugin_pod_gpu_info{namespace=\"team\",";
    const char *info = usage.text[USAGE_INFO].data;
    assert_memory_equal(info, first, sizeof(first) - 1);
    assert_null(strstr(info, "gpu=\"9\""));
    assert_true(usage.pairs > USAGE_PAIRS_MAX - 3 && usage.pairs <= USAGE_PAIRS_MAX);
    assert_int_equal(gs_buf_failed(&usage.text[USAGE_INFO]), 0);
    assert_int_equal(usage.text[USAGE_GIVEN].len, 0);
    usage_release(&usage);
}

/* Two GiB of GPU 0 and one of GPU 2 are in use, and the kernel counts nothing of GPU 4. */
static void a_used_pod(struct usage *usage, const struct usage *with, struct cgroup_tree *tree)
{
    static const char *const addresses[] = {"0000:41:00.0", NULL, "0000:c1:00.0"};
    const struct gs_limiter_options options = {tree->mount, &tree->host};
    struct gs_region gpus[3];
    struct gs_limiter *limiter;
    tree_make(tree);
    tree_mkdirs(tree, "/kubepods/besteffort/podhash", true);
    tree_put(tree, "/kubepods/besteffort/podhash", "dmem.current",
             REGION_0 " 2147483648\n" REGION_1 " 1073741824\n");
    assert_int_equal(gs_limiter_new(&options, &limiter, NULL), 0);
    const struct gs_keeper_options rules = {limiter, GS_ENFORCE_OBSERVE, false};
    struct gs_keeper *keeper = gs_keeper_new(&rules);
    gs_keeper_gpus(keeper, gs_limiter_look(limiter, addresses, 3, gpus), gpus, 3);
    const struct gs_placed pod = {.ns = "team",
                                  .name = "train-0",
                                  .uid = "u-1",
                                  .owner = "Job/train",
                                  .cgroup_uid = "hash",
                                  .qos = GS_QOS_BEST_EFFORT,
                                  .gpus = GS_GPU_BIT(0) | GS_GPU_BIT(2) | GS_GPU_BIT(4),
                                  .units = 4};
    const struct gs_share share = {.uid = "hash", .gpus = pod.gpus, .bytes = 4 * GIB};
    assert_int_equal(gs_keeper_share(keeper, &share, NULL), 0);
    usage_init(usage);
    usage->keeper = keeper;
    usage->unit_bytes = GIB;
    usage->names_pods = with->names_pods;
    usage->charged_elsewhere = with->charged_elsewhere;
    usage->driver = with->driver;
    usage->driver_alone = with->driver_alone;
    usage_add_pod(usage, &pod);
    for (int i = 0; i < 200; i++) {
        const struct gs_placed other = {.ns = "team",
                                        .name = "o",
                                        .uid = "u",
                                        .owner = "",
                                        .cgroup_uid = "o",
                                        .gpus = i < 199 ? 3 : 1};
        usage_add_pod(usage, &other);
    }
    usage_add_pod(usage, &pod); /* it is not named, and counts */
    gs_keeper_free(keeper);
    gs_limiter_free(limiter);
    tree_rmdir(tree, "");
}

static const char pod_entry[] =
    "{\"v\":1,\"enforceMode\":\"off\",\"overRequestPodCount\":0,\"gpus\":[{\"id\":0,"
    "\"usedByPodsBytes\":"
    "4294967296},{\"id\":2,\"usedByPodsBytes\":2147483648},{\"id\":4},{\"id\":6}],\"pods\":[{"
    "\"namespace\":\"team\",\"name\":\"train-0\",\"uid\":\"u-1\",\"owner\":\"Job/"
    "train\",\"enforced\":\"none\",\"enforcedMessage\":\"the GPU's driver does not report its "
    "memory to the "
    "dmem "
    "controller\",\"allocatedBytes\":4294967296,\"limitBytes\":4294967296,\"gpus\":[{\"id\":0,"
    "\"usedBytes\":2147483648,\"peakBytes\":2147483648},{\"id\":2,\"usedBytes\":1073741824,"
    "\"peakBytes\":1073741824},{\"id\":4}]},";

static void use_is_told_beside_what_was_given(void **state)
{
    static const char *const samples[USAGE_FAMILIES][3] = {
        [USAGE_GIVEN] = {"gpushare_device_plugin_pod_gpu_memory_allocated_bytes{namespace=\"team\","
                         "pod=\"train-0\",owner=\"Job/train\",gpu=\"4\"} 4294967296\n"},
        [USAGE_USED] = {"gpushare_device_plugin_pod_gpu_memory_used_bytes{namespace=\"team\",pod="
                        "\"train-0\",owner=\"Job/train\",gpu=\"0\"} 2147483648\n",
                        "gpu=\"2\"} 1073741824\n"},
        [USAGE_PEAK] = {"gpushare_device_plugin_pod_gpu_memory_peak_bytes{namespace=\"team\",pod="
                        "\"train-0\",owner=\"Job/train\",gpu=\"0\"} 2147483648\n"},
        [USAGE_HELD] = {"gpushare_device_plugin_pod_enforced{namespace=\"team\",pod=\"train-0\","
                        "owner=\"Job/train\"} 0\n"},
    };
    static struct pages pages;
    struct cgroup_tree tree;
    struct usage usage;
    _cleanup_(gs_buf_release) struct gs_buf page = GS_BUF(1 << 20);
    pages_init(&pages, NULL);
    gpus(&pages.state.set);
    a_used_pod(&usage, &(struct usage){.names_pods = true}, &tree);
    assert_int_equal(usage.pairs, USAGE_PAIRS_MAX);
    for (int i = 0; i < USAGE_FAMILIES; i++)
        for (int s = 0; s < 3 && samples[i][s]; s++)
            row_true(samples[i][s], strstr(usage.text[i].data, samples[i][s]) != NULL);
    row_true("not counted", !strstr(usage.text[USAGE_USED].data, "gpu=\"4\""));
    pages_set_usage(&pages, &usage);
    pages_usage(&pages.state, &page);
    assert_string_equal(page.data + page.len - 5, "]}]}\n");
    page.data[sizeof(pod_entry) - 1] = '\0';
    assert_string_equal(page.data, pod_entry);
    pages_release(&pages);
}

/* An ownerReference may name anything. */
static void as_many_pods_as_are_named_fit_with_the_longest_names(void **state)
{
    enum { NS = 63, NAME = 253, OWNER = 63 + 1 + 253, UID = 36, CLI_READS = 1 << 20 };
    static const char *const words[] = {"a", "\"", "\\", "\n", "\x01", "\x7f"};
    char ns[NS + 1], name[NAME + 1], owner[OWNER + 1], uid[UID + 1];
    memset(ns, 'n', NS);
    memset(name, 'p', NAME);
    memset(uid, 'u', UID);
    ns[NS] = name[NAME] = owner[OWNER] = uid[UID] = '\0';
    const struct gs_placed pod = {.ns = ns,
                                  .name = name,
                                  .uid = uid,
                                  .owner = owner,
                                  .cgroup_uid = uid,
                                  .gpus = GS_GPU_BIT(63),
                                  .units = UINT32_MAX,
                                  .sets_mps = true};
    GS_FOR_EACH_ROW (word, words) {
        static struct pages pages;
        struct usage usage;
        struct driver_usage driver = {.read_ns = 1, .told = pod.gpus};
        _cleanup_(gs_buf_release) struct gs_buf page = GS_BUF(2 << 20);
        memset(owner, **word, OWNER);
        pages_init(&pages, NULL);
        usage_init(&usage);
        usage.unit_bytes = GIB;
        usage.names_pods = true;
        usage.driver = &driver;
        usage.charged_elsewhere = pod.gpus; /* the longest reason */
        usage.now_ns = 2;
        for (int i = 0; i < USAGE_PAIRS_MAX; i++)
            usage_add_pod(&usage, &pod);
        for (int i = 0; i < USAGE_TEXTS; i++)
            row_true(*word, !gs_buf_failed(&usage.text[i]));
        pages_set_usage(&pages, &usage);
        pages_usage(&pages.state, &page);
        row_true(*word, page.len > USAGE_PAIRS_MAX * (NS + NAME + OWNER) && page.len < CLI_READS);
        pages_release(&pages);
    }
}

static void nobody_is_named_unless_it_was_switched_on(void **state)
{
    static struct pages pages;
    struct cgroup_tree tree;
    struct usage usage;
    _cleanup_(gs_buf_release) struct gs_buf page = GS_BUF(1 << 20);
    pages_init(&pages, NULL);
    gpus(&pages.state.set);
    pages.state.enforce = GS_ENFORCE_OBSERVE;
    pages.state.kept.over = 3;
    a_used_pod(&usage, &(struct usage){0}, &tree);
    for (int i = USAGE_GIVEN; i < USAGE_TEXTS; i++)
        assert_int_equal(usage.text[i].len, 0);
    pages_set_usage(&pages, &usage);
    pages_usage(&pages.state, &page);
    assert_string_equal(
        page.data,
        "{\"v\":1,\"enforceMode\":\"observe\",\"overRequestPodCount\":3,\"gpus\":[{\"id\":0,"
        "\"usedByPodsBytes\":4294967296},{\"id\":2,"
        "\"usedByPodsBytes\":2147483648},{\"id\":4},{\"id\":6}]}\n");
    gs_buf_reset(&page);
    pages.state.set.measured = ~(gs_gpu_mask)0;
    pages.state.set.used_bytes[pages.state.set.source_idx[2]] = 3 * GIB;
    pages_metrics(&pages.state, &page);
    row_true(
        "its GPU's sum",
        strstr(page.data,
               "gpushare_device_plugin_gpu_memory_used_by_pods_bytes{gpu=\"2\"} 2147483648\n") !=
            NULL);
    row_true(
        "the rest",
        strstr(page.data,
               "gpushare_device_plugin_gpu_memory_used_by_others_bytes{gpu=\"2\"} 1073741824\n") !=
            NULL);
    row_true("not counted", !strstr(page.data, "used_by_pods_bytes{gpu=\"4\"}"));
    row_true("no names", !strstr(page.data, "train-0"));
    pages_release(&pages);
}

/* A pod would look as if it used nothing of what it has. */
static void nothing_is_told_of_a_gpu_that_an_mps_daemon_serves(void **state)
{
    static struct gs_gpu_set set;
    struct cgroup_tree tree;
    struct usage usage;
    gpus(&set);
    set.gpus[0].enforced = GS_ENFORCED_MPS_AWAY;
    set.gpus[1].enforced = GS_ENFORCED_DMEM;
    set.gpus[2].enforced = GS_ENFORCED_MPS;
    gs_gpu_mask elsewhere = usage_charged_elsewhere(&set);
    assert_int_equal(elsewhere, GS_GPU_BIT(0) | GS_GPU_BIT(4));
    a_used_pod(&usage, &(struct usage){.names_pods = true, .charged_elsewhere = elsewhere}, &tree);
    assert_int_equal(usage.counted, GS_GPU_BIT(2));
    const char *used = usage.text[USAGE_USED].data;
    assert_true(strstr(used, "gpu=\"2\"") && !strstr(used, "gpu=\"0\""));
    assert_non_null(strstr(usage.text[USAGE_JSON].data, "{\"id\":0},"));
    usage_release(&usage);
}

/* It tells of GPUs 0, 2 and 4 that the pod uses 7 GiB of each. */
static void the_driver_counts_where_the_kernel_does_not(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask elsewhere, told; /* told: by the driver */
        bool alone;
        uint64_t used_gib[3]; /* of GPUs 0, 2, 4; 0: not told */
        uint32_t over;        /* of a share of 4 GiB, of the two */
    } counts[] = {
        {"as the kernel says, and the driver of the other",
         0,
         ~(gs_gpu_mask)0,
         false,
         {2, 1, 7},
         2},
        {"whose clients MPS serves", GS_GPU_BIT(0), ~(gs_gpu_mask)0, false, {7, 1, 7}, 2},
        {"the driver alone", 0, ~(gs_gpu_mask)0, true, {7, 7, 7}, 2},
        {"of GPUs that it lists", 0, GS_GPU_BIT(0), true, {7, 0, 0}, 2},
        {"neither", GS_GPU_BIT(0), 0, false, {0, 1, 0}, 0},
    };
    GS_FOR_EACH_ROW (r, counts) {
        static struct driver_usage_pod pod;
        struct driver_usage driver = {.read_ns = 1, .told = r->told, .pods = &pod, .count = 1};
        struct cgroup_tree tree;
        struct usage usage;
        static struct pages pages;
        char over[32];
        _cleanup_(gs_buf_release) struct gs_buf page = GS_BUF(1 << 20);
        pod = (struct driver_usage_pod){.uid = "hash"};
        for (uint32_t i = 0; i < 3; i++)
            pod.use.used_on[2 * i] = pod.use.peak_on[2 * i] = 7 * GIB;
        pages_init(&pages, NULL);
        gpus(&pages.state.set);
        pages.state.set.measured = ~(gs_gpu_mask)0;
        const struct usage with = {.names_pods = true,
                                   .charged_elsewhere = r->elsewhere,
                                   .driver = &driver,
                                   .driver_alone = r->alone};
        a_used_pod(&usage, &with, &tree);
        pages.state.set.used_bytes[pages.state.set.source_idx[0]] = 20 * GIB;
        for (uint32_t i = 0; i < 3; i++) {
            char entry[128];
            uint64_t used = r->used_gib[i] * GIB;
            snprintf(entry, sizeof(entry),
                     used ? "{\"id\":%u,\"usedBytes\":%" PRIu64 ",\"peakBytes\":%" PRIu64 "}"
                          : "{\"id\":%u}",
                     2 * i, used, used);
            row_true(r->row, strstr(usage.text[USAGE_JSON].data, entry) != NULL);
            row_equal(r->row, usage.used_on[2 * i], 2 * used);
        }
        row_equal(r->row, usage.over, r->over);
        pages_set_usage(&pages, &usage);
        pages_usage(&pages.state, &page);
        snprintf(over, sizeof(over), "\"overRequestPodCount\":%u", r->over);
        row_true(r->row, strstr(page.data, over) != NULL);
        char entry[128] = "{\"id\":0,\"usedBytes\":21474836480}";
        if (r->used_gib[0])
            snprintf(entry, sizeof(entry),
                     "{\"id\":0,\"usedBytes\":21474836480,\"usedByPodsBytes\":%" PRIu64
                     ",\"usedByOthersBytes\":%" PRIu64 "}",
                     (uint64_t)(2 * r->used_gib[0] * GIB),
                     (uint64_t)((20 - 2 * r->used_gib[0]) * GIB));
        row_true(r->row, strstr(page.data, entry) != NULL);
        pages_release(&pages);
    }
}

static void a_pod_has_the_word_of_its_gpus(void **state)
{
    static const struct {
        const char *row;
        enum gs_enforced first, second; /* of GPUs 0 and 2 */
        bool sets_mps;
        const char *said;
    } words[] = {
        {"alone in an instance", GS_ENFORCED_MIG, GS_ENFORCED_MIG, false,
         "\"enforced\":\"mig\",\"enforcedMessage\":\"\","},
        {"in a shared one", GS_ENFORCED_INSTANCE, GS_ENFORCED_INSTANCE, false,
         "\"enforced\":\"none\",\"enforcedMessage\":\"this GPU is a MIG instance"},
        {"alone in one, not in the other", GS_ENFORCED_MIG, GS_ENFORCED_INSTANCE, false,
         "\"enforced\":\"none\",\"enforcedMessage\":\"memory limits are not enabled"},
        {"a client of MPS", GS_ENFORCED_MPS, GS_ENFORCED_MPS, false,
         "\"enforced\":\"mps\",\"enforcedMessage\":\"\","},
        {"one that spoils its environment", GS_ENFORCED_MPS, GS_ENFORCED_MPS, true,
         "\"enforced\":\"none\",\"enforcedMessage\":\"the pod sets CUDA_MPS_ variables itself"},
        {"a hook", GS_ENFORCED_HOOK, GS_ENFORCED_HOOK, false,
         "\"enforced\":\"hook\",\"enforcedMessage\":\"\","},
        {"a hook that is missing", GS_ENFORCED_HOOK_AWAY, GS_ENFORCED_HOOK_AWAY, false,
         "\"enforced\":\"none\",\"enforcedMessage\":\"the hook library is missing"},
        {"its daemon is away", GS_ENFORCED_MPS_AWAY, GS_ENFORCED_MPS_AWAY, false,
         "\"enforced\":\"none\",\"enforcedMessage\":\"the GPU's MPS daemon does not respond"},
        {"on cards whose limits nobody set for it", GS_ENFORCED_DMEM, GS_ENFORCED_DMEM, true,
         "\"enforced\":\"none\",\"enforcedMessage\":\"memory limits are not enabled"},
    };
    GS_FOR_EACH_ROW (r, words) {
        static struct gs_gpu_set set;
        struct usage usage;
        gpus(&set);
        set.gpus[0].enforced = r->first;
        set.gpus[1].enforced = r->second;
        usage_init(&usage);
        usage.set = &set;
        usage.names_pods = true;
        usage.charged_elsewhere = usage_charged_elsewhere(&set);
        const struct gs_placed pod = {.ns = "team",
                                      .name = "p",
                                      .uid = "u",
                                      .owner = "",
                                      .cgroup_uid = "u",
                                      .sets_mps = r->sets_mps,
                                      .gpus = GS_GPU_BIT(0) | GS_GPU_BIT(2)};
        usage_add_pod(&usage, &pod);
        row_true(r->row, strstr(usage.text[USAGE_JSON].data, r->said) != NULL);
        usage_release(&usage);
    }
}

/* GPUs and the pod on them come and go as often as the lock allows. */
struct changing {
    struct pages pages;
    atomic_bool ended;
};

static void *change(void *ctx)
{
    struct changing *changing = ctx;
    for (bool there = true; !atomic_load(&changing->ended); there = !there) {
        struct usage usage;
        usage_init(&usage);
        usage.names_pods = true;
        if (there)
            gs_buf_puts(&usage.text[USAGE_JSON], "{\"name\":\"here\"},");
        pthread_mutex_lock(&changing->pages.lock);
        changing->pages.state.set.count = there;
        pages_set_usage(&changing->pages, &usage);
        pthread_mutex_unlock(&changing->pages.lock);
    }
    return NULL;
}

static void a_page_is_of_one_moment(void **state)
{
    enum { PAGES = 400 };
    static struct changing changing;
    struct gs_http_server *server = NULL;
    struct gs_error err;
    struct http_probe probe;
    struct http_answer answer;
    pthread_t thread;
    pages_init(&changing.pages, NULL);
    assert_int_equal(pages_serve(&changing.pages, "127.0.0.1:0", &server, &err), 0);
    assert_int_equal(http_probe_get(gs_http_server_port(server), "/readyz"), 503);
    changing.pages.state.beat_ns -= 61 * GS_NS_PER_S;
    assert_int_equal(http_probe_get(gs_http_server_port(server), "/healthz"), 503);
    assert_int_equal(pthread_create(&thread, NULL, change, &changing), 0);
    assert_true(http_probe_open(&probe, gs_http_server_port(server)));
    for (int i = 0; i < PAGES; i++) {
        http_probe_text(&probe, "GET /usage HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_true(http_probe_answer(&probe, &answer));
        row_equal(answer.body, strstr(answer.body, "\"id\"") != NULL,
                  strstr(answer.body, "\"here\"") != NULL);
    }
    http_probe_close(&probe);
    atomic_store(&changing.ended, true);
    pthread_join(thread, NULL);
    gs_http_server_free(server);
    pages_release(&changing.pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_is_told_its_gpus_and_units),
        cmocka_unit_test(device_nodes_go_with_all_but_cdi_alone),
        cmocka_unit_test(strategies_are_read_as_a_list),
        cmocka_unit_test(readiness_names_what_is_missing),
        cmocka_unit_test(every_figure_is_on_the_page),
        cmocka_unit_test(every_gpu_of_a_pod_is_told_with_its_uuid),
        cmocka_unit_test(use_is_told_beside_what_was_given),
        cmocka_unit_test(as_many_pods_as_are_named_fit_with_the_longest_names),
        cmocka_unit_test(nobody_is_named_unless_it_was_switched_on),
        cmocka_unit_test(nothing_is_told_of_a_gpu_that_an_mps_daemon_serves),
        cmocka_unit_test(the_driver_counts_where_the_kernel_does_not),
        cmocka_unit_test(a_pod_has_the_word_of_its_gpus),
        cmocka_unit_test(a_page_is_of_one_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
