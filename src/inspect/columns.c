/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpushare/base/array.h"
#include "gpushare/base/cleanup.h"
#include "inspect/columns_private.h"

bool output_parse(void *to, const char *text)
{
    static const char *const words[] = {"table", "wide", "json", "yaml", "csv", NULL};
    return word_parse(words, to, text);
}

/* ---- values ---- */

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
    return sheet_cells(sheet, row)[column].number;
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
        const union cell cell = sheet_cells(sheet, i)[column->at];
        set = column_is_known(column, cell) && (column_is_text(column) || cell.number);
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
    if (column_is_text(column))
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
        else if (column_is_text(column))
            sum->text = sum->text ? sum->text : more.text;
        else if (column->kind != COLUMN_EACH)
            column_add(&sum->number, more.number);
        else if (!column_is_known(column, *sum) ||
                 (column_is_known(column, more) && more.number > sum->number))
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
        union cell *row = sheet_cells(sheet, i);
        if (kept && order_rows(sheet_cells(sheet, kept - 1), row, &same) == 0)
            join_cells(sheet, sheet_cells(sheet, kept - 1), row);
        else
            memmove(sheet_cells(sheet, kept++), row, sheet->column_count * sizeof(*row));
    }
    sheet->count = kept;
    sheet->cell_count = (uint32_t)(kept * sheet->column_count);
}

void sheet_total(struct sheet *sheet, bool add)
{
    if (sheet->failed)
        return;
    union cell *total = sheet_cells(sheet, --sheet->count);
    for (size_t r = 0; add && r < sheet->count; r++) {
        GS_EACH_OF (column, sheet->columns, sheet->column_count) {
            if (column->kind == COLUMN_NUMBER || column->kind == COLUMN_BYTES)
                column_add(&total[column->at].number, sheet_cells(sheet, r)[column->at].number);
        }
    }
    sheet->has_total = true;
}

/* ---- tables ---- */

char *sheet_text(struct sheet *sheet)
{
    const struct choice choice = choose(sheet, NULL);
    char *text = table_text(sheet, &choice);
    sheet_release(sheet);
    return text;
}

/* ---- documents ---- */

static void put_member(struct doc *doc, const struct column *column, const char *key,
                       union cell cell)
{
    if (column_is_text(column))
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
        const union cell cell = sheet_cells(sheet, row)[column->at];
        const char *key = column->key, *dot = key ? strchr(key, '.') : NULL;
        const size_t len = dot ? (size_t)(dot - key) : 0;
        if (!column_is_known(column, cell) || !key)
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
        doc_text(doc, "head", column_head(choice->all[i], sheet->unit, text));
        doc_bool(doc, "number", !column_is_text(choice->all[i]));
        doc_end(doc);
    }
    doc_end(doc);
    doc_list(doc, "rows");
    for (size_t r = 0; r < sheet->count && r < table->most; r++) {
        doc_list(doc, NULL);
        for (size_t i = 0; i < choice->count; i++)
            doc_text(doc, NULL,
                     column_cell(choice->all[i], sheet_cells(sheet, r)[choice->all[i]->at], text));
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
    if (!column_is_known(column, cell))
        return;
    if (!column_is_text(column)) {
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
            put_csv(out, choice->all[i], sheet_cells(sheet, r)[choice->all[i]->at]);
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
        result = table_print(out, sheet, &choice, terminal);
    sheet_release(sheet);
    return result;
}
