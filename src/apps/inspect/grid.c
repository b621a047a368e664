/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/grid.h"

#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"

void grid_open(struct grid *grid)
{
    *grid = (struct grid){.table = scols_new_table()};
    if (!grid->table || scols_table_set_column_separator(grid->table, "  ") < 0) {
        grid->failed = true;
        return;
    }
    /* The printers look after the width themselves: cells are never cut. */
    scols_table_set_termforce(grid->table, SCOLS_TERMFORCE_NEVER);
}

void grid_close(struct grid *grid)
{
    scols_unref_table(grid->table);
    *grid = (struct grid){0};
}

/* *Caller frees*; NULL: failed. */
__attribute__((format(printf, 2, 0))) static char *print(struct grid *grid, const char *fmt,
                                                         va_list ap)
{
    char *text = NULL;
    grid->failed |= vasprintf(&text, fmt, ap) < 0;
    return text;
}

void grid_columns(struct grid *grid, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    _cleanup_free_ char *names = print(grid, fmt, ap);
    va_end(ap);
    char *rest = names;
    for (const char *name; !grid->failed && (name = strsep(&rest, "\t")) != NULL;) {
        const bool right = name[0] == '>', wraps = name[0] == '~';
        struct libscols_column *column =
            scols_table_new_column(grid->table, name + (right || wraps), 0,
                                   right   ? SCOLS_FL_RIGHT
                                   : wraps ? SCOLS_FL_WRAP
                                           : 0);
        grid->failed = !column;
        if (column && wraps)
            grid->failed = scols_column_set_safechars(column, "\n") < 0 ||
                           scols_column_set_wrapfunc(column, scols_wrapnl_chunksize,
                                                     scols_wrapnl_nextchunk, NULL) < 0;
    }
}

void grid_row(struct grid *grid)
{
    if (grid->failed)
        return;
    grid->line = scols_table_new_line(grid->table, NULL);
    grid->failed = !grid->line;
    grid->at = 0;
}

static void add_cell(struct grid *grid, const char *text)
{
    grid->failed |= scols_line_set_data(grid->line, grid->at++, text) < 0;
}

void grid_cells(struct grid *grid, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    _cleanup_free_ char *texts = print(grid, fmt, ap);
    va_end(ap);
    char *rest = texts;
    for (const char *text; !grid->failed && (text = strsep(&rest, "\t")) != NULL;)
        add_cell(grid, text);
}

void grid_cell(struct grid *grid, const char *text)
{
    if (!grid->failed)
        add_cell(grid, text);
}

/* libsmartcols leaves the last line without its end. */
char *grid_text(struct grid *grid)
{
    _cleanup_free_ char *table = NULL;
    char *text = NULL;
    if (grid->table && !grid->failed && scols_print_table_to_string(grid->table, &table) == 0 &&
        asprintf(&text, "%s\n", table) < 0)
        text = NULL;
    grid_close(grid);
    return text;
}

/* Later bytes of UTF-8 take no room. */
size_t text_width(const char *text)
{
    size_t widest = 0, width = 0;
    for (; *text; text++) {
        width = *text == '\n' ? 0 : width + ((*text & 0xc0) != 0x80);
        widest = width > widest ? width : widest;
    }
    return widest;
}

void put_dashes(size_t count)
{
    while (count--)
        putchar('-');
    putchar('\n');
}
