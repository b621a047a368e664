/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wrap.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "inspect/show.h"

/*
 * The map: every GPU a bar in proportion to its memory, every pod a letter, # for pods of other
 * namespaces, a dot for what is free.
 * Letters begin anew at each node; a pod that is spread over GPUs has the same on all of them.
 */
enum { BAR_MAX = 40, BAR_MIN = 10 };

struct map {
    const struct view *view;
    const struct terminal *terminal;
    uint64_t largest_units; /* the GPU that gets the longest bar */
    uint32_t bar;           /* its length */
    uint32_t limit;         /* columns of a line; 0: no limit */
    int digits;             /* of the largest GPU's size */
};

static char letter_of(uint32_t claim)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return letters[claim % (sizeof(letters) - 1)];
}

/* Ends of pods are rounded, not their lengths: a full GPU has a full bar. Whoever is on it is seen,
 * as long as there is room. */
static uint64_t end_of(const struct map *map, uint64_t units)
{
    return (units * map->bar + map->largest_units / 2) / map->largest_units;
}

static void put_bar(const struct map *map, const struct view_node *node, const struct view_gpu *gpu,
                    bool ends)
{
    uint64_t length = end_of(map, gpu->total_units), at = 0, units = 0;
    length = length ? length : 1;
    putchar('[');
    for (uint32_t i = 0; i < node->claim_count; i++) {
        if (!claim_on(&node->claims[i], gpu->idx))
            continue;
        units += node->claims[i].units;
        uint64_t end = end_of(map, units);
        end = end > at ? end : at + 1;
        for (; at < end && at < length; at++)
            putchar(letter_of(i));
    }
    for (; at < end_of(map, gpu->used_units) && at < length; at++)
        putchar('#');
    for (; at < length; at++)
        putchar(gpu->usable ? '.' : 'x');
    putchar(']');
    if (units || !ends) /* something follows */
        printf("%*s", (int)(map->bar - length), "");
}

/* "A=team/pod 8, B=…", in lines that begin below the bar; column: where the first one stands. */
static void put_names(const struct map *map, const struct view_node *node,
                      const struct view_gpu *gpu, int column)
{
    enum { INDENT = 7 };
    _cleanup_(gs_buf_release) struct gs_buf names = GS_BUF(1 << 20);
    for (uint32_t i = 0; i < node->claim_count; i++) {
        const struct gs_claim *claim = &node->claims[i];
        if (gpu ? claim_on(claim, gpu->idx) : !claim_recorded(claim))
            gs_buf_printf(&names, "%s%c=%s/%s %" PRIu32, names.len ? ", " : "", letter_of(i),
                          claim->ns, claim->name, claim->units);
    }
    wrap_words(stdout, column, INDENT, map->limit ? (int)map->limit : INT_MAX,
               names.data ? names.data : "", names.len);
}

static void put_gpu(const struct map *map, const struct view_node *node, const struct view_gpu *gpu)
{
    char words[VIEW_WORDS_BYTES];
    view_gpu_words(gpu, " ", words);
    int column = printf("  GPU%-2" PRIu32 " %*" PRIu64 "/%-*" PRIu64 " ", gpu->idx, map->digits,
                        gpu->used_units, map->digits, gpu->total_units);
    put_bar(map, node, gpu, !words[0]);
    column += (int)map->bar + 2 + printf("%s", words);
    put_names(map, node, gpu, column);
}

static void put_node(const struct map *map, const struct view_node *node)
{
    const char *model = view_node_model(node);
    char words[VIEW_WORDS_BYTES];
    printf("%s: %" PRIu64 " of %" PRIu64 " %s%s%s%s\n", node->node->name, node->used_units,
           node->total_units, map->view->unit, model[0] ? ", " : "", model,
           view_node_words(node->node, ", ", words));
    EACH_GPU (gpu, node)
        put_gpu(map, node, gpu);
    if (node->claim_count &&
        !claim_recorded(&node->claims[node->claim_count - 1])) /* they are last */
        put_names(map, node, NULL, printf("  GPU not known:"));
    putchar('\n');
}

int print_map(const struct view *view, const struct terminal *terminal)
{
    const struct view_node *all = &view->sum.all;
    uint32_t width = terminal->screen ? terminal->width : 0;
    struct map map = {.view = view, .terminal = terminal, .bar = BAR_MAX, .limit = width};
    if (width && width < 3 * BAR_MAX) /* names need room, too */
        map.bar = width / 3 > BAR_MIN ? width / 3 : BAR_MIN;
    map.largest_units = view->sum.largest_gpu_units;
    map.digits = snprintf(NULL, 0, "%" PRIu64, map.largest_units);
    if (map.largest_units < map.bar) /* a letter for each unit of a small one */
        map.bar = (uint32_t)map.largest_units;
    EACH_ROW (node, view)
        put_node(&map, node);
    printf("%" PRIu64 " of %" PRIu64 " %s (%" PRIu64 "%%), free %" PRIu64 ", unusable %" PRIu64
           ", largest free on one GPU %" PRIu32 "\n",
           all->used_units, all->total_units, view->unit,
           view_percent(all->used_units, all->total_units), all->fragmentation.free_units,
           all->unusable_units, all->fragmentation.largest_units);
    view_put_waits(view);
    return 0;
}
