/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop learns of GPUs whose source fails, or does not come back. */
#include "device_plugin/gpu_thread.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device_plugin/writes.h"
#include "gpushare/base/log.h"
#include "gpushare/nvml/driver.h"
#include "gpushare/nvml/listed.h"
#include "rows.h"

#define PATIENCE_NS (10 * GS_NS_PER_S)

/* Two GPUs, and what becomes of the next read. */
struct rig {
    struct plugin plugin;
    atomic_bool fails, hangs, empty, wait_fails;
    atomic_llong now_ns;
    char error[256]; /* on the board */
    bool ended;
};

/* ---- the rest of the program ---- */

int devices_take_gpus(struct plugin *plugin, const struct gs_gpu_set *found, struct gs_error *err)
{
    plugin->devices.found = plugin->set = *found;
    return 0;
}

void board_set_gpu_error(struct board *board, const char *why)
{
    struct rig *rig = (struct rig *)((char *)board - offsetof(struct rig, plugin.board));
    snprintf(rig->error, sizeof(rig->error), "%s", why);
}

void board_set_used(struct board *board, const struct gs_gpu_set *set)
{
}

void plugin_stop(struct plugin *plugin, int result)
{
    struct rig *rig = (struct rig *)((char *)plugin - offsetof(struct rig, plugin));
    assert_int_equal(result, 1);
    rig->ended = true;
}

void plugin_changed(struct plugin *plugin)
{
}

void writes_pump(struct plugin *plugin)
{
}

/* ---- the source ---- */

static int read_rig(void *ctx, struct gs_gpu_set *ret, struct gs_error *err)
{
    struct rig *rig = ctx;
    while (atomic_load(&rig->hangs))
        nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL);
    if (atomic_load(&rig->fails))
        return gs_fail(err, GS_EIO, "the driver is away");
    *ret = (struct gs_gpu_set){0};
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
    return 0;
}

static void close_rig(void *ctx)
{
}

static int64_t now(void *ctx)
{
    return atomic_load(&((struct rig *)ctx)->now_ns);
}

/* ---- */

static void rig_up(struct rig *rig, struct gs_clock *clock)
{
    static const struct gs_gpu_source_ops ops = {read_rig, wait_rig, close_rig};
    const struct gs_gpu_source source = {&ops, rig};
    struct gs_error err = {0};
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
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
    const struct gs_gpu_set *set = &rig->plugin.set;
    if (!rig->plugin.have_gpus)
        return NONE;
    return set->gpus[0].healthy && set->gpus[1].healthy ? WELL : SICK;
}

/* The plugin looks every ten seconds of the loop's clock, which is turned by hand. */
static void until(struct rig *rig, const char *row, enum look look, const char *error,
                  int64_t step_ns)
{
    const struct gs_clock *real = gs_clock_system();
    int64_t until_ns = gs_clock_now_ns(real) + PATIENCE_NS;
    while (look_of(rig) != look || strcmp(rig->error, error) != 0) {
        gs_loop_step(rig->plugin.loop, GS_NS_PER_MS, NULL);
        atomic_fetch_add(&rig->now_ns, step_ns);
        gpu_thread_look(&rig->plugin);
        if (gs_clock_now_ns(real) > until_ns)
            fail_msg("%s: look %d, \"%s\"", row, look_of(rig), rig->error);
    }
}

static void gpus_that_cannot_be_seen_take_no_new_pods(void **state)
{
    static struct rig rig;
    static const struct {
        const char *row;
        bool fails, hangs;
        const char *error;
        int64_t step_ns;
    } rows[] = {
        {"the driver fails", true, false, "the driver is away", 0},
        {"the driver hangs", false, true, "the driver has not answered for 30 s", GS_NS_PER_S},
        {"it hangs, then fails", true, true, "the driver has not answered for 30 s", GS_NS_PER_S},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_clock clock;
        rig = (struct rig){0};
        rig_up(&rig, &clock);
        until(&rig, r->row, WELL, "", 0);
        atomic_store(&rig.fails, r->fails);
        atomic_store(&rig.hangs, r->hangs);
        until(&rig, r->row, SICK, r->error, r->step_ns);
        atomic_store(&rig.hangs, false);
        if (r->fails)
            until(&rig, r->row, SICK, "the driver is away", 0);
        atomic_store(&rig.fails, false);
        until(&rig, r->row, WELL, "", 0);
        rig_down(&rig);
    }
}

