/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/list.h"

struct seen {
    char items[256]; /* one after the other, each with a bar */
    int stop_after;
    struct gs_error *err;
};

static int see(void *ctx, struct gs_scan *scan)
{
    struct seen *seen = ctx;
    struct gs_slice item;
    if (!gs_scan_raw(scan, &item))
        return 0;
    size_t len = strlen(seen->items);
    snprintf(seen->items + len, sizeof(seen->items) - len, "%.*s|", (int)item.len, item.at);
    if (--seen->stop_after == 0)
        return seen->err ? gs_fail(seen->err, GS_ENOMEM, "no room") : 1;
    return 0;
}

static int decode(const char *json, struct seen *seen, struct gs_list_meta *ret,
                  struct gs_error *err)
{
    return gs_codec_list_items(json_of(json), see, seen, ret, err);
}

static void lists_are_handed_out_item_by_item(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        const char *items;
        const char *version, *next;
    } rows[] = {
        {"usual",
         "{'kind':'PodList','metadata':{'resourceVersion':'9','continue':'abc=','"
         "remainingItemCount':3},'items':[{},{'a':[1]} , 7]}",
         "{}|{'a':[1]}|7|", "9", "abc="},
        {"items first", "{'items':[1],'metadata':{'resourceVersion':'9'}}", "1|", "9", ""},
        {"items null", "{'items':null}", "", "", ""},
        {"items absent", "{}", "", "", ""},
        {"nulls", "{'metadata':{'resourceVersion':null,'continue':null,'remainingItemCount':null}}",
         "", "", ""},
        {"metadata null", "{'metadata':null,'items':[1]}", "1|", "", ""},
        {"escaped token", "{'metadata':{'continue':'a\\u003d'}}", "", "", "a="},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct seen seen = {0};
        struct gs_list_meta meta;
        row_equal(r->row, decode(r->json, &seen, &meta, NULL), 0);
        row_text(r->row, seen.items, json_of(r->items).at);
        row_text(r->row, meta.resource_version, r->version);
        row_text(r->row, meta.continue_token, r->next);
    }
}

static void what_is_told_before_the_items_is_read_alone(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        const char *next; /* NULL: not told */
    } rows[] = {
        {"as API servers write",
         "{'kind':'PodList','metadata':{'resourceVersion':'9','continue':'abc='},'items':[{",
         "abc="},
        {"last page", "{'metadata':{'resourceVersion':'9'},'items':[", ""},
        {"items first", "{'items':[1],'metadata':{'continue':'abc'}}", NULL},
        {"broken metadata", "{'metadata':{'continue':7},'items':[]}", NULL},
        {"cut", "{'metadata':{'continue':'ab", NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_list_meta meta = {.continue_token = "old"};
        row_equal(r->row, gs_codec_list_head(json_of(r->json), &meta, NULL), r->next != NULL);
        if (r->next)
            row_text(r->row, meta.continue_token, r->next);
        else
            row_text(r->row, meta.continue_token, "old");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_handed_out_item_by_item),
        cmocka_unit_test(what_is_told_before_the_items_is_read_alone),
    };
    return GS_RUN(tests);
}
