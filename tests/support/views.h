/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/num.h"
#include "gpushare/core/view.h"
#include "gpushare/model/node.h"

/*
 * Nodes and views from a line of text, one word a GPU:
 *
 *   "16 16:4 24x 8:2n1 32@5"    total, ":" used, "x" not usable, "n" NUMA node, "@" index
 *   "16:4p2/2"                  "p" pods that are there, "/" at most so many
 *   "16:4c60"                   "c" compute that is used, in percent
 *
 * Indices count up from the last one. Memory of the struct itself, nothing to free.
 */
struct test_node {
    struct gs_node node;
    struct gs_gpu gpus[GS_GPUS_MAX];
    uint32_t used_units[GS_GPUS_MAX];
    uint32_t pods[GS_GPUS_MAX];
    uint32_t cores_pct[GS_GPUS_MAX];
    struct gs_gpu_state states[GS_GPUS_MAX];
    struct gs_node_view view;
};

static inline uint32_t test_number(const char **at)
{
    size_t digits = strspn(*at, "0123456789");
    uint32_t value = 0;
    if (!gs_parse_u32(*at, digits, &value))
        abort();
    *at += digits;
    return value;
}

/* Out of line: unrolled over a literal, gcc -O3 warns of bytes behind its end that are never read.
 */
__attribute__((noinline, unused)) static void test_gpu_parse(struct test_node *t, const char **at,
                                                             uint32_t idx)
{
    uint32_t n = t->node.gpu_count++;
    struct gs_gpu gpu = {.idx = idx, .numa = GS_NUMA_NONE, .healthy = true, .schedulable = true};
    gpu.mem_units = test_number(at);
    t->used_units[n] = t->pods[n] = t->cores_pct[n] = 0;
    while (**at && **at != ' ') {
        char mark = *(*at)++;
        if (mark == ':')
            t->used_units[n] = test_number(at);
        else if (mark == 'p')
            t->pods[n] = test_number(at);
        else if (mark == 'c')
            t->cores_pct[n] = test_number(at);
        else if (mark == '/')
            gpu.max_pods = test_number(at);
        else if (mark == 'n')
            gpu.numa = (int16_t)test_number(at);
        else if (mark == '@')
            gpu.idx = test_number(at);
        else if (mark == 'x')
            gpu.healthy = false;
        else
            abort();
    }
    t->gpus[n] = gpu;
}

/* Fills node; the used part of the text goes into used_units. Returns &t->node. */
static inline struct gs_node *test_node_init(struct test_node *t, const char *name,
                                             const char *text)
{
    *t = (struct test_node){0};
    t->node = (struct gs_node){
        .name = name,
        .uid = "",
        .resource_version = "",
        .address = "",
        .inventory_error = "",
        .gpus = t->gpus,
        .ready = true,
        .inventory = true,
        .unit = GS_UNIT_GIB,
    };
    uint32_t idx = 0;
    while (*text) {
        test_gpu_parse(t, &text, idx);
        idx = t->gpus[t->node.gpu_count - 1].idx + 1;
        text += strspn(text, " ");
    }
    return &t->node;
}

/* The same as a view outside any ledger. Returns &t->view. */
static inline struct gs_node_view *test_view_init(struct test_node *t, const char *text)
{
    gs_view_of_node(&t->view, test_node_init(t, "n", text), t->states);
    for (uint32_t i = 0; i < t->node.gpu_count; i++) {
        struct gs_gpu_state *gpu = &t->states[i];
        gpu->used_units = t->used_units[i];
        gpu->pods = t->pods[i];
        gpu->used_cores_pct = t->cores_pct[i];
        gpu->free_cores_pct = gs_gpu_cores_left(t->cores_pct[i]);
        gpu->free_units = gs_gpu_offers(gpu, gpu->used_units, gpu->pods);
    }
    gs_view_summarise(&t->view);
    return &t->view;
}
