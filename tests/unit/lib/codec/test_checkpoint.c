/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

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

static void entries_of_the_resource_are_read(void **state)
{
    static const struct {
        const char *row, *json, *entries; /* entries NULL: refused */
    } rows[] = {
        {"by NUMA node",
         ENTRY("'PodUID':'u','DeviceIDs':{'-1':['a'],'1':['b','c']},'AllocResp':'CgA='"),
         "u: a b c = CgA="},
        {"a plain list, before 1.20", ENTRY("'DeviceIDs':['a','b'],'PodUID':'u'"), "u: a b = "},
        {"in another order",
         "{'Data':{'PodDeviceEntries':[{'DeviceIDs':['a'],'ResourceName':'gpu',"
         "'PodUID':'u','AllocResp':'A\\u0041=='}]}}",
         "u: a = AA=="},
        {"of another resource",
         "{'Data':{'PodDeviceEntries':[{'ResourceName':'nic','DeviceIDs':{'0':['e']}},"
         "{'ResourceName':'gpu','PodUID':'v'},{'ResourceName':'gpu','PodUID':'w'},{},null]}}",
         "v: = ; w: = "},
        {"of another resource, in a shape of its own",
         "{'Data':{'PodDeviceEntries':[{'ResourceName':'nic','DeviceIDs':7}]}}", ""},
        {"null everywhere", ENTRY("'PodUID':null,'DeviceIDs':{'0':null},'AllocResp':null"), ": = "},
        {"the last one counts", ENTRY("'DeviceIDs':['a'],'DeviceIDs':{'0':['b']}"), ": b = "},
        {"no pods", "{'Data':{'PodDeviceEntries':null,'RegisteredDevices':{'gpu':['a']}}}", ""},
        {"an id that is none", ENTRY("'DeviceIDs':['a',null]"), NULL},
        {"ids of another type", ENTRY("'DeviceIDs':'a'"), NULL},
        {"an answer of another type", ENTRY("'AllocResp':{}"), NULL},
        {"cut short", "{'Data':{'PodDeviceEntries':[{'ResourceName':'gpu'}", NULL},
        {"no object", "[]", NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        struct seen seen = {.text = GS_BUF(1024)};
        int result = gs_codec_checkpoint_decode(json_of(r->json), "gpu", see, &seen, &err);
        row_equal(r->row, result, r->entries ? 0 : -1);
        row_equal(r->row, err.code, r->entries ? GS_OK : GS_EPROTO);
        if (r->entries)
            row_text(r->row, seen.text.len ? seen.text.data : "", r->entries);
        gs_buf_release(&seen.text);
    }
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
        cmocka_unit_test(entries_of_the_resource_are_read),
        cmocka_unit_test(more_containers_than_any_node_has_are_refused),
    };
    return GS_RUN(tests);
}
