/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_COLUMNS_H
#define GPUSHARE_APPS_INSPECT_COLUMNS_H

#include "gpushare/base/arena.h"
#include "inspect/common.h"
#include "inspect/doc.h"
#include "inspect/terminal.h"

/*
 * What is known of one kind of row, a column a line: tables, documents, CSV, --columns and --sort
 * follow from that.
 *
 *   static const struct column columns[] = {
 *       {"POD", "name", COLUMN_TEXT, offsetof(struct row, name), BY_POD},
 *       {"USED(GiB)", "usedBytes", COLUMN_BYTES, offsetof(struct row, used), BY_POD, COLUMN_WIDE},
 *   };
 */
enum column_kind {
    COLUMN_TEXT,   /* const char *; NULL: not known. On a narrow terminal its middle is left out */
    COLUMN_PROSE,  /* the same, where it wraps between words */
    COLUMN_RIGHT,  /* the same at the right, never cut */
    COLUMN_NUMBER, /* uint64_t */
    COLUMN_BYTES,  /* the same; tables show GiB */
    COLUMN_EACH,   /* the same, of one pod: the most where rows are joined, in no total */
    COLUMN_BOOL,   /* the same, 0 or 1 */
    COLUMN_GPUS,   /* gs_gpu_mask */
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
    size_t offset; /* in a row */
    unsigned in;   /* bits of the forms that have it */
    enum column_when when;
};

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

struct rows {
    const struct column *columns;
    size_t column_count;
    unsigned in; /* the form */
    const char *unit;
    void *all;
    size_t size, count; /* of one row; rows */
    const void *total;  /* a row of all; NULL: there is none */
};

/* Of an array of columns, in its first form, without rows. */
#define ROWS_OF(array, type)                                                                       \
    {                                                                                              \
        .columns = (array), .column_count = sizeof(array) / sizeof((array)[0]), .in = 1,           \
        .unit = "", .size = sizeof(type)                                                           \
    }

/*
 * Rows that a function writes, a column a line: it is called once for each row, with the same
 * columns in the same order.
 *
 *   struct sheet sheet = {.rows.unit = "GiB"};
 *   sheet_row(&sheet);
 *   column_text(&sheet, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, pod->name);
 *   sheet_write(stdout, &sheet, terminal);                    or another of the last
 *
 * It stays where it is. Texts are borrowed; `texts` is for those that are made. Without memory it
 * has failed, and less rows.
 */
enum { COLUMNS_MAX = GS_GPUS_MAX + 8 };
struct sheet {
    struct rows rows;
    struct column columns[COLUMNS_MAX];
    struct gs_arena texts;
    uint32_t cap, cells; /* of all rows */
    bool failed;
};
void sheet_row(struct sheet *sheet);
/* text: NULL and "" are not known. */
void column_text(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                 enum column_when when, const char *text);
void column_number(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                   enum column_when when, uint64_t number);
/* The number in that row and column. */
uint64_t sheet_number(const struct sheet *sheet, size_t row, size_t column);
/* Sorts by those columns and then others, and makes one row of those that are equal in the first:
 * numbers are summed up, texts are listed, of prose the first that is known stays. */
void sheet_join(struct sheet *sheet, const char *columns, const char *then);
/* The last row becomes the total, to which the others are added. */
void sheet_total(struct sheet *sheet);
void sheet_release(struct sheet *sheet);

/* Adds what is known; a sum that is too large stays below COLUMN_UNKNOWN. */
void column_add(uint64_t *sum, uint64_t number);

/* Exits (bad usage) where output names a column that the form has not. */
void rows_check(const struct rows *rows, const char *command, const struct output *output);

/* First by output->sort (output NULL: none), then by the list, of which the form need not have all:
 * texts by letter (n2 before n10), the largest number first, what is not known last. */
void rows_sort(const struct rows *rows, const struct output *output, const char *then);

/* Onto standard output: a table with the row TOTAL, CSV, or {"items": [...], "total": {...}}. On a
 * terminal a table fits the width: names are cut, prose wraps, and the last other columns are left
 * out, which standard error says. -1: failed. */
int rows_print(const struct rows *rows, const struct output *output,
               const struct terminal *terminal);

/* A table without a total, which does not look at rows->total; nothing without rows. terminal NULL:
 * as in a pipe. -1: failed. */
int rows_write(FILE *out, const struct rows *rows, const struct terminal *terminal);

/* The same of a sheet, which is released then. */
void sheet_check(struct sheet *sheet, const char *command, const struct output *output);
int sheet_print(struct sheet *sheet, const struct output *output, const struct terminal *terminal);
/* The table as in a pipe; *caller frees*; NULL: no memory. */
char *sheet_text(struct sheet *sheet);
int sheet_write(FILE *out, struct sheet *sheet, const struct terminal *terminal);
void sheet_list(struct doc *doc, const char *key, struct sheet *sheet);
/* Those of its only row; output NULL: all. */
void sheet_members(struct doc *doc, struct sheet *sheet, const struct output *output);

/* The members of a row, in an object that is open; output NULL: all. */
void rows_members(struct doc *doc, const struct rows *rows, const struct output *output,
                  const void *row);
/* A list of the rows. */
void rows_list(struct doc *doc, const char *key, const struct rows *rows);

/* A table that the page shows, in a list that is open: the same heads and cells as on a terminal.
 */
struct table {
    const char *id, *title;
    const char *columns; /* as of --columns; NULL: those of a table */
    size_t most;         /* rows */
};
/* all: rows that there are, of which these are the first. */
void rows_table(struct doc *doc, const struct table *table, const struct rows *rows, size_t all);
/* Of a sheet, which is released then. */
void sheet_table(struct doc *doc, const struct table *table, struct sheet *sheet);

#endif
