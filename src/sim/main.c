/* SPDX-License-Identifier: Apache-2.0 */
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
    {"schedule", cmd_schedule, "a kube-scheduler loop over HTTP: filter, prioritize, bind"},
    {"demo", cmd_demo, "print which pod is bound to which GPU, and check the result"},
};

static void print_usage(FILE *to)
{
    fputs("Usage: gpushare-sim COMMAND [OPTION...]\n"
          "A simulated cluster to try gpushare without Kubernetes.\n\n",
          to);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].doc);
    fputs("\ngpushare-sim COMMAND --help shows a command's options.\n", to);
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
    if (strcmp(wanted, "--help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(wanted, "--version") == 0) {
        puts("gpushare-sim " GS_VERSION);
        return 0;
    }
    if (wanted[0])
        fprintf(stderr, "gpushare-sim: unknown command \"%s\"\n\n", wanted);
    print_usage(stderr);
    return 2;
}
