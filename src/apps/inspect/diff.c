/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/diff.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/annotation.h"

static const struct {
    const char *words, *label;
} kinds[] = {
    [DIFF_NODE_CAME] = {"node came", "node_came"},    [DIFF_NODE_WENT] = {"node went", "node_went"},
    [DIFF_NODE_STATE] = {"node state", "node_state"}, [DIFF_GPU_CAME] = {"GPU came", "gpu_came"},
    [DIFF_GPU_WENT] = {"GPU went", "gpu_went"},       [DIFF_GPU_STATE] = {"GPU state", "gpu_state"},
    [DIFF_STRANDED] = {"more stranded", "stranded"},  [DIFF_POD_CAME] = {"pod came", "pod_came"},
    [DIFF_POD_WENT] = {"pod went", "pod_went"},       [DIFF_POD_MOVED] = {"pod moved", "pod_moved"},
    [DIFF_POD_WAITS] = {"pod waits", "pod_waits"},
};

const char *diff_words(enum diff_kind kind)
{
    return kinds[kind].words;
}

const char *diff_label(enum diff_kind kind)
{
    return kinds[kind].label;
}

enum { TEXT_BYTES = 1024 };

static int note(struct diff *diff, enum diff_kind kind, const char *name, const char *before,
                const char *after)
{
    if (diff->count == diff->cap) {
        size_t cap = diff->cap ? diff->cap * 2 : 64;
        struct diff_change *more = reallocarray(diff->all, cap, sizeof(*more));
        if (!more)
            return -1;
        diff->all = more;
        diff->cap = cap;
    }
    struct diff_change *made = &diff->all[diff->count];
    *made = (struct diff_change){
        .kind = kind,
        .name = gs_arena_strndup(&diff->texts, name, strlen(name)),
        .before = gs_arena_strndup(&diff->texts, before, strlen(before)),
        .after = gs_arena_strndup(&diff->texts, after, strlen(after)),
    };
    if (!made->name || !made->before || !made->after)
        return -1;
    diff->count++;
    diff->counts[kind]++;
    return 0;
}

/* ---- nodes and GPUs ---- */

static void put_size(const struct view *view, const struct view_node *node, char to[TEXT_BYTES])
{
    snprintf(to, TEXT_BYTES, "%" PRIu32 " GPU%s, %" PRIu64 " %s", node->gpu_count,
             node->gpu_count == 1 ? "" : "s", node->total_units,
             gs_unit_name(view_unit_of(view, node)));
}

static void add_word(char to[TEXT_BYTES], const struct view_word *word)
{
    size_t len = strlen(to);
    snprintf(to + len, TEXT_BYTES - len, "%s%s", len ? "," : "", word->word);
}

static void put_node_state(const struct view_node *node, char to[TEXT_BYTES])
{
    const struct view_word *word;
    to[0] = 0;
    for (uint32_t nth = 0; (word = view_node_word(node->node, nth)) != NULL; nth++)
        add_word(to, word);
    if (!to[0])
        snprintf(to, TEXT_BYTES, "ok");
}

static void put_gpu_state(const struct view_gpu *gpu, char to[TEXT_BYTES])
{
    const struct view_word *word;
    to[0] = 0;
    for (uint32_t nth = 0; (word = view_gpu_word(gpu->gpu, gpu->overfull, nth)) != NULL; nth++)
        add_word(to, word);
    if (!to[0])
        snprintf(to, TEXT_BYTES, "ok");
}

static const struct view_gpu *same_gpu(const struct view_node *node, const struct view_gpu *gpu)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct view_gpu *other = &node->gpus[i];
        if (strcmp(other->gpu->uuid, gpu->gpu->uuid) == 0 &&
            (gpu->gpu->uuid[0] || other->idx == gpu->idx))
            return other;
    }
    return NULL;
}

