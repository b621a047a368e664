/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <ctype.h>

#include "gpushare/model/reason.h"

/*
 * kube-scheduler has used reasons as format strings and groups equal ones: no percent sign, and
 * nothing that differs from pod to pod. The range of gpu-count is fixed text.
 */
static void texts_are_few_fixed_and_harmless(void **state)
{
    for (int i = GS_FITS; i < GS_REASONS; i++) {
        const char *text = gs_reason_text((enum gs_reason)i);
        assert_non_null(text);
        assert_int_equal(text[0] != '\0', i != GS_FITS);
        assert_null(strchr(text, '%'));
        assert_null(strchr(text, '\n'));
        for (const char *c = text; *c; c++) {
            assert_true(isprint((unsigned char)*c));
            if (isdigit((unsigned char)*c))
                assert_int_equal(i, GS_REASON_BAD_COUNT);
        }
        for (int k = GS_FITS; k < i; k++)
            assert_string_not_equal(text, gs_reason_text((enum gs_reason)k));
    }
    assert_string_equal(
        gs_reason_text(GS_REASON_BAD_COUNT),
        "label or annotation gpu-count is not a number from 1 to 64, or they differ");
}

static void labels_are_words_for_metrics(void **state)
{
    for (int i = GS_FITS; i < GS_REASONS; i++) {
        const char *label = gs_reason_label((enum gs_reason)i);
        assert_true(label[0]);
        for (const char *c = label; *c; c++)
            assert_true(islower((unsigned char)*c) || *c == '_');
        for (int k = GS_FITS; k < i; k++)
            assert_string_not_equal(label, gs_reason_label((enum gs_reason)k));
    }
}

static void what_eviction_cannot_help_is_unresolvable(void **state)
{
    static const struct {
        const char *row;
        enum gs_reason reason;
        bool unresolvable;
    } rows[] = {
        {"fits", GS_FITS, false},
        {"unknown node", GS_REASON_UNKNOWN_NODE, false},
        {"no GPUs", GS_REASON_NO_GPUS, true},
        {"too small", GS_REASON_GPU_TOO_SMALL, true},
        {"too few", GS_REASON_TOO_FEW_GPUS, true},
        {"no match", GS_REASON_NO_MATCH, true},
        {"no room", GS_REASON_NO_ROOM, false},
        {"fragmented", GS_REASON_FRAGMENTED, false},
        {"too few free", GS_REASON_TOO_FEW_FREE, false},
        {"not usable", GS_REASON_NOT_USABLE, false},
        {"as many pods as may be", GS_REASON_MAX_PODS, false},
        {"too little compute", GS_REASON_NO_CORES, false},
        {"nominated", GS_REASON_NOMINATED, false},
        {"bind open", GS_REASON_BIND_OPEN, false},
        {"bad count", GS_REASON_BAD_COUNT, true},
        {"not divisible", GS_REASON_NOT_DIVISIBLE, true},
        {"bad placement", GS_REASON_BAD_PLACEMENT, true},
        {"bad model", GS_REASON_BAD_MODEL, true},
        {"bad model deny", GS_REASON_BAD_MODEL_DENY, true},
        {"bad UUID", GS_REASON_BAD_UUID, true},
        {"bad UUID deny", GS_REASON_BAD_UUID_DENY, true},
        {"compute alone", GS_REASON_CORES_ALONE, true},
        {"compute above a GPU's", GS_REASON_CORES_ABOVE, true},
        {"compute of several", GS_REASON_CORES_SPREAD, true},
    };
    assert_int_equal(GS_COUNT_OF(rows), GS_REASONS);
    GS_FOR_EACH_ROW (r, rows) {
        row_equal(r->row, gs_reason_unresolvable(r->reason), r->unresolvable);
    }
}

/* What a refused pod counts under: somebody can do something about the first of the two. */
static void the_nearer_reason_is_the_one_that_may_pass(void **state)
{
    static const struct {
        const char *row;
        enum gs_reason near, far;
    } rows[] = {
        {"room is there, but a bind is open", GS_REASON_BIND_OPEN, GS_REASON_NO_ROOM},
        {"cordoned before all pods", GS_REASON_NOT_USABLE, GS_REASON_MAX_PODS},
        {"all pods before fragmented", GS_REASON_MAX_PODS, GS_REASON_FRAGMENTED},
        {"compute before fragmented", GS_REASON_NO_CORES, GS_REASON_FRAGMENTED},
        {"cordoned before fragmented", GS_REASON_NOT_USABLE, GS_REASON_FRAGMENTED},
        {"fragmented before full", GS_REASON_FRAGMENTED, GS_REASON_NO_ROOM},
        {"full before too small", GS_REASON_NO_ROOM, GS_REASON_GPU_TOO_SMALL},
        {"fragmented before too small", GS_REASON_FRAGMENTED, GS_REASON_GPU_TOO_SMALL},
        {"full before no match", GS_REASON_NO_ROOM, GS_REASON_NO_MATCH},
        {"too small before no GPUs", GS_REASON_GPU_TOO_SMALL, GS_REASON_NO_GPUS},
        {"no GPUs before unknown", GS_REASON_NO_GPUS, GS_REASON_UNKNOWN_NODE},
        {"fits before all", GS_FITS, GS_REASON_BIND_OPEN},
    };
    GS_FOR_EACH_ROW (r, rows) {
        row_true(r->row, gs_reason_nearer(r->near, r->far));
        row_true(r->row, !gs_reason_nearer(r->far, r->near));
    }
    /* of any two that differ one is nearer; what passes by itself is nearer than what does not */
    for (int a = GS_FITS; a < GS_REASONS; a++) {
        assert_false(gs_reason_nearer((enum gs_reason)a, (enum gs_reason)a));
        for (int b = GS_FITS; b < a; b++) {
            bool nearer = gs_reason_nearer((enum gs_reason)a, (enum gs_reason)b);
            assert_true(nearer != gs_reason_nearer((enum gs_reason)b, (enum gs_reason)a));
            if (!gs_reason_unresolvable((enum gs_reason)a) &&
                gs_reason_unresolvable((enum gs_reason)b) && a != GS_REASON_UNKNOWN_NODE)
                assert_true(nearer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_few_fixed_and_harmless),
        cmocka_unit_test(labels_are_words_for_metrics),
        cmocka_unit_test(what_eviction_cannot_help_is_unresolvable),
        cmocka_unit_test(the_nearer_reason_is_the_one_that_may_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
