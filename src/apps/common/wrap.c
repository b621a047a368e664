/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wrap.h"

#include <stdbool.h>
#include <string.h>

void wrap_words(FILE *out, int at, int column, int width, const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        const char *space = memchr(text, ' ', (size_t)(end - text));
        int word = (int)((space ? space : end) - text);
        if (at > column && at + 1 + word > width) {
            fputc('\n', out);
            at = 0;
        }
        at += fprintf(out, "%*s%.*s", at < column ? column - at : at > column, "", word, text);
        text += word + 1;
    }
    fputc('\n', out);
}

/* No sequence of UTF-8 is cut. */
static bool is_inside(char byte)
{
    return (byte & 0xc0) == 0x80;
}

void wrap_shorten(const char *name, char *to, size_t size)
{
    size_t len = strlen(name), kept = size - 3;
    size_t head = kept - kept * 2 / 5, from = len - kept * 2 / 5; /* hashes at the end are short */
    if (len < size) {
        memcpy(to, name, len + 1);
        return;
    }
    while (head && is_inside(name[head]))
        head--;
    while (is_inside(name[from]))
        from++;
    snprintf(to, size, "%.*s..%s", (int)head, name, name + from);
}
