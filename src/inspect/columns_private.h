/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/codec/annotation.h"
#include "inspect/columns.h"

/* Private to columns.c (rows, order, documents) and columns_table.c (tables by libsmartcols). */

/* The columns that are shown, in this order. */
struct choice {
    const struct column *all[COLUMNS_MAX];
    size_t count;
};

static inline bool column_is_text(const struct column *column)
{
    return column->kind <= COLUMN_RIGHT;
}

static inline bool column_is_known(const struct column *column, union cell cell)
{
    return column_is_text(column)        ? cell.text != NULL
           : column->kind == COLUMN_GPUS ? cell.number != 0
                                         : cell.number != COLUMN_UNKNOWN;
}

static inline union cell *sheet_cells(const struct sheet *sheet, size_t i)
{
    return sheet->cells + i * sheet->column_count;
}

enum { CELL_BYTES = GS_IDX_TEXT_BYTES };

/* As tables show it; may be in `to`. */
const char *column_cell(const struct column *column, union cell cell, char to[CELL_BYTES]);
/* With the rows' unit. */
const char *column_head(const struct column *column, const char *unit, char to[CELL_BYTES]);

/* As in a pipe; *caller frees*; NULL: no memory. */
char *table_text(const struct sheet *sheet, const struct choice *choice);
/* -1: failed. Columns for which a terminal has no room leave the choice. */
int table_print(FILE *out, const struct sheet *sheet, struct choice *choice,
                const struct terminal *terminal);
