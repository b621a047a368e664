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
 *   grid_open(&grid, terminal->colour);
 *   grid_column(&grid, false, "NAME");
 *   grid_column(&grid, true, "GPU%u(Allocated/Total)", 0);
 *   grid_row(&grid);
 *   grid_cell(&grid, GRID_PLAIN, "%s", name);
 *   char *text = grid_text(&grid);      caller frees
 *   grid_close(&grid);
 */
enum grid_colour { GRID_PLAIN, GRID_GOOD, GRID_WARN, GRID_BAD, GRID_FAINT };

struct libscols_table;
struct libscols_line;

struct grid {
    struct libscols_table *table;
    struct libscols_line *line;
    size_t columns, at; /* at: the next cell */
    bool colour;
    bool failed;
};

void grid_open(struct grid *grid, bool colour);
void grid_close(struct grid *grid);

void grid_column(struct grid *grid, bool right, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void grid_row(struct grid *grid);
void grid_cell(struct grid *grid, enum grid_colour colour, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* NULL: failed. */
char *grid_text(struct grid *grid);

/* Columns of the widest line of a text, without its colours. */
size_t text_width(const char *text);

/* A text in lines of so many columns, indented, onto standard output. */
void put_words(enum grid_colour colour, int indent, uint32_t width, const char *text);

/* A text of so many dashes and a line end, onto standard output. */
void put_dashes(size_t count);

#endif
