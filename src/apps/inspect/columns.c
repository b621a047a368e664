/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/columns.h"

#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/wrap.h"
#include "gpushare/base/array.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/codec/annotation.h"

struct choice {
    const struct column *all[COLUMNS_MAX];
    size_t count;
};

bool output_parse(void *to, const char *text)
{
    static const char *const words[] = {"table", "wide", "json", "yaml", "csv", NULL};
    return word_parse(words, to, text);
}

/* ---- values ---- */

static bool is_text(const struct column *column)
{
    return column->kind <= COLUMN_RIGHT;
}

static const char *text_of(const struct column *column, const void *row)
{
    return *(const char *const *)((const char *)row + column->offset);
}

static uint64_t number_of(const struct column *column, const void *row)
{
    return *(const uint64_t *)((const char *)row + column->offset);
}

static bool is_known(const struct column *column, const void *row)
{
    return is_text(column)
               ? text_of(column, row) != NULL
               : number_of(column, row) != COLUMN_UNKNOWN || column->kind == COLUMN_GPUS;
}

static const void *row_at(const struct rows *rows, size_t i)
{
    return (const char *)rows->all + i * rows->size;
}

/* ---- rows that a function writes ---- */

union cell {
    const char *text;
    uint64_t number;
};

static union cell *cells_of(const struct sheet *sheet, size_t row)
{
    return (union cell *)sheet->rows.all + row * sheet->rows.size / sizeof(union cell);
}

/* The first row says how many columns there are. */
void sheet_row(struct sheet *sheet)
{
    struct rows *rows = &sheet->rows;
    rows->size = rows->count ? rows->column_count * sizeof(union cell) : 0;
    rows->columns = sheet->columns;
    rows->column_count = 0;
    rows->in = 1;
    rows->count++;
}

static void put_value(struct sheet *to, struct column column, union cell value)
{
    struct rows *rows = &to->rows;
    union cell *all = rows->all;
    to->failed |= !column.head || rows->column_count == COLUMNS_MAX ||
                  !gs_array_reach(&all, &to->cap, to->cells, sizeof(*all));
    if (to->failed)
        return;
    rows->all = all;
    all[to->cells++] = value;
    column.in = 1;
    column.offset = rows->column_count * sizeof(value);
    to->columns[rows->column_count++] = column;
}

void column_text(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                 enum column_when when, const char *text)
{
    put_value(to, (struct column){head, key, kind, .when = when},
              (union cell){.text = text && text[0] ? text : NULL});
}

void column_number(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                   enum column_when when, uint64_t number)
{
    put_value(to, (struct column){head, key, kind, .when = when}, (union cell){.number = number});
}

uint64_t sheet_number(const struct sheet *sheet, size_t row, size_t column)
{
    return cells_of(sheet, row)[column].number;
}

void sheet_release(struct sheet *sheet)
{
    free(sheet->rows.all);
    gs_arena_release(&sheet->texts);
    *sheet = (struct sheet){0};
}

void column_add(uint64_t *sum, uint64_t number)
{
    if (*sum == COLUMN_UNKNOWN)
        *sum = number;
    else if (number != COLUMN_UNKNOWN)
        *sum = number < COLUMN_UNKNOWN - *sum ? *sum + number : COLUMN_UNKNOWN - 1;
}

/* ---- which columns ---- */

static bool is_called(const struct column *column, const char *name, size_t len)
{
    const char *key = column->key ? column->key : "";
    return len && ((len == strcspn(column->head, "(") && !strncasecmp(column->head, name, len)) ||
                   (len == strlen(key) && !strncasecmp(key, name, len)));
}

/* The column that the list names next, which moves on; NULL: the form has none. */
static const struct column *next_of(const struct rows *rows, const char **list)
{
    const char *name = *list;
    const size_t len = strcspn(name, ",");
    *list += len + (name[len] == ',');
    GS_EACH_OF (column, rows->columns, rows->column_count) {
        if ((column->in & rows->in) && is_called(column, name, len))
            return column;
    }
    return NULL;
}

