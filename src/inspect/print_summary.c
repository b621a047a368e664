/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "gpushare/base/cleanup.h"
#include "inspect/show.h"

/*
 * The original's summary: NAME IPADDRESS GPU0(Allocated/Total) … PENDING(Allocated) GPU
 * Memory(GiB), one table for all nodes.
 */

static const char *ratio(struct sheet *to, uint64_t used, uint64_t total)
{
    return gs_arena_printf(&to->texts, "%" PRIu64 "/%" PRIu64, used, total);
}

static void write_node(struct sheet *to, const struct view_node *all, const struct view_node *node)
{
    const char *address = node->node->address;
    sheet_row(to);
    column_text(to, COLUMN_TEXT, "NAME", NULL, COLUMN_ALWAYS, node->node->name);
    column_text(to, COLUMN_TEXT, "IPADDRESS", NULL, COLUMN_ALWAYS,
                address[0] ? address : "unknown");
    for (uint32_t i = 0; i < all->columns; i++) {
        const struct view_gpu *gpu = view_gpu_at(node, i);
        column_text(to, COLUMN_RIGHT, gs_arena_printf(&to->texts, "GPU%u(Allocated/Total)", i),
                    NULL, COLUMN_ALWAYS,
                    ratio(to, gpu ? gpu->used_units : 0, gpu ? gpu->total_units : 0));
    }
    if (all->pending_pods)
        column_number(to, COLUMN_NUMBER, "PENDING(Allocated)", NULL, COLUMN_ALWAYS,
                      node->pending_units);
    column_text(to, COLUMN_RIGHT, "GPU Memory()", NULL, COLUMN_ALWAYS,
                ratio(to, node->used_units, node->total_units));
}

/* *caller frees*; NULL: out of memory. */
static char *table_of(const struct view *view)
{
    struct sheet sheet = {.unit = view->unit};
    EACH_ROW (node, view)
        write_node(&sheet, &view->sum.all, node);
    return sheet_text(&sheet);
}

/* Columns of its widest line; later bytes of UTF-8 take no room. */
static size_t width_of(const char *text)
{
    size_t widest = 0, width = 0;
    for (; *text; text++) {
        width = *text == '\n' ? 0 : width + ((*text & 0xc0) != 0x80);
        widest = width > widest ? width : widest;
    }
    return widest;
}

void print_dashes(const char *text, size_t least)
{
    const size_t width = width_of(text);
    for (size_t i = 0; i < least || i < width; i++)
        putchar('-');
    putchar('\n');
}

void view_put_waits(const struct view *view)
{
    char waits[WAIT_TEXT_BYTES];
    waits_sum(&view->waits, waits);
    if (view->waits.count)
        printf("%s: kubectl inspect gpushare why\n", waits);
}

int print_summary(const struct view *view, const struct output *output,
                  const struct terminal *terminal)
{
    const struct view_node *all = &view->sum.all;
    if (output->format != OUTPUT_TABLE || output->columns) {
        if (nodes_print(view, output, terminal) < 0)
            return -1;
        if (output->format == OUTPUT_WIDE)
            view_put_waits(view);
        return 0;
    }
    _cleanup_free_ char *text = table_of(view);
    if (!text)
        return -1;
    if (!terminal->screen || !terminal->width || width_of(text) <= terminal->width) {
        fputs(text, stdout);
        print_dashes(text, 0);
    } else if (nodes_print(view, output, terminal) < 0) {
        return -1;
    }
    printf("Allocated/Total GPU Memory In %s:\n%" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n",
           view->scope, all->used_units, all->total_units,
           view_percent(all->used_units, all->total_units));
    if (terminal->screen) /* scripts read the original's lines from pipes */
        view_put_waits(view);
    return 0;
}
