/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_GRID_H
#define GPUSHARE_APPS_INSPECT_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A table of texts over libsmartcols. A failed allocation marks it failed and later calls do
 * nothing: checked once, by grid_text().
 *
 *   struct grid grid;
 *   grid_open(&grid);
 *   grid_columns(&grid, "NAME\t>GPU%u(Allocated/Total)", 0);
 *   grid_row(&grid);
 *   grid_cells(&grid, "%s\t%u", name, units);
 *   char *text = grid_text(&grid);
 */
struct libscols_table;
struct libscols_line;

struct grid {
    struct libscols_table *table;
    struct libscols_line *line;
    size_t at; /* the next cell */
    bool failed;
};

void grid_open(struct grid *grid);
void grid_close(struct grid *grid);

/* Names between tabs; one that begins with '>' stands at the right, with '~' has cells of lines. */
void grid_columns(struct grid *grid, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void grid_row(struct grid *grid);
/* Plain texts between tabs, which no text has itself. */
void grid_cells(struct grid *grid, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One text, whatever it holds. */
void grid_cell(struct grid *grid, const char *text);

/* Closes it, too. *Caller frees*; NULL: failed. */
char *grid_text(struct grid *grid);

/* Columns of the widest line of a text. */
size_t text_width(const char *text);

/* A text of so many dashes and a line end, onto standard output. */
void put_dashes(size_t count);

#endif
