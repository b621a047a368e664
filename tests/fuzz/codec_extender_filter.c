/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever verdicts a request gets, its answer is JSON with every candidate in one place. */
#include "fuzz.h"
#include "gpushare/codec/extender.h"
#include "gpushare/codec/scan.h"

static uint32_t members(struct gs_slice json, const char *field)
{
    struct gs_scan scan;
    struct gs_scan_text key;
    uint32_t count = 0;
    gs_scan_init(&scan, json);
    gs_scan_object(&scan, "answer");
    while (gs_scan_key(&scan, &key)) {
        if (!gs_scan_text_eq(key, gs_slice_of(field)) || gs_scan_null(&scan)) {
            gs_scan_skip(&scan);
        } else if (gs_scan_peek(&scan) == GS_SCAN_ARRAY) {
            for (gs_scan_array(&scan, field); gs_scan_element(&scan); count++)
                gs_scan_skip(&scan);
        } else {
            for (gs_scan_object(&scan, field); gs_scan_key(&scan, &key); count++)
                gs_scan_skip(&scan);
        }
    }
    FUZZ_CHECK(gs_scan_finish(&scan, NULL) == 0);
    return count;
}

static void check_answer(const struct gs_filter_args *args)
{
    uint32_t count = gs_filter_args_count(args), kept = 0;
    uint8_t *reasons = calloc(count + 1, 1);
    FUZZ_CHECK(reasons);
    for (uint32_t i = 0; i < count; i++) {
        reasons[i] = (uint8_t)(i % 5 < 3 ? GS_FITS : i % GS_REASONS);
        kept += reasons[i] == GS_FITS;
    }
    struct gs_buf out = GS_BUF((size_t)1 << 26);
    gs_codec_filter_result(&out, args, reasons, false);
    struct gs_slice answer = fuzz_written(&out);
    if (args->has_names)
        FUZZ_CHECK(members(answer, "NodeNames") == kept);
    FUZZ_CHECK(members(answer, "FailedNodes") == count - kept);
    gs_buf_reset(&out);
    gs_codec_host_priorities(&out, args, reasons);
    struct gs_scan scan;
    gs_scan_init(&scan, fuzz_written(&out));
    gs_scan_skip(&scan);
    FUZZ_CHECK(gs_scan_finish(&scan, NULL) == 0);
    gs_buf_release(&out);
    free(reasons);
}

/* A second decode, which may find the names it had kept, says the same. */
static void check_again(const struct gs_names *names, struct gs_slice body,
                        struct gs_filter_args *args)
{
    struct gs_filter_args fresh = {0};
    FUZZ_CHECK(gs_codec_filter_args(names, body, args, NULL) == 0);
    FUZZ_CHECK(gs_codec_filter_args(names, body, &fresh, NULL) == 0);
    FUZZ_CHECK(args->name_count == fresh.name_count && args->has_names == fresh.has_names);
    FUZZ_CHECK(args->names_plain == fresh.names_plain);
    for (uint32_t i = 0; i < fresh.name_count; i++)
        FUZZ_CHECK(gs_slice_eq(args->names[i], fresh.names[i]));
    check_answer(args);
    gs_filter_args_release(&fresh);
}

FUZZ_TEXT(body)
{
    struct gs_names names;
    struct gs_filter_args args = {0};
    struct gs_error err = {0};
    FUZZ_CHECK(gs_names_init(&names, "aliyun.com", NULL) == 0);
    if (gs_codec_filter_args(&names, body, &args, &err) == 0) {
        FUZZ_CHECK(args.has_names || args.has_nodes);
        check_answer(&args);
        check_again(&names, body, &args);
    } else {
        FUZZ_CHECK(err.code != GS_OK && args.name_count == 0 && args.node_count == 0);
    }
    gs_filter_args_release(&args);
}