static void check_list(const struct rows *rows, const char *command, const char *list)
{
    for (const char *at = list; at && (*at || at == list);) {
        const char *name = at;
        if (next_of(rows, &at))
            continue;
        fprintf(stderr, "%s: there is no column %.*s\n", command, (int)strcspn(name, ","), name);
        exit(2);
    }
}

void rows_check(const struct rows *rows, const char *command, const struct output *output)
{
    check_list(rows, command, output->columns);
    check_list(rows, command, output->sort);
}

static bool is_shown(const struct rows *rows, const struct column *column,
                     enum output_format format)
{
    bool set = !(column->when & COLUMN_IF_SET);
    if (!(column->in & rows->in))
        return false;
    if (format >= OUTPUT_JSON)
        return column->key != NULL;
    for (size_t i = 0; i < rows->count && !set; i++)
        set = is_known(column, row_at(rows, i)) &&
              (is_text(column) || number_of(column, row_at(rows, i)));
    return set && column->when <= (format == OUTPUT_TABLE ? COLUMN_IF_SET : COLUMN_WIDE_IF_SET);
}

/* Those that the form has not are passed over. */
static void add_named(struct choice *choice, const struct rows *rows, const char *list)
{
    while (list && *list && choice->count < COLUMNS_MAX) {
        const struct column *column = next_of(rows, &list);
        if (column)
            choice->all[choice->count++] = column;
    }
}

static struct choice choose(const struct rows *rows, const struct output *output)
{
    struct choice choice = {.count = 0};
    add_named(&choice, rows, output->columns);
    for (size_t i = 0; !output->columns && i < rows->column_count; i++) {
        if (is_shown(rows, &rows->columns[i], output->format))
            choice.all[choice.count++] = &rows->columns[i];
    }
    return choice;
}

/* ---- order ---- */

static int order_by(const struct column *column, const void *a, const void *b)
{
    if (is_text(column)) {
        const char *x = text_of(column, a), *y = text_of(column, b);
        return strverscmp(x ? x : "", y ? y : "");
    }
    uint64_t x = number_of(column, a), y = number_of(column, b);
    if (x == y)
        return 0;
    return (x < y || x == COLUMN_UNKNOWN) && y != COLUMN_UNKNOWN ? 1 : -1;
}

static int order_rows(const void *a, const void *b, void *ctx)
{
    const struct choice *order = ctx;
    int result = 0;
    for (size_t i = 0; i < order->count && result == 0; i++)
        result = order_by(order->all[i], a, b);
    return result;
}

void rows_sort(const struct rows *rows, const struct output *output, const char *then)
{
    struct choice order = {.count = 0};
    add_named(&order, rows, output ? output->sort : NULL);
    add_named(&order, rows, then);
    if (rows->count)
        qsort_r(rows->all, rows->count, rows->size, order_rows, &order);
}

/* "a, b", of rows in the texts' order; of many the first. */
static const char *list_texts(struct gs_arena *texts, const char *list, const char *more)
{
    enum { LIST_MOST = 120 };
    const char *last = list ? strrchr(list, ' ') : NULL;
    if (list && more && strlen(list) > LIST_MOST)
        more = "...";
    if (!list || !more || strcmp(last ? last + 1 : list, more) == 0)
        return list ? list : more;
    return gs_arena_printf(texts, "%s, %s", list, more);
}

static void join_cells(struct sheet *sheet, union cell *to, const union cell *from)
{
    for (size_t i = 0; i < sheet->rows.column_count; i++) {
        const struct column *column = &sheet->columns[i];
        union cell *sum = &to[i];
        const union cell more = from[i];
        if (column->kind == COLUMN_TEXT)
            sum->text = list_texts(&sheet->texts, sum->text, more.text);
        else if (is_text(column))
            sum->text = sum->text ? sum->text : more.text;
        else if (column->kind != COLUMN_EACH)
            column_add(&sum->number, more.number);
        else if (!is_known(column, to) || (is_known(column, from) && more.number > sum->number))
            *sum = more;
    }
}