/* That there are no events is no news of the GPUs: reading them is. */
static void a_broken_wait_is_no_sickness(void **state)
{
    static struct rig rig;
    struct gs_clock clock;
    rig = (struct rig){0};
    rig_up(&rig, &clock);
    until(&rig, "at first", WELL, "", 0);
    for (int i = 0; i < 3; i++) {
        const struct gs_clock *real = gs_clock_system();
        int64_t until_ns = gs_clock_now_ns(real) + PATIENCE_NS;
        atomic_store(&rig.wait_fails, true);
        while (atomic_load(&rig.wait_fails) && gs_clock_now_ns(real) < until_ns) {
            gs_loop_step(rig.plugin.loop, GS_NS_PER_MS, NULL);
            assert_int_equal(look_of(&rig), WELL);
            assert_string_equal(rig.error, "");
        }
    }
    assert_false(atomic_load(&rig.wait_fails));
    atomic_store(&rig.fails, true);
    until(&rig, "still read", SICK, "the driver is away", 0);
    rig_down(&rig);
}

static void step(struct rig *rig, int64_t real_ns, int64_t jump_ns)
{
    const struct gs_clock *real = gs_clock_system();
    atomic_fetch_add(&rig->now_ns, jump_ns);
    for (int64_t until_ns = gs_clock_now_ns(real) + real_ns;
         gs_clock_now_ns(real) < until_ns && !rig->ended;)
        gs_loop_step(rig->plugin.loop, GS_NS_PER_MS, NULL);
}

/* The container's library is the one that was there when it started: a driver that came later, or
 * was replaced, needs a new container. */
static void a_driver_that_fails_for_long_ends_the_program(void **state)
{
    static struct rig rig;
    static const struct {
        const char *row;
        bool file, had_gpus, recovers;
        bool ends;
    } rows[] = {
        {"never came", false, false, false, true},
        {"was there", false, true, false, true},
        {"answers in between", false, true, true, false},
        {"a file may come at any time", true, false, false, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_clock clock;
        rig = (struct rig){.plugin.settings.gpu_file = r->file ? "gpus.json" : NULL};
        atomic_store(&rig.fails, !r->had_gpus);
        rig_up(&rig, &clock);
        if (r->had_gpus)
            until(&rig, r->row, WELL, "", 0);
        atomic_store(&rig.fails, true);
        until(&rig, r->row, r->had_gpus ? SICK : NONE, "the driver is away", 0);
        step(&rig, 0, 599 * GS_NS_PER_S);
        row_equal(r->row, rig.ended, false);
        if (r->recovers) {
            atomic_store(&rig.fails, false);
            until(&rig, r->row, WELL, "", 0);
            atomic_store(&rig.fails, true);
            until(&rig, r->row, SICK, "the driver is away", 0);
        }
        step(&rig, 4 * GS_NS_PER_S, 1 * GS_NS_PER_S);
        row_equal(r->row, rig.ended, r->ends);
        rig_down(&rig);
    }
}

static void a_node_without_gpus_says_why(void **state)
{
    static struct rig rig;
    struct gs_clock clock;
    rig = (struct rig){0};
    atomic_store(&rig.empty, true);
    rig_up(&rig, &clock);
    until(&rig, "all with MIG", NONE, "there are no GPUs to share: GPU 0 has MIG enabled", 0);
    rig_down(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_that_cannot_be_seen_take_no_new_pods),
        cmocka_unit_test(a_broken_wait_is_no_sickness),
        cmocka_unit_test(a_driver_that_fails_for_long_ends_the_program),
        cmocka_unit_test(a_node_without_gpus_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
