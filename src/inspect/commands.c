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
    {"show", cmd_show}, {"map", cmd_map},         {"pods", cmd_pods},
    {"why", cmd_why},   {"what-if", cmd_what_if}, {"snapshot", cmd_snapshot},
    {"web", cmd_web},   {"doctor", cmd_doctor},   {"defrag", cmd_defrag},
};

static const struct {
    const char *name, *now;
} gone[] = {
    {"usage", "pods has its columns and options"},
    {"limits", "see pods --by node -o wide, and pods --by pod -o wide for WHY-BLOCK"},
    {"stranded", "see the columns of -o wide (--sort stranded), and defrag --gpu-mem for moves"},
};

/* Options before the command's name whose value is a word of its own. */
static bool takes_word(const char *option)
{
    static const char *const names[] = {
        "--kubeconfig", "--context",   "--from-file",  "--cluster",
        "--user",       "--as",        "--as-group",   "--as-uid",
        "--server",     "--namespace", "--domain",     "--request-timeout",
        "--config",     "--log-level", "--log-format", "--output",
        "--selector",   "--sort",      "--listen",     "--system-namespace",
        "--timeout",    "--by",        "--columns",    "-n",
        "-o",           "-l"};
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
    static char name[] = "kubectl inspect gpushare ________"; /* as its --help calls it */
    int at = first_word(argc, argv);
    for (size_t i = 0; at && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, argv[at]) != 0)
            continue;
        snprintf(name, sizeof(name), "kubectl inspect gpushare %s", commands[i].name);
        argv[0] = name;
        memmove(&argv[at], &argv[at + 1], (size_t)(argc - at) * sizeof(*argv));
        return commands[i].run(app, argc - 1, argv);
    }
    snprintf(name, sizeof(name), "kubectl inspect gpushare");
    for (size_t i = 0; at && i < sizeof(gone) / sizeof(gone[0]); i++) {
        if (strcmp(gone[i].name, argv[at]) == 0) {
            fprintf(stderr, "%s: the command %s is gone: %s\n", name, gone[i].name, gone[i].now);
            return 2;
        }
    }
    argv[0] = name;
    if (at && strcmp(argv[at], "help") == 0)
        argv[at] = (char *)"--help";
    else if (at && strcmp(argv[at], "version") == 0)
        argv[at] = (char *)"--version";
    return cmd_show(app, argc, argv);
}
