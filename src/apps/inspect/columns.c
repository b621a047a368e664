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

static bool is_known(const struct column *column, union cell cell)
{
    return is_text(column)               ? cell.text != NULL
           : column->kind == COLUMN_GPUS ? cell.number != 0
                                         : cell.number != COLUMN_UNKNOWN;
}

static union cell *row_of(const struct sheet *sheet, size_t i)
{
    return sheet->cells + i * sheet->column_count;
}

/* The first row says how many columns there are. */
void sheet_row(struct sheet *sheet)
{
    sheet->column_count = 0;
    sheet->count++;
}

static void put_value(struct sheet *to, struct column column, union cell value)
{
    column.at = to->column_count;
    to->failed |= !column.head || column.at == COLUMNS_MAX ||
                  !gs_array_reach(&to->cells, &to->cap, to->cell_count, sizeof(*to->cells));
    if (to->failed)
        return;
    to->cells[to->cell_count++] = value;
    to->columns[to->column_count++] = column;
}

void column_text(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                 enum column_when when, const char *text)
{
    put_value(to, (struct column){head, key, kind, when},
              (union cell){.text = text && text[0] ? text : NULL});
}

void column_number(struct sheet *to, enum column_kind kind, const char *head, const char *key,
                   enum column_when when, uint64_t number)
{
    put_value(to, (struct column){head, key, kind, when}, (union cell){.number = number});
}

uint64_t sheet_number(const struct sheet *sheet, size_t row, size_t column)
{
    return row_of(sheet, row)[column].number;
}

