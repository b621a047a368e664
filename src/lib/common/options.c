/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options.h"

#include <argp.h>
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/wrap.h"
#include "gpushare/base/arena.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/yaml.h"

enum { WIDTH = 79, TEXT_COLUMN = 29 };

static int by_name(const void *a, const void *b)
{
    const struct argp_option *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static void print_option(FILE *out, const struct argp_option *option)
{
    char letter[] = "    ";
    if (option->key < 256 && isprint(option->key))
        snprintf(letter, sizeof(letter), "-%c, ", option->key);
    int at = fprintf(out, "  %-4s--%s", letter, option->name);
    if (option->arg)
        at += fprintf(out, option->flags & OPTION_ARG_OPTIONAL ? "[=%s]" : "=%s", option->arg);
    if (at >= TEXT_COLUMN) {
        fputc('\n', out);
        at = 0;
    }
    wrap_words(out, at, TEXT_COLUMN, WIDTH, option->doc, strlen(option->doc));
}

/* What --help prints: usage, the command's text, and the rows of table in alphabetical order, which
 * ends with one without a name and is sorted in place. Lines are at most 79 columns wide; what
 * follows a '\v' in the command's text stands at the end as it is. */
static void options_help(FILE *out, const char *name, const struct gs_command *command,
                         struct argp_option *table)
{
    const char *more = strchr(command->doc, '\v'); /* as argp has it: what follows the options */
    size_t len = more ? (size_t)(more - command->doc) : strlen(command->doc);
    size_t count = 0;
    while (table[count].name)
        count++;
    qsort(table, count, sizeof(*table), by_name);
    fprintf(out, "Usage: %s [OPTION...]%s%s\n", name, command->operands ? " " : "",
            command->operands ? command->operands : "");
    wrap_words(out, 0, 0, WIDTH, command->doc, len);
    fputc('\n', out);
    for (size_t i = 0; i < count; i++) {
        if (!(table[i].flags & OPTION_HIDDEN))
            print_option(out, &table[i]);
    }
    fputs("      --usage                give a short usage message\n"
          "  -V, --version              print the version\n",
          out);
    if (more)
        fprintf(out, "\n%s\n", more + 1);
}

/* OLD_HELP_KEY is argp's own, whose help is not used: its line wrapping goes wrong at some
 * lengths. */
enum {
    USAGE_EXIT = 2,
    FIRST_KEY = 0x1000,
    CONFIG_KEY = 0x0fff,
    HELP_KEY = 'h',
    OLD_HELP_KEY = '?',
    ROWS_BESIDE = 5,
    CONFIG_BYTES_MAX = 1 << 20
};

/* The program's rows, then these. */
struct parse {
    const struct gs_command *command;
    const char **given; /* by row: the command line's text */
    struct argp_option *table;
    const char *config;
    enum gs_log_level level;
    enum gs_log_format format;
    struct gs_option own[2];
    int first_operand;
    int operands;
};

static const struct gs_option *row(const struct parse *parse, size_t i)
{
    size_t count = parse->command->option_count;
    return i < count ? &parse->command->options[i] : &parse->own[i - count];
}

static size_t row_count(const struct parse *parse)
{
    return parse->command->option_count + sizeof(parse->own) / sizeof(parse->own[0]);
}

/* The place of the text among words like "off|on"; any case. */
static bool read_word(const char *words, const char *text, unsigned *ret)
{
    const size_t len = strlen(text);
    for (unsigned at = 0;; at++) {
        const size_t word = strcspn(words, "|");
        if (word == len && strncasecmp(words, text, len) == 0) {
            *ret = at;
            return true;
        }
        if (!words[word])
            return false;
        words += word + 1;
    }
}

/* "warning" is the original's. */
static bool set_level(void *to, const char *text)
{
    return read_word("error|warn|info|debug", strcasecmp(text, "warning") == 0 ? "warn" : text, to);
}

static int set_option(const struct gs_option *option, const char *text, struct gs_error *err)
{
    bool good = false;
    switch (option->type) {
    case GS_OPT_STRING:
        *(const char **)option->to = text;
        good = true;
        break;
    case GS_OPT_BOOL:
        good = gs_parse_bool(text, option->to);
        break;
    case GS_OPT_U32:
        good = gs_parse_u32(text, strlen(text), option->to);
        break;
    case GS_OPT_DURATION:
        good = gs_parse_duration_ns(text, option->to);
        break;
    case GS_OPT_WORD:
        good = read_word(option->arg, text, option->to);
        break;
    case GS_OPT_CUSTOM:
        good = option->set(option->to, text);
        break;
    }
    if (good)
        return 0;
    if (option->type >= GS_OPT_WORD && strchr(option->arg, '|'))
        return gs_fail(err, GS_EINVAL, "%s: invalid value \"%.80s\", must be one of %.100s",
                       option->name, text, option->arg);
    return gs_fail(err, GS_EINVAL, "%s: invalid value \"%.80s\"", option->name, text);
}

/* --- the file --- */

/* "a", or "a,b" of a list; *caller frees*; NULL for what is neither. */
static char *value_text(const json_t *value)
{
    if (json_is_null(value) || json_is_string(value))
        return strdup(json_is_string(value) ? json_string_value(value) : "");
    if (!json_is_array(value))
        return NULL;
    struct gs_buf text = GS_BUF(CONFIG_BYTES_MAX);
    size_t i;
    json_t *item;
    json_array_foreach(value, i, item)
    {
        if (json_is_string(item))
            gs_buf_printf(&text, "%s%s", text.len ? "," : "", json_string_value(item));
    }
    return gs_buf_steal(&text);
}

static int read_option(const struct parse *parse, const char *name, const json_t *value,
                       struct gs_error *err)
{
    size_t i = 0;
    while (i < row_count(parse) && strcmp(row(parse, i)->name, name) != 0)
        i++;
    if (i == row_count(parse))
        return gs_fail(err, GS_EINVAL, "unknown option %.80s", name);
    char *text = value_text(value); /* strings live on in the options */
    bool repeats = row(parse, i)->repeats;
    if (!text || (repeats && json_is_array(value)))
        return gs_fail(err, GS_EINVAL, "%.80s must have a plain value%s", name,
                       repeats ? "" : " or a list");
    return set_option(row(parse, i), text, err);
}

static int read_options(const struct parse *parse, json_t *root, struct gs_error *err)
{
    const char *name;
    json_t *value;
    if (!json_is_null(root) && !json_is_object(root))
        return gs_fail(err, GS_EINVAL, "the file must be a mapping of option names to values");
    json_object_foreach(root, name, value)
    {
        if (read_option(parse, name, value, err) < 0)
            return -1;
    }
    return 0;
}

static int read_file(const struct parse *parse, struct gs_error *err)
{
    const char *path = parse->config;
    _cleanup_free_ char *text = NULL;
    size_t len;
    if (gs_file_read(path, CONFIG_BYTES_MAX, &text, &len, err) < 0)
        return -1;
    json_t *root = gs_yaml_load((struct gs_slice){text, len}, path, err);
    if (!root)
        return -1;
    int result = read_options(parse, root, err);
    gs_yaml_free(root);
    return result < 0 ? gs_error_prefix(err, "%.160s", path) : 0;
}

/* --- the command line --- */

static error_t on_argument(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    const struct gs_command *command = parse->command;
    if (key == CONFIG_KEY) {
        parse->config = text;
        return 0;
    }
    if (key == HELP_KEY || key == OLD_HELP_KEY) {
        options_help(stdout, state->name, command, parse->table);
        exit(0);
    }
    if (key == ARGP_KEY_ARG) {
        parse->operands++;
        if (command->max_operands >= 0 && parse->operands > command->max_operands)
            argp_error(state, "unexpected argument \"%s\"", text);
        if (parse->operands == 1)
            parse->first_operand = state->next - 1;
        return 0;
    }
    if (key == ARGP_KEY_END) {
        if (parse->operands < command->min_operands)
            argp_error(state, "missing argument: %s", command->operands);
        return 0;
    }
    for (size_t i = 0; i < row_count(parse); i++) {
        const struct gs_option *option = row(parse, i);
        if (key == FIRST_KEY + (int)i || (option->key && key == option->key)) {
            struct gs_error why = {0};
            parse->given[i] = option->repeats ? NULL : text ? text : "true";
            if (option->repeats && set_option(option, text, &why) < 0)
                argp_error(state, "%s", why.msg);
            return 0;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

/* With the variable that sets the option too; "" without memory. */
static const char *describe(const struct gs_option *option, struct gs_arena *arena)
{
    if (!option->env)
        return option->doc;
    const char *text = gs_arena_printf(arena, "%s [$%s]", option->doc, option->env);
    return text ? text : "";
}

/* A command for people at a terminal has nothing worth a log line: such rows work, and are not
 * listed. */
static int flags_of(const struct parse *parse, const struct gs_option *option)
{
    bool own =
        option >= parse->own && option < parse->own + sizeof(parse->own) / sizeof(parse->own[0]);
    return (option->type == GS_OPT_BOOL ? OPTION_ARG_OPTIONAL : 0) |
           (own && parse->command->quiet ? OPTION_HIDDEN : 0);
}

/* The argp table: rows, then --config and --help; rows without a name are not listed. */
static void fill_argp(const struct parse *parse, struct argp_option *table, struct gs_arena *arena)
{
    size_t at = 0;
    for (size_t i = 0; i < row_count(parse); i++) {
        const struct gs_option *option = row(parse, i);
        table[at++] = (struct argp_option){
            .name = option->name,
            .key = option->key ? option->key : FIRST_KEY + (int)i,
            .arg = option->type == GS_OPT_BOOL ? "BOOL" : option->arg,
            .flags = flags_of(parse, option),
            .doc = describe(option, arena),
        };
    }
    table[at++] = (struct argp_option){
        .name = "config",
        .key = CONFIG_KEY,
        .arg = "FILE",
        .doc = "YAML file with these options, by their long names",
    };
    table[at++] = (struct argp_option){.name = "help", .key = HELP_KEY, .doc = "print this help"};
    table[at++] = (struct argp_option){.key = OLD_HELP_KEY, .flags = OPTION_HIDDEN};
}

static void print_version(FILE *out, struct argp_state *state)
{
    fprintf(out, "%s\n", "gpushare " GS_VERSION);
}

static void refuse(const struct gs_command *command, const char *source, const struct gs_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", command->name, source, err->msg);
    exit(err->code == GS_ENOMEM ? 1 : USAGE_EXIT);
}

static void apply(struct parse *parse)
{
    const struct gs_command *command = parse->command;
    struct gs_error err = {0};
    if (parse->config && read_file(parse, &err) < 0)
        refuse(command, "--config", &err);
    for (size_t i = 0; i < row_count(parse); i++) {
        const struct gs_option *option = row(parse, i);
        const char *text = option->env ? getenv(option->env) : NULL;
        if (text && text[0] && set_option(option, text, &err) < 0)
            refuse(command, option->env, &err);
    }
    for (size_t i = 0; i < row_count(parse); i++) {
        if (parse->given[i] && set_option(row(parse, i), parse->given[i], &err) < 0)
            refuse(command, "command line", &err);
    }
    gs_log_init(parse->level, parse->format);
    gs_invariants_survive();
}

int gs_options_parse(const struct gs_command *command, int argc, char **argv)
{
    struct parse parse = {.command = command, .format = GS_LOG_TEXT, .first_operand = argc};
    parse.level = command->quiet ? GS_LOG_ERROR : GS_LOG_INFO;
    parse.own[0] = (struct gs_option)OPT_CUSTOM(
        "log-level", &parse.level, set_level, "error|warn|info|debug",
        "minimum severity of log lines (default info)", .env = "LOG_LEVEL");
    parse.own[1] =
        (struct gs_option)OPT_WORD("log-format", &parse.format, "text|json",
                                   "format of log lines on standard error (default text)");
    _cleanup_free_ struct argp_option *table =
        calloc(command->option_count + ROWS_BESIDE + 1, sizeof(*table));
    _cleanup_free_ const char **given = calloc(row_count(&parse), sizeof(*given));
    if (!table || !given) {
        struct gs_error err = {0};
        gs_fail_nomem(&err);
        refuse(command, "start", &err);
    }
    parse.given = given;
    parse.table = table;
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    fill_argp(&parse, table, &arena);
    argp_err_exit_status = USAGE_EXIT;
    argp_program_version_hook = print_version;
    const struct argp argp = {table, on_argument, command->operands, command->doc, NULL,
                              NULL,  NULL};
    argp_parse(&argp, argc, argv, 0, NULL, &parse);
    apply(&parse);
    return parse.first_operand;
}
