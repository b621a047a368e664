/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/base64.h"

#include <stdint.h>
#include <stdlib.h>

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Fills out; returns false when the text is malformed. */
static bool decode(const char *text, size_t len, char *out, size_t *ret_len)
{
    uint32_t group = 0;
    unsigned digits = 0, padding = 0;
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        int digit = digit_of(text[i]);
        bool pad = text[i] == '=' && digits >= 2 && digits + padding < 4;
        if (!pad && (digit < 0 || padding > 0))
            return false;
        group = group << 6 | (pad ? 0 : (uint32_t)digit);
        padding += pad;
        digits += !pad;
        if (digits + padding < 4)
            continue;
        for (unsigned byte = 0; byte < 3 - padding; byte++)
            out[used++] = (char)(group >> (16 - 8 * byte));
        if (padding > 0)
            digits = 4; /* nothing but line ends may follow */
        else
            group = digits = 0;
    }
    if (padding == 0 ? digits != 0 : digits != 4)
        return false;
    *ret_len = used;
    return true;
}

bool gs_base64_decode(const char *text, size_t len, char **ret, size_t *ret_len)
{
    char *out = malloc(len / 4 * 3 + 4);
    size_t used;
    if (!out || !decode(text, len, out, &used)) {
        free(out);
        return false;
    }
    out[used] = '\0';
    *ret = out;
    *ret_len = used;
    return true;
}

void gs_base64_encode(const char *bytes, size_t len, struct gs_buf *buf)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t count = len - i < 3 ? len - i : 3;
        uint32_t group = 0;
        for (size_t byte = 0; byte < 3; byte++)
            group = group << 8 | (byte < count ? (uint8_t)bytes[i + byte] : 0);
        for (size_t digit = 0; digit < 4; digit++)
            gs_buf_putc(buf, digit <= count ? digits[group >> (18 - 6 * digit) & 63] : '=');
    }
}
