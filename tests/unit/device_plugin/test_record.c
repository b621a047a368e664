/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <sys/stat.h>

#include "alloc_fail.h"
#include "device_plugin/record.h"
#include "scratch.h"

static struct gs_gpu gpus[] = {{.idx = 0, .mem_units = 16, .uuid = "GPU-a"}};

static struct gs_inventory in(enum gs_unit unit)
{
    return (struct gs_inventory){.unit = unit, .gpus = gpus, .gpu_count = 1};
}

/* The host says MiB, with revision 2. */
static void the_newer_of_host_and_node_counts(void **state)
{
    static const struct {
        const char *row, *name;
        struct gs_node node;
        bool on_host;
        enum gs_unit unit;
        int64_t kept_rev; /* of a change of ours then */
    } rows[] = {
        {"the node says nothing", "n1", {0}, true, GS_UNIT_MIB, 3},
        {"the node's is older",
         "n1",
         {.unit = GS_UNIT_GIB, .inventory_rev = 1},
         true,
         GS_UNIT_MIB,
         3},
        {"the node's is as old",
         "n1",
         {.unit = GS_UNIT_GIB, .inventory_rev = 2},
         true,
         GS_UNIT_GIB,
         3},
        {"the node's is newer",
         "n1",
         {.unit = GS_UNIT_GIB, .inventory_rev = 7},
         true,
         GS_UNIT_GIB,
         8},
        {"the node's is an older plugin's", "n1", {.unit = GS_UNIT_GIB}, true, GS_UNIT_GIB, 1},
        {"the host's is another node's", "n2", {0}, false, GS_UNIT_UNKNOWN, 1},
        {"and this node has one",
         "n2",
         {.unit = GS_UNIT_GIB, .inventory_rev = 5},
         false,
         GS_UNIT_GIB,
         6},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_inventory gib = in(GS_UNIT_GIB), mib = in(GS_UNIT_MIB),
                                  other = in(GS_UNIT_256MIB);
        scratch_enter();
        static struct record host, *const record = &host;
        record_open(record, ".", "d", "n1");
        row_equal(r->row, record->on_host, false);
        row_equal(r->row, record_keep(record, &gib), 1);
        row_equal(r->row, record_keep(record, &gib), 1); /* nothing changed */
        row_equal(r->row, record_keep(record, &mib), 2);
        record_release(record);
        record_open(record, ".", "d", r->name);
        row_equal(r->row, record->on_host, r->on_host);
        record_take_node(record, &r->node);
        row_equal(r->row, record->now.unit, r->unit);
        row_equal(r->row, record_keep(record, &other), r->kept_rev);
        record_release(record);
        scratch_leave();
    }
}

static void what_the_host_did_not_take_is_written_later(void **state)
{
    const struct gs_inventory gib = in(GS_UNIT_GIB);
    static struct record record, again;
    scratch_enter();
    record_open(&record, "later", "d", "n1");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(record_keep(&record, &gib), 1);
        assert_int_equal(record.on_host, i > 0);
        if (!i)
            assert_int_equal(mkdir("later", 0700), 0);
    }
    record_open(&again, "later", "d", "n1");
    assert_true(again.on_host);
    record_release(&again);
    record_release(&record);
    scratch_leave();
}

/* The file had no GPUs: that text is nothing to write again. */
static void without_memory_nothing_is_written(void **state)
{
    const struct gs_inventory gib = in(GS_UNIT_GIB), none = {.unit = GS_UNIT_GIB};
    static struct record record, again;
    bool failed = true;
    scratch_enter();
    for (unsigned n = 1; failed; n++) {
        record_open(&record, ".", "d", "n1");
        record_keep(&record, &none);
        record_release(&record);
        record_open(&record, ".", "d", "n1");
        assert_false(record.on_host);
        alloc_fail_begin(n);
        record_keep(&record, &gib);
        failed = alloc_fail_end();
        record_open(&again, ".", "d", "n1");
        assert_int_equal(again.on_host, record.on_host);
        record_release(&again);
        record_release(&record);
    }
    scratch_leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_host_did_not_take_is_written_later),
        cmocka_unit_test(without_memory_nothing_is_written),
        cmocka_unit_test(the_newer_of_host_and_node_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
