/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sim/commands.h"

/* gpushare-sim: finds the command and runs it. */

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *doc;
} commands[] = {
    {"serve", cmd_serve, "an in-memory Kubernetes API server on a port"},
    {"schedule", cmd_schedule, "kube-scheduler's loop over HTTP: filter, prioritize, bind"},
    {"demo", cmd_demo, "print which pod got which GPU, and check that it is right"},
    {"replay", cmd_replay, "how much of a cluster each policy fills with a trace's pods"},
    {"generate", cmd_generate, "a synthetic cluster and its pods for replay"},
};

static void print_usage(FILE *to)
{
    fputs("Usage: gpushare-sim COMMAND [OPTION...]\n"
          "An embedded cluster: see what gpushare does without a Kubernetes.\n\n",
          to);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].doc);
    fputs("\ngpushare-sim COMMAND --help shows a command's options.\n", to);
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, wanted) == 0) {
            char name[64]; /* what the command's own --help and complaints call it */
            snprintf(name, sizeof(name), "gpushare-sim %s", wanted);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    if (is_one_of(wanted, "--help", "-?", "help")) {
        print_usage(stdout);
        return 0;
    }
    if (is_one_of(wanted, "--version", "-V", "version")) {
        puts("gpushare-sim " GS_VERSION);
        return 0;
    }
    if (wanted[0])
        fprintf(stderr, "gpushare-sim: unknown command \"%s\"\n\n", wanted);
    print_usage(stderr);
    return 2;
}
