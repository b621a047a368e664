/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include "gpushare/codec/quantity.h"

bool gs_reader_stop(struct gs_reader *reader, enum gs_code code, const char *what, const char *why)
{
    if (!reader->scan.failed)
        reader->code = code;
    return gs_scan_refuse(&reader->scan, what, why);
}

int gs_reader_finish(struct gs_reader *reader, struct gs_error *err)
{
    if (reader->code == GS_ENOMEM)
        return gs_fail_nomem(err);
    if (reader->code != GS_OK)
        return gs_fail(err, reader->code, "%s %s", reader->scan.what, reader->scan.why);
    return gs_scan_finish(&reader->scan, err);
}

void gs_reader_enter(struct gs_reader *reader, struct gs_scan *from)
{
    (void)gs_scan_peek(from); /* past the space before it */
    gs_scan_init(&reader->scan, (struct gs_slice){from->at, (size_t)(from->end - from->at)});
    reader->scan.trusting = true;
}

int gs_reader_leave(struct gs_reader *reader, struct gs_scan *from, struct gs_error *err)
{
    if (!reader->scan.failed && !from->failed) {
        from->at = reader->scan.at;
        return 0;
    }
    gs_scan_skip(from);
    return gs_reader_finish(reader, err);
}

bool gs_read_object(struct gs_reader *reader, const char *what)
{
    return !gs_scan_null(&reader->scan) && gs_scan_object(&reader->scan, what);
}

bool gs_read_array(struct gs_reader *reader, const char *what)
{
    return !gs_scan_null(&reader->scan) && gs_scan_array(&reader->scan, what);
}

bool gs_read_text(struct gs_reader *reader, const char *what, struct gs_scan_text *ret)
{
    return !gs_scan_null(&reader->scan) && gs_scan_string(&reader->scan, what, ret);
}

bool gs_read_bool(struct gs_reader *reader, const char *what, bool *ret)
{
    return !gs_scan_null(&reader->scan) && gs_scan_bool(&reader->scan, what, ret);
}

bool gs_read_i32(struct gs_reader *reader, const char *what, int32_t *ret)
{
    return !gs_scan_null(&reader->scan) && gs_scan_i32(&reader->scan, what, ret);
}

bool gs_read_string(struct gs_reader *reader, const char *what, const char **ret)
{
    struct gs_scan_text text;
    if (!gs_read_text(reader, what, &text))
        return false;
    const char *copy = gs_scan_string_dup(reader->arena, text);
    if (!copy)
        return gs_reader_stop(reader, GS_ENOMEM, what, "");
    *ret = copy;
    return true;
}

void gs_read_text_of(struct gs_reader *reader, const char *object, struct gs_slice key,
                     const char *what, struct gs_scan_text *ret)
{
    struct gs_scan_text found;
    *ret = (struct gs_scan_text){0};
    gs_scan_object(&reader->scan, object);
    while (gs_scan_key(&reader->scan, &found)) {
        if (gs_scan_text_eq(found, key))
            gs_read_text(reader, what, ret);
        else
            gs_scan_skip(&reader->scan);
    }
}

typedef enum gs_quantity (*convert_fn)(struct gs_slice text, int64_t *ret);

static bool read_quantity(struct gs_reader *reader, const char *what, convert_fn convert,
                          int64_t *ret)
{
    struct gs_slice text;
    struct gs_scan_text string;
    if (gs_scan_null(&reader->scan))
        return false;
    if (gs_scan_peek(&reader->scan) == GS_SCAN_NUMBER) {
        if (!gs_scan_number(&reader->scan, what, &text))
            return false;
    } else {
        if (!gs_scan_string(&reader->scan, what, &string))
            return false;
        if (!gs_scan_text_slice(reader->arena, string, &text))
            return gs_reader_stop(reader, GS_ENOMEM, what, "");
    }
    int64_t value = 0;
    enum gs_quantity result = convert(text, &value);
    if (result == GS_QUANTITY_TOO_LARGE)
        value = text.at[0] == '-' ? INT64_MIN : INT64_MAX;
    else if (result != GS_QUANTITY_OK)
        return gs_scan_refuse(&reader->scan, what, gs_quantity_why(result));
    if (convert == gs_quantity_whole && value < 0)
        return gs_scan_refuse(&reader->scan, what, "is negative");
    *ret = value;
    return true;
}

bool gs_read_milli(struct gs_reader *reader, const char *what, int64_t *ret)
{
    return read_quantity(reader, what, gs_quantity_milli, ret);
}

bool gs_read_value(struct gs_reader *reader, const char *what, int64_t *ret)
{
    return read_quantity(reader, what, gs_quantity_value, ret);
}

bool gs_read_whole(struct gs_reader *reader, const char *what, int64_t *ret)
{
    return read_quantity(reader, what, gs_quantity_whole, ret);
}

void *gs_read_grow(struct gs_reader *reader, void *items, uint32_t count, size_t size,
                   const char *what, uint32_t max)
{
    enum { FIRST = 4 };
    if (count == max) {
        gs_reader_stop(reader, GS_ETOOBIG, what, "has too many entries");
        return NULL;
    }
    /* full exactly when the count is 0 or a power of two from FIRST on */
    if (count != 0 && (count < FIRST || (count & (count - 1)) != 0))
        return items;
    void *wider = gs_arena_calloc(reader->arena, count ? (size_t)count * 2 : FIRST, size);
    if (!wider) {
        gs_reader_stop(reader, GS_ENOMEM, what, "");
        return NULL;
    }
    if (count)
        memcpy(wider, items, count * size);
    return wider;
}

struct gs_kv *gs_read_label(struct gs_reader *reader, struct gs_kv **labels, uint32_t *count,
                            struct gs_scan_text key, const char *what)
{
    struct gs_kv *all = gs_read_grow(reader, *labels, *count, sizeof(*all), what, UINT32_MAX);
    const char *name = all ? gs_scan_string_dup(reader->arena, key) : NULL;
    if (all && !name)
        gs_reader_stop(reader, GS_ENOMEM, what, "");
    if (!name)
        return NULL;
    *labels = all;
    struct gs_kv *label = &all[*count];
    *label = (struct gs_kv){name, ""};
    gs_read_string(reader, "a label", &label->value);
    *count += !reader->scan.failed;
    return reader->scan.failed ? NULL : label;
}
