/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#include "common/wrap.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/utf8.h"
#include "inspect/columns_private.h"

/* Columns of a name, and of prose, on a narrow terminal. */
enum { NAME_LEAST = 15, NAME_MOST = 320, PROSE_LEAST = 18, PROSE_USUAL = 24 };

/* How long texts may be, and what all names of a column end in, which is left out; NULL: nothing.
 */
struct room {
    size_t name, prose;
    const char *domains[COLUMNS_MAX];
};

const char *column_cell(const struct column *column, union cell cell, char to[CELL_BYTES])
{
    if (!column_is_known(column, cell))
        return "-";
    if (column_is_text(column))
        return cell.text;
    if (column->kind == COLUMN_BYTES || column->kind == COLUMN_EACH)
        usage_text(cell.number, GS_UNIT_GIB, to);
    else if (column->kind == COLUMN_GPUS)
        gs_codec_idx_format(cell.number, to);
    else
        snprintf(to, CELL_BYTES, "%" PRIu64, cell.number);
    return to;
}

/* In lines of so many columns; longer words go on in the next. *Caller frees*; NULL: out of memory.
 */
static char *wrapped(const char *text, size_t width)
{
    char *to = NULL;
    _cleanup_(gs_buf_release) struct gs_buf words = GS_BUF(1 << 16);
    size_t size = 0;
    FILE *out = open_memstream(&to, &size);
    if (!out)
        return NULL;
    for (size_t len; *text; text += len + (text[len] == ' ')) {
        len = gs_utf8_cut(text, strcspn(text, " "), width);
        gs_buf_putc(&words, ' ');
        gs_buf_append(&words, text, len);
    }
    if (words.len)
        wrap_words(out, 0, 0, (int)width, words.data + 1, words.len - 1);
    if (fclose(out) == 0 && size)
        to[size - 1] = '\0';
    return to;
}

/* Without the domain. */
static size_t name_length(const struct column *column, const char *cell, const struct room *room)
{
    const char *domain = room->domains[column->at];
    const size_t len = strlen(cell), end = domain ? strlen(domain) : 0;
    return len < end ? len : len - end; /* "-" of no name */
}

static bool put_cell(struct libscols_line *line, size_t at, const struct column *column,
                     union cell value, const struct room *room)
{
    char text[CELL_BYTES], whole[NAME_MOST + 1], name[NAME_MOST + 1];
    const char *cell = column_cell(column, value, text);
    _cleanup_free_ char *lines =
        column->kind == COLUMN_PROSE && room->prose < SIZE_MAX ? wrapped(cell, room->prose) : NULL;
    if (column->kind == COLUMN_TEXT && room->name < NAME_MOST) {
        snprintf(whole, sizeof(whole), "%.*s", (int)name_length(column, cell, room), cell);
        wrap_shorten(whole, name, room->name + 1);
        cell = name;
    }
    return scols_line_set_data(line, at, lines ? lines : cell) == 0;
}

/* With the rows' unit. */
const char *column_head(const struct column *column, const char *unit, char to[CELL_BYTES])
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
        scols_table_new_column(table, column_head(column, unit, text), 0, flags);
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

/* That all names of a column have; no address has one. */
static const char *domain_of(const struct sheet *sheet, const struct column *column)
{
    const char *domain = NULL;
    for (size_t r = 0; r < sheet->count && column->kind == COLUMN_TEXT; r++) {
        const char *name = sheet_cells(sheet, r)[column->at].text;
        const char *found = name ? strchr(name, '.') : domain;
        if (name && (!found || (domain && strcmp(found, domain) != 0)))
            return NULL;
        domain = found;
    }
    return domain && domain[strspn(domain, ".0123456789")] ? domain : NULL;
}

static void find_widest(const struct sheet *sheet, const struct choice *choice,
                        const struct room *room, size_t widest[COLUMNS_MAX])
{
    char text[CELL_BYTES];
    for (size_t i = 0; i < choice->count; i++) {
        const struct column *column = choice->all[i];
        widest[i] = strlen(column_head(column, sheet->unit, text));
        for (size_t r = 0; r < sheet->count + sheet->has_total; r++) {
            const char *cell = column_cell(column, sheet_cells(sheet, r)[column->at], text);
            const size_t len = r < sheet->count ? name_length(column, cell, room) : strlen(cell);
            widest[i] = len > widest[i] ? len : widest[i];
        }
    }
}

/* First domains are left out and names are cut, then the last columns are left out; prose has what
 * is left. */
static void fit(const struct sheet *sheet, struct choice *choice, struct room *room, size_t width)
{
    size_t widest[COLUMNS_MAX] = {0};
    find_widest(sheet, choice, room, widest);
    if (width_of(choice, widest, *room) <= width)
        return;
    *room = (struct room){.name = NAME_MOST - 1, .prose = PROSE_USUAL};
    for (size_t i = 0; i < choice->count; i++)
        room->domains[choice->all[i]->at] = domain_of(sheet, choice->all[i]);
    find_widest(sheet, choice, room, widest);
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
        fine = row == sheet->count && column_is_text(column) /* of the total */
                   ? scols_line_set_data(line, i, i ? "" : "TOTAL") == 0
                   : put_cell(line, i, column, sheet_cells(sheet, row)[column->at], room);
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

char *table_text(const struct sheet *sheet, const struct choice *choice)
{
    const struct room room = {.name = NAME_MOST, .prose = SIZE_MAX};
    return lay_out(sheet, choice, &room);
}

int table_print(FILE *out, const struct sheet *sheet, struct choice *choice,
                const struct terminal *terminal)
{
    struct room room = {.name = NAME_MOST, .prose = SIZE_MAX};
    const size_t all = choice->count;
    if (terminal && terminal->screen && terminal->width)
        fit(sheet, choice, &room, terminal->width);
    for (size_t i = 0; i < choice->count; i++) {
        const char *domain = room.domains[choice->all[i]->at];
        if (domain)
            fprintf(stderr, PROGRAM ": %s: without %s\n", choice->all[i]->head, domain);
    }
    if (choice->count < all)
        fprintf(stderr, PROGRAM ": this terminal is too narrow for the columns");
    for (size_t i = choice->count; i < all; i++)
        fprintf(stderr, " %.*s%s", (int)strcspn(choice->all[i]->head, "("), choice->all[i]->head,
                i + 1 < all ? "" : " (see --columns)\n");
    _cleanup_free_ char *text = lay_out(sheet, choice, &room);
    return text ? fputs(text, out) : -1;
}