void sheet_release(struct sheet *sheet)
{
    free(sheet->cells);
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

/* The column that the list names next, which moves on; NULL: there is none. */
static const struct column *next_of(const struct sheet *sheet, const char **list)
{
    const char *name = *list;
    const size_t len = strcspn(name, ",");
    *list += len + (name[len] == ',');
    GS_EACH_OF (column, sheet->columns, sheet->column_count) {
        if (is_called(column, name, len))
            return column;
    }
    return NULL;
}

static void check_list(const struct sheet *sheet, const char *command, const char *list)
{
    for (const char *at = list; at && (*at || at == list);) {
        const char *name = at;
        if (next_of(sheet, &at))
            continue;
        fprintf(stderr, "%s: there is no column %.*s\n", command, (int)strcspn(name, ","), name);
        exit(2);
    }
}

void sheet_check(struct sheet *sheet, const char *command, const struct output *output)
{
    check_list(sheet, command, output->columns);
    check_list(sheet, command, output->sort);
    sheet_release(sheet);
}

static bool is_shown(const struct sheet *sheet, const struct column *column,
                     enum output_format format)
{
    bool set = !(column->when & COLUMN_IF_SET);
    if (format >= OUTPUT_JSON)
        return column->key != NULL;
    for (size_t i = 0; i < sheet->count && !set; i++) {
        const union cell cell = row_of(sheet, i)[column->at];
        set = is_known(column, cell) && (is_text(column) || cell.number);
    }
    return set && column->when <= (format == OUTPUT_TABLE ? COLUMN_IF_SET : COLUMN_WIDE_IF_SET);
}

/* Those that there are not are passed over. */
static void add_named(struct choice *choice, const struct sheet *sheet, const char *list)
{
    while (list && *list && choice->count < COLUMNS_MAX) {
        const struct column *column = next_of(sheet, &list);
        if (column)
            choice->all[choice->count++] = column;
    }
}

static struct choice choose(const struct sheet *sheet, const struct output *output)
{
    static const struct output usual;
    struct choice choice = {.count = 0};
    output = output ? output : &usual;
    add_named(&choice, sheet, output->columns);
    GS_EACH_OF (column, sheet->columns, output->columns ? 0 : sheet->column_count) {
        if (is_shown(sheet, column, output->format))
            choice.all[choice.count++] = column;
    }
    return choice;
}

/* ---- order ---- */

static int order_by(const struct column *column, union cell a, union cell b)
{
    if (is_text(column))
        return strverscmp(a.text ? a.text : "", b.text ? b.text : "");
    const uint64_t x = a.number, y = b.number;
    if (x == y)
        return 0;
    return (x < y || x == COLUMN_UNKNOWN) && y != COLUMN_UNKNOWN ? 1 : -1;
}

static int order_rows(const void *a, const void *b, void *ctx)
{
    const union cell *x = a, *y = b;
    const struct choice *order = ctx;
    int result = 0;
    for (size_t i = 0; i < order->count && result == 0; i++)
        result = order_by(order->all[i], x[order->all[i]->at], y[order->all[i]->at]);
    return result;
}

void sheet_sort(struct sheet *sheet, const struct output *output, const char *then)
{
    struct choice order = {.count = 0};
    add_named(&order, sheet, output ? output->sort : NULL);
    add_named(&order, sheet, then);
    if (sheet->count && !sheet->failed)
        qsort_r(sheet->cells, sheet->count, sheet->column_count * sizeof(union cell), order_rows,
                &order);
}

/* The list ends with that text. */
static bool ends_with(const char *list, const char *text)
{
    const size_t all = strlen(list), len = strlen(text);
    return all >= len && strcmp(list + all - len, text) == 0 &&
           (all == len || list[all - len - 1] == ' ');
}

/* "a, b", of rows in the texts' order; of many the first. */
static const char *list_texts(struct gs_arena *texts, const char *list, const char *more)
{
    enum { LIST_MOST = 120 };
    if (list && more && strchr(list, ',') && strlen(list) > LIST_MOST)
        more = "...";
    if (!list || !more || ends_with(list, more))
        return list ? list : more;
    return gs_arena_printf(texts, "%s, %s", list, more);
}

static void join_cells(struct sheet *sheet, union cell *to, const union cell *from)
{
    GS_EACH_OF (column, sheet->columns, sheet->column_count) {
        union cell *sum = &to[column->at];
        const union cell more = from[column->at];
        if (column->kind == COLUMN_TEXT)
            sum->text = list_texts(&sheet->texts, sum->text, more.text);
        else if (is_text(column))
            sum->text = sum->text ? sum->text : more.text;
        else if (column->kind != COLUMN_EACH)
            column_add(&sum->number, more.number);
        else if (!is_known(column, *sum) || (is_known(column, more) && more.number > sum->number))
            *sum = more;
    }
}

void sheet_join(struct sheet *sheet, const char *columns, const char *then)
{
    struct choice same = {.count = 0};
    size_t kept = 0;
    add_named(&same, sheet, columns);
    sheet_sort(sheet, &(struct output){.sort = columns}, then);
    for (size_t i = 0; i < sheet->count && !sheet->failed; i++) {
        union cell *row = row_of(sheet, i);
        if (kept && order_rows(row_of(sheet, kept - 1), row, &same) == 0)
            join_cells(sheet, row_of(sheet, kept - 1), row);
        else
            memmove(row_of(sheet, kept++), row, sheet->column_count * sizeof(*row));
    }
    sheet->count = kept;
    sheet->cell_count = (uint32_t)(kept * sheet->column_count);
}

void sheet_total(struct sheet *sheet, bool add)
{
    if (sheet->failed)
        return;
    union cell *total = row_of(sheet, --sheet->count);
    for (size_t r = 0; add && r < sheet->count; r++) {
        GS_EACH_OF (column, sheet->columns, sheet->column_count) {
            if (column->kind == COLUMN_NUMBER || column->kind == COLUMN_BYTES)
                column_add(&total[column->at].number, row_of(sheet, r)[column->at].number);
        }
    }
    sheet->has_total = true;
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

static const char *cell_of(const struct column *column, union cell cell, char to[CELL_BYTES])
{
    if (!is_known(column, cell))
        return "-";
    if (is_text(column))
        return cell.text;
    if (column->kind == COLUMN_BYTES || column->kind == COLUMN_EACH)
        usage_text(cell.number, GS_UNIT_GIB, to);
    else if (column->kind == COLUMN_GPUS)
        gs_codec_idx_format(cell.number, to);
    else
        snprintf(to, CELL_BYTES, "%" PRIu64, cell.number);
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
                     union cell value, const struct room *room)
{
    char text[CELL_BYTES], name[NAME_MOST + 1];
    const char *cell = cell_of(column, value, text);
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
static void fit(const struct sheet *sheet, struct choice *choice, struct room *room, size_t width)
{
    char text[CELL_BYTES];
    size_t widest[COLUMNS_MAX] = {0};
    for (size_t i = 0; i < choice->count; i++) {
        const struct column *column = choice->all[i];
        widest[i] = strlen(head_of(column, sheet->unit, text));
        for (size_t r = 0; r < sheet->count + sheet->has_total; r++) {
            const size_t len = strlen(cell_of(column, row_of(sheet, r)[column->at], text));
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

static bool put_line(struct libscols_table *table, const struct sheet *sheet,
                     const struct choice *choice, size_t row, const struct room *room)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    bool fine = line;
    for (size_t i = 0; i < choice->count && fine; i++) {
        const struct column *column = choice->all[i];
        fine = row == sheet->count && is_text(column) /* of the total */
                   ? scols_line_set_data(line, i, i ? "" : "TOTAL") == 0
                   : put_cell(line, i, column, row_of(sheet, row)[column->at], room);
    }
    return fine;
}

/* libsmartcols leaves the last line without its end. *Caller frees*; NULL: no memory. */
static char *lay_out(const struct sheet *sheet, const struct choice *choice,
                     const struct room *room)
{
    struct libscols_table *table = scols_new_table();
    _cleanup_free_ char *lines = NULL;
    char *text = NULL;
    /* the room was found before: no cell is cut */
    bool fine = !sheet->failed && table && scols_table_set_column_separator(table, "  ") == 0 &&
                scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER) == 0;
    for (size_t i = 0; i < choice->count && fine; i++)
        fine = put_head(table, choice->all[i], sheet->unit);
    for (size_t r = 0; r < sheet->count + sheet->has_total && fine; r++)
        fine = put_line(table, sheet, choice, r, room);
    if (fine && !sheet->count)
        text = strdup("");
    else if (fine && scols_print_table_to_string(table, &lines) == 0 &&
             asprintf(&text, "%s\n", lines) < 0)
        text = NULL;
    scols_unref_table(table);
    return text;
}

char *sheet_text(struct sheet *sheet)
{
    const struct choice choice = choose(sheet, NULL);
    const struct room room = {NAME_MOST, SIZE_MAX};
    char *text = lay_out(sheet, &choice, &room);
    sheet_release(sheet);
    return text;
}

static int print_table(FILE *out, const struct sheet *sheet, struct choice *choice,
                       const struct terminal *terminal)
{
    struct room room = {NAME_MOST, SIZE_MAX};
    const size_t all = choice->count;
    if (terminal && terminal->screen && terminal->width)
        fit(sheet, choice, &room, terminal->width);
    if (choice->count < all)
        fprintf(stderr, PROGRAM ": this terminal is too narrow for the columns");
    for (size_t i = choice->count; i < all; i++)
        fprintf(stderr, " %.*s%s", (int)strcspn(choice->all[i]->head, "("), choice->all[i]->head,
                i + 1 < all ? "" : " (see --columns)\n");
    _cleanup_free_ char *text = lay_out(sheet, choice, &room);
    return text ? fputs(text, out) : -1;
}

/* ---- documents ---- */

static void put_member(struct doc *doc, const struct column *column, const char *key,
                       union cell cell)
{
    if (is_text(column))
        doc_text(doc, key, cell.text);
    else if (column->kind == COLUMN_BOOL)
        doc_bool(doc, key, cell.number);
    else if (column->kind == COLUMN_GPUS)
        doc_gpus(doc, key, cell.number);
    else
        doc_number(doc, key, cell.number);
}

static void put_members(struct doc *doc, const struct sheet *sheet, const struct choice *choice,
                        size_t row)
{
    char open[32] = "";
    for (size_t i = 0; i < choice->count; i++) {
        const struct column *column = choice->all[i];
        const union cell cell = row_of(sheet, row)[column->at];
        const char *key = column->key, *dot = key ? strchr(key, '.') : NULL;
        const size_t len = dot ? (size_t)(dot - key) : 0;
        if (!is_known(column, cell) || !key)
            continue;
        if (open[0] && (strlen(open) != len || strncmp(open, key, len) != 0)) {
            doc_end(doc);
            open[0] = '\0';
        }
        if (dot && !open[0]) {
            snprintf(open, sizeof(open), "%.*s", (int)len, key);
            doc_object(doc, open);
        }
        put_member(doc, column, dot ? dot + 1 : key, cell);
    }
    if (open[0])
        doc_end(doc);
}

static void put_list(struct doc *doc, const char *key, const struct sheet *sheet,
                     const struct choice *choice)
{
    doc_list(doc, key);
    for (size_t i = 0; i < sheet->count; i++) {
        doc_object(doc, NULL);
        put_members(doc, sheet, choice, i);
        doc_end(doc);
    }
    doc_end(doc);
}

static const struct output all_keys = {OUTPUT_JSON};

void sheet_members(struct doc *doc, struct sheet *sheet, const struct output *output)
{
    const struct choice choice = choose(sheet, output ? output : &all_keys);
    doc->failed |= sheet->failed;
    if (!sheet->failed)
        put_members(doc, sheet, &choice, 0);
    sheet_release(sheet);
}

void sheet_list(struct doc *doc, const char *key, struct sheet *sheet)
{
    const struct choice choice = choose(sheet, &all_keys);
    doc->failed |= sheet->failed;
    if (!sheet->failed)
        put_list(doc, key, sheet, &choice);
    sheet_release(sheet);
}

static void put_page(struct doc *doc, const struct table *table, const struct sheet *sheet,
                     const struct choice *choice)
{
    char text[CELL_BYTES];
    doc_list(doc, "columns");
    for (size_t i = 0; i < choice->count; i++) {
        doc_object(doc, NULL);
        doc_text(doc, "head", head_of(choice->all[i], sheet->unit, text));
        doc_bool(doc, "number", !is_text(choice->all[i]));
        doc_end(doc);
    }
    doc_end(doc);
    doc_list(doc, "rows");
    for (size_t r = 0; r < sheet->count && r < table->most; r++) {
        doc_list(doc, NULL);
        for (size_t i = 0; i < choice->count; i++)
            doc_text(doc, NULL,
                     cell_of(choice->all[i], row_of(sheet, r)[choice->all[i]->at], text));
        doc_end(doc);
    }
    doc_end(doc);
}

void sheet_table(struct doc *doc, const struct table *table, struct sheet *sheet, size_t all)
{
    const struct choice choice = choose(sheet, &(struct output){.columns = table->columns});
    doc->failed |= sheet->failed;
    doc_object(doc, NULL);
    doc_text(doc, "id", table->id);
    doc_text(doc, "title", table->title);
    doc_number(doc, "count", all ? all : sheet->count);
    if (!sheet->failed)
        put_page(doc, table, sheet, &choice);
    doc_end(doc);
    sheet_release(sheet);
}

static int print_document(FILE *out, const struct sheet *sheet, const struct choice *choice,
                          bool yaml)
{
    struct doc doc;
    doc_open(&doc, out, yaml);
    put_list(&doc, "items", sheet, choice);
    doc_object(&doc, "total");
    if (sheet->has_total)
        put_members(&doc, sheet, choice, sheet->count);
    doc_end(&doc);
    return doc_close(&doc);
}

/* RFC 4180: each text between quotes, of which those in it are doubled. */
static void put_csv(FILE *out, const struct column *column, union cell cell)
{
    if (!is_known(column, cell))
        return;
    if (!is_text(column)) {
        fprintf(out, "%" PRIu64, cell.number);
        return;
    }
    putc('"', out);
    for (const char *at = cell.text; *at; at++) {
        if (*at == '"')
            putc('"', out);
        putc(*at, out);
    }
    putc('"', out);
}

static int print_csv(FILE *out, const struct sheet *sheet, const struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        fprintf(out, "%s%s", i ? "," : "", choice->all[i]->key ?: choice->all[i]->head);
    for (size_t r = 0; r < sheet->count; r++) {
        for (size_t i = 0; i < choice->count; i++) {
            putc(i ? ',' : '\n', out);
            put_csv(out, choice->all[i], row_of(sheet, r)[choice->all[i]->at]);
        }
    }
    putc('\n', out);
    return 0;
}

int sheet_print(FILE *out, struct sheet *sheet, const struct output *output,
                const struct terminal *terminal)
{
    const enum output_format format = output ? output->format : OUTPUT_TABLE;
    struct choice choice = choose(sheet, output);
    int result = sheet->failed ? -1 : 0;
    if (result == 0 && format == OUTPUT_CSV)
        result = print_csv(out, sheet, &choice);
    else if (result == 0 && format >= OUTPUT_JSON)
        result = print_document(out, sheet, &choice, format == OUTPUT_YAML);
    else if (result == 0 && sheet->count)
        result = print_table(out, sheet, &choice, terminal);
    sheet_release(sheet);
    return result;
}
