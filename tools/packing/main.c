/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "commands.h"

/* gpushare-packing: finds the command and runs it. */

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"replay", cmd_replay}, {"generate", cmd_generate}};

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, wanted) == 0) {
            char name[64]; /* what the command's own --help and complaints call it */
            snprintf(name, sizeof(name), "gpushare-packing %s", wanted);
            argv[1] = name;
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    const int help = strcmp(wanted, "--help") == 0;
    fputs("Usage: gpushare-packing COMMAND [OPTION...]\n"
          "How much of a cluster the placement policies fill.\n\n"
          "  replay     how much of a cluster each policy fills with a trace's pods\n"
          "  generate   a synthetic cluster and its pods for replay\n\n"
          "gpushare-packing COMMAND --help shows a command's options.\n",
          help ? stdout : stderr);
    return help ? 0 : 2;
}
