/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/core/placement.h"

/* Owns no memory. */
static struct gs_pod pod_with(struct gs_container *container)
{
    struct gs_pod pod = {0};
    gs_pod_reset(&pod);
    pod.containers = container;
    pod.container_count = 1;
    return pod;
}

static void broken_annotations_end_in_a_reason(void **state)
{
    static const struct {
        const char *row;
        uint32_t units;
        enum gs_count_kind kind;
        uint32_t gpu_count;
        enum gs_placement placement;
        const char *model;
        enum gs_reason reason;
        uint16_t cores_pct;
    } rows[] = {
        {"nothing broken", 8, GS_COUNT_ABSENT, 0, GS_PLACEMENT_SPREAD, "A100", GS_FITS},
        {"bad count", 8, GS_COUNT_BROKEN, 0, 0, "", GS_REASON_BAD_COUNT},
        {"not divisible", 9, GS_COUNT_VALID, 2, 0, "", GS_REASON_NOT_DIVISIBLE},
        {"too large", UINT32_MAX, GS_COUNT_ABSENT, 0, 0, "", GS_REASON_GPU_TOO_SMALL},
        {"bad placement", 8, GS_COUNT_ABSENT, 0, GS_PLACEMENT_BROKEN, "", GS_REASON_BAD_PLACEMENT},
        {"bad selector", 8, GS_COUNT_ABSENT, 0, 0, "a,,b", GS_REASON_BAD_MODEL},
        {"the first of several", 8, GS_COUNT_BROKEN, 0, GS_PLACEMENT_BROKEN, ",",
         GS_REASON_BAD_COUNT},
        {"no GPU memory: nothing can be broken", 0, GS_COUNT_BROKEN, 0, GS_PLACEMENT_BROKEN, ",",
         GS_FITS},
        {"compute", 8, GS_COUNT_ABSENT, 0, 0, "", GS_FITS, 100},
        {"more than there is", 8, GS_COUNT_ABSENT, 0, 0, "", GS_REASON_CORES_ABOVE, 101},
        {"compute of two GPUs", 8, GS_COUNT_VALID, 2, 0, "", GS_REASON_CORES_SPREAD, 30},
        {"compute alone", 0, GS_COUNT_ABSENT, 0, 0, "", GS_REASON_CORES_ALONE, 30},
        {"compute alone, and what is not looked at", 0, GS_COUNT_BROKEN, 0, GS_PLACEMENT_BROKEN,
         ",", GS_REASON_CORES_ALONE, 30},
    };
    static struct test_node t;
    struct gs_node_view *view = test_view_init(&t, "80 80");
    snprintf(t.gpus[0].model, sizeof(t.gpus[0].model), "A100");
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_container container = {
            .kind = GS_CONTAINER_MAIN, .gpu_units = r->units, .cores_pct = r->cores_pct};
        struct gs_pod pod = pod_with(&container);
        pod.count_kind = r->kind;
        pod.gpu_count = r->gpu_count;
        pod.placement = r->placement;
        pod.gpu_model = r->model;
        struct gs_ask ask;
        gs_ask_of_pod(&ask, &pod);
        row_equal(r->row, ask.broken, r->reason);
        row_equal(r->row, gs_fit(view, &ask), r->reason);
        row_equal(r->row, ask.cores_pct,
                  r->units && r->cores_pct < 100 ? r->cores_pct
                  : r->units && r->cores_pct     ? 100
                                                 : 0);
        if (r->reason) {
            row_true(r->row, !gs_fit_candidates(view, &ask));
            row_true(r->row, !gs_pick_tightest(view, &ask) && !gs_pick_emptiest(view, &ask));
        }
    }
}

#define SEVEN "x,x,x,x,x,x,x,"
enum { A100 = 0x49, T4 = 0x92, NAMELESS = 0x24 };

