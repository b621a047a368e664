/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/base64.h"

#include <stdint.h>
#include <string.h>

#include "gpushare/base/cleanup.h"

bool gs_base64_decode(const char *text, size_t len, char **ret, size_t *ret_len)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    _cleanup_free_ char *out = malloc(len / 4 * 3 + 4);
    uint32_t bits = 0; /* the last digits' */
    size_t digits = 0, padding = 0, used = 0;
    for (size_t i = 0; out && i < len; i++) {
        const char *digit = memchr(alphabet, text[i], sizeof(alphabet) - 1);
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        if (text[i] == '=') {
            padding++;
            continue;
        }
        if (!digit || padding > 0)
            return false;
        bits = bits << 6 | (uint32_t)(digit - alphabet);
        const size_t place = digits++ % 4;
        if (place > 0)
            out[used++] = (char)(bits >> (6 - 2 * place));
    }
    if (!out || padding > 2 || (digits + padding) % 4 != 0)
        return false;
    out[used] = '\0';
    *ret = gs_steal(&out);
    *ret_len = used;
    return true;
}