static int compare_gpus(struct diff *diff, const struct view_node *old, const struct view_node *new)
{
    char name[TEXT_BYTES], before[TEXT_BYTES], after[TEXT_BYTES];
    int result = 0;
    for (uint32_t i = 0; result == 0 && i < old->gpu_count; i++) {
        const struct view_gpu *gpu = &old->gpus[i], *now = same_gpu(new, gpu);
        snprintf(name, sizeof(name), "%s GPU%" PRIu32, old->node->name, gpu->idx);
        put_gpu_state(gpu, before);
        if (!now) {
            result = note(diff, DIFF_GPU_WENT, name, before, "");
            continue;
        }
        put_gpu_state(now, after);
        if (strcmp(before, after) != 0)
            result = note(diff, DIFF_GPU_STATE, name, before, after);
    }
    for (uint32_t i = 0; result == 0 && i < new->gpu_count; i++) {
        const struct view_gpu *gpu = &new->gpus[i];
        snprintf(name, sizeof(name), "%s GPU%" PRIu32, new->node->name, gpu->idx);
        put_gpu_state(gpu, after);
        if (!same_gpu(old, gpu))
            result = note(diff, DIFF_GPU_CAME, name, "", after);
    }
    return result;
}

static int compare_stranded(struct diff *diff, const struct view_node *old,
                            const struct view_node *new)
{
    char before[TEXT_BYTES], after[TEXT_BYTES];
    const struct gs_fragmentation *was = &old->fragmentation, *is = &new->fragmentation;
    if (!was->known || !is->known || is->stranded_units <= was->stranded_units)
        return 0;
    snprintf(before, sizeof(before), "%" PRIu64 " %s", was->stranded_units, diff->unit);
    snprintf(after, sizeof(after), "%" PRIu64 " %s", is->stranded_units, diff->unit);
    return note(diff, DIFF_STRANDED, new->node->name, before, after);
}

static int compare_node(struct diff *diff, const struct view_node *old, const struct view_node *new)
{
    char before[TEXT_BYTES], after[TEXT_BYTES];
    put_node_state(old, before);
    put_node_state(new, after);
    if (strcmp(before, after) != 0 &&
        note(diff, DIFF_NODE_STATE, new->node->name, before, after) < 0)
        return -1;
    return compare_gpus(diff, old, new) < 0 ? -1 : compare_stranded(diff, old, new);
}

static int compare_nodes(struct diff *diff, const struct view *before, const struct view *after)
{
    char text[TEXT_BYTES];
    size_t i = 0, k = 0;
    int result = 0;
    while (result == 0 && (i < before->node_count || k < after->node_count)) {
        const struct view_node *old = i < before->node_count ? &before->nodes[i] : NULL;
        const struct view_node *new = k < after->node_count ? &after->nodes[k] : NULL;
        const int order = !old ? 1 : !new ? -1 : strverscmp(old->node->name, new->node->name);
        if (order < 0) {
            put_size(before, old, text);
            result = note(diff, DIFF_NODE_WENT, old->node->name, text, "");
        } else if (order > 0) {
            put_size(after, new, text);
            result = note(diff, DIFF_NODE_CAME, new->node->name, "", text);
        } else {
            result = compare_node(diff, old, new);
        }
        i += order <= 0;
        k += order >= 0;
    }
    return result;
}

/* ---- pods ---- */

struct entry {
    const char *ns, *name;
    const struct view_node *node; /* NULL: it waits */
    const struct gs_claim *claim;
    const struct wait *wait;
};

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->ns, y->ns);
    return order ? order : strcmp(x->name, y->name);
}

/* *caller frees*; NULL: out of memory. */
static struct entry *list_pods(const struct view *view, size_t *ret_count)
{
    struct entry *all = calloc(view->sum.pods + view->waits.count + 1, sizeof(*all));
    size_t count = 0;
    if (!all)
        return NULL;
    for (size_t i = 0; i < view->node_count; i++) {
        const struct view_node *node = &view->nodes[i];
        for (uint32_t c = 0; c < node->claim_count; c++) {
            const struct gs_claim *claim = &node->claims[c];
            all[count++] = (struct entry){claim->ns, claim->name, node, claim, NULL};
        }
    }
    for (size_t i = 0; i < view->waits.count; i++) {
        const struct wait *wait = &view->waits.all[i];
        all[count++] =
            (struct entry){wait->waiting->pod.ns, wait->waiting->pod.name, NULL, NULL, wait};
    }
    qsort(all, count, sizeof(*all), by_name);
    *ret_count = count;
    return all;
}