void sheet_join(struct sheet *sheet, const char *columns, const char *then)
{
    struct choice same = {.count = 0};
    size_t kept = 0;
    add_named(&same, &sheet->rows, columns);
    rows_sort(&sheet->rows, &(struct output){.sort = columns}, then);
    for (size_t i = 0; i < sheet->rows.count && !sheet->failed; i++) {
        union cell *row = cells_of(sheet, i);
        if (kept && order_rows(cells_of(sheet, kept - 1), row, &same) == 0)
            join_cells(sheet, cells_of(sheet, kept - 1), row);
        else
            memmove(cells_of(sheet, kept++), row, sheet->rows.size);
    }
    sheet->rows.count = kept;
    sheet->cells = (uint32_t)(kept * sheet->rows.column_count);
}

void sheet_total(struct sheet *sheet)
{
    struct rows *rows = &sheet->rows;
    if (sheet->failed)
        return;
    union cell *total = cells_of(sheet, --rows->count);
    for (size_t r = 0; r < rows->count; r++) {
        for (size_t i = 0; i < rows->column_count; i++) {
            if (sheet->columns[i].kind == COLUMN_NUMBER || sheet->columns[i].kind == COLUMN_BYTES)
                column_add(&total[i].number, cells_of(sheet, r)[i].number);
        }
    }
    rows->total = total;
}

/* ---- the table ---- */

/* Columns of a name, and of prose, on a narrow terminal. */
enum {
    CELL_BYTES = GS_IDX_TEXT_BYTES,
    NAME_LEAST = 9,
    NAME_MOST = 320,
    PROSE_LEAST = 18,
    PROSE_USUAL = 24
};

/* How long texts may be. */
struct room {
    size_t name, prose;
};

static const char *cell_of(const struct column *column, const void *row, char to[CELL_BYTES])
{
    if (!is_known(column, row))
        return "-";
    if (is_text(column))
        return text_of(column, row)[0] ? text_of(column, row) : "-";
    if (column->kind == COLUMN_BYTES || column->kind == COLUMN_EACH)
        usage_text(number_of(column, row), GS_UNIT_GIB, to);
    else if (column->kind == COLUMN_GPUS)
        gs_codec_idx_format(number_of(column, row), to);
    else
        snprintf(to, CELL_BYTES, "%" PRIu64, number_of(column, row));
    return to;
}

/* In lines of so many columns; longer words are cut. *Caller frees*; NULL: out of memory. */
static char *wrapped(const char *text, size_t width)
{
    char *to = NULL, word[NAME_MOST + 1], word_to[NAME_MOST + 1];
    _cleanup_(gs_buf_release) struct gs_buf words = GS_BUF(1 << 16);
    size_t size = 0;
    FILE *out = open_memstream(&to, &size);
    if (!out)
        return NULL;
    for (size_t len; *text; text += len + (text[len] == ' ')) {
        len = strcspn(text, " ");
        snprintf(word, sizeof(word), "%.*s", (int)len, text);
        gs_buf_putc(&words, ' ');
        wrap_shorten(word, word_to, width < NAME_MOST ? width + 1 : sizeof(word));
        gs_buf_puts(&words, word_to);
    }
    if (words.len)
        wrap_words(out, 0, 0, (int)width, words.data + 1, words.len - 1);
    if (fclose(out) == 0 && size)
        to[size - 1] = '\0';
    return to;
}

static bool put_cell(struct libscols_line *line, size_t at, const struct column *column,
                     const void *row, const struct room *room)
{
    char text[CELL_BYTES], name[NAME_MOST + 1];
    const char *cell = cell_of(column, row, text);
    _cleanup_free_ char *lines =
        column->kind == COLUMN_PROSE && room->prose < SIZE_MAX ? wrapped(cell, room->prose) : NULL;
    if (column->kind == COLUMN_TEXT && room->name < NAME_MOST) {
        wrap_shorten(cell, name, room->name + 1);
        cell = name;
    }
    return scols_line_set_data(line, at, lines ? lines : cell) == 0;
}

/* With the rows' unit. */
static const char *head_of(const struct column *column, const char *unit, char to[CELL_BYTES])
{
    const char *unit_at = strstr(column->head, "()");
    if (!unit_at)
        return column->head;
    snprintf(to, CELL_BYTES, "%.*s(%s)", (int)(unit_at - column->head), column->head, unit);
    return to;
}

