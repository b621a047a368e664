/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdlib.h>

#include "gpushare/base/sha256.h"

/* As sha256sum has them; the first two are FIPS 180-4's examples. */
static void known_texts_have_their_sums(void **state)
{
    static const struct {
        const char *row;
        char byte; /* 0: the text */
        const char *text;
        size_t len;
        const char *sum;
    } rows[] = {
        {"abc", 0, "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"two blocks", 0, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"nothing", 0, "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"the most that its length fits beside", 'a', NULL, 55,
         "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {"one more", 'a', NULL, 56,
         "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {"a whole block", 'a', NULL, 64,
         "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {"a million", 'a', NULL, 1000000,
         "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char sum[GS_SHA256_TEXT_BYTES];
        char *bytes = malloc(r->len + 1);
        assert_non_null(bytes);
        if (r->text)
            memcpy(bytes, r->text, r->len);
        else
            memset(bytes, r->byte, r->len);
        gs_sha256_text(bytes, r->len, sum);
        row_text(r->row, sum, r->sum);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_texts_have_their_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
