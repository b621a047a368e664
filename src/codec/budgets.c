/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/budgets.h"

#include "pod_reader.h"

static void read_metadata(struct gs_reader *reader, struct gs_budget *budget)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "namespace"))
            gs_read_string(reader, "metadata.namespace", &budget->ns);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_spec(struct gs_pod_reader *pr, struct gs_budget *budget)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "selector"))
            gs_read_label_selector(pr, &budget->selector);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_disrupted(struct gs_reader *reader, struct gs_budget *budget)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "status.disruptedPods"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        const char **names = gs_read_grow(reader, budget->disrupted, budget->disrupted_count,
                                          sizeof(*names), "status.disruptedPods", UINT32_MAX);
        if (!names)
            return;
        budget->disrupted = names;
        names[budget->disrupted_count] = gs_scan_string_dup(reader->arena, key);
        if (!names[budget->disrupted_count++])
            gs_reader_stop(reader, GS_ENOMEM, "status.disruptedPods", "");
        gs_scan_skip(&reader->scan);
    }
}

static void read_status(struct gs_reader *reader, struct gs_budget *budget)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "status"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "disruptionsAllowed"))
            gs_read_i32(reader, "status.disruptionsAllowed", &budget->allowed);
        else if (gs_scan_text_is(key, "disruptedPods"))
            read_disrupted(reader, budget);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_budget(struct gs_pod_reader *pr, struct gs_budget *budget)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    gs_scan_object(&reader->scan, "a budget");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "metadata"))
            read_metadata(reader, budget);
        else if (gs_scan_text_is(key, "spec"))
            read_spec(pr, budget);
        else if (gs_scan_text_is(key, "status"))
            read_status(reader, budget);
        else
            gs_scan_skip(&reader->scan);
    }
}

int gs_codec_budget_take(struct gs_scan *from, struct gs_arena *arena, struct gs_budget **all,
                         uint32_t *count, struct gs_error *err)
{
    struct gs_pod_reader pr = {.reader.arena = arena};
    gs_reader_enter(&pr.reader, from);
    struct gs_budget *wider =
        gs_read_grow(&pr.reader, *all, *count, sizeof(*wider), "items", UINT32_MAX);
    if (wider)
        read_budget(&pr, &wider[*count]);
    if (gs_reader_leave(&pr.reader, from, err) < 0)
        return -1;
    *all = wider;
    ++*count;
    return 0;
}

int gs_codec_labels(struct gs_slice json, struct gs_arena *arena, struct gs_kv **ret,
                    uint32_t *ret_count, struct gs_error *err)
{
    struct gs_reader reader = {.arena = arena};
    struct gs_kv *all = NULL;
    struct gs_scan_text key;
    uint32_t count = 0;
    gs_scan_init(&reader.scan, json);
    gs_scan_object(&reader.scan, "labels");
    while (gs_scan_key(&reader.scan, &key))
        gs_read_label(&reader, &all, &count, key, "labels");
    if (gs_reader_finish(&reader, err) < 0)
        return -1;
    gs_node_labels_sort(all, count);
    *ret = all;
    *ret_count = count;
    return 0;
}