static bool put_head(struct libscols_table *table, const struct column *column, const char *unit)
{
    const bool wraps = column->kind == COLUMN_PROSE;
    char text[CELL_BYTES];
    const int flags = wraps ? SCOLS_FL_WRAP : column->kind == COLUMN_TEXT ? 0 : SCOLS_FL_RIGHT;
    struct libscols_column *made =
        scols_table_new_column(table, head_of(column, unit, text), 0, flags);
    return made && (!wraps || (scols_column_set_safechars(made, "\n") == 0 &&
                               scols_column_set_wrapfunc(made, scols_wrapnl_chunksize,
                                                         scols_wrapnl_nextchunk, NULL) == 0));
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Columns that a table takes in so much room. */
static size_t width_of(const struct choice *choice, const size_t *widest, struct room room)
{
    size_t width = 0;
    for (size_t i = 0; i < choice->count; i++) {
        const enum column_kind kind = choice->all[i]->kind;
        width += (i ? 2 : 0) + (kind == COLUMN_TEXT    ? least(widest[i], room.name)
                                : kind == COLUMN_PROSE ? least(widest[i], room.prose)
                                                       : widest[i]);
    }
    return width;
}

/* The last column that is no prose, which says why, goes to the end, which ends before it. */
static void leave_out(struct choice *choice, size_t *widest)
{
    size_t at = --choice->count;
    while (at && choice->all[at]->kind == COLUMN_PROSE)
        at--;
    at = at ? at : choice->count;
    const struct column *left = choice->all[at];
    for (; at < choice->count; at++) {
        choice->all[at] = choice->all[at + 1];
        widest[at] = widest[at + 1];
    }
    choice->all[at] = left;
}

/* First names are cut, then the last columns are left out; prose has what is left. */
static void fit(const struct rows *rows, struct choice *choice, struct room *room, size_t width)
{
    char text[CELL_BYTES];
    size_t widest[COLUMNS_MAX] = {0};
    for (size_t i = 0; i < choice->count; i++) {
        const struct column *column = choice->all[i];
        widest[i] = strlen(column->head) + (strstr(column->head, "()") ? strlen(rows->unit) : 0);
        for (size_t r = 0; r < rows->count + (rows->total != NULL); r++) {
            const void *row = r < rows->count ? row_at(rows, r) : rows->total;
            const size_t len = strlen(cell_of(column, row, text));
            widest[i] = len > widest[i] ? len : widest[i];
        }
    }
    if (width_of(choice, widest, *room) <= width)
        return;
    room->prose = PROSE_USUAL;
    while (room->name > NAME_LEAST && width_of(choice, widest, *room) > width)
        room->name--;
    while (room->prose > PROSE_LEAST && width_of(choice, widest, *room) > width)
        room->prose--;
    while (choice->count > 1 && width_of(choice, widest, *room) > width)
        leave_out(choice, widest);
    while (room->prose < width && width_of(choice, widest, *room) < width)
        room->prose++;
}

static bool put_line(struct libscols_table *table, const struct choice *choice, const void *row,
                     bool total, const struct room *room)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    bool fine = line;
    for (size_t i = 0; i < choice->count && fine; i++)
        fine = total && is_text(choice->all[i])
                   ? scols_line_set_data(line, i, i ? "" : "TOTAL") == 0
                   : put_cell(line, i, choice->all[i], row, room);
    return fine;
}

/* libsmartcols leaves the last line without its end. *Caller frees*; NULL: no memory. */
static char *lay_out(const struct rows *rows, const struct choice *choice, const struct room *room)
{
    struct libscols_table *table = scols_new_table();
    _cleanup_free_ char *lines = NULL;
    char *text = NULL;
    /* the room was found before: no cell is cut */
    bool fine = table && scols_table_set_column_separator(table, "  ") == 0 &&
                scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER) == 0;
    for (size_t i = 0; i < choice->count && fine; i++)
        fine = put_head(table, choice->all[i], rows->unit);
    for (size_t r = 0; r < rows->count && fine; r++)
        fine = put_line(table, choice, row_at(rows, r), false, room);
    if (fine && rows->total)
        fine = put_line(table, choice, rows->total, true, room);
    if (fine && scols_print_table_to_string(table, &lines) == 0 &&
        asprintf(&text, "%s\n", lines) < 0)
        text = NULL;
    scols_unref_table(table);
    return text;
}

