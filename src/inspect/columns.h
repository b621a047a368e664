/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "inspect/common.h"
#include "inspect/doc.h"
#include "inspect/terminal.h"

/*
 * Rows of one kind, which a function writes, a column a line; tables, documents, CSV, --columns and
 * --sort follow from that. It is called once for each row, with the same columns in the same order.
 *
 *   struct sheet sheet = {.unit = "GiB"};
 *   sheet_row(&sheet);
 *   column_text(&sheet, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, pod->name);
 *   column_number(&sheet, COLUMN_BYTES, "USED(GiB)", "usedBytes", COLUMN_WIDE, used);
 *   sheet_print(stdout, &sheet, output, terminal);            or another of those that release it
 *
 * It stays where it is. Texts are borrowed; `texts` is for those that are made. Without memory it
 * has failed.
 */
enum column_kind {
    COLUMN_TEXT,   /* NULL or "": not known. On a narrow terminal its middle is left out */
    COLUMN_PROSE,  /* the same, where it wraps between words */
    COLUMN_RIGHT,  /* the same at the right, never cut */
    COLUMN_NUMBER, /* uint64_t */
    COLUMN_BYTES,  /* the same; tables show GiB */
    COLUMN_EACH,   /* the same, of one pod: the most where rows are joined, in no total */
    COLUMN_BOOL,   /* the same, 0 or 1 */
    COLUMN_GPUS,   /* gs_gpu_mask; 0: not known */
};
#define COLUMN_UNKNOWN UINT64_MAX

/* Where it is shown, unless --columns names it. Documents and CSV have all. */
enum column_when {
    COLUMN_ALWAYS,
    COLUMN_IF_SET,      /* where some row has it and it is not 0 */
    COLUMN_WIDE,        /* with -o wide */
    COLUMN_WIDE_IF_SET, /* both: its bits */
    COLUMN_DOCUMENT,    /* in no table */
};

struct column {
    const char *head; /* of tables; "()" at its end holds the rows' unit */
    const char *key;  /* of documents and CSV; "closest.node": within an object, whose members
                         follow each other; NULL: no document has it */
    enum column_kind kind;
    enum column_when when;
    size_t at; /* its place in a row */
};

union cell {
    const char *text;
    uint64_t number;
};

enum { COLUMNS_MAX = GS_GPUS_MAX + 8 };
struct sheet {
    const char *unit; /* of the heads with "()" */
    struct column columns[COLUMNS_MAX];
    size_t column_count, count; /* rows; the total is behind them */
    union cell *cells;
    uint32_t cell_count, cap;
    bool has_total;
    struct gs_arena texts;
    bool failed;
};
void sheet_row(struct sheet *sheet);
void column_text(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                 enum column_when when, const char *text);
void column_number(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                   enum column_when when, uint64_t number);
/* The number in that row and column. */
uint64_t sheet_number(const struct sheet *sheet, size_t row, size_t column);

/* Adds what is known; a sum that is too large stays below COLUMN_UNKNOWN. */
void column_add(uint64_t *sum, uint64_t number);

/* Names in the lists, between commas, are heads (up to a parenthesis) or keys, in any case. */
struct output {
    enum output_format format;
    const char *columns; /* NULL: those of the format */
    const char *sort;    /* NULL: as they are */
};

#define OPT_FORMAT_OF_ROWS(output)                                                                 \
    OPT_CUSTOM("output", OPT_IS(enum output_format, &(output)->format), output_parse,              \
               "table|wide|json|yaml|csv", "output format (default table)", .key = 'o'),           \
        OPT_STRING("columns", &(output)->columns, "NAME[,NAME...]",                                \
                   "only these columns, in this order: heads of -o wide, or keys of JSON")
#define OPT_SORT_OF_ROWS(output)                                                                   \
    OPT_STRING("sort", &(output)->sort, "NAME[,NAME...]",                                          \
               "order of the rows, by columns: largest value first, texts by letter")
bool output_parse(void *to, const char *text);

/* First by output->sort (output NULL: none), then by the list, of which the rows need not have all:
 * texts by letter (n2 before n10), the largest number first, what is not known last. */
void sheet_sort(struct sheet *sheet, const struct output *output, const char *then);
/* Sorts by those columns and then others, and makes one row of those that are equal in the first:
 * numbers are summed up, texts are listed, of prose the first that is known stays. */
void sheet_join(struct sheet *sheet, const char *columns, const char *then);
/* The last row becomes the total; add: the others are added to it. */
void sheet_total(struct sheet *sheet, bool add);

/* ---- all of the following release it ---- */

void sheet_release(struct sheet *sheet);

/* Exits (bad usage) where output names a column that there is not. */
void sheet_check(struct sheet *sheet, const char *command, const struct output *output);

/* A table with the row TOTAL, nothing without rows; CSV, or {"items": [...], "total": {...}}. On a
 * terminal a table fits the width: names are cut, prose wraps, and the last other columns are left
 * out, which standard error says. output NULL: the usual table; terminal NULL: as in a pipe. -1:
 * failed. */
int sheet_print(FILE *out, struct sheet *sheet, const struct output *output,
                const struct terminal *terminal);
/* The usual table as in a pipe; *caller frees*; NULL: no memory. */
char *sheet_text(struct sheet *sheet);

/* A list of the rows. */
void sheet_list(struct doc *doc, const char *key, struct sheet *sheet);
/* The members of the only row, in an object that is open; output NULL: all. */
void sheet_members(struct doc *doc, struct sheet *sheet, const struct output *output);

/* A table that the page shows, in a list that is open: the same heads and cells as on a terminal.
 */
struct table {
    const char *id, *title;
    const char *columns; /* as of --columns; NULL: those of a table */
    size_t most;         /* rows */
};
/* all: rows that there are; 0: the sheet has them all. */
void sheet_table(struct doc *doc, const struct table *table, struct sheet *sheet, size_t all);
