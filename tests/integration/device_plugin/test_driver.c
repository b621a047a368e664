/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/nvml/limits.h"
#include "nvml/driver.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rows.h"

/* A driver, and a clock that stands still until it is moved. */
struct rig {
    char dir[64], file[128];
    int64_t now_ns;
    struct gs_clock clock;
    struct gs_gpu_source source;
};

static int64_t rig_now(void *ctx)
{
    return ((struct rig *)ctx)->now_ns;
}

static void show(struct rig *rig, const char *text)
{
    FILE *file = fopen(rig->file, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void rig_up(struct rig *rig, const char *library, const char *text)
{
    struct gs_error err = {0};
    *rig = (struct rig){.dir = "/tmp/gpushare-nvml.XXXXXX", .now_ns = 1000 * GS_NS_PER_S};
    assert_non_null(mkdtemp(rig->dir));
    snprintf(rig->file, sizeof(rig->file), "%s/state", rig->dir);
    setenv("GS_FAKE_NVML", rig->file, 1);
    show(rig, text);
    rig->clock = (struct gs_clock){.monotonic_ns = rig_now, .wall_ns = rig_now, .ctx = rig};
    const struct gs_nvml_config config = {
        .library = library, .sysfs = rig->dir, .clock = &rig->clock};
    assert_int_equal(gs_gpus_from_driver(&config, &rig->source, &err), 0);
}

static void rig_down(struct rig *rig)
{
    rig->source.ops->close(rig->source.ctx);
    unlink(rig->file);
    rmdir(rig->dir);
}

static struct gs_gpu_set read_set(struct rig *rig)
{
    struct gs_gpu_set set;
    struct gs_error err = {0};
    if (rig->source.ops->read(rig->source.ctx, &set, &err) < 0)
        fail_msg("read: %s", err.msg);
    return set;
}

static int wait_once(struct rig *rig)
{
    struct gs_error err = {0};
    return rig->source.ops->wait(rig->source.ctx, GS_NS_PER_MS, &err);
}

#define TWO                                                                                        \
    "gpu GPU-a 81559 0 00000000:3B:00.0\n"                                                         \
    "gpu GPU-b 16384 0 00000000:AF:00.0\n"

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *row, *library, *text, *words;
        enum gs_code code;
    } rows[] = {
        {"no library", "/nowhere/libnvidia-ml.so.1", "", "/nowhere/libnvidia-ml.so.1", GS_ENOENT},
        {"old driver", FAKE_NVML_OLD, TWO, "nvmlDeviceGetMemoryInfo", GS_ENOENT},
        {"driver not loaded", FAKE_NVML, "init 9\n", "Driver Not Loaded", GS_EIO},
        {"another driver's library", FAKE_NVML, "init 18\n", "", GS_ECONFLICT},
        {"no memory told", FAKE_NVML, "gpu GPU-a 0 0 x\n", "does not report its memory", GS_EIO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_gpu_set set;
        struct gs_error err = {0};
        rig_up(&rig, r->library, r->text);
        row_equal(r->row, rig.source.ops->read(rig.source.ctx, &set, &err), -1);
        row_equal(r->row, err.code, r->code);
        row_true(r->row, strstr(err.msg, r->words) != NULL);
        rig_down(&rig);
    }
}

static void cards_are_described(void **state)
{
    struct rig rig;
    char path[256], numa[300];
    rig_up(&rig, FAKE_NVML, TWO);
    snprintf(path, sizeof(path), "%s/bus", rig.dir);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/bus/pci", rig.dir);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/bus/pci/devices", rig.dir);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/bus/pci/devices/0000:3b:00.0", rig.dir);
    mkdir(path, 0700);
    snprintf(numa, sizeof(numa), "%s/numa_node", path);
    FILE *file = fopen(numa, "we");
    assert_non_null(file);
    fputs("1\n", file);
    fclose(file);
    struct gs_gpu_set set = read_set(&rig);
    assert_int_equal(set.count, 2);
    assert_string_equal(set.gpus[0].uuid, "GPU-a");
    assert_string_equal(set.gpus[0].model, "Fake A0");
    assert_int_equal(set.gpus[0].mem_mib, 81559);
    assert_string_equal(set.gpus[0].pci, "0000:3b:00.0");
    assert_int_equal(set.gpus[0].numa, 1);
    assert_int_equal(set.gpus[1].numa, GS_NUMA_NONE);
    assert_int_equal(set.gpus[0].node, 9); /* /dev/nvidia8 */
    assert_int_equal(set.gpus[1].node, 8);
    assert_true(set.gpus[0].healthy && set.gpus[1].healthy);
    assert_int_equal(set.measured, GS_GPU_BIT(0) | GS_GPU_BIT(1));
    assert_int_equal(set.used_bytes[1], (uint64_t)4096 << 20);
    unlink(numa);
    for (int i = 0; i < 4; i++) {
        rmdir(path);
        *strrchr(path, '/') = '\0';
    }
    rig_down(&rig);
}

