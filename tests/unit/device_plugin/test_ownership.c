/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of GPUs that others give out, and of a driver that somebody replaces. */
#include "device_plugin/ownership.h"

#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"
#include "rows.h"

static char said[512], on_page[512];
static int events;

void node_events_add(struct plugin *plugin, bool warning, const char *reason, const char *fmt, ...)
{
    snprintf(said, sizeof(said), "%s", reason);
    events++;
}

void pages_set_node_error(struct pages *pages, const char *why)
{
    snprintf(on_page, sizeof(on_page), "%s", why);
}

static void reset(struct plugin *plugin)
{
    *plugin = (struct plugin){0};
    record_open(&plugin->devices.record, "/nonexistent", "d", "n");
    said[0] = on_page[0] = '\0';
    events = 0;
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
}

static void gpus_that_others_give_out_are_left_out(void **state)
{
    static const struct {
        const char *row;
        uint32_t whole;
        const char *sliced[3];
        bool share;
        const char *left, *said;
        bool ready;
        uint32_t once; /* that many of them in the record; 0: all */
    } rows[] = {
        {"nobody else", 0, {NULL}, false, "ab", "", true},
        {"NVIDIA's device plugin", 2, {NULL}, false, "", "GpuManagedByOtherDriver", false},
        {"it is wanted so", 2, {NULL}, true, "ab", "", true},
        {"a DRA driver has one", 0, {"GPU-0000b"}, false, "a", "GpuManagedByOtherDriver", true},
        {"a DRA driver has both",
         0,
         {"GPU-0000b", "MIG-0000a"},
         false,
         "",
         "GpuManagedByOtherDriver",
         true},
        {"a DRA driver has the card, with each instance",
         0,
         {"GPU-card", "GPU-card"},
         false,
         "b",
         "GpuManagedByOtherDriver",
         true,
         1},
        {"a DRA driver has some that are not ours",
         0,
         {"GPU-0000x"},
         false,
         "ab",
         "GpuManagedByOtherDriver",
         true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static struct plugin plugin;
        struct gs_sliced_gpu sliced[3];
        struct gs_gpu_set set = {.gpus = {{.idx = 0, .uuid = "MIG-0000a", .card = "GPU-card"},
                                          {.idx = 1, .uuid = "GPU-0000b"}},
                                 .count = 2};
        const struct gs_node node = {.whole_gpus = r->whole};
        char left[8] = "";
        uint32_t count = 0;
        reset(&plugin);
        plugin.settings.share_with_others = r->share;
        for (; count < 3 && r->sliced[count]; count++)
            sliced[count] = (struct gs_sliced_gpu){.node = "n", .uuid = r->sliced[count]};
        for (int i = 0; i < 2; i++) { /* said once */
            ownership_take_node(&plugin, &node);
            row_equal(r->row, plugin.devices.due, i == 0 && r->whole && !r->share);
            plugin.devices.due = false;
        }
        ownership_take_slices(&plugin, sliced, count);
        row_text(r->row, said, r->said);
        row_equal(r->row, events, r->said[0] ? 1 : 0);
        row_equal(r->row, plugin.devices.due, count > 0);
        row_equal(r->row, plugin.devices.record.now.other_count, r->once ? r->once : count);
        row_equal(r->row, plugin.node.due, r->said[0] != '\0');
        row_equal(r->row, on_page[0] == '\0', r->ready);
        ownership_leave_out(&plugin, &set);
        for (uint32_t i = 0; i < set.count; i++)
            left[i] = set.gpus[i].uuid[8];
        row_text(r->row, left, r->left);
        ownership_take_node(&plugin, &(struct gs_node){0});
        row_equal(r->row, on_page[0], 0);
        record_release(&plugin.devices.record);
    }
}

/* As many as before, but others. */
static void a_driver_that_takes_another_gpu_is_news(void **state)
{
    static struct plugin plugin;
    static const char *const uuids[] = {"GPU-a", "GPU-a", "GPU-b", "GPU-b"};
    reset(&plugin);
    for (size_t i = 0; i < GS_COUNT_OF(uuids); i++) {
        const struct gs_sliced_gpu sliced = {.node = "n", .uuid = uuids[i]};
        plugin.devices.due = false;
        ownership_take_slices(&plugin, &sliced, 1);
        row_equal(uuids[i], plugin.devices.due, i % 2 == 0);
    }
    record_release(&plugin.devices.record);
}

static void a_driver_is_let_go_of_while_the_label_says_so(void **state)
{
    static struct plugin plugin;
    reset(&plugin);
    plugin.node.written = true;
    for (int upgrade = 1; upgrade >= 0; upgrade--) {
        for (int i = 0; i < 2; i++) { /* done once */
            ownership_take_node(&plugin, &(struct gs_node){.driver_upgrade = upgrade});
            assert_int_equal(plugin.node.upgrading, upgrade);
            assert_int_equal(plugin.node.due, i == 0);
            plugin.node.due = false;
        }
        assert_string_equal(said, "GpuDriverReleased");
        assert_int_equal(events, 1);
        /* so that the node is made schedulable again */
        assert_int_equal(plugin.node.written, upgrade);
    }
    record_release(&plugin.devices.record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_that_others_give_out_are_left_out),
        cmocka_unit_test(a_driver_that_takes_another_gpu_is_news),
        cmocka_unit_test(a_driver_is_let_go_of_while_the_label_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
