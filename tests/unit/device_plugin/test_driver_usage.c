/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/driver_usage.h"

#include <unistd.h>

#include "fake_proc.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "rows.h"

#define GIB    (1ULL << 30)
#define NOW_NS (1000 * GS_NS_PER_S)
enum { GPUS = 3, PROCESSES = 6, REFUSED = -1 };

/* A driver that lists these, and a /proc in which PID 1 is the host's, 10 to 19 are pod a's, 20 to
 * 29 pod b's, and no other is there. */
struct rig {
    char dir[64];
    int counts[GPUS]; /* REFUSED: the driver does not tell */
    struct gs_gpu_process processes[GPUS][PROCESSES];
    struct gs_gpu_set set;
    struct gs_gpu_source source;
    struct gs_process_pods *pods;
    struct driver_usage usage;
};

static int list(void *ctx, uint32_t idx, struct gs_gpu_process ret[GS_GPU_PROCESSES_MAX],
                size_t *ret_count, struct gs_error *err)
{
    const struct rig *rig = ctx;
    if (rig->counts[idx] == REFUSED)
        return gs_fail(err, GS_EIO, "it does not tell");
    *ret_count = (size_t)rig->counts[idx];
    memcpy(ret, rig->processes[idx], *ret_count * sizeof(*ret));
    return 0;
}

static void put(const struct rig *rig, uint32_t pid, const char *file, const char *text)
{
    fake_proc_put(rig->dir, pid, file, text, strlen(text));
}

static void make(struct rig *rig)
{
    static const struct gs_gpu_source_ops ops = {.processes = list};
    static const uint32_t pids[] = {1, 10, 11, 20, 21};
    *rig = (struct rig){.dir = "/tmp/gs-usage-XXXXXX", .set = {.count = GPUS}};
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    assert_non_null(mkdtemp(rig->dir));
    GS_FOR_EACH_ROW (pid, pids) {
        put(rig, *pid, "stat", "7 (x) S 1 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 500 1");
        put(rig, *pid, "cgroup",
            *pid < 10   ? "0::/system.slice/x.service\n"
            : *pid < 20 ? "0::/kubepods/poda/c\n"
                        : "0::/../podb/c\n");
    }
    for (uint32_t i = 0; i < GPUS; i++) {
        rig->set.gpus[i].idx = i;
        snprintf(rig->set.gpus[i].uuid, sizeof(rig->set.gpus[i].uuid), "GPU-%c", 'a' + (int)i);
        rig->set.measured |= GS_GPU_BIT(i);
        rig->set.used_bytes[i] = 16 * GIB;
    }
    rig->source = (struct gs_gpu_source){&ops, rig};
    rig->pods = gs_process_pods_new(rig->dir);
}

static void clear(struct rig *rig)
{
    driver_usage_release(&rig->usage);
    gs_process_pods_free(rig->pods);
    remove_tree(rig->dir);
}

static int64_t time_of(void *ctx)
{
    return *(int64_t *)ctx;
}

static void read_once(struct rig *rig, const struct gs_gpu_set *indices, int64_t now_ns)
{
    struct driver_reading *reading =
        driver_usage_read(&rig->source, &rig->set, rig->pods, time_of, &now_ns);
    assert_non_null(reading);
    driver_usage_take(&rig->usage, reading, indices);
}

static struct pod_use use_of(struct rig *rig, const char *uid, int64_t now_ns)
{
    struct pod_use use = {0};
    driver_usage_find(&rig->usage, uid, GS_GPU_BIT(0) | GS_GPU_BIT(1) | GS_GPU_BIT(2), now_ns,
                      &use);
    return use;
}

#define UNKNOWN GS_GPU_BYTES_UNKNOWN

/* The driver answers before the API server does. */
static void a_pod_that_comes_after_the_reading_uses_what_was_read(void **state)
{
    struct rig rig;
    make(&rig);
    rig.counts[0] = 1;
    rig.processes[0][0] = (struct gs_gpu_process){10, 2 * GIB};
    read_once(&rig, &rig.set, NOW_NS);
    for (int pass = 0; pass < 2; pass++) {
        driver_usage_pass_begin(&rig.usage);
        driver_usage_pass_end(&rig.usage);
    }
    const struct pod_use use = use_of(&rig, "a", NOW_NS);
    assert_int_equal(use.used_on[0], 2 * GIB);
    assert_int_equal(use.peak_on[0], 2 * GIB);
    rig.counts[0] = 0;
    read_once(&rig, &rig.set, NOW_NS);
    driver_usage_pass_begin(&rig.usage);
    driver_usage_pass_end(&rig.usage);
    assert_int_equal(rig.usage.count, 0);
    clear(&rig);
}

static void a_process_that_tells_again_is_counted_again(void **state)
{
    static const uint64_t bytes[] = {3 * GIB, UNKNOWN, 2 * GIB};
    struct rig rig;
    make(&rig);
    rig.counts[0] = REFUSED;
    rig.counts[1] = 1;
    GS_FOR_EACH_ROW (r, bytes) {
        rig.processes[1][0] = (struct gs_gpu_process){10, *r};
        read_once(&rig, &rig.set, NOW_NS);
        const struct pod_use use = use_of(&rig, "a", NOW_NS);
        assert_int_equal(use.counted & 3, *r != UNKNOWN ? GS_GPU_BIT(1) : 0);
        assert_int_equal(use.used_on[1], *r != UNKNOWN ? *r : 0);
    }
    rig.counts[1] = 0; /* it is idle, and there */
    read_once(&rig, &rig.set, NOW_NS);
    for (int pass = 0; pass < 2; pass++) {
        driver_usage_pass_begin(&rig.usage);
        assert_int_equal(use_of(&rig, "a", NOW_NS).peak_on[1], 3 * GIB);
        driver_usage_pass_end(&rig.usage);
    }
    clear(&rig);
}