#define SPLIT "gpu GPU-a 0 1 00000000:3B:00.0\n"
#define WHOLE "gpu GPU-b 2048 0 00000000:AF:00.0\n"

/* The card itself has no memory to give away; its number stays free. */
static void how_many_mps_clients_there_may_be_is_known(void **state)
{
    static const struct {
        const char *row, *text;
        uint32_t clients;
    } rows[] = {
        {"nobody says", TWO, 0},
        {"no capability", "cuda 13010 0\n" TWO, 0},
        {"no version", "cuda 0 9\n" TWO, 0},
        {"Pascal", "cuda 13010 6\n" TWO, 16},
        {"Volta, CUDA 13.0", "cuda 13000 7\n" TWO, 48},
        {"Hopper, CUDA 13.1", "cuda 13010 9\n" TWO, 60},
        {"an instance", "cuda 13010 9\ngpu GPU-a 81559 1 00000000:3B:00.0\nmig MIG-1 9728 3\n", 60},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        rig_up(&rig, FAKE_NVML, r->text);
        row_equal(r->row, read_set(&rig).gpus[0].max_pods, r->clients);
        rig_down(&rig);
    }
}

static void mig_instances_are_gpus(void **state)
{
    struct rig rig;
    rig_up(&rig, FAKE_NVML, SPLIT "mig MIG-1 4864 7\nmig - 0 0\nmig MIG-2 9856 3\n" WHOLE);
    struct gs_gpu_set set = read_set(&rig);
    assert_int_equal(set.count, 3);
    assert_string_equal(set.refused, "");
    const struct {
        uint32_t idx, mem_mib;
        const char *uuid, *pci, *card;
    } expected[] = {{1, 2048, "GPU-b", "0000:af:00.0", ""},
                    {2, 4864, "MIG-1", "0000:3b:00.0", "GPU-a"},
                    {3, 9856, "MIG-2", "0000:3b:00.0", "GPU-a"}};
    for (size_t i = 0; i < GS_COUNT_OF(expected); i++) {
        assert_int_equal(set.gpus[i].idx, expected[i].idx);
        assert_int_equal(set.gpus[i].mem_mib, expected[i].mem_mib);
        assert_string_equal(set.gpus[i].uuid, expected[i].uuid);
        assert_string_equal(set.gpus[i].pci, expected[i].pci);
        assert_string_equal(set.gpus[i].card, expected[i].card);
        assert_true(set.gpus[i].healthy);
        const uint64_t quarter = ((uint64_t)expected[i].mem_mib << 20) / 4;
        assert_int_equal(set.used_bytes[expected[i].idx], quarter);
    }
    rig_down(&rig);
}

