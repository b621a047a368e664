/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/gpu_indices.h"

#include "rows.h"

/* Sets are written short: "abc" is three cards as the driver counts them, a letter is the end of
 * its UUID, and '.' a card without one. Inventories: "b1 c2". Results: "b1 c2 a0-", '-' is gone. */
enum { TEXT = 1024 };

static struct gs_gpu card(char letter, uint32_t idx)
{
    struct gs_gpu gpu = {.idx = idx, .mem_mib = 1024, .healthy = true, .schedulable = true};
    if (letter != '.')
        snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%c", letter);
    return gpu;
}

static struct gs_gpu_set set_of(const char *letters)
{
    struct gs_gpu_set set = {0};
    for (; letters[set.count]; set.count++)
        set.gpus[set.count] = card(letters[set.count], set.count);
    return set;
}

static bool remember(struct gpu_indices *indices, const char *inventory)
{
    struct gs_gpu gpus[GS_GPUS_MAX];
    uint32_t count = 0;
    for (const char *at = inventory; *at; at += at[2] ? 3 : 2)
        gpus[count++] = card(at[0], (uint32_t)(at[1] - '0'));
    return gpu_indices_remember(indices, gpus, count);
}

static void print(const struct gs_gpu_set *set, char out[TEXT])
{
    out[0] = '\0';
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        bool gone = set->gone & GS_GPU_BIT(gpu->idx);
        size_t len = strlen(out);
        assert_true(gone == !gpu->healthy && gone == (set->source_idx[gpu->idx] == GS_GPUS_MAX));
        snprintf(out + len, TEXT - len, "%s%c%u%s", len ? " " : "",
                 gpu->uuid[0] ? gpu->uuid[4] : '.', gpu->idx, gone ? "-" : "");
    }
}

static void an_index_belongs_to_a_uuid(void **state)
{
    static const struct {
        const char *row, *inventory, *before, *now;
        gs_gpu_mask placed;
        const char *expected;
    } rows[] = {
        {"the first did not come back from a reboot", "a0 b1 c2", "", "bc", 2, "a0- b1 c2"},
        {"the driver counts otherwise", "a0 b1 c2", "", "cab", 0, "a0 b1 c2"},
        {"one is put before the others", "a0 b1", "", "nab", 0, "a0 b1 n2"},
        {"one is replaced, with pods on the old", "a0 b1", "", "nb", 1, "a0- b1 n2"},
        {"one is replaced, without", "a0 b1", "", "nb", 2, "n0 b1"},
        {"lost, and nobody is on it", "", "abc", "bc", 0, "a0- b1 c2"},
        {"all are lost", "", "ab", "", 0, "a0- b1-"},
        {"without UUIDs, one less", "", "..", ".", 0, ".0 .1-"},
        {"one learns its UUID", ".0", "", "a", 0, "a0"},
        {"one learns its UUID, with pods", ".0", "", "a", 1, ".0- a1"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gpu_indices indices = {0};
        struct gs_gpu_set before = set_of(r->before), set = set_of(r->now);
        char text[TEXT];
        row_true(r->row, remember(&indices, r->inventory));
        if (r->before[0])
            gpu_indices_apply(&indices, &before, r->placed);
        gpu_indices_apply(&indices, &set, r->placed);
        print(&set, text);
        row_text(r->row, text, r->expected);
        for (uint32_t i = 0; i < set.count; i++) {
            const struct gs_gpu *gpu = &set.gpus[i];
            bool gone = set.gone & GS_GPU_BIT(gpu->idx);
            row_equal(r->row, set.source_idx[gpu->idx] == GS_GPUS_MAX, gone);
            if (gone || !gpu->uuid[0])
                continue;
            row_equal(r->row, r->now[set.source_idx[gpu->idx]], gpu->uuid[4]);
        }
    }
}

static void who_is_gone_since_before_and_holds_no_pods_is_forgotten(void **state)
{
    static const struct {
        const char *row, *now;
        gs_gpu_mask placed;
        bool some;
        const char *expected;
    } rows[] = {
        {"all are there", "ab", 0, false, "a0 b1"},
        {"pods are on it", "b", 1, false, "a0- b1"},
        {"nobody is", "b", 2, true, "b1"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gpu_indices indices = {0};
        struct gs_gpu_set set = set_of(r->now), again = set;
        char text[TEXT];
        remember(&indices, "a0 b1");
        gpu_indices_apply(&indices, &set, ~(gs_gpu_mask)0);
        row_equal(r->row, gpu_indices_forget(&indices, r->placed), r->some);
        row_equal(r->row, gpu_indices_forget(&indices, r->placed), false);
        gpu_indices_apply(&indices, &again, r->placed);
        print(&again, text);
        row_text(r->row, text, r->expected);
        struct gs_gpu_set none = {0};
        gpu_indices_apply(&indices, &none, 0);
        row_equal(r->row, gpu_indices_forget(&indices, 0), r->placed == 1); /* others were seen */
    }
}

static void an_inventory_that_comes_late_may_contradict(void **state)
{
    static const struct {
        const char *row, *given, *inventory;
        bool good;
    } rows[] = {
        {"the same", "ab", "a0 b1", true},
        {"one more", "ab", "a0 b1 c2", true},
        {"none", "ab", "", true},
        {"another order", "ab", "a1 b0", false},
        {"another has the index", "bc", "a0 b1 c2", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gpu_indices indices = {0};
        struct gs_gpu_set set = set_of(r->given);
        gpu_indices_apply(&indices, &set, 0);
        row_equal(r->row, remember(&indices, r->inventory), r->good);
    }
}

/* What a driver said of a sick card is remembered over a restart, not over a boot. */
static void who_needs_a_reset_is_not_healed_by_a_restart(void **state)
{
    static const struct {
        const char *row;
        uint32_t boot, xid;
        bool fresh, healthy;
    } rows[] = {
        {"remembered", 7, 79, false, false},
        {"another boot", 8, 79, false, true},
        {"the driver was reloaded", 7, 79, true, true},
        {"was well", 7, 0, false, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gpu_indices indices = {.boot = 7};
        struct gs_gpu remembered = card('a', 0);
        remembered.xid = r->xid;
        remembered.xid_boot = r->boot;
        row_true(r->row, gpu_indices_remember(&indices, &remembered, 1));
        for (int i = 0; i < 2; i++) {
            struct gs_gpu_set set = set_of("ab");
            set.fresh = r->fresh;
            gpu_indices_apply(&indices, &set, 0);
            row_equal(r->row, set.gpus[0].healthy, r->healthy);
            row_equal(r->row, set.gpus[0].xid, r->healthy ? 0 : 79);
            row_equal(r->row, set.gpus[0].xid_boot, r->healthy ? 0 : 7);
            row_true(r->row, set.gpus[1].healthy);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_belongs_to_a_uuid),
        cmocka_unit_test(who_is_gone_since_before_and_holds_no_pods_is_forgotten),
        cmocka_unit_test(an_inventory_that_comes_late_may_contradict),
        cmocka_unit_test(who_needs_a_reset_is_not_healed_by_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