/* On GPU 0 the two are told twice of what is in use; what a says of GPU 1 is not known. */
static void each_gpu_has_a_sum_of_its_own(void **state)
{
    struct rig rig;
    make(&rig);
    rig.counts[0] = 2;
    rig.counts[1] = 3;
    rig.set.used_bytes[0] = 6 * GIB;
    rig.set.used_bytes[1] = 4 * GIB;
    memcpy(rig.processes[0], (struct gs_gpu_process[]){{10, 6 * GIB}, {20, 6 * GIB}},
           2 * sizeof(rig.processes[0][0]));
    memcpy(rig.processes[1], (struct gs_gpu_process[]){{10, UNKNOWN}, {11, GIB}, {20, 2 * GIB}},
           3 * sizeof(rig.processes[0][0]));
    read_once(&rig, &rig.set, NOW_NS);
    const struct pod_use a = use_of(&rig, "a", NOW_NS), b = use_of(&rig, "b", NOW_NS);
    assert_int_equal(a.used_on[0], 3 * GIB);
    assert_int_equal(a.counted & GS_GPU_BIT(1), 0);
    assert_int_equal(b.used_on[0], 3 * GIB);
    assert_int_equal(b.used_on[1], 2 * GIB);
    struct gs_gpu_set later =
        rig.set; /* they have each other's number by now, and b has left one */
    later.gpus[0].idx = 1;
    later.gpus[1].idx = 0;
    rig.counts[1] = 0;
    read_once(&rig, &later, NOW_NS);
    const struct pod_use moved = use_of(&rig, "b", NOW_NS);
    assert_int_equal(moved.used_on[0], 0);
    assert_int_equal(moved.used_on[1], 3 * GIB);
    clear(&rig);
}

static void an_old_reading_tells_nothing(void **state)
{
    static const struct {
        const char *row;
        bool read;
        int64_t age_s;
        bool told;
    } rows[] = {{"none yet", false, 0, false},
                {"two are missed", true, 29, true},
                {"three are", true, 30, false}};
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        make(&rig);
        if (r->read)
            read_once(&rig, &rig.set, NOW_NS);
        row_equal(r->row, use_of(&rig, "a", NOW_NS + r->age_s * GS_NS_PER_S).counted != 0, r->told);
        clear(&rig);
    }
}

/* One pass: a is there or not, and above its share by so much, and so is b, by a context. */
static uint64_t told_of_a(struct rig *rig, bool there, uint64_t over, int64_t now_ns)
{
    uint64_t bytes = 0, told = 0;
    const char *uid;
    driver_usage_pass_begin(&rig->usage);
    use_of(rig, "b", NOW_NS);
    driver_usage_over(&rig->usage, "b", GIB);
    if (there) {
        use_of(rig, "a", NOW_NS);
        driver_usage_over(&rig->usage, "a", over);
        driver_usage_over(&rig->usage, "a", over / 2); /* on another GPU */
    }
    driver_usage_pass_end(&rig->usage);
    while ((uid = driver_usage_next_over(&rig->usage, now_ns, &bytes)) != NULL) {
        assert_string_equal(uid, "a");
        assert_int_equal(told, 0);
        told = bytes;
    }
    return told;
}

static void who_is_above_his_share_is_told_each_hour(void **state)
{
    static const struct {
        int64_t at_s;
        bool there;
        uint64_t over, told;
    } passes[] = {{0, true, 0, 0},
                  {10, true, GIB, 0},
                  {20, true, 3 * GIB, 3 * GIB},
                  {30, true, 4 * GIB, 0},
                  {3619, true, 4 * GIB, 0},
                  {3620, true, 2 * GIB, 2 * GIB},
                  {7220, true, 0, 0},
                  {7230, true, 5 * GIB, 5 * GIB},
                  {7240, false, 0, 0}, /* the last reading has it */
                  {7250, true, 2 * GIB, 0},
                  {7260, false, 0, 0}, /* that one has not */
                  {7270, true, 2 * GIB, 2 * GIB}};
    struct rig rig;
    make(&rig);
    rig.counts[0] = 2;
    rig.processes[0][0] = (struct gs_gpu_process){10, GIB};
    rig.processes[0][1] = (struct gs_gpu_process){20, GIB};
    read_once(&rig, &rig.set, NOW_NS);
    GS_FOR_EACH_ROW (pass, passes) {
        int64_t now_ns = NOW_NS + pass->at_s * GS_NS_PER_S;
        rig.processes[0][0].pid = pass->at_s == 7260 ? 1 : 10;
        if (pass->at_s >= 7260)
            read_once(&rig, &rig.set, NOW_NS);
        assert_int_equal(told_of_a(&rig, pass->there, pass->over, now_ns), pass->told);
    }
    clear(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_that_comes_after_the_reading_uses_what_was_read),
        cmocka_unit_test(a_process_that_tells_again_is_counted_again),
        cmocka_unit_test(each_gpu_has_a_sum_of_its_own),
        cmocka_unit_test(an_old_reading_tells_nothing),
        cmocka_unit_test(who_is_above_his_share_is_told_each_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
