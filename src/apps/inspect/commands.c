/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "inspect/app.h"
#include "inspect/terminal.h"

/* Which command the command line names; without one it is show. */

static const struct {
    const char *name;
    int (*run)(const struct app *app, int argc, char **argv);
} commands[] = {
    {"show", cmd_show},         {"map", cmd_map},     {"stranded", cmd_stranded},
    {"limits", cmd_limits},     {"why", cmd_why},     {"what-if", cmd_what_if},
    {"snapshot", cmd_snapshot}, {"web", cmd_web},     {"doctor", cmd_doctor},
    {"defrag", cmd_defrag},     {"usage", cmd_usage}, {"nodeoverlay", cmd_nodeoverlay},
};

enum { WORD_MAX = 16 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters are to be put in, left out or changed (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], b_len = strlen(b);
    for (size_t k = 0; k <= b_len; k++)
        row[k] = k;
    for (size_t i = 1; *a; a++, i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= b_len; k++) {
            const size_t kept = corner + (*a != b[k - 1]);
            corner = row[k];
            row[k] = least(kept, least(row[k], row[k - 1]) + 1);
        }
    }
    return row[b_len];
}

/* The command that a word comes near to; NULL: none. */
static const char *command_like(const char *word)
{
    const char *nearest = NULL;
    size_t best = 3; /* what has three other letters is another word */
    for (size_t i = 0; strlen(word) <= WORD_MAX && i < sizeof(commands) / sizeof(commands[0]);
         i++) {
        const size_t here = distance(word, commands[i].name);
        if (here >= best || here * 2 >= strlen(commands[i].name))
            continue;
        best = here;
        nearest = commands[i].name;
    }
    return nearest;
}

/* Options before the command's name whose value is a word of its own. */
static bool takes_word(const char *option)
{
    static const char *const names[] = {"--kubeconfig",
                                        "--context",
                                        "--namespace",
                                        "--domain",
                                        "--request-timeout",
                                        "--config",
                                        "--log-level",
                                        "--log-format",
                                        "--output",
                                        "--selector",
                                        "--sort",
                                        "--listen",
                                        "--system-namespace",
                                        "--timeout",
                                        "--by",
                                        "--type",
                                        "-n",
                                        "-o",
                                        "-l"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(option, names[i]) == 0)
            return true;
    }
    return false;
}

/* The first word that is no option; 0 when there is none. */
static int first_word(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return 0;
        if (argv[i][0] != '-')
            return i;
        if (takes_word(argv[i]))
            i++;
    }
    return 0;
}

int run_command(const struct app *app, int argc, char **argv)
{
    static char name[] = "kubectl inspect gpushare ___________"; /* as its --help calls it */
    int at = first_word(argc, argv);
    for (size_t i = 0; at && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, argv[at]) != 0)
            continue;
        snprintf(name, sizeof(name), "kubectl inspect gpushare %s", commands[i].name);
        argv[0] = name;
        memmove(&argv[at], &argv[at + 1], (size_t)(argc - at) * sizeof(*argv));
        return commands[i].run(app, argc - 1, argv);
    }
    struct app with_word = *app;
    with_word.like = at ? command_like(argv[at]) : NULL;
    snprintf(name, sizeof(name), "kubectl inspect gpushare");
    argv[0] = name;
    if (at && strcmp(argv[at], "help") == 0)
        argv[at] = (char *)"--help";
    else if (at && strcmp(argv[at], "version") == 0)
        argv[at] = (char *)"--version";
    return cmd_show(&with_word, argc, argv);
}
