/* SPDX-License-Identifier: Apache-2.0 */
#include "common/options_help.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 79, TEXT_COLUMN = 29 };

static int by_name(const void *a, const void *b)
{
    const struct argp_option *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* Words of the text, as many in a line as fit, from a column on; at: where the line stands. */
static void print_wrapped(FILE *out, int at, int column, const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        const char *space = memchr(text, ' ', (size_t)(end - text));
        int word = (int)((space ? space : end) - text);
        if (at > column && at + 1 + word > WIDTH) {
            fputc('\n', out);
            at = 0;
        }
        at += fprintf(out, "%*s%.*s", at < column ? column - at : at > column, "", word, text);
        text += word + 1;
    }
    fputc('\n', out);
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
    print_wrapped(out, at, TEXT_COLUMN, option->doc, strlen(option->doc));
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
    print_wrapped(out, 0, 0, command->doc, len);
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
