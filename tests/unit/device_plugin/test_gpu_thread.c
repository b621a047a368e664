/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loop learns of GPUs whose source fails, or does not come back. Time is turned by hand,
 * and not on before the thread has seen it, unless it hangs.
 */
#include "device_plugin/gpu_thread.h"

#include <stdatomic.h>

#include "gpushare/base/log.h"
#include "gpushare/nvml/listed.h"
#include "nvml/driver.h"
#include "rows.h"

#define PATIENCE_NS (10 * GS_NS_PER_S)

/* Two GPUs, and what becomes of the next read. */
struct rig {
    struct plugin plugin;
    atomic_bool fails, hangs, empty, wait_fails, mismatch, storm, deaf, fresh;
    atomic_int reads, releases, lists;
    atomic_llong now_ns;
    atomic_llong seen_ns; /* by the thread */
    int64_t step_ns;      /* that time is turned on by */
    pthread_t loops;      /* the loop's thread */
    char error[256];      /* on the pages */
    bool slow;            /* a GPU's three lists of processes take 20 s each */
    int told;             /* times that the pages was told one, or that there is none */
};

/* ---- the rest of the program ---- */

int devices_take_gpus(struct plugin *plugin, const struct gs_gpu_set *found, struct gs_error *err)
{
    plugin->devices.found = plugin->devices.set = *found;
    return 0;
}

void pages_set_gpu_error(struct pages *pages, const char *why)
{
    struct rig *rig = (struct rig *)((char *)pages - offsetof(struct rig, plugin.pages));
    snprintf(rig->error, sizeof(rig->error), "%s", why);
    rig->told++;
}

/* ---- the source ---- */

static int read_rig(void *ctx, struct gs_gpu_set *ret, struct gs_error *err)
{
    struct rig *rig = ctx;
    while (atomic_load(&rig->hangs))
        nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL);
    const int reads = atomic_fetch_add(&rig->reads, 1);
    if (atomic_load(&rig->fails))
        return gs_fail(err, atomic_load(&rig->mismatch) ? GS_ECONFLICT : GS_EIO,
                       "the driver is away");
    *ret = (struct gs_gpu_set){.deaf = atomic_load(&rig->deaf),
                               .fresh = atomic_load(&rig->fresh),
                               .measured = 1,
                               .used_bytes[0] = (uint64_t)reads};
    if (atomic_load(&rig->empty)) {
        snprintf(ret->refused, sizeof(ret->refused), "GPU 0 has MIG enabled");
        return 0;
    }
    for (ret->count = 0; ret->count < 2; ret->count++)
        ret->gpus[ret->count] = (struct gs_gpu){
            .idx = ret->count, .mem_mib = 1024, .healthy = true, .schedulable = true};
    return 0;
}

static int wait_rig(void *ctx, int64_t timeout_ns, struct gs_error *err)
{
    struct rig *rig = ctx;
    if (atomic_exchange(&rig->wait_fails, false))
        return gs_fail(err, GS_EIO, "the events broke off");
    nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL);
    return atomic_load(&rig->storm);
}

static int list_rig(void *ctx, uint32_t idx, struct gs_gpu_process ret[GS_GPU_PROCESSES_MAX],
                    size_t *ret_count, struct gs_error *err)
{
    struct rig *rig = ctx;
    if (rig->slow) {
        atomic_fetch_add(&rig->now_ns, 60 * GS_NS_PER_S);
        nanosleep(&(const struct timespec){.tv_nsec = 20 * GS_NS_PER_MS}, NULL);
    }
    atomic_fetch_add(&rig->lists, 1);
    *ret_count = 0;
    return 0;
}

static void release_rig(void *ctx)
{
    atomic_fetch_add(&((struct rig *)ctx)->releases, 1);
}

static void close_rig(void *ctx)
{
}

static int64_t now(void *ctx)
{
    struct rig *rig = ctx;
    long long now_ns = atomic_load(&rig->now_ns);
    if (!pthread_equal(pthread_self(), rig->loops))
        atomic_store(&rig->seen_ns, now_ns);
    return now_ns;
}

/* ---- */

static void rig_up(struct rig *rig, struct gs_clock *clock)
{
    static const struct gs_gpu_source_ops ops = {.read = read_rig,
                                                 .wait = wait_rig,
                                                 .release = release_rig,
                                                 .processes = list_rig,
                                                 .close = close_rig};
    const struct gs_gpu_source source = {&ops, rig};
    struct gs_error err = {0};
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    rig->loops = pthread_self();
    rig->step_ns = GS_NS_PER_S;
    atomic_store(&rig->now_ns, 3600 * GS_NS_PER_S);
    *clock = (struct gs_clock){now, now, rig};
    assert_int_equal(gs_loop_new(clock, &rig->plugin.loop, &err), 0);
    assert_int_equal(gpu_thread_start(&rig->plugin, &source, &err), 0);
}

