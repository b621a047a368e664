/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/base/log.h"

/*
 * Options of a program or a subcommand: one table, read from the defaults in the variables, then a
 * YAML file (--config FILE), then the environment, then the command line; the later one wins.
 * --help, --usage and --version come by themselves (argp) and exit 0; bad usage exits 2 with one
 * line on stderr.
 *
 *   static struct settings { const char *listen; bool elect; } set = {.listen = "127.0.0.1:29999"};
 *   const struct gs_option table[] = {
 *       OPT_STRING("listen", &set.listen, "ADDR:PORT", "where to serve", .env = "LISTEN"),
 *       OPT_FLAG("leader-elect", &set.elect, "take part in leader election", .key = 'e'),
 *   };
 *   const struct gs_command command = {
 *       .name = "gpushare-extender", .doc = "…", .options = table, .option_count = 2};
 *   int first = gs_options_parse(&command, argc, argv);      argv[first..] are the operands
 *
 * The file is a YAML mapping of long option names to scalars; a sequence stands for a comma list.
 * Unknown names, wrong values and broken YAML name the file and line.
 */
enum gs_option_type {
    GS_OPT_STRING,   /* const char *; borrowed from argv or the environment, or kept for good */
    GS_OPT_BOOL,     /* bool; the flag takes no argument, or =true / =false */
    GS_OPT_U32,      /* uint32_t */
    GS_OPT_DURATION, /* int64_t nanoseconds: "5s", "1m30s" */
    GS_OPT_WORD,     /* an enum of the places of arg's words, which "|" parts; any case */
    GS_OPT_CUSTOM,   /* set() judges */
};

struct gs_option {
    const char *name; /* long option, without dashes */
    enum gs_option_type type;
    void *to;
    const char *arg; /* what --help shows; NULL for flags */
    const char *doc;
    const char *env;                         /* environment variable that sets it too, or NULL */
    int key;                                 /* short option letter, or 0 */
    bool (*set)(void *to, const char *text); /* for GS_OPT_CUSTOM: false when text is no value */
    bool repeats;                            /* set() for each time it is given, not the last */
};

/* Rows of a table, one macro for each type of variable, which the compiler checks. What may follow:
 * .env = "NAME", .key = 'n', .repeats = true. */
#define OPT_ROW(row_type, row_name, row_to, row_arg, row_doc, ...)                                 \
    {                                                                                              \
        .name = (row_name), .type = (row_type), .to = (row_to), .arg = (row_arg),                  \
        .doc = (row_doc), __VA_ARGS__                                                              \
    }
#define OPT_IS(type, to) (1 ? (to) : (type *)NULL)
#define OPT_STRING(name, to, arg, doc, ...)                                                        \
    OPT_ROW(GS_OPT_STRING, name, OPT_IS(const char *, to), arg, doc, __VA_ARGS__)
#define OPT_FLAG(name, to, doc, ...)                                                               \
    OPT_ROW(GS_OPT_BOOL, name, OPT_IS(bool, to), NULL, doc, __VA_ARGS__)
#define OPT_U32(name, to, arg, doc, ...)                                                           \
    OPT_ROW(GS_OPT_U32, name, OPT_IS(uint32_t, to), arg, doc, __VA_ARGS__)
#define OPT_DURATION(name, to, arg, doc, ...)                                                      \
    OPT_ROW(GS_OPT_DURATION, name, OPT_IS(int64_t, to), arg, doc, __VA_ARGS__)
#define OPT_WORD(name, to, words, doc, ...) OPT_ROW(GS_OPT_WORD, name, to, words, doc, __VA_ARGS__)
#define OPT_CUSTOM(name, to, judge, arg, doc, ...)                                                 \
    OPT_ROW(GS_OPT_CUSTOM, name, to, arg, doc, .set = (judge), __VA_ARGS__)

struct gs_command {
    const char *name; /* as usage shows it: "gpushare-sim serve" */
    const char *doc;
    const char *operands; /* "FILE..." or NULL */
    const struct gs_option *options;
    size_t option_count;
    int min_operands;
    int max_operands; /* -1: any number */
    bool quiet;       /* --log-level is "error" unless said otherwise: for people at a terminal */
};

/* Returns the index of the first operand in argv (operands are moved to the end). Exits on bad
 * usage and on --help, --version. Call once per process: strings from the file live on. */
int gs_options_parse(const struct gs_command *command, int argc, char **argv);

/* Rows that every program has: log-level (LOG_LEVEL), log-format. gs_log_init() is called by
 * gs_options_parse() with what they say. */