static int print_table(FILE *out, const struct rows *rows, struct choice *choice,
                       const struct terminal *terminal)
{
    struct room room = {NAME_MOST, SIZE_MAX};
    const size_t all = choice->count;
    if (terminal->screen && terminal->width)
        fit(rows, choice, &room, terminal->width);
    if (choice->count < all)
        fprintf(stderr, PROGRAM ": this terminal is too narrow for the columns");
    for (size_t i = choice->count; i < all; i++)
        fprintf(stderr, " %.*s%s", (int)strcspn(choice->all[i]->head, "("), choice->all[i]->head,
                i + 1 < all ? "" : " (see --columns)\n");
    _cleanup_free_ char *text = lay_out(rows, choice, &room);
    return text ? fputs(text, out) : -1;
}

int rows_write(FILE *out, const struct rows *rows, const struct terminal *terminal)
{
    static const struct terminal pipe;
    struct rows plain = *rows;
    struct choice choice = choose(rows, &(struct output){OUTPUT_TABLE});
    plain.total = NULL;
    return rows->count ? print_table(out, &plain, &choice, terminal ? terminal : &pipe) : 0;
}

/* ---- documents ---- */

static void put_member(struct doc *doc, const struct column *column, const char *key,
                       const void *row)
{
    if (is_text(column))
        doc_text(doc, key, text_of(column, row));
    else if (column->kind == COLUMN_BOOL)
        doc_bool(doc, key, number_of(column, row));
    else if (column->kind == COLUMN_GPUS)
        doc_gpus(doc, key, number_of(column, row));
    else
        doc_number(doc, key, number_of(column, row));
}

static void put_members(struct doc *doc, const struct choice *choice, const void *row)
{
    char open[32] = "";
    for (size_t i = 0; i < choice->count; i++) {
        const struct column *column = choice->all[i];
        const char *key = column->key, *dot = key ? strchr(key, '.') : NULL;
        const size_t len = dot ? (size_t)(dot - key) : 0;
        if (!is_known(column, row) || !key)
            continue;
        if (open[0] && (strlen(open) != len || strncmp(open, key, len) != 0)) {
            doc_end(doc);
            open[0] = '\0';
        }
        if (dot && !open[0]) {
            snprintf(open, sizeof(open), "%.*s", (int)len, key);
            doc_object(doc, open);
        }
        put_member(doc, column, dot ? dot + 1 : key, row);
    }
    if (open[0])
        doc_end(doc);
}

void rows_members(struct doc *doc, const struct rows *rows, const struct output *output,
                  const void *row)
{
    const struct choice choice = choose(rows, output ? output : &(struct output){OUTPUT_JSON});
    put_members(doc, &choice, row);
}

void rows_list(struct doc *doc, const char *key, const struct rows *rows)
{
    doc_list(doc, key);
    for (size_t i = 0; i < rows->count; i++) {
        doc_object(doc, NULL);
        rows_members(doc, rows, NULL, row_at(rows, i));
        doc_end(doc);
    }
    doc_end(doc);
}

void rows_table(struct doc *doc, const struct table *table, const struct rows *rows, size_t all)
{
    char text[CELL_BYTES];
    const struct choice choice =
        choose(rows, &(struct output){OUTPUT_TABLE, .columns = table->columns});
    doc_object(doc, NULL);
    doc_text(doc, "id", table->id);
    doc_text(doc, "title", table->title);
    doc_number(doc, "count", all);
    doc_list(doc, "columns");
    for (size_t i = 0; i < choice.count; i++) {
        doc_object(doc, NULL);
        doc_text(doc, "head", head_of(choice.all[i], rows->unit, text));
        doc_bool(doc, "number", !is_text(choice.all[i]));
        doc_end(doc);
    }
    doc_end(doc);
    doc_list(doc, "rows");
    for (size_t r = 0; r < rows->count && r < table->most; r++) {
        doc_list(doc, NULL);
        for (size_t i = 0; i < choice.count; i++)
            doc_text(doc, NULL, cell_of(choice.all[i], row_at(rows, r), text));
        doc_end(doc);
    }
    doc_end(doc);
    doc_end(doc);
}