static void what_mig_does_not_show_is_said(void **state)
{
    static const struct {
        const char *row, *text, *words;
        uint32_t count;
    } rows[] = {
        {"no instance", SPLIT WHOLE, "GPU 0 has MIG enabled and no MIG instance", 1},
        {"only holes", SPLIT "mig - 0 0\n" WHOLE, "GPU 0 has MIG enabled and no MIG instance", 1},
        {"one without memory", SPLIT "mig MIG-1 0 7\nmig MIG-2 9856 3\n",
         "GPU 0 has a MIG instance that does not report its memory", 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        rig_up(&rig, FAKE_NVML, r->text);
        struct gs_gpu_set set = read_set(&rig);
        row_equal(r->row, set.count, r->count);
        row_true(r->row, strstr(set.refused, r->words) != NULL);
        rig_down(&rig);
    }
}

/* Events come from the card, and may name the instance. */
static void events_hurt_the_instances_they_concern(void **state)
{
    static const struct {
        const char *row, *event;
        bool healthy[3]; /* the whole card, and the two instances */
    } rows[] = {
        {"one instance", "event 0 8 94 3\n", {true, true, false}},
        {"the whole card", "event 0 8 79 -1\n", {true, false, false}},
        {"the other card", "event 1 8 79 -1\n", {false, true, true}},
        {"an application's", "event 0 8 13 3\n", {true, true, true}},
    };
    const char two[] = SPLIT "mig MIG-1 4864 7\nmig MIG-2 9856 3\n" WHOLE;
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        char text[300];
        rig_up(&rig, FAKE_NVML, two);
        read_set(&rig);
        row_equal(r->row, wait_once(&rig), 0);
        snprintf(text, sizeof(text), "%s%s", two, r->event);
        show(&rig, text);
        wait_once(&rig);
        struct gs_gpu_set set = read_set(&rig);
        for (size_t i = 0; i < 3; i++)
            row_equal(r->row, set.gpus[i].healthy, r->healthy[i]);
        rig_down(&rig);
    }
}

