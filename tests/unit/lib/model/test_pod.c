/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/model/pod.h"

static void placements_have_exact_names(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        bool ok;
        enum gs_placement placement;
    } rows[] = {
        {"binpack", "binpack", true, GS_PLACEMENT_BINPACK},
        {"spread", "spread", true, GS_PLACEMENT_SPREAD},
        {"rollout", "rollout", true, GS_PLACEMENT_ROLLOUT},
        {"empty is no policy", "", false, 0},
        {"case counts", "Spread", false, 0},
        {"prefix", "spr", false, 0},
        {"longer", "spread ", false, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        enum gs_placement placement = (enum gs_placement)77;
        row_equal(r->row, gs_placement_parse(r->text, strlen(r->text), &placement), r->ok);
        row_equal(r->row, placement, r->ok ? r->placement : 77);
        if (r->ok)
            row_text(r->row, gs_placement_name(placement), r->text);
    }
    assert_string_equal(gs_placement_name(GS_PLACEMENT_DEFAULT), "");
    assert_string_equal(gs_placement_name(GS_PLACEMENT_BROKEN), "");
}

/* The text members, for checks on all of them. */
static const struct {
    const char *row;
    size_t offset;
} texts[] = {
#define TEXT(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct gs_pod, name)                                                       \
    }
    TEXT(uid),
    TEXT(ns),
    TEXT(name),
    TEXT(resource_version),
    TEXT(node_name),
    TEXT(nominated_node),
    TEXT(owner_uid),
    TEXT(owner),
    TEXT(owner_api),
    TEXT(owner_kind),
    TEXT(owner_name),
    TEXT(static_uid),
    TEXT(said),
    TEXT(scheduler_name),
    TEXT(group),
    TEXT(term),
    TEXT(offer),
    TEXT(gpu_model),
    TEXT(gpu_model_deny),
    TEXT(gpu_uuid),
    TEXT(gpu_uuid_deny),
};

static const char **text_of(struct gs_pod *pod, size_t offset)
{
    return (const char **)((char *)pod + offset);
}

static void reset_makes_every_text_empty(void **state)
{
    struct gs_pod pod = {0};
    for (int round = 0; round < 2; round++) {
        gs_pod_reset(&pod);
        GS_FOR_EACH_ROW (r, texts) {
            row_text(r->row, *text_of(&pod, r->offset), "");
            *text_of(&pod, r->offset) = gs_arena_strndup(&pod.arena, "x", 1);
        }
        assert_int_equal(pod.container_count, 0);
        assert_int_equal(pod.phase, GS_PHASE_UNKNOWN);
        assert_false(pod.gpu_units_overflow);
        pod.container_count = 7;
        pod.phase = GS_PHASE_FAILED;
        pod.gpu_units_overflow = true;
    }
    gs_pod_release(&pod);
    assert_null(pod.arena.head);
}

static void only_an_end_of_the_phase_is_terminal(void **state)
{
    static const struct {
        const char *row;
        enum gs_pod_phase phase;
        bool terminal;
    } rows[] = {
        {"unknown", GS_PHASE_UNKNOWN, false}, {"pending", GS_PHASE_PENDING, false},
        {"running", GS_PHASE_RUNNING, false}, {"succeeded", GS_PHASE_SUCCEEDED, true},
        {"failed", GS_PHASE_FAILED, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {.phase = r->phase, .deleting = true};
        row_equal(r->row, gs_pod_terminal(&pod), r->terminal);
    }
}

static void a_copy_owns_its_texts(void **state)
{
    struct gs_pod from = {0};
    gs_pod_reset(&from);
    GS_FOR_EACH_ROW (r, texts) {
        *text_of(&from, r->offset) = gs_arena_strndup(&from.arena, r->row, strlen(r->row));
    }
    struct gs_container containers[] = {{.gpu_units = 3, .kind = GS_CONTAINER_INIT},
                                        {.gpu_units = 5, .kind = GS_CONTAINER_MAIN}};
    from.containers = containers;
    from.container_count = 2;
    from.priority = -5;
    from.recorded = GS_RECORDED_VALID;
    from.recorded_gpus = 9;

    struct gs_pod to = {0};
    for (int round = 0; round < 2; round++) { /* into a zeroed one, then into a used one */
        assert_int_equal(gs_pod_copy(&to, &from), 0);
        assert_ptr_not_equal(to.containers, from.containers);
        assert_int_equal(to.container_count, 2);
        assert_memory_equal(to.containers, containers, sizeof(containers));
        GS_FOR_EACH_ROW (r, texts) {
            row_true(r->row, *text_of(&to, r->offset) != *text_of(&from, r->offset));
        }
        assert_int_equal(to.priority, -5);
        assert_int_equal(to.recorded_gpus, 9);
    }
    gs_pod_release(&from);
    GS_FOR_EACH_ROW (r, texts) {
        row_text(r->row, *text_of(&to, r->offset), r->row);
    }
    gs_pod_release(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placements_have_exact_names),
        cmocka_unit_test(reset_makes_every_text_empty),
        cmocka_unit_test(only_an_end_of_the_phase_is_terminal),
        cmocka_unit_test(a_copy_owns_its_texts),
    };
    return GS_RUN(tests);
}