static int print_document(const struct rows *rows, const struct choice *choice, bool yaml)
{
    struct doc doc;
    doc_open(&doc, stdout, yaml);
    doc_list(&doc, "items");
    for (size_t i = 0; i < rows->count; i++) {
        doc_object(&doc, NULL);
        put_members(&doc, choice, row_at(rows, i));
        doc_end(&doc);
    }
    doc_end(&doc);
    doc_object(&doc, "total");
    if (rows->total)
        put_members(&doc, choice, rows->total);
    doc_end(&doc);
    return doc_close(&doc);
}

/* RFC 4180: each text between quotes, of which those in it are doubled. */
static void put_csv(const struct column *column, const void *row)
{
    if (!is_known(column, row))
        return;
    if (!is_text(column)) {
        printf("%" PRIu64, number_of(column, row));
        return;
    }
    putchar('"');
    for (const char *at = text_of(column, row); *at; at++) {
        if (*at == '"')
            putchar('"');
        putchar(*at);
    }
    putchar('"');
}

static int print_csv(const struct rows *rows, const struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        printf("%s%s", i ? "," : "", choice->all[i]->key ?: choice->all[i]->head);
    for (size_t r = 0; r < rows->count; r++) {
        for (size_t i = 0; i < choice->count; i++) {
            putchar(i ? ',' : '\n');
            put_csv(choice->all[i], row_at(rows, r));
        }
    }
    putchar('\n');
    return 0;
}

int rows_print(const struct rows *rows, const struct output *output,
               const struct terminal *terminal)
{
    struct choice choice = choose(rows, output);
    switch (output->format) {
    case OUTPUT_JSON:
    case OUTPUT_YAML:
        return print_document(rows, &choice, output->format == OUTPUT_YAML);
    case OUTPUT_CSV:
        return print_csv(rows, &choice);
    case OUTPUT_TABLE:
    case OUTPUT_WIDE:
        break;
    }
    return rows->count ? print_table(stdout, rows, &choice, terminal) : 0;
}

/* ---- sheets ---- */

void sheet_check(struct sheet *sheet, const char *command, const struct output *output)
{
    rows_check(&sheet->rows, command, output);
    sheet_release(sheet);
}

int sheet_print(struct sheet *sheet, const struct output *output, const struct terminal *terminal)
{
    int result = sheet->failed ? -1 : rows_print(&sheet->rows, output, terminal);
    sheet_release(sheet);
    return result;
}

char *sheet_text(struct sheet *sheet)
{
    const struct choice choice = choose(&sheet->rows, &(struct output){OUTPUT_TABLE});
    const struct room room = {NAME_MOST, SIZE_MAX};
    char *text = sheet->failed       ? NULL
                 : sheet->rows.count ? lay_out(&sheet->rows, &choice, &room)
                                     : strdup("");
    sheet_release(sheet);
    return text;
}

int sheet_write(FILE *out, struct sheet *sheet, const struct terminal *terminal)
{
    int result = sheet->failed ? -1 : rows_write(out, &sheet->rows, terminal);
    sheet_release(sheet);
    return result;
}

void sheet_list(struct doc *doc, const char *key, struct sheet *sheet)
{
    doc->failed |= sheet->failed;
    rows_list(doc, key, &sheet->rows);
    sheet_release(sheet);
}

void sheet_table(struct doc *doc, const struct table *table, struct sheet *sheet)
{
    doc->failed |= sheet->failed;
    rows_table(doc, table, &sheet->rows, sheet->rows.count);
    sheet_release(sheet);
}

void sheet_members(struct doc *doc, struct sheet *sheet, const struct output *output)
{
    doc->failed |= sheet->failed;
    if (sheet->rows.count)
        rows_members(doc, &sheet->rows, output, sheet->rows.all);
    sheet_release(sheet);
}
