/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include "rows.h"

#define DOT "\xc2\xb7" /* · */

enum { LINES = 2048, TESTS = 1024 };

struct lines {
    unsigned from, to;
};

/* A scenario, or a row of one. */
struct entry {
    const struct scenario_layer *layer;
    const char *file, *name;
    char *const *text; /* all lines of the file */
    struct lines given, steps;
    unsigned line, header, row; /* 0: there is no table */
};

struct file {
    char *bytes;
    char *lines[LINES];
    unsigned line_count, entry_count;
    struct entry entries[TESTS];
};

void scenario_fail(struct scenario *s, const char *fmt, ...)
{
    char why[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    snprintf(s->error, sizeof(s->error), "%s:%u: %s%s: \"%s\": %s", s->file, s->line, s->name,
             s->row, s->step, why);
    longjmp(s->out, 1);
}

/* --- words --- */

const char *scenario_peek(const struct scenario *s)
{
    return s->words[s->at];
}

const char *scenario_word(struct scenario *s)
{
    if (!s->words[s->at])
        scenario_fail(s, "a word is missing");
    return s->words[s->at++];
}

bool scenario_has(struct scenario *s, const char *word)
{
    bool has = s->words[s->at] && strcmp(s->words[s->at], word) == 0;
    s->at += has;
    return has;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static long read_number(const char **at)
{
    long value = 0;
    bool minus = **at == '-';
    for (*at += minus; is_digit(**at); ++*at)
        value = value * 10 + (**at - '0');
    return minus ? -value : value;
}

long scenario_number(struct scenario *s)
{
    const char *word = scenario_word(s), *at = word;
    long value = read_number(&at);
    if (*at || at == word)
        scenario_fail(s, "%s is no number", word);
    return value;
}

int64_t scenario_time(struct scenario *s)
{
    const char *word = scenario_word(s), *at = word;
    int64_t unit_ns = 1000000000, ns = read_number(&at) * unit_ns;
    if (*at == '.') {
        for (at++; is_digit(*at); at++)
            ns += (*at - '0') * (unit_ns /= 10);
    }
    if (strcmp(at, "s") != 0 || at == word)
        scenario_fail(s, "%s is no time", word);
    return ns;
}

/* --- expectations --- */

void scenario_is(struct scenario *s, const char *what, long found)
{
    const char *word = scenario_word(s), *at = word;
    long least = read_number(&at), most = least;
    if (at != word && strncmp(at, "..", 2) == 0) {
        at += 2;
        most = read_number(&at);
    }
    if (*at || at == word)
        scenario_fail(s, "%s is no number", word);
    if (found < least || found > most)
        scenario_fail(s, "%s is %ld instead of %s", what, found, word);
    s->checked++;
}

void scenario_is_text(struct scenario *s, const char *what, const char *found, const char *expected)
{
    if (strcmp(found, expected) != 0)
        scenario_fail(s, "%s is \"%s\" instead of \"%s\"", what, found, expected);
    s->checked++;
}

void scenario_has_text(struct scenario *s, const char *found, const char *part)
{
    if (!strstr(found, part))
        scenario_fail(s, "\"%s\" is not in %s", part, found);
    s->checked++;
}

/* --- steps --- */

static void split(struct scenario *s)
{
    unsigned count = 0;
    for (char *at = s->text + strspn(s->text, " "); *at; at += strspn(at, " ")) {
        const char *end = *at == '"' ? "\"" : " ";
        at += *at == '"';
        if (count + 1 == GS_COUNT_OF(s->words))
            scenario_fail(s, "too many words");
        s->words[count++] = at;
        at += strcspn(at, end);
        if (*at)
            *at++ = '\0';
    }
    s->words[count] = NULL;
    s->at = 0;
}

static void run_step(struct scenario *s, const char *step)
{
    snprintf(s->step, sizeof(s->step), "%s", step);
    if (snprintf(s->text, sizeof(s->text), "%s", step) >= (int)sizeof(s->text))
        scenario_fail(s, "too long");
    split(s);
    const char *word = scenario_word(s);
    const struct scenario_verb *verb = s->layer->verbs;
    while (verb->word && strcmp(verb->word, word) != 0)
        verb++;
    if (!verb->word)
        scenario_fail(s, "%s is no word that is known here", word);
    verb->run(s);
    if (s->words[s->at])
        scenario_fail(s, "%s has no meaning here", s->words[s->at]);
}

void scenario_put_off(struct scenario *s, const char *until)
{
    unsigned i = 0;
    while (i < GS_COUNT_OF(s->off) && s->off[i][0][0])
        i++;
    if (i == GS_COUNT_OF(s->off))
        scenario_fail(s, "too many steps are put off");
    snprintf(s->off[i][1], sizeof(s->off[i][1]), "%s", until);
    for (; s->words[s->at]; s->at++) {
        size_t len = strlen(s->off[i][0]);
        const char *quote = strchr(s->words[s->at], ' ') ? "\"" : "";
        snprintf(s->off[i][0] + len, sizeof(s->off[i][0]) - len, "%s%s%s ", quote, s->words[s->at],
                 quote);
    }
}

void scenario_now(struct scenario *s, const char *until)
{
    for (unsigned i = 0; i < GS_COUNT_OF(s->off); i++) {
        struct scenario outer = *s;
        char step[sizeof(s->off[i][0])];
        if (!s->off[i][0][0] || strcmp(s->off[i][1], until) != 0)
            continue;
        snprintf(step, sizeof(step), "%s", s->off[i][0]);
        s->off[i][0][0] = '\0';
        run_step(s, step);
        memcpy(s->step, outer.step, sizeof(s->step));
        memcpy(s->text, outer.text, sizeof(s->text));
        memcpy(s->words, outer.words, sizeof(s->words));
        s->at = outer.at;
    }
}

/* Cell `column` of the row, blanks at its ends apart; false when there is none. */
static bool cell(const char *row, unsigned column, const char **ret, int *ret_len)
{
    const char *at = strchr(row, '|');
    for (; at && column; column--)
        at = strchr(at + 1, '|');
    if (!at)
        return false;
    at += 1 + strspn(at + 1, " ");
    int len = (int)strcspn(at, "|");
    while (len && at[len - 1] == ' ')
        len--;
    *ret = at;
    *ret_len = len;
    return true;
}

/* The line with the row's text for <column>; columns that were met are marked in *used. */
static void put_in(struct scenario *s, const struct entry *e, const char *line, char *out,
                   size_t size, uint32_t *used)
{
    size_t len = 0;
    while (*line && len + 1 < size) {
        const char *end = *line == '<' && e->row ? strchr(line, '>') : NULL;
        const char *name, *value;
        int name_len, value_len;
        if (!end) {
            out[len++] = *line++;
            continue;
        }
        unsigned column = 0;
        while (cell(e->text[e->header], column, &name, &name_len) &&
               (name_len != end - line - 1 || strncmp(name, line + 1, (size_t)name_len) != 0))
            column++;
        if (!cell(e->text[e->header], column, &name, &name_len) ||
            !cell(e->text[e->row], column, &value, &value_len))
            scenario_fail(s, "the table has no %.*s", (int)(end + 1 - line), line);
        *used |= 1u << column;
        len += (size_t)snprintf(out + len, size - len, "%.*s", value_len, value);
        line = end + 1;
    }
    out[len < size ? len : size - 1] = '\0';
}

static void run_lines(struct scenario *s, const struct entry *e, struct lines lines, uint32_t *used)
{
    char text[2048];
    for (unsigned i = lines.from; i < lines.to; i++) {
        s->line = i + 1;
        put_in(s, e, e->text[i], text, sizeof(text), used);
        for (char *step = text, *next; step; step = next) {
            next = strstr(step, DOT);
            if (next) {
                *next = '\0';
                next += strlen(DOT);
            }
            step += strspn(step, " ");
            if (*step)
                run_step(s, step);
        }
    }
}

static void check_columns(struct scenario *s, const struct entry *e, uint32_t used)
{
    const char *name;
    int len;
    for (unsigned i = 0; e->row && cell(e->text[e->header], i, &name, &len); i++) {
        if (!(used >> i & 1) && strncmp(name, "case", (size_t)len) != 0)
            scenario_fail(s, "nobody uses the column %.*s", len, name);
    }
}

/* Whether it is as it says; else s->error says what is not. */
static bool run(struct scenario *s, const struct entry *e)
{
    uint32_t used = 0;
    *s = (struct scenario){.layer = e->layer, .file = e->file, .name = e->name, .line = e->line};
    if (e->row)
        snprintf(s->row, sizeof(s->row), ", row %u", e->row + 1);
    if (setjmp(s->out) == 0) {
        s->layer->begin(s);
        run_lines(s, e, e->given, &used);
        run_lines(s, e, e->steps, &used);
        s->line = e->row ? e->row + 1 : e->line;
        snprintf(s->step, sizeof(s->step), "%s", e->row ? e->text[e->row] : "");
        check_columns(s, e, used);
        for (unsigned i = 0; i < GS_COUNT_OF(s->off); i++) {
            if (s->off[i][0][0])
                scenario_fail(s, "%s never came: %s", s->off[i][1], s->off[i][0]);
        }
        if (!s->checked)
            scenario_fail(s, "it expects nothing");
    }
    s->layer->end();
    return !s->error[0];
}

/* --- files --- */

static void add(struct file *file, struct entry entry)
{
    if (file->entry_count == TESTS)
        fail_msg("%s: too many scenarios", entry.file);
    file->entries[file->entry_count++] = entry;
}

static void cut_lines(struct file *file)
{
    for (char *at = file->bytes; *at && file->line_count < LINES;) {
        char *end = at + strcspn(at, "\n");
        bool last = !*end;
        *end = '\0';
        char *comment = *at == '#' ? at : strstr(at, " # ");
        if (comment)
            *comment = '\0';
        file->lines[file->line_count++] = at;
        at = last ? end : end + 1;
    }
    assert_true(file->line_count < LINES);
}

static bool is_row(const char *line)
{
    return line[strspn(line, " ")] == '|';
}

/* taken: bytes. */
static void read_text(struct file *file, const struct scenario_layer *layer, const char *name,
                      char *bytes)
{
    struct lines given = {0};
    unsigned i = 0;
    *file = (struct file){.bytes = bytes};
    cut_lines(file);
    while (i < file->line_count) {
        const unsigned top = i++;
        char *line = file->lines[top];
        if (!*line)
            continue;
        const bool is_given = strncmp(line, "given ", 6) == 0;
        struct entry entry = {.layer = layer,
                              .file = name,
                              .name = line,
                              .text = file->lines,
                              .given = given,
                              .line = top + 1};
        while (i < file->line_count && (!*file->lines[i] || file->lines[i][0] == ' ') &&
               !is_row(file->lines[i]))
            i++;
        if (is_given) {
            memset(line, ' ', 5);
            given = (struct lines){top, i};
            continue;
        }
        entry.steps = (struct lines){top + 1, i};
        if (i == file->line_count || !is_row(file->lines[i])) {
            add(file, entry);
            continue;
        }
        entry.header = i++;
        for (; i < file->line_count && is_row(file->lines[i]); i++) {
            entry.row = i;
            add(file, entry);
        }
    }
}

/* *Caller frees*; NULL: nothing. */
static char *scenario_wrong(const struct scenario_layer *layer, const char *text)
{
    static struct file file;
    struct scenario s = {0};
    char *wrong = NULL;
    read_text(&file, layer, "text", strdup(text));
    for (unsigned i = 0; i < file.entry_count && !wrong; i++) {
        if (!run(&s, &file.entries[i]))
            wrong = strdup(s.error);
    }
    free(file.bytes);
    return wrong ? wrong : file.entry_count ? NULL : strdup("there is no scenario");
}

void scenario_mistakes_are_seen(const struct scenario_layer *layer,
                                const struct scenario_mistake *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *wrong = scenario_wrong(layer, rows[i].text);
        if (!wrong != !rows[i].wrong || (wrong && !strstr(wrong, rows[i].wrong)))
            fail_msg("%s: %s", rows[i].row, wrong ? wrong : "passes");
        free(wrong);
    }
}

static void run_entry(void **state)
{
    static struct scenario s;
    if (!run(&s, *state))
        fail_msg("%s", s.error);
}

static char *bytes_of(const char *path)
{
    char *bytes = calloc(1, 1 << 20);
    FILE *in = fopen(path, "re");
    if (!bytes || !in || fread(bytes, 1, (1 << 20) - 1, in) == 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    fclose(in);
    return bytes;
}

int scenario_main(const struct scenario_layer *layer, const char *const *files,
                  const struct CMUnitTest *tests, size_t count)
{
    static struct file read[8];
    static struct CMUnitTest all[TESTS];
    for (size_t i = 0; i < count; i++)
        all[i] = tests[i];
    for (unsigned f = 0; files[f]; f++) {
        char path[1024];
        const char *name = strrchr(files[f], '/') ? strrchr(files[f], '/') + 1 : files[f];
        snprintf(path, sizeof(path), "%s/%s", GS_SOURCE_DIR, files[f]);
        read_text(&read[f], layer, name, bytes_of(path));
        for (unsigned i = 0; i < read[f].entry_count; i++) {
            struct entry *entry = &read[f].entries[i];
            assert_true(count < TESTS);
            all[count++] = (struct CMUnitTest){
                .name = entry->name, .test_func = run_entry, .initial_state = entry};
        }
    }
    int failed = _cmocka_run_group_tests("scenarios", all, count, NULL, NULL);
    for (unsigned f = 0; files[f]; f++)
        free(read[f].bytes);
    return failed;
}
