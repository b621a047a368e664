/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/checkpoint.h"
#include "rows.h"

#define ENTRY(fields)                                                                              \
    "{'Data':{'PodDeviceEntries':[{'ResourceName':'gpu'," fields "}]},'Checksum':1}"

struct seen {
    struct gs_buf text; /* "uid: id id = answer; …" */
    uint32_t own, others, last_ids;
    size_t done;
};

static bool see(void *ctx, const struct gs_checkpoint_entry *entry, size_t done)
{
    struct seen *seen = ctx;
    assert_true(done > seen->done);
    seen->done = done;
    seen->others += !entry;
    if (!entry)
        return true;
    seen->last_ids = entry->id_count;
    gs_buf_printf(&seen->text, "%s%s:", seen->own++ ? "; " : "", entry->pod_uid);
    for (uint32_t k = 0; k < entry->id_count && k < 8; k++)
        gs_buf_printf(&seen->text, " %s", entry->ids[k]);
    gs_buf_printf(&seen->text, " = %.*s", (int)entry->answer.len,
                  entry->answer.len ? entry->answer.at : "");
    return true;
}

static void more_containers_than_any_node_has_are_refused(void **state)
{
    enum { ENTRIES_MAX = 1 << 18 };
    for (int extra = 0; extra < 2; extra++) {
        struct seen seen = {.text = GS_BUF(1024)};
        struct gs_error err = {0};
        struct gs_buf json = GS_BUF((size_t)8 << 20);
        gs_buf_puts(&json, "{\"Data\":{\"PodDeviceEntries\":[null,");
        for (int i = 0; i < ENTRIES_MAX + extra; i++)
            gs_buf_printf(&json, "%s{\"ResourceName\":\"gpu\"}", i ? "," : "");
        gs_buf_puts(&json, "]}}");
        assert_false(gs_buf_failed(&json));
        int result = gs_codec_checkpoint_decode((struct gs_slice){json.data, json.len}, "gpu", see,
                                                &seen, &err);
        assert_int_equal(result, extra ? -1 : 0);
        assert_int_equal(err.code, extra ? GS_ETOOBIG : GS_OK);
        assert_int_equal(seen.own, ENTRIES_MAX);
        assert_int_equal(seen.others, 1);
        gs_buf_release(&seen.text);
        gs_buf_release(&json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_containers_than_any_node_has_are_refused),
    };
    return GS_RUN(tests);
}