static void events_hurt_a_gpu_unless_an_application_did_it(void **state)
{
    static const struct {
        const char *row, *event;
        bool healthy;
        uint32_t xid; /* needs a reset: waiting does not heal it */
    } rows[] = {
        {"XID 48, double bit ECC", "event 1 8 48 -1\n", false, 48},
        {"XID 64, no row left", "event 1 8 64 -1\n", false, 64},
        {"XID 79, fell off the bus", "event 1 8 79 -1\n", false, 79},
        {"XID 95, uncontained", "event 1 8 95 -1\n", false, 95},
        {"XID 119, GSP does not answer", "event 1 8 119 -1\n", false, 119},
        {"XID 79, then one that heals", "event 1 8 79 -1\nevent 1 8 94 -1\n", false, 79},
        {"XID 94, contained", "event 1 8 94 -1\n", false, 0},
        {"ECC event", "event 1 2 0 -1\n", false, 0},
        {"XID 13, application", "event 1 8 13 -1\n", true, 0},
        {"XID 31, application", "event 1 8 31 -1\n", true, 0},
        {"XID 43, application", "event 1 8 43 -1\n", true, 0},
        {"XID 45, application", "event 1 8 45 -1\n", true, 0},
        {"XID 68, application", "event 1 8 68 -1\n", true, 0},
        {"XID 109, application", "event 1 8 109 -1\n", true, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        char text[300];
        rig_up(&rig, FAKE_NVML, TWO);
        read_set(&rig);
        row_equal(r->row, wait_once(&rig), 0);
        snprintf(text, sizeof(text), "%s%s", TWO, r->event);
        show(&rig, text);
        row_equal(r->row, wait_once(&rig), r->healthy ? 0 : 1);
        wait_once(&rig);
        row_equal(r->row, read_set(&rig).gpus[1].healthy, r->healthy);
        row_equal(r->row, read_set(&rig).gpus[0].healthy, true);
        rig.now_ns += GS_NVML_QUIET_NS;
        row_equal(r->row, read_set(&rig).gpus[1].healthy, r->xid == 0);
        row_equal(r->row, read_set(&rig).gpus[1].xid, r->xid);
        rig_down(&rig);
    }
}

/* The driver was away, or we let go of it and somebody reloaded it. */
static void a_reloaded_driver_has_reset_its_gpus(void **state)
{
    static const struct {
        const char *row;
        bool away, release;
        bool healed;
    } rows[] = {
        {"neither", false, false, false},
        {"the driver was away", true, false, true},
        {"it was let go of", false, true, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_gpu_set set;
        rig_up(&rig, FAKE_NVML, TWO);
        row_true(r->row, !read_set(&rig).fresh);
        show(&rig, TWO "event 1 8 79 -1\n");
        row_equal(r->row, wait_once(&rig), 1);
        row_equal(r->row, read_set(&rig).gpus[1].healthy, false);
        show(&rig, r->away ? "init 9\nwait 999\n" : TWO);
        if (r->away) {
            row_equal(r->row, wait_once(&rig), -1);
            row_equal(r->row, rig.source.ops->read(rig.source.ctx, &set, NULL), -1);
        }
        if (r->release)
            rig.source.ops->release(rig.source.ctx);
        show(&rig, TWO);
        rig.now_ns += GS_NVML_QUIET_NS;
        set = read_set(&rig);
        row_equal(r->row, set.gpus[1].healthy, r->healed);
        row_equal(r->row, set.fresh, r->healed);
        rig_down(&rig);
    }
}

/* Longer than a hiccup, and the driver is said to have lost it by not listing it. */
static void one_bad_answer_is_not_a_lost_card(void **state)
{
    static const struct {
        const char *row, *text;
        bool kept, closed;
    } rows[] = {
        {"its UUID fails", "gpu GPU-a 81559 0 x\nmute 999\n", true},
        {"and the library was closed before", "gpu GPU-a 81559 0 x\nmute 999\n", true, true},
        {"its memory fails", "gpu GPU-a 81559 0 x\ngpu GPU-b 0 0 x\n", true},
        {"both fail", "mute 999\nmute 999\n", true},
        {"it is lost", "gpu GPU-a 81559 0 x\nlost\n", false},
        {"it is not listed", "gpu GPU-a 81559 0 x\n", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_gpu_set set;
        rig_up(&rig, FAKE_NVML, TWO);
        read_set(&rig);
        show(&rig, r->text);
        if (r->closed)
            rig.source.ops->release(rig.source.ctx);
        set = read_set(&rig);
        row_equal(r->row, set.count, r->kept ? 2 : 1);
        rig.now_ns += GS_NVML_DOUBT_NS - 1;
        show(&rig, TWO); /* and it begins again */
        read_set(&rig);
        show(&rig, r->text);
        read_set(&rig);
        rig.now_ns += GS_NVML_DOUBT_NS - 1;
        set = read_set(&rig);
        row_equal(r->row, set.count, r->kept ? 2 : 1);
        row_true(r->row, set.gpus[0].healthy && (!r->kept || set.gpus[1].healthy));
        rig.now_ns++;
        int result = rig.source.ops->read(rig.source.ctx, &set, NULL);
        row_true(r->row, result < 0 || set.count == 1);
        rig_down(&rig);
    }
}

/* One sick card takes no other with it, neither when the plugin starts nor later. */
static void a_card_that_does_not_answer_blocks_no_other(void **state)
{
    static const struct {
        const char *row, *second;
        const char *words;
    } rows[] = {
        {"its handle says lost", "lost\n", "GPU 1 does not respond: GPU is lost"},
        {"its UUID says lost", "mute 15\n", "GPU 1 does not respond: GPU is lost"},
        {"its UUID fails", "mute 999\n", "GPU 1 does not respond: Unknown Error"},
        {"its memory fails", "gpu GPU-b 0 0 x\n",
         "GPU 1 does not report its memory (if it shares the host's, use --gpu-file): Unknown"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        for (int known = 0; known < 2; known++) {
            struct rig rig;
            char text[300];
            rig_up(&rig, FAKE_NVML, TWO);
            if (known)
                read_set(&rig);
            snprintf(text, sizeof(text), "gpu GPU-a 81559 0 x\n%s", r->second);
            show(&rig, text);
            struct gs_gpu_set set = read_set(&rig);
            rig.now_ns += GS_NVML_DOUBT_NS; /* for who was there before */
            set = read_set(&rig);
            row_equal(r->row, set.count, 1);
            row_true(r->row, set.gpus[0].healthy);
            row_true(r->row, strstr(set.refused, r->words) != NULL);
            show(&rig, TWO);
            set = read_set(&rig);
            row_true(r->row, set.count == 2 && set.gpus[1].healthy && !set.refused[0]);
            rig_down(&rig);
        }
    }
}

/* However often they broke off. */
static void events_that_broke_off_are_heard_again(void **state)
{
    struct rig rig;
    rig_up(&rig, FAKE_NVML, TWO "wait 999\n");
    for (int i = 0; i < 5; i++) {
        assert_true(!read_set(&rig).deaf);
        assert_int_equal(wait_once(&rig), -1);
        rig.now_ns += (9 << i) * GS_NS_PER_S; /* each pause is twice the last */
        assert_true(read_set(&rig).deaf);
        assert_int_equal(wait_once(&rig), 0); /* not asked */
        rig.now_ns += 300 * GS_NS_PER_S;
    }
    show(&rig, TWO "wait 15\n"); /* a lost GPU is news, and the others are watched on */
    for (int i = 0; i < 2; i++) {
        assert_true(!read_set(&rig).deaf);
        assert_int_equal(wait_once(&rig), 1);
    }
    show(&rig, TWO "event 1 8 79 -1\n");
    assert_true(!read_set(&rig).deaf);
    assert_int_equal(wait_once(&rig), 1);
    assert_false(read_set(&rig).gpus[1].healthy);
    show(&rig, TWO "wait 999\n"); /* after those that were heard the first pause again */
    assert_int_equal(wait_once(&rig), -1);
    rig.now_ns += 10 * GS_NS_PER_S;
    assert_true(!read_set(&rig).deaf);
    show(&rig, TWO "wait 3\n"); /* events that are offered, and are none */
    assert_int_equal(wait_once(&rig), -1);
    rig.now_ns += 300 * GS_NS_PER_S;
    assert_true(read_set(&rig).deaf);
    assert_int_equal(wait_once(&rig), 0);
    rig.source.ops->release(rig.source.ctx);
    assert_true(!read_set(&rig).deaf);
    rig_down(&rig);
}

static int list(const struct rig *rig, uint32_t idx, struct gs_gpu_process *ret, size_t *ret_count,
                struct gs_error *err)
{
    *ret_count = 77;
    return rig->source.ops->processes(rig->source.ctx, idx, ret, ret_count, err);
}

static void processes_are_listed_once(void **state)
{
    static const struct {
        const char *row, *text;
        uint32_t idx;
        struct gs_gpu_process expected[3];
        size_t count;
        bool fails;
    } rows[] = {
        {"what computes cannot be listed", TWO "refuse compute 3\n", 1, {{0}}, 77, true},
        {"what draws cannot", TWO "refuse graphics 999\n", 1, {{0}}, 77, true},
        {"none", TWO, 0, {{0}}, 0},
        {"each GPU's own",
         "gpu GPU-a 16384 0 x\nprocess compute 7 100 -1\ngpu GPU-b 16384 0 y\n"
         "process compute 8 200 -1\nprocess compute 9 300 -1\n",
         1,
         {{8, 200}, {9, 300}},
         2},
        {"in all three lists",
         TWO "process compute 7 100 -1\nprocess graphics 8 200 -1\nprocess mps 9 300 -1\n",
         1,
         {{7, 100}, {8, 200}, {9, 300}},
         3},
        {"one in two lists",
         TWO "process compute 7 100 -1\nprocess graphics 7 100 -1\nprocess mps 7 90 -1\n",
         1,
         {{7, 100}},
         1},
        {"not available", TWO "process compute 7 - -1\n", 1, {{7, GS_GPU_BYTES_UNKNOWN}}, 1},
        {"available in one list",
         TWO "process compute 7 - -1\nprocess graphics 7 5 -1\n",
         1,
         {{7, 5}},
         1},
        {"the other way round",
         TWO "process compute 7 5 -1\nprocess graphics 7 - -1\n",
         1,
         {{7, 5}},
         1},
        {"a card that cannot draw",
         TWO "process compute 7 5 -1\nrefuse graphics 3\n",
         1,
         {{7, 5}},
         1},
        {"no MPS", TWO "process compute 7 5 -1\nrefuse mps 3\n", 1, {{7, 5}}, 1},
        {"an instance",
         SPLIT "mig MIG-1 4864 7\nprocess compute 7 5 7\nmig MIG-2 9856 3\n"
               "process compute 8 6 3\nprocess compute 7 5 7\n" WHOLE,
         3,
         {{8, 6}},
         1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_gpu_process found[GS_GPU_PROCESSES_MAX];
        size_t count;
        rig_up(&rig, FAKE_NVML, r->text);
        read_set(&rig);
        row_equal(r->row, list(&rig, r->idx, found, &count, NULL), r->fails ? -1 : 0);
        row_equal(r->row, count, r->count);
        for (size_t i = 0; i < count && !r->fails; i++) {
            row_equal(r->row, found[i].pid, r->expected[i].pid);
            row_equal(r->row, found[i].bytes, r->expected[i].bytes);
        }
        rig_down(&rig);
    }
}

static void limits_are_the_drivers_own(void **state)
{
    static const struct {
        const char *row, *library, *text, *gpu, *below;
        uint64_t bytes;
        int set, get; /* 0 or an errno */
        uint64_t found;
    } rows[] = {
        {"set", FAKE_NVML, TWO "limits 0 5", "GPU-b", "", 8, 0, 0, 8},
        {"taken off", FAKE_NVML, TWO "limits 0 5", "GPU-b", "", UINT64_MAX, 0, 0, UINT64_MAX},
        {"more is in use", FAKE_NVML, TWO "limits 0 9", "GPU-b", "", 8, EINVAL, EOPNOTSUPP, 0},
        {"no such cgroup", FAKE_NVML, TWO "limits 0 5", "GPU-b", "/none", 8, ENOENT, EOPNOTSUPP, 0},
        {"no such GPU", FAKE_NVML, TWO "limits 0 5", "GPU-z", "", 8, EIO, EIO, 0},
        {"an instance", FAKE_NVML, "gpu GPU-a 81559 1 0000:3B:00.0\nmig MIG-a 9 1\nlimits 0 5",
         "MIG-a", "", 8, EOPNOTSUPP, EOPNOTSUPP, 0},
        {"no capability", FAKE_NVML, TWO "limits 4 5", "GPU-b", "", 8, EPERM, EOPNOTSUPP, 0},
        {"a lost card", FAKE_NVML, TWO "limits 15 5", "GPU-b", "", 8, EIO, EOPNOTSUPP, 0},
        {"the kernel is too old for it", FAKE_NVML, TWO, "GPU-b", "", 8, EOPNOTSUPP, EOPNOTSUPP, 0},
        {"an older driver", FAKE_NVML_OLD, TWO, "GPU-b", "", 8, EOPNOTSUPP, EOPNOTSUPP, 0},
        {"no driver", "/nowhere", TWO, "GPU-b", "", 8, EOPNOTSUPP, EOPNOTSUPP, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        uint64_t bytes = 0, used = 0;
        char cgroup[128];
        rig_up(&rig, r->library, r->text);
        snprintf(cgroup, sizeof(cgroup), "%s%s", rig.dir, r->below);
        struct gs_nvml_limits *limits = gs_nvml_limits_new(r->library);
        const struct gs_memory_limits port = gs_nvml_limits_port(limits);
        row_equal(r->row, port.set(port.ctx, r->gpu, cgroup, r->bytes), r->set);
        row_equal(r->row, port.get(port.ctx, r->gpu, cgroup, &bytes, &used), r->get);
        row_equal(r->row, bytes, r->found);
        row_equal(r->row, used, r->found ? 5 : 0);
        for (int released = 1; released >= 0; released--) {
            gs_nvml_limits_release(limits, released);
            row_equal(r->row, port.set(port.ctx, r->gpu, cgroup, r->bytes),
                      released ? ETIMEDOUT : r->set);
        }
        gs_nvml_limits_free(limits);
        rig_down(&rig);
    }
}

/* The driver shuts down with the last that asks it. */
static void a_driver_that_failed_is_opened_anew_by_all(void **state)
{
    struct rig rig;
    struct gs_gpu_set set;
    uint64_t bytes, used;
    rig_up(&rig, FAKE_NVML, TWO);
    struct gs_nvml_limits *limits = gs_nvml_limits_new(FAKE_NVML);
    const struct gs_memory_limits port = gs_nvml_limits_port(limits);
    bool read = false;
    for (int look = 0; look < 6; look++) {
        read = rig.source.ops->read(rig.source.ctx, &set, NULL) == 0;
        port.get(port.ctx, "GPU-a", "/tmp", &bytes, &used);
        show(&rig, TWO "anew 1");
    }
    gs_nvml_limits_release(limits, true);
    gs_nvml_limits_free(limits);
    assert_true(read);
    rig_down(&rig);
}

static void a_driver_that_takes_too_long_is_not_waited_for(void **state)
{
    static const struct {
        const char *row, *shown;
        int first, second;
    } rows[] = {
        {"slow", TWO "limits -2 0", 0, 0},
        {"it hangs", TWO "limits -1 0", ETIMEDOUT, ETIMEDOUT}, /* last: a call of it stays */
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        uint64_t bytes, used;
        rig_up(&rig, FAKE_NVML, r->shown);
        struct gs_nvml_limits *limits = gs_nvml_limits_new(FAKE_NVML);
        const struct gs_memory_limits port = gs_nvml_limits_port(limits);
        row_equal(r->row, port.set(port.ctx, "GPU-a", rig.dir, 8), r->first);
        row_equal(r->row, port.set(port.ctx, "GPU-a", rig.dir, 9), r->second);
        row_equal(r->row, port.get(port.ctx, "GPU-b", "/tmp", &bytes, &used), ETIMEDOUT);
        gs_nvml_limits_free(limits);
        rig_down(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(cards_are_described),
        cmocka_unit_test(how_many_mps_clients_there_may_be_is_known),
        cmocka_unit_test(mig_instances_are_gpus),
        cmocka_unit_test(what_mig_does_not_show_is_said),
        cmocka_unit_test(events_hurt_the_instances_they_concern),
        cmocka_unit_test(events_hurt_a_gpu_unless_an_application_did_it),
        cmocka_unit_test(a_card_that_does_not_answer_blocks_no_other),
        cmocka_unit_test(events_that_broke_off_are_heard_again),
        cmocka_unit_test(a_reloaded_driver_has_reset_its_gpus),
        cmocka_unit_test(a_driver_that_failed_is_opened_anew_by_all),
        cmocka_unit_test(one_bad_answer_is_not_a_lost_card),
        cmocka_unit_test(processes_are_listed_once),
        cmocka_unit_test(limits_are_the_drivers_own),
        cmocka_unit_test(a_driver_that_takes_too_long_is_not_waited_for), /* last */
    };
    return GS_RUN(tests);
}