static void put_place(const struct view *view, const struct entry *entry, bool now,
                      char to[TEXT_BYTES])
{
    char list[GS_IDX_TEXT_BYTES];
    struct wait_row row;
    if (!entry->node) {
        waits_row(&view->waits, entry->wait, view->now_s, &row);
        if (now)
            snprintf(to, TEXT_BYTES, "waits for %s since %s: %s", row.asks, row.since, row.reason);
        else
            snprintf(to, TEXT_BYTES, "waited for %s", row.asks);
        return;
    }
    int len = snprintf(to, TEXT_BYTES, "%" PRIu64 " %s on %s", claim_units(entry->claim),
                       gs_unit_name(view_unit_of(view, entry->node)), entry->node->node->name);
    if (claim_recorded(entry->claim))
        snprintf(to + len, TEXT_BYTES - (size_t)len, " GPU %s",
                 gs_codec_idx_format(entry->claim->gpus, list));
}

/* NULL: it was, or is, not there. */
static int compare_pod(struct diff *diff, const struct view *before, const struct entry *old,
                       const struct view *after, const struct entry *new)
{
    char was[TEXT_BYTES] = "", is[TEXT_BYTES] = "", name[TEXT_BYTES];
    const struct entry *any = new ? new : old;
    if (old && new && !old->node && !new->node)
        return 0;
    snprintf(name, sizeof(name), "%s/%s", any->ns, any->name);
    if (old)
        put_place(before, old, false, was);
    if (new)
        put_place(after, new, true, is);
    if (!new)
        return note(diff, DIFF_POD_WENT, name, was, is);
    if (!new->node)
        return note(diff, DIFF_POD_WAITS, name, was, is);
    if (!old || !old->node)
        return note(diff, DIFF_POD_CAME, name, was, is);
    return strcmp(was, is) == 0 ? 0 : note(diff, DIFF_POD_MOVED, name, was, is);
}

static int compare_pods(struct diff *diff, const struct view *before, const struct view *after)
{
    size_t old_count = 0, new_count = 0, i = 0, k = 0;
    _cleanup_free_ struct entry *old = list_pods(before, &old_count);
    _cleanup_free_ struct entry *new = list_pods(after, &new_count);
    if (!old || !new)
        return -1;
    while (i < old_count || k < new_count) {
        const int order = i == old_count ? 1 : k == new_count ? -1 : by_name(&old[i], &new[k]);
        if (compare_pod(diff, before, order <= 0 ? &old[i] : NULL, after,
                        order >= 0 ? &new[k] : NULL) < 0)
            return -1;
        i += order <= 0;
        k += order >= 0;
    }
    return 0;
}

/* ---- both ---- */

/* Names are in order already. */
static int by_kind(const void *a, const void *b)
{
    const struct diff_change *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strverscmp(x->name, y->name);
}

int diff_find(const struct view *before, const struct view *after, struct diff *ret,
              struct gs_error *err)
{
    *ret = (struct diff){.unit = after->unit};
    const uint32_t old_figures = view_figures(before, ret->before);
    const uint32_t new_figures = view_figures(after, ret->after);
    ret->figures = old_figures < new_figures ? old_figures : new_figures;
    ret->waited = before->waits.count;
    ret->waits = after->waits.count;
    if (compare_nodes(ret, before, after) < 0 || compare_pods(ret, before, after) < 0)
        return gs_fail_nomem(err);
    if (ret->count)
        qsort(ret->all, ret->count, sizeof(*ret->all), by_kind);
    return 0;
}

void diff_release(struct diff *diff)
{
    free(diff->all);
    gs_arena_release(&diff->texts);
    *diff = (struct diff){0};
}