/* A ledger's node n whose eight GPUs have these models by turns, and UUIDs "GPU-n-0" and on. */
static void add_node(struct gs_ledger *ledger, const char *name, const char *const *models,
                     uint32_t count)
{
    static struct test_node t;
    struct gs_error err = {0};
    struct gs_node *node = test_node_init(&t, name, "80 80 80 80 80 80 80 80");
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        snprintf(node->gpus[i].model, sizeof(node->gpus[i].model), "%s", models[i % count]);
        snprintf(node->gpus[i].uuid, sizeof(node->gpus[i].uuid), "GPU-%s-%u", name, i);
    }
    assert_int_equal(gs_ledger_set_node(ledger, node, &err), 0);
}

/* As texts, and matched ahead. */
static void selectors_choose_gpus(void **state)
{
    static const char *const models[] = {"NVIDIA A100-SXM4-80GB", "Tesla T4", ""};
    static const struct {
        const char *row;
        const char *model, *model_deny, *uuid, *uuid_deny;
        gs_gpu_mask allowed;
    } rows[] = {
        {"model by part of its name", "A100", "", "", "", A100},
        {"any case", "tesla t4", "", "", "", T4},
        {"spaces around entries", " T4 , A100 ", "", "", "", A100 | T4},
        {"no such model", "H100", "", "", "", 0},
        {"longer than the name", "Tesla T4 and more", "", "", "", 0},
        {"whole name", "NVIDIA A100-SXM4-80GB", "", "", "", A100},
        {"denied model", "", "T4", "", "", A100 | NAMELESS},
        {"allowed and denied", "A100,T4", "T4", "", "", A100},
        {"UUID in any case", "", "", "gpu-N-1", "", 0x02},
        {"part of a UUID is none", "", "", "GPU-n", "", 0},
        {"UUIDs, one denied", "", "", "GPU-n-1 , GPU-n-2", "GPU-n-2", 0x02},
        {"a UUID of another node", "", "", "GPU-m-1", "", 0},
        {"denied UUID", "", "", "", "GPU-n-0", 0xfe},
        {"the last of the most UUIDs", "", "", SEVEN SEVEN SEVEN SEVEN "x,x,x,GPU-n-1", "", 0x02},
        {"denied", "", "", "", SEVEN SEVEN SEVEN SEVEN "x,x,x,GPU-n-1", 0xfd},
        {"all four", "T4,A100", "SXM", "GPU-n-0,GPU-n-1,GPU-n-4", "GPU-n-4", 0x02},
    };
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
    add_node(ledger, "n", models, 3);
    struct gs_node_view view = *gs_ledger_view(ledger, "n"), unknown = view;
    unknown.inventory = NULL;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_container container = {.kind = GS_CONTAINER_MAIN, .gpu_units = 8};
        struct gs_pod pod = pod_with(&container);
        struct gs_match match;
        struct gs_ask ask;
        pod.gpu_model = r->model;
        pod.gpu_model_deny = r->model_deny;
        pod.gpu_uuid = r->uuid;
        pod.gpu_uuid_deny = r->uuid_deny;
        gs_ask_of_pod(&ask, &pod);
        row_true(r->row, ask.selects);
        row_equal(r->row, ask.broken, GS_FITS);
        for (int matched = 0; matched < 2; matched++) {
            row_equal(r->row, gs_ask_allowed(&ask, &view), r->allowed);
            row_equal(r->row, gs_fit_candidates(&view, &ask), r->allowed);
            row_equal(r->row, gs_fit(&view, &ask), r->allowed ? GS_FITS : GS_REASON_NO_MATCH);
            row_equal(r->row, gs_ask_allowed(&ask, &unknown), 0);
            gs_ask_match(&ask, ledger, &match);
            row_true(r->row, ask.match == &match);
        }
    }
}

