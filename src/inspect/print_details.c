/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/show.h"

/* The original's -d: per node its name, its pods with what each takes of each GPU, its totals. */

static void write_pod(struct sheet *to, const struct view_node *node, const struct gs_claim *claim)
{
    sheet_row(to);
    column_text(to, COLUMN_TEXT, "NAME", NULL, COLUMN_ALWAYS, claim->name);
    column_text(to, COLUMN_TEXT, "NAMESPACE", NULL, COLUMN_ALWAYS, claim->ns);
    for (uint32_t i = 0; i < node->columns; i++)
        column_number(to, COLUMN_NUMBER, gs_arena_printf(&to->texts, "GPU%u(Allocated)", i), NULL,
                      COLUMN_ALWAYS, claim_on(claim, i) ? claim->units : 0);
    if (node->pending_pods)
        column_number(to, COLUMN_NUMBER, "Pending(Allocated)", NULL, COLUMN_ALWAYS,
                      claim_recorded(claim) ? 0 : claim_units(claim));
}

/* *caller frees*; NULL: out of memory. */
static char *table_of(const struct view_node *node)
{
    struct sheet sheet = {0};
    EACH_CLAIM (claim, node)
        write_pod(&sheet, node, claim);
    if (!node->claim_count)
        write_pod(&sheet, node, &(struct gs_claim){.name = ""});
    char *text = sheet_text(&sheet);
    if (text && !node->claim_count) /* its head alone */
        strchr(text, '\n')[1] = '\0';
    return text;
}

static int put_node(const struct view_node *node)
{
    const char *address = node->node->address;
    _cleanup_free_ char *text = table_of(node);
    if (!text)
        return -1;
    printf("\nNAME:       %s\nIPADDRESS:  %s\n\n%s", node->node->name,
           address[0] ? address : "unknown", text);
    printf("Allocated : %" PRIu64 " (%" PRIu64 "%%)\nTotal :     %" PRIu64 "\n", node->used_units,
           view_percent(node->used_units, node->total_units), node->total_units);
    print_dashes(text, 40);
    return 0;
}

int print_details(const struct view *view)
{
    const struct view_node *all = &view->sum.all;
    EACH_ROW (node, view) {
        if (put_node(node) < 0)
            return -1;
    }
    printf("\n\nAllocated/Total GPU Memory In %s:  %" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n",
           view->scope, all->used_units, all->total_units,
           view_percent(all->used_units, all->total_units));
    return 0;
}