static void rig_down(struct rig *rig)
{
    gpu_thread_stop(&rig->plugin);
    gs_loop_free(rig->plugin.loop);
}

enum look { NONE, WELL, SICK };

static enum look look_of(const struct rig *rig)
{
    const struct gs_gpu_set *set = &rig->plugin.devices.set;
    if (!rig->plugin.devices.have_gpus)
        return NONE;
    return set->gpus[0].healthy && set->gpus[1].healthy ? WELL : SICK;
}

static void turn_if_seen(struct rig *rig)
{
    if (atomic_load(&rig->seen_ns) == atomic_load(&rig->now_ns) || atomic_load(&rig->hangs))
        atomic_fetch_add(&rig->now_ns, rig->step_ns);
}

/* All at once, and the thread has seen it: twice, so that it has noted the first time. */
static void turn_on(struct rig *rig, int seconds)
{
    atomic_fetch_add(&rig->now_ns, seconds * GS_NS_PER_S);
    for (int i = 0; i < 2; i++) {
        atomic_store(&rig->seen_ns, 0);
        while (atomic_load(&rig->seen_ns) != atomic_load(&rig->now_ns))
            gs_loop_step(rig->plugin.loop, GS_NS_PER_MS, NULL);
    }
}

static void step(struct rig *rig)
{
    gs_loop_step(rig->plugin.loop, GS_NS_PER_MS, NULL);
    gpu_thread_round(&rig->plugin);
}

static bool has_ended(const struct rig *rig)
{
    assert_int_equal(rig->plugin.round.result, rig->plugin.round.stopping);
    return rig->plugin.round.stopping;
}

static void until(struct rig *rig, const char *row, enum look look, const char *error)
{
    const struct gs_clock *real = gs_clock_system();
    int64_t until_ns = gs_clock_now_ns(real) + PATIENCE_NS;
    step(rig);
    while (look_of(rig) != look || strcmp(rig->error, error) != 0) {
        turn_if_seen(rig);
        step(rig);
        if (gs_clock_now_ns(real) > until_ns)
            fail_msg("%s: look %d, \"%s\"", row, look_of(rig), rig->error);
    }
}

/* Until the source has been read so many times more, in vain. */
static void until_told(struct rig *rig, const char *row, int times)
{
    const struct gs_clock *real = gs_clock_system();
    int64_t until_ns = gs_clock_now_ns(real) + PATIENCE_NS;
    for (int target = rig->told + times; rig->told < target && !has_ended(rig);) {
        turn_if_seen(rig);
        step(rig);
        if (gs_clock_now_ns(real) > until_ns)
            fail_msg("%s: nothing is told", row);
    }
}

