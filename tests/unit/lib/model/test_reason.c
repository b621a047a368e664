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
        assert_null(strpbrk(text, "\"\\")); /* written into JSON as it is */
        for (const char *c = text; *c; c++) {
            assert_true(isprint((unsigned char)*c));
            if (isdigit((unsigned char)*c))
                assert_int_equal(i, GS_REASON_BAD_COUNT);
        }
        for (int k = GS_FITS; k < i; k++)
            assert_string_not_equal(text, gs_reason_text((enum gs_reason)k));
    }
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
    static const enum gs_reason resolvable[] = {GS_FITS,
                                                GS_REASON_UNKNOWN_NODE,
                                                GS_REASON_NO_ROOM,
                                                GS_REASON_FRAGMENTED,
                                                GS_REASON_TOO_FEW_FREE,
                                                GS_REASON_NOT_USABLE,
                                                GS_REASON_MAX_PODS,
                                                GS_REASON_NO_CORES,
                                                GS_REASON_NOMINATED,
                                                GS_REASON_BIND_OPEN};
    for (int i = GS_FITS; i < GS_REASONS; i++) {
        bool passes = false;
        for (size_t k = 0; k < GS_COUNT_OF(resolvable); k++)
            passes = passes || resolvable[k] == (enum gs_reason)i;
        row_equal(gs_reason_label((enum gs_reason)i), gs_reason_unresolvable((enum gs_reason)i),
                  !passes);
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
        {"fragmented before full", GS_REASON_FRAGMENTED, GS_REASON_NO_ROOM},
        {"full before too small", GS_REASON_NO_ROOM, GS_REASON_GPU_TOO_SMALL},
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
    return GS_RUN(tests);
}
