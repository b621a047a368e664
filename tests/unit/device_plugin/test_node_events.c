/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"
#include "rows.h"

static int64_t now_ns;
static const char *pods_there = ""; /* on GPU 3 */

void gs_allocator_name_placed(const struct gs_allocator *alloc, gs_gpu_mask gpus,
                              struct gs_buf *out)
{
    assert_true(gpus == GS_GPU_BIT(3));
    gs_buf_puts(out, pods_there);
}

static struct {
    uint32_t waiting, told;
    bool warning;
    const char *reason;
    char message[NODE_EVENT_BYTES];
} queue;

void gs_allocator_stats(const struct gs_allocator *alloc, struct gs_allocator_stats *ret)
{
    *ret = (struct gs_allocator_stats){.node_events = queue.waiting};
}

void gs_allocator_tell_node(struct gs_allocator *alloc, bool warning, const char *reason,
                            const char *message)
{
    queue.waiting++;
    queue.told++;
    queue.warning = warning;
    queue.reason = reason;
    snprintf(queue.message, sizeof(queue.message), "%s", message);
}

static void forget_events(struct plugin *plugin)
{
    plugin->node_events = (struct node_events){0};
    memset(&queue, 0, sizeof(queue));
}

static int64_t now(void *ctx)
{
    return now_ns;
}

static const struct gs_clock clock_by_hand = {now, now, NULL};

static int setup(void **state)
{
    static struct plugin plugin;
    struct gs_error err = {0};
    plugin = (struct plugin){0};
    forget_events(&plugin);
    now_ns = 3600 * GS_NS_PER_S;
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    *state = &plugin;
    return gs_loop_new(&clock_by_hand, &plugin.loop, &err);
}

static int teardown(void **state)
{
    struct plugin *plugin = *state;
    gs_loop_free(plugin->loop);
    return 0;
}

static void pass(struct plugin *plugin, int64_t ns)
{
    now_ns += ns;
    gs_loop_step(plugin->loop, 0, NULL);
}

static void what_changed_about_a_gpu_is_told(void **state)
{
    enum look { ABSENT, WELL, SICK, GONE };
    static const struct {
        const char *row;
        enum look before, now;
        const char *reason;
        bool warning;
    } rows[] = {
        {"the first look, well", ABSENT, WELL, NULL, false},
        {"the first look, sick", ABSENT, SICK, "GpuUnhealthy", true},
        {"nothing new, well", WELL, WELL, NULL, false},
        {"nothing new, sick", SICK, SICK, NULL, false},
        {"nothing new, gone", GONE, GONE, NULL, false},
        {"falls sick", WELL, SICK, "GpuUnhealthy", true},
        {"recovers", SICK, WELL, "GpuHealthy", false},
        {"goes", WELL, GONE, "GpuRemoved", true},
        {"goes after it fell sick", SICK, GONE, "GpuRemoved", true},
        {"comes back", GONE, WELL, "GpuHealthy", false},
        {"comes back sick", GONE, SICK, NULL, false},
    };
    struct plugin *plugin = *state;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_gpu_set sets[2] = {0};
        const enum look looks[] = {r->before, r->now};
        for (int i = 0; i < 2; i++) {
            if (looks[i] == ABSENT)
                continue;
            sets[i].count = 1;
            sets[i].gpus[0] = (struct gs_gpu){.idx = 3, .healthy = looks[i] == WELL};
            sets[i].gone = looks[i] == GONE ? GS_GPU_BIT(3) : 0;
        }
        forget_events(plugin);
        node_events_of_gpus(plugin, &sets[0], &sets[1]);
        row_equal(r->row, queue.told, r->reason != NULL);
        row_text(r->row, r->reason ? queue.reason : "", r->reason ? r->reason : "");
        row_equal(r->row, queue.warning, r->warning);
    }
}

/* Its pods ask for it by its UUID, whatever card is put in its place. */
static void the_pods_of_a_gone_gpu_are_named(void **state)
{
    static const struct {
        const char *row, *pods, *words;
    } rows[] = {
        {"nobody", "", "GPU 3 (GPU-x) was removed: it accepts no new pods"},
        {"some", "ns/a, ns/b", "delete them if the GPU does not return: ns/a, ns/b"},
    };
    struct plugin *plugin = *state;
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_gpu_set before = {0};
        const struct gs_gpu_set now = {
            .gpus = {{.idx = 3, .uuid = "GPU-x"}}, .count = 1, .gone = GS_GPU_BIT(3)};
        pods_there = r->pods;
        forget_events(plugin);
        node_events_of_gpus(plugin, &before, &now);
        row_true(r->row, strstr(queue.message, r->words) != NULL);
    }
    pods_there = "";
}

/* A GPU that falls sick and recovers every second, for an hour, while the API takes all events. */
static void a_flapping_gpu_writes_no_more_than_one_a_minute(void **state)
{
    struct plugin *plugin = *state;
    for (int i = 0; i < 3600; i++) {
        pass(plugin, GS_NS_PER_S);
        node_events_add(plugin, true, "GpuUnhealthy", "GPU %d", i);
        queue.waiting = 0;
    }
    assert_in_range(queue.told, 60, 60 + NODE_EVENTS);
}

static void the_oldest_of_those_that_wait_are_kept(void **state)
{
    struct plugin *plugin = *state;
    for (int i = 0; i < 2 * NODE_EVENTS; i++)
        node_events_add(plugin, false, "GpuHealthy", "%d", i);
    pass(plugin, 3600 * GS_NS_PER_S); /* none is taken */
    node_events_add(plugin, false, "GpuHealthy", "later");
    assert_int_equal(queue.told, NODE_EVENTS);
    assert_string_equal(queue.message, "7");
    queue.waiting--;
    node_events_add(plugin, false, "GpuHealthy", "later");
    assert_string_equal(queue.message, "later");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_changed_about_a_gpu_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_pods_of_a_gone_gpu_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_flapping_gpu_writes_no_more_than_one_a_minute, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_oldest_of_those_that_wait_are_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
