/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/kube/base64.h"

static const struct row {
    const char *row;
    const char *text;
    bool ok;
    const char *bytes;
    size_t len;
} rows[] = {
    {"one byte", "Zg==", true, "f", 1},
    {"three bytes", "Zm9v", true, "foo", 3},
    {"every kind of digit", "+/09azAZ", true, "\xfb\xfd\x3d\x6b\x30\x19", 6},
    {"line ends between", "Zm\n9v\r\n", true, "foo", 3},
    {"line end after padding", "Zg==\n", true, "f", 1},
    {"line end inside padding", "Zg=\n=", true, "f", 1},
    {"no padding", "Zg", false, NULL, 0},
    {"half the padding", "Zg=", false, NULL, 0},
    {"padding after one digit", "Z===", false, NULL, 0},
    {"padding in the middle", "Zg==Zg==", false, NULL, 0},
    {"a digit between padding", "Zg=A", false, NULL, 0},
    {"one digit", "Z", false, NULL, 0},
    {"space", "Zm 9v", false, NULL, 0},
    {"URL's alphabet", "-_09", false, NULL, 0},
};

static void decodes_what_go_decodes(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        char *bytes = NULL;
        size_t len = 4711;
        row_equal(r->row, gs_base64_decode(r->text, strlen(r->text), &bytes, &len), r->ok);
        if (r->ok) {
            row_equal(r->row, len, r->len);
            row_true(r->row, memcmp(bytes, r->bytes, r->len) == 0);
            row_equal(r->row, bytes[len], 0);
        } else {
            row_true(r->row, bytes == NULL); /* untouched */
            row_equal(r->row, len, 4711);
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_go_decodes),
    };
    return GS_RUN(tests);
}
