/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/gpu_slices.h"

#include "reader.h"

enum { GPUS_MAX = 65536 };

struct draft {
    struct gs_reader reader;
    struct gs_slice driver;
    struct gs_sliced_gpu *gpus;
    uint32_t count;
};

/* {"uuid":{"string":"GPU-…"},…} */
static void read_attributes(struct gs_reader *reader, const char **uuid)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "attributes"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (!gs_scan_text_is(key, "uuid") || !gs_read_object(reader, "uuid")) {
            gs_scan_skip(&reader->scan);
            continue;
        }
        while (gs_scan_key(&reader->scan, &key)) {
            if (gs_scan_text_is(key, "string"))
                gs_read_string(reader, "uuid.string", uuid);
            else
                gs_scan_skip(&reader->scan);
        }
    }
}

/* v1beta1 has one level more, "basic". */
static void read_device(struct gs_reader *reader, const char **uuid)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "devices entry"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "attributes")) {
            read_attributes(reader, uuid);
        } else if (gs_scan_text_is(key, "basic") && gs_read_object(reader, "basic")) {
            while (gs_scan_key(&reader->scan, &key)) {
                if (gs_scan_text_is(key, "attributes"))
                    read_attributes(reader, uuid);
                else
                    gs_scan_skip(&reader->scan);
            }
        } else if (!gs_scan_text_is(key, "basic")) {
            gs_scan_skip(&reader->scan);
        }
    }
}

static void read_devices(struct draft *draft)
{
    struct gs_reader *reader = &draft->reader;
    if (!gs_read_array(reader, "devices"))
        return;
    while (gs_scan_element(&reader->scan)) {
        const char *uuid = NULL;
        read_device(reader, &uuid);
        if (!uuid || reader->scan.failed)
            continue;
        struct gs_sliced_gpu *grown =
            gs_read_grow(reader, draft->gpus, draft->count, sizeof(*grown), "devices", GPUS_MAX);
        if (!grown)
            return;
        draft->gpus = grown;
        grown[draft->count++] = (struct gs_sliced_gpu){.node = "", .uuid = uuid};
    }
}

static void read_spec(struct draft *draft)
{
    struct gs_reader *reader = &draft->reader;
    struct gs_scan_text key, driver = {0};
    const char *node = NULL;
    uint32_t before = draft->count;
    if (!gs_read_object(reader, "spec"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "driver"))
            gs_read_text(reader, "spec.driver", &driver);
        else if (gs_scan_text_is(key, "nodeName"))
            gs_read_string(reader, "spec.nodeName", &node);
        else if (gs_scan_text_is(key, "devices"))
            read_devices(draft);
        else
            gs_scan_skip(&reader->scan);
    }
    if (reader->scan.failed)
        return;
    if (!node || !gs_scan_text_eq(driver, draft->driver))
        draft->count = before;
    for (uint32_t i = before; i < draft->count; i++)
        draft->gpus[i].node = node;
}

int gs_codec_gpu_slice_take(struct gs_scan *from, const char *driver, struct gs_arena *arena,
                            struct gs_sliced_gpu **all, uint32_t *count, struct gs_error *err)
{
    struct draft draft = {
        .reader.arena = arena, .driver = gs_slice_of(driver), .gpus = *all, .count = *count};
    struct gs_reader *reader = &draft.reader;
    struct gs_scan_text key;
    gs_reader_enter(reader, from);
    if (gs_read_object(reader, "items entry")) {
        while (gs_scan_key(&reader->scan, &key)) {
            if (gs_scan_text_is(key, "spec"))
                read_spec(&draft);
            else
                gs_scan_skip(&reader->scan);
        }
    }
    if (gs_reader_leave(reader, from, err) < 0)
        return -1;
    *all = draft.gpus;
    *count = draft.count;
    return 0;
}