static void gpus_that_cannot_be_seen_take_no_new_pods(void **state)
{
    static struct rig rig;
    static const struct {
        const char *row;
        bool fails, hangs;
        const char *error;
    } rows[] = {
        {"the driver fails", true, false, "the driver is away"},
        {"the driver hangs", false, true, "the NVIDIA driver has not responded for 30 s"},
        {"it hangs, then fails", true, true, "the NVIDIA driver has not responded for 30 s"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_clock clock;
        rig = (struct rig){0};
        rig_up(&rig, &clock);
        until(&rig, r->row, WELL, "");
        for (int again = 0; again < 2; again++) {
            atomic_store(&rig.fails, r->fails);
            atomic_store(&rig.hangs, r->hangs);
            until(&rig, r->row, SICK, r->error);
            row_equal(r->row, rig.plugin.devices.found.measured, 0);
            atomic_store(&rig.hangs, false);
            if (r->fails)
                until(&rig, r->row, SICK, "the driver is away");
            atomic_store(&rig.fails, false);
            until(&rig, r->row, WELL, "");
        }
        rig_down(&rig);
    }
}

/* What is in use, too, of which nothing else is made. */
static void whatever_changes_is_told(void **state)
{
    static struct rig rig;
    struct gs_clock clock;
    const struct gs_gpu_set *found = &rig.plugin.devices.found;
    rig = (struct rig){0};
    rig_up(&rig, &clock);
    until(&rig, "at first", WELL, "");
    for (int change = 0; change < 3; change++) {
        atomic_store(&rig.deaf, change >= 1);
        atomic_store(&rig.fresh, change >= 2);
        const uint64_t before = found->used_bytes[0];
        turn_on(&rig, 30);
        turn_on(&rig, 30);
        assert_int_equal(found->deaf, change >= 1);
        assert_int_equal(found->fresh, change >= 2);
        assert_true(found->used_bytes[0] > before);
    }
    rig_down(&rig);
}

/* That there are no events is no news of the GPUs: reading them is. */
static void a_broken_wait_is_no_sickness(void **state)
{
    static struct rig rig;
    struct gs_clock clock;
    rig = (struct rig){0};
    rig_up(&rig, &clock);
    until(&rig, "at first", WELL, "");
    for (int i = 0; i < 3; i++) {
        const struct gs_clock *real = gs_clock_system();
        int64_t until_ns = gs_clock_now_ns(real) + PATIENCE_NS;
        atomic_store(&rig.wait_fails, true);
        while (atomic_load(&rig.wait_fails) && gs_clock_now_ns(real) < until_ns) {
            turn_if_seen(&rig);
            step(&rig);
            assert_int_equal(look_of(&rig), WELL);
            assert_string_equal(rig.error, "");
        }
    }
    assert_false(atomic_load(&rig.wait_fails));
    atomic_store(&rig.fails, true);
    until(&rig, "still read", SICK, "the driver is away");
    rig_down(&rig);
}

/* It looks at the clock while it waits to read again, half a minute in the end. */
static void a_thread_that_pauses_does_not_hang(void **state)
{
    static struct rig rig;
    struct gs_clock clock;
    rig = (struct rig){0};
    atomic_store(&rig.fails, true);
    rig_up(&rig, &clock);
    rig.step_ns = 10 * GS_NS_PER_S;
    for (int told = 0; told < 7; told++) {
        until_told(&rig, "fails", 1);
        assert_string_equal(rig.error, "the driver is away");
    }
    rig_down(&rig);
}

/* The container's library is the one that was there when it started: a driver that came later, or
 * was replaced, needs a new container. */
static void a_driver_that_fails_for_long_ends_the_program(void **state)
{
    static struct rig rig;
    static const struct {
        const char *row;
        bool file, had_gpus, recovers, mismatch;
        bool ends;
    } rows[] = {
        {"never came", false, false, false, false, true},
        {"was there", false, true, false, false, true},
        {"answers in between", false, true, true, false, false},
        {"a file may come at any time", true, false, false, false, false},
        {"another driver's library", false, true, false, true, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_clock clock;
        rig = (struct rig){.plugin.settings.gpus.gpu_file = r->file ? "gpus.json" : NULL};
        atomic_store(&rig.fails, !r->had_gpus);
        rig_up(&rig, &clock);
        if (r->had_gpus)
            until(&rig, r->row, WELL, "");
        atomic_store(&rig.fails, true);
        atomic_store(&rig.mismatch, r->mismatch);
        until(&rig, r->row, r->had_gpus ? SICK : NONE, "the driver is away");
        turn_on(&rig, r->mismatch ? 20 : 590);
        until_told(&rig, r->row, 1);
        row_equal(r->row, has_ended(&rig), false);
        if (r->recovers) {
            atomic_store(&rig.fails, false);
            until(&rig, r->row, WELL, "");
            atomic_store(&rig.fails, true);
            until(&rig, r->row, SICK, "the driver is away");
        }
        turn_on(&rig, 9);
        rig.step_ns = 10 * GS_NS_PER_S;
        until_told(&rig, r->row, 2);
        row_equal(r->row, has_ended(&rig), r->ends);
        rig_down(&rig);
    }
}

static void a_node_without_gpus_says_why(void **state)
{
    static struct rig rig;
    struct gs_clock clock;
    rig = (struct rig){0};
    rig_up(&rig, &clock);
    until(&rig, "at first", WELL, "");
    atomic_store(&rig.empty, true);
    until(&rig, "all with MIG", NONE, "no GPU to share: GPU 0 has MIG enabled");
    rig_down(&rig);
}

/* A thousand events a second are read once a second. */
static void a_storm_of_events_is_paced(void **state)
{
    enum { SECONDS = 20 };
    static struct rig rig;
    struct gs_clock clock;
    rig = (struct rig){.storm = true};
    rig_up(&rig, &clock);
    until(&rig, "at first", WELL, "");
    int before = atomic_load(&rig.reads);
    for (int i = 0; i < 5 * SECONDS; i++) {
        atomic_fetch_add(&rig.now_ns, GS_NS_PER_S / 5);
        while (atomic_load(&rig.seen_ns) != atomic_load(&rig.now_ns))
            gs_loop_step(rig.plugin.loop, GS_NS_PER_MS, NULL);
    }
    int reads = atomic_load(&rig.reads) - before;
    assert_in_range(reads, SECONDS / 2, SECONDS + 2);
    rig_down(&rig);
}

/* In the same storm; and not at all unless somebody asks. */
static void processes_are_listed_every_ten_seconds(void **state)
{
    enum { SECONDS = 60 };
    static const struct {
        const char *row;
        enum pod_usage_from from;
        int least, most; /* times, of two GPUs */
    } rows[] = {{"dmem", POD_USAGE_DMEM, 0, 0},
                {"nvml", POD_USAGE_NVML, 2 * (SECONDS / 10 - 1), 2 * (SECONDS / 10 + 1)},
                {"auto", POD_USAGE_AUTO, 2 * (SECONDS / 10 - 1), 2 * (SECONDS / 10 + 1)}};
    GS_FOR_EACH_ROW (r, rows) {
        static struct rig rig;
        struct gs_clock clock;
        rig = (struct rig){.storm = true, .plugin.settings.pod_usage_from = r->from};
        rig_up(&rig, &clock);
        until(&rig, r->row, WELL, "");
        for (int i = 0; i < 2 * SECONDS; i++) {
            atomic_fetch_add(&rig.now_ns, GS_NS_PER_S / 2);
            while (atomic_load(&rig.seen_ns) != atomic_load(&rig.now_ns))
                step(&rig);
        }
        row_true(r->row, atomic_load(&rig.lists) >= r->least);
        row_true(r->row, atomic_load(&rig.lists) <= r->most);
        row_equal(r->row, rig.plugin.driver_usage.told != 0, r->least != 0);
        row_equal(r->row, rig.plugin.round.usage_due, r->least != 0);
        rig_down(&rig);
        driver_usage_release(&rig.plugin.driver_usage);
    }
}

/* A count that takes longer than a driver may be silent; and news come before the rest of it. */
static void slow_lists_are_no_silence(void **state)
{
    for (int storm = 0; storm < 2; storm++) {
        static struct rig rig;
        struct gs_clock clock;
        rig = (struct rig){.storm = storm, .slow = true};
        rig.plugin.settings.pod_usage_from = POD_USAGE_NVML;
        rig_up(&rig, &clock);
        until(&rig, "at first", WELL, "");
        while (atomic_load(&rig.lists) < 6) {
            turn_if_seen(&rig);
            step(&rig);
            assert_int_equal(look_of(&rig), WELL);
        }
        assert_int_equal(rig.plugin.driver_usage.told != 0, !storm);
        rig_down(&rig);
        driver_usage_release(&rig.plugin.driver_usage);
    }
}

static void a_driver_that_is_let_go_of_is_not_read(void **state)
{
    static struct rig rig;
    struct gs_clock clock;
    rig = (struct rig){0};
    rig_up(&rig, &clock);
    until(&rig, "at first", WELL, "");
    atomic_store(&rig.fails, true); /* it is away, and from now on that is no failure */
    until(&rig, "away", SICK, "the driver is away");
    rig.plugin.node.upgrading = true;
    const char *words = "the driver is released for its upgrade";
    until(&rig, "let go", SICK, words);
    while (!atomic_load(&rig.releases))
        turn_on(&rig, 1);
    int reads = atomic_load(&rig.reads);
    for (int i = 0; i < 4; i++)
        turn_on(&rig, 450);
    assert_int_equal(atomic_load(&rig.reads), reads);
    rig.plugin.node.upgrading = false;
    until(&rig, "not loaded yet", SICK, "the driver is away");
    assert_false(has_ended(&rig));
    atomic_store(&rig.fails, false);
    until(&rig, "taken back", WELL, "");
    assert_int_equal(atomic_load(&rig.releases), 1);
    rig_down(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_that_cannot_be_seen_take_no_new_pods),
        cmocka_unit_test(whatever_changes_is_told),
        cmocka_unit_test(a_broken_wait_is_no_sickness),
        cmocka_unit_test(a_thread_that_pauses_does_not_hang),
        cmocka_unit_test(a_driver_that_fails_for_long_ends_the_program),
        cmocka_unit_test(a_storm_of_events_is_paced),
        cmocka_unit_test(processes_are_listed_every_ten_seconds),
        cmocka_unit_test(slow_lists_are_no_silence),
        cmocka_unit_test(a_driver_that_is_let_go_of_is_not_read),
        cmocka_unit_test(a_node_without_gpus_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