static void a_model_that_came_after_is_read_as_text(void **state)
{
    static const char *const early[] = {"Tesla T4"}, *const late[] = {"NVIDIA A100", "Tesla T4"};
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
    struct gs_match match;
    struct gs_ask ask = {.units = 1, .gpu_count = 1, .selects = true, .model = GS_SLICE("A100")};
    add_node(ledger, "n", early, 1);
    gs_ask_match(&ask, ledger, &match);
    add_node(ledger, "m", late, 2);
    assert_int_equal(gs_ask_allowed(&ask, gs_ledger_view(ledger, "n")), 0);
    assert_int_equal(gs_ask_allowed(&ask, gs_ledger_view(ledger, "m")), 0x55);
}

/* "a,a,…", of so many entries, the last one made longer until the list has `bytes`. */
static const char *list_of(char *out, size_t entries, size_t bytes)
{
    size_t len = 0;
    for (size_t i = 0; i < entries; i++) {
        out[len++] = 'a';
        out[len++] = ',';
    }
    len--;
    while (len < bytes)
        out[len++] = 'a';
    out[len] = '\0';
    return out;
}

static void lists_past_a_ceiling_are_broken(void **state)
{
    static const struct {
        const char *row;
        size_t entries, bytes;
        enum gs_reason reason;
    } rows[] = {
        {"the most entries", GS_LIST_ENTRIES_MAX, 0, GS_FITS},
        {"one more", GS_LIST_ENTRIES_MAX + 1, 0, GS_REASON_BAD_MODEL},
        {"the most bytes", 1, GS_LIST_BYTES_MAX, GS_FITS},
        {"one more", 1, GS_LIST_BYTES_MAX + 1, GS_REASON_BAD_MODEL},
        {"both", GS_LIST_ENTRIES_MAX, GS_LIST_BYTES_MAX, GS_FITS},
        {"far more", 5000, 0, GS_REASON_BAD_MODEL},
    };
    static char text[16384];
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_container container = {.kind = GS_CONTAINER_MAIN, .gpu_units = 8};
        struct gs_pod pod = pod_with(&container);
        pod.gpu_model = list_of(text, r->entries, r->bytes);
        struct gs_ask ask;
        gs_ask_of_pod(&ask, &pod);
        row_equal(r->row, ask.broken, r->reason);
    }
}

static void lists_with_empty_entries_or_controls_are_broken(void **state)
{
    static const struct {
        const char *row;
        const char *list;
        bool ok;
    } rows[] = {
        {"one", "a", true},
        {"two", "a,b", true},
        {"inner space", "a b", true},
        {"only a comma", ",", false},
        {"comma last", "a,", false},
        {"comma first", ",a", false},
        {"empty between", "a,,b", false},
        {"only space", " ", false},
        {"space between", "a, ,b", false},
        {"control",
         "a\x01"
         "b",
         false},
        {"inner newline", "a\nb", false},
    };
    static const enum gs_reason broken[] = {GS_REASON_BAD_MODEL, GS_REASON_BAD_MODEL_DENY,
                                            GS_REASON_BAD_UUID, GS_REASON_BAD_UUID_DENY};
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_container container = {.kind = GS_CONTAINER_MAIN, .gpu_units = 8};
        for (int which = 0; which < 4; which++) {
            struct gs_pod pod = pod_with(&container);
            *(which == 0   ? &pod.gpu_model
              : which == 1 ? &pod.gpu_model_deny
              : which == 2 ? &pod.gpu_uuid
                           : &pod.gpu_uuid_deny) = r->list;
            struct gs_ask ask;
            gs_ask_of_pod(&ask, &pod);
            row_equal(r->row, ask.broken, r->ok ? GS_FITS : broken[which]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_annotations_end_in_a_reason),
        cmocka_unit_test(selectors_choose_gpus),
        cmocka_unit_test(a_model_that_came_after_is_read_as_text),
        cmocka_unit_test(lists_past_a_ceiling_are_broken),
        cmocka_unit_test(lists_with_empty_entries_or_controls_are_broken),
    };
    return GS_RUN(tests);
}
