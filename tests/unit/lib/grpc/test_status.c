/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "grpc/status.h"

static const struct {
    const char *row;
    enum gs_code code;
    enum gs_grpc_status status;
} codes[] = {
    {"bad input", GS_EINVAL, GS_GRPC_INVALID_ARGUMENT},
    {"malformed", GS_EPROTO, GS_GRPC_INVALID_ARGUMENT},
    {"too big", GS_ETOOBIG, GS_GRPC_RESOURCE_EXHAUSTED},
    {"no memory", GS_ENOMEM, GS_GRPC_RESOURCE_EXHAUSTED},
    {"later", GS_EBUSY, GS_GRPC_UNAVAILABLE},
    {"anything else", (enum gs_code)99, GS_GRPC_UNAVAILABLE},
};

static void codes_become_statuses(void **state)
{
    GS_FOR_EACH_ROW (r, codes) {
        row_equal(r->row, gs_grpc_status_from_code(r->code), r->status);
    }
}

static const struct {
    const char *row;
    const char *text;
    size_t len;
    const char *encoded;
} messages[] = {
    {"percent", "100%", 4, "100%25"},
    {"all that is printable", " !\"#$&'()~", 10, " !\"#$&'()~"},
    {"control bytes", "a\nb\x7F", 4, "a%0Ab%7F"},
    {"NUL", "a\0b", 3, "a%EF%BF%BDb"},
    {"two bytes", "\xC3\xA4", 2, "%C3%A4"},
    {"four bytes", "\xF0\x9F\x98\x80", 4, "%F0%9F%98%80"},
    {"a byte that is no UTF-8", "a\xFFz", 3, "a%EF%BF%BDz"},
};

static void messages_are_escaped_and_sane(void **state)
{
    GS_FOR_EACH_ROW (r, messages) {
        struct gs_buf out = GS_BUF(1000);
        gs_grpc_message_encode(&out, r->text, r->len);
        row_text(r->row, out.data ? out.data : "", r->encoded);
        gs_buf_release(&out);
    }
}

static void long_messages_end_behind_a_character(void **state)
{
    for (size_t ceiling = 0; ceiling < 12; ceiling++) {
        struct gs_buf out = GS_BUF(ceiling);
        gs_grpc_message_encode(&out, "a\xC3\xA4z", 4); /* a%C3%A4z */
        assert_int_equal(out.len, ceiling < 1 ? 0 : ceiling < 7 ? 1 : ceiling < 8 ? 7 : 8);
        assert_int_equal(gs_buf_failed(&out), 0);
        gs_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_become_statuses),
        cmocka_unit_test(messages_are_escaped_and_sane),
        cmocka_unit_test(long_messages_end_behind_a_character),
    };
    return GS_RUN(tests);
}
