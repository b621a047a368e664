/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "grpc/status.h"

static const struct {
    const char *row;
    const char *text;
    enum gs_grpc_status status;
} numbers[] = {
    {"zero", "0", GS_GRPC_OK},        {"largest", "16", GS_GRPC_UNAUTHENTICATED},
    {"above", "17", GS_GRPC_UNKNOWN}, {"far above", "4294967296", GS_GRPC_UNKNOWN},
    {"empty", "", GS_GRPC_UNKNOWN},   {"word", "OK", GS_GRPC_UNKNOWN},
    {"sign", "-1", GS_GRPC_UNKNOWN},  {"space", " 0", GS_GRPC_UNKNOWN},
};

static void a_status_is_a_number_or_unknown(void **state)
{
    GS_FOR_EACH_ROW (r, numbers)
        row_equal(r->row, gs_grpc_status_parse(r->text, strlen(r->text)), r->status);
}

static void every_status_has_its_name(void **state)
{
    assert_string_equal(gs_grpc_status_name(GS_GRPC_OK), "OK");
    assert_string_equal(gs_grpc_status_name(GS_GRPC_DEADLINE_EXCEEDED), "DEADLINE_EXCEEDED");
    assert_string_equal(gs_grpc_status_name(GS_GRPC_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(gs_grpc_status_name((enum gs_grpc_status)17), "UNKNOWN");
    assert_string_equal(gs_grpc_status_name((enum gs_grpc_status) - 1), "UNKNOWN");
}

static const struct {
    const char *row;
    enum gs_code code;
    enum gs_grpc_status status;
} codes[] = {
    {"fine", GS_OK, GS_GRPC_OK},
    {"bad input", GS_EINVAL, GS_GRPC_INVALID_ARGUMENT},
    {"malformed", GS_EPROTO, GS_GRPC_INVALID_ARGUMENT},
    {"too big", GS_ETOOBIG, GS_GRPC_RESOURCE_EXHAUSTED},
    {"no memory", GS_ENOMEM, GS_GRPC_RESOURCE_EXHAUSTED},
    {"missing", GS_ENOENT, GS_GRPC_NOT_FOUND},
    {"exists", GS_EEXIST, GS_GRPC_ALREADY_EXISTS},
    {"conflict", GS_ECONFLICT, GS_GRPC_FAILED_PRECONDITION},
    {"who are you", GS_EAUTH, GS_GRPC_UNAUTHENTICATED},
    {"not you", GS_EDENIED, GS_GRPC_PERMISSION_DENIED},
    {"gone", GS_EGONE, GS_GRPC_NOT_FOUND},
    {"later", GS_EBUSY, GS_GRPC_UNAVAILABLE},
    {"late", GS_ETIMEOUT, GS_GRPC_DEADLINE_EXCEEDED},
    {"broken", GS_EIO, GS_GRPC_UNAVAILABLE},
    {"not ready", GS_ENOTREADY, GS_GRPC_UNAVAILABLE},
    {"cancelled", GS_ECANCELED, GS_GRPC_CANCELLED},
    {"bug", GS_EINTERNAL, GS_GRPC_INTERNAL},
    {"none of ours", (enum gs_code)99, GS_GRPC_UNKNOWN},
};

static void codes_become_statuses(void **state)
{
    GS_FOR_EACH_ROW (r, codes) {
        row_equal(r->row, gs_grpc_status_from_code(r->code), r->status);
    }
}

#define FFFD "\xEF\xBF\xBD"

static const struct {
    const char *row;
    const char *text;
    size_t len;
    const char *encoded;
    const char *decoded; /* of encoded */
} messages[] = {
    {"empty", "", 0, "", ""},
    {"plain", "GPU 3 is broken", 15, "GPU 3 is broken", "GPU 3 is broken"},
    {"percent", "100%", 4, "100%25", "100%"},
    {"all that is printable", " !\"#$&'()~", 10, " !\"#$&'()~", " !\"#$&'()~"},
    {"control bytes", "a\nb\x7F", 4, "a%0Ab%7F", "a\nb\x7F"},
    {"NUL", "a\0b", 3, "a%EF%BF%BDb", "a" FFFD "b"},
    {"two bytes", "\xC3\xA4", 2, "%C3%A4", "\xC3\xA4"},
    {"four bytes", "\xF0\x9F\x98\x80", 4, "%F0%9F%98%80", "\xF0\x9F\x98\x80"},
    {"a byte that is no UTF-8", "a\xFFz", 3, "a%EF%BF%BDz", "a" FFFD "z"},
    {"a character cut short", "a\xC3", 2, "a%EF%BF%BD", "a" FFFD},
};

static void messages_are_escaped_and_sane(void **state)
{
    GS_FOR_EACH_ROW (r, messages) {
        struct gs_buf out = GS_BUF(1000);
        gs_grpc_message_encode(&out, r->text, r->len);
        row_text(r->row, out.data ? out.data : "", r->encoded);
        gs_buf_reset(&out);
        gs_grpc_message_decode(&out, r->encoded, strlen(r->encoded));
        row_text(r->row, out.data ? out.data : "", r->decoded);
        gs_buf_release(&out);
    }
}

static const struct {
    const char *row;
    const char *text;
    const char *decoded;
} odd_escapes[] = {
    {"lower case", "%c3%a4", "\xC3\xA4"},
    {"percent at the end", "50%", "50%"},
    {"percent and one digit", "50%4", "50%4"},
    {"percent and no digits", "%zz%4z", "%zz%4z"},
    {"percent before an escape", "%%41", "%A"},
    {"escaped percent is not read again", "%2541", "%41"},
    {"bytes that were not escaped", "\xC3\xA4", "\xC3\xA4"},
    {"an escaped byte that is no UTF-8", "a%FFb", "a" FFFD "b"},
    {"an escaped NUL", "a%00b", "a" FFFD "b"},
    {"a surrogate", "%ED%A0%80", FFFD FFFD FFFD},
};

static void odd_escapes_stand_for_themselves(void **state)
{
    GS_FOR_EACH_ROW (r, odd_escapes) {
        struct gs_buf out = GS_BUF(1000);
        gs_grpc_message_decode(&out, r->text, strlen(r->text));
        row_text(r->row, out.data, r->decoded);
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
        gs_buf_reset(&out);
        gs_grpc_message_decode(&out, "a%C3%A4z", 8);
        assert_int_equal(out.len, ceiling < 1 ? 0 : ceiling < 3 ? 1 : ceiling < 4 ? 3 : 4);
        assert_int_equal(gs_buf_failed(&out), 0);
        gs_buf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_a_number_or_unknown),
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(codes_become_statuses),
        cmocka_unit_test(messages_are_escaped_and_sane),
        cmocka_unit_test(odd_escapes_stand_for_themselves),
        cmocka_unit_test(long_messages_end_behind_a_character),
    };
    return GS_RUN(tests);
}
