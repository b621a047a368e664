/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wrap.h"

#include <string.h>

#include "gpushare/base/utf8.h"

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
void wrap_shorten(const char *name, char *to, size_t size)
{
    size_t len = strlen(name), kept = size - 3, tail = kept * 2 / 5; /* hashes there are short */
    if (len < size) {
        memcpy(to, name, len + 1);
        return;
    }
    const char *end = name + len - tail;
    while (((unsigned char)*end & 0xC0) == 0x80)
        end++;
    snprintf(to, size, "%.*s..%s", (int)gs_utf8_cut(name, len, kept - tail), name, end);
}
