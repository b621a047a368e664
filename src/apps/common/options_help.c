/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options_help.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/wrap.h"

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

void options_help(FILE *out, const char *name, const struct gs_command *command,
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
