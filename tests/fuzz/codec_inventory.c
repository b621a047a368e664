/* SPDX-License-Identifier: Apache-2.0 */
/* What was read as an inventory is the same after being written and read again. */
#include "fuzz.h"
#include "gpushare/codec/inventory.h"

static void check_same(const struct gs_gpu *a, const struct gs_gpu *b)
{
    FUZZ_CHECK(a->idx == b->idx && a->mem_units == b->mem_units && a->mem_mib == b->mem_mib);
    FUZZ_CHECK(a->numa == b->numa && a->healthy == b->healthy);
    FUZZ_CHECK(a->schedulable == b->schedulable);
    FUZZ_CHECK(strcmp(a->uuid, b->uuid) == 0 && strcmp(a->model, b->model) == 0);
}

FUZZ_TEXT(input)
{
    struct gs_arena arena = {0};
    struct gs_inventory first, second;
    struct gs_error err = {0};
    struct gs_buf text = GS_BUF((size_t)1 << 20);
    if (gs_codec_inventory_decode(input, &arena, &first, &err) == 0) {
        gs_codec_inventory_encode(&text, &first);
        FUZZ_CHECK(gs_codec_inventory_decode(fuzz_written(&text), &arena, &second, &err) == 0);
        FUZZ_CHECK(first.unit == second.unit && first.gpu_count == second.gpu_count);
        FUZZ_CHECK(first.tells_moved == second.tells_moved);
        FUZZ_CHECK(first.unit_doubted == second.unit_doubted && first.rev == second.rev);
        FUZZ_CHECK(!first.node == !second.node && first.mps == second.mps);
        FUZZ_CHECK(!first.node || strcmp(first.node, second.node) == 0);
        FUZZ_CHECK(first.other_count == second.other_count);
        for (uint32_t i = 0; i < first.other_count; i++)
            FUZZ_CHECK(strcmp(first.others[i], second.others[i]) == 0);
        for (uint32_t i = 0; i < first.gpu_count; i++)
            check_same(&first.gpus[i], &second.gpus[i]);
    } else {
        FUZZ_CHECK(err.code == GS_EPROTO || err.code == GS_ETOOBIG);
    }
    gs_buf_release(&text);
    gs_arena_release(&arena);
}
