/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/grid.h"

#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wrap.h"
#include "gpushare/base/cleanup.h"

static const char *const colours[] = {
    [GRID_PLAIN] = NULL,     [GRID_GOOD] = "\033[32m", [GRID_WARN] = "\033[33m",
    [GRID_BAD] = "\033[31m", [GRID_FAINT] = "\033[2m",
};

void grid_open(struct grid *grid, bool colour)
{
    *grid = (struct grid){.table = scols_new_table(), .colour = colour};
    if (!grid->table || scols_table_set_column_separator(grid->table, "  ") < 0) {
        grid->failed = true;
        return;
    }
    scols_table_enable_colors(grid->table, colour);
    /* The printers look after the width themselves: cells are never cut. */
    scols_table_set_termforce(grid->table, SCOLS_TERMFORCE_NEVER);
}

void grid_close(struct grid *grid)
{
    scols_unref_table(grid->table);
    *grid = (struct grid){0};
}

void grid_column(struct grid *grid, bool right, const char *fmt, ...)
{
    _cleanup_free_ char *name = NULL;
    va_list ap;
    if (grid->failed)
        return;
    va_start(ap, fmt);
    int len = vasprintf(&name, fmt, ap);
    va_end(ap);
    if (len < 0)
        name = NULL;
    if (!name || !scols_table_new_column(grid->table, name, 0, right ? SCOLS_FL_RIGHT : 0))
        grid->failed = true;
    grid->columns++;
}

void grid_row(struct grid *grid)
{
    if (grid->failed)
        return;
    grid->line = scols_table_new_line(grid->table, NULL);
    grid->failed = !grid->line;
    grid->at = 0;
}

void grid_cell(struct grid *grid, enum grid_colour colour, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    if (grid->failed)
        return;
    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (len < 0 || scols_line_refer_data(grid->line, grid->at, text) < 0) {
        if (len >= 0)
            free(text);
        grid->failed = true;
        return;
    }
    if (grid->colour && colours[colour])
        scols_cell_set_color(scols_line_get_cell(grid->line, grid->at), colours[colour]);
    grid->at++;
}

/* libsmartcols leaves the last line without its end. */
char *grid_text(struct grid *grid)
{
    _cleanup_free_ char *table = NULL;
    char *text = NULL;
    if (grid->failed || scols_print_table_to_string(grid->table, &table) < 0 ||
        asprintf(&text, "%s\n", table) < 0)
        return NULL;
    return text;
}

/* Characters of one line: colours (ESC … m) and the later bytes of UTF-8 take no room. */
static size_t line_width(const char *at, const char *end)
{
    size_t width = 0;
    for (; at < end; at++) {
        if (*at == '\033') {
            while (at < end && *at != 'm')
                at++;
            continue;
        }
        width += (*at & 0xc0) != 0x80;
    }
    return width;
}

size_t text_width(const char *text)
{
    size_t widest = 0;
    while (*text) {
        const char *end = strchrnul(text, '\n');
        size_t width = line_width(text, end);
        if (width > widest)
            widest = width;
        text = *end ? end + 1 : end;
    }
    return widest;
}

void put_words(enum grid_colour colour, int indent, uint32_t width, const char *text)
{
    fputs(colours[colour] ? colours[colour] : "", stdout);
    wrap_words(stdout, 0, indent, (int)width, text, strlen(text));
    fputs(colours[colour] ? "\033[0m" : "", stdout);
}

void put_dashes(size_t count)
{
    while (count--)
        putchar('-');
    putchar('\n');
}
