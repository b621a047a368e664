/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include "gpushare/codec/quantity.h"
#include "gpushare/model/pod.h"

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

int gs_word_of(struct gs_scan_text text, const char *const *words, int count, int none)
{
    for (int i = 0; i < count; i++) {
        if (words[i] && gs_scan_text_is_name(text, words[i]))
            return i;
    }
    return none;
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

bool gs_read_i32(struct gs_reader *reader, const char *what, int32_t *ret)
{
    return !gs_scan_null(&reader->scan) && gs_scan_i32(&reader->scan, what, ret);
}

struct gs_scan_text gs_name_text(struct gs_scan_text text)
{
    bool fits = text.len <= GS_NAME_BYTES_MAX;
    if (!fits && text.escaped) {
        char name[GS_NAME_BYTES_MAX + 1];
        fits = gs_scan_text_copy(text, name, sizeof(name));
    }
    return fits ? text : (struct gs_scan_text){.at = ""};
}

static bool read_copy(struct gs_reader *reader, const char *what, enum gs_member_kind kind,
                      const char **ret)
{
    struct gs_scan_text text;
    if (!gs_read_text(reader, what, &text))
        return false;
    if (kind == GS_READ_NAME)
        text = gs_name_text(text);
    else if (kind == GS_READ_LIST)
        text = gs_scan_text_head(text, GS_LIST_BYTES_MAX + 1);
    const char *copy = gs_scan_string_dup(reader->arena, text);
    if (!copy)
        return gs_reader_stop(reader, GS_ENOMEM, what, "");
    *ret = copy;
    return true;
}

bool gs_read_name(struct gs_reader *reader, const char *what, const char **ret)
{
    return read_copy(reader, what, GS_READ_NAME, ret);
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

bool gs_read_whole(struct gs_reader *reader, const char *what, int64_t *ret)
{
    return read_quantity(reader, what, gs_quantity_whole, ret);
}

static void read_copy_into(struct gs_reader *reader, const char *what, char *to, size_t size)
{
    struct gs_scan_text text;
    if (gs_scan_string(&reader->scan, what, &text) && !gs_scan_text_copy(text, to, size))
        gs_scan_refuse(&reader->scan, what, "is too long");
}

static void read_u31(struct gs_reader *reader, const char *what, uint32_t *ret)
{
    int32_t value;
    if (!gs_scan_i32(&reader->scan, what, &value))
        return;
    if (value < 0)
        gs_scan_refuse(&reader->scan, what, "is negative");
    else
        *ret = (uint32_t)value;
}

static void read_member(struct gs_reader *reader, const struct gs_member *member, void *base)
{
    struct gs_scan *scan = &reader->scan;
    const char *what = member->what;
    void *to = (char *)base + member->at;
    if (gs_scan_null(scan))
        return;
    switch (member->kind) {
    case GS_READ_NAME:
    case GS_READ_STRING:
    case GS_READ_LIST:
        read_copy(reader, what, member->kind, to);
        break;
    case GS_READ_COPY:
        read_copy_into(reader, what, to, member->size);
        break;
    case GS_READ_TEXT:
        gs_scan_string(scan, what, to);
        break;
    case GS_READ_RAW:
        gs_scan_raw(scan, to);
        break;
    case GS_READ_BOOL:
        gs_scan_bool(scan, what, to);
        break;
    case GS_READ_I32:
        gs_scan_i32(scan, what, to);
        break;
    case GS_READ_I64:
        gs_scan_i64(scan, what, to);
        break;
    case GS_READ_U31:
        read_u31(reader, what, to);
        break;
    case GS_READ_MILLI:
        read_quantity(reader, what, gs_quantity_milli, to);
        break;
    case GS_READ_VALUE:
        read_quantity(reader, what, gs_quantity_value, to);
        break;
    case GS_READ_WHOLE:
        read_quantity(reader, what, gs_quantity_whole, to);
        break;
    case GS_READ_CALL:
        member->read(reader, what, to);
        break;
    case GS_READ_EACH:
        gs_scan_array(scan, what);
        while (gs_scan_element(scan))
            member->read(reader, what, to);
        break;
    default:
        gs_read_entry(reader, what, member->members, to);
    }
}

/* Of those without a key of their own: a name, or the begin of any. */
static bool is_special(const struct gs_reader *reader, const struct gs_member *member,
                       struct gs_scan_text key)
{
    if (!member->key)
        return gs_scan_text_is_name(key, (const char *)reader->names + member->name);
    const struct gs_slice begin = gs_slice_of(member->key);
    return gs_scan_text_eq(gs_scan_text_head(key, begin.len), begin);
}

/* NULL: it is not read. */
static const struct gs_member *find_any_case(const struct gs_reader *reader,
                                             const struct gs_member *member,
                                             struct gs_scan_text key)
{
    for (; member->kind != GS_READ_END; member++) {
        const struct gs_slice text = {member->key, member->key_len};
        if (!text.len          ? is_special(reader, member, key)
            : reader->any_case ? gs_scan_text_eq_nocase(key, text)
                               : gs_scan_text_eq(key, text))
            return member;
    }
    return NULL;
}

static inline bool is_key(const struct gs_member *member, struct gs_scan_text key)
{
    return member->key_len == key.len && member->key[0] == key.at[0] &&
           memcmp(member->key, key.at, key.len) == 0;
}

/* The same for keys as they mostly are. Lists bring hundreds of thousands of them, each to be
 * compared with all of these members, most of which differ in length already. */
static inline const struct gs_member *
find_member(const struct gs_reader *reader, const struct gs_member *member, struct gs_scan_text key)
{
    for (;; member++) {
        if (member->key_len) {
            if (is_key(member, key))
                return member;
        } else if (member->kind == GS_READ_END) {
            return NULL;
        } else if (is_special(reader, member, key)) {
            return member;
        }
    }
}

static void read_all(struct gs_reader *reader, const struct gs_member *members, void *to)
{
    const struct gs_member *next = members; /* often in the order of the table */
    struct gs_scan_text key;
    while (gs_scan_key(&reader->scan, &key)) {
        const struct gs_member *member = key.escaped || reader->any_case || !key.len
                                             ? find_any_case(reader, members, key)
                                         : is_key(next, key) ? next
                                                             : find_member(reader, members, key);
        if (member) {
            read_member(reader, member, to);
            next = member + 1;
        } else {
            gs_scan_skip(&reader->scan);
        }
    }
}

bool gs_read_members(struct gs_reader *reader, const char *what, const struct gs_member *members,
                     void *to)
{
    if (!gs_read_object(reader, what))
        return false;
    read_all(reader, members, to);
    return !reader->scan.failed;
}

void gs_read_entry(struct gs_reader *reader, const char *what, const struct gs_member *members,
                   void *to)
{
    if (gs_scan_object(&reader->scan, what))
        read_all(reader, members, to);
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

void *gs_read_append(struct gs_reader *reader, void *items, uint32_t *count, size_t size,
                     const char *what, uint32_t max)
{
    char *all;
    memcpy(&all, items, sizeof(all));
    all = gs_read_grow(reader, all, *count, size, what, max);
    if (!all)
        return NULL;
    memcpy(items, &all, sizeof(all));
    return all + (*count)++ * size;
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
    gs_read_name(reader, "a label", &label->value);
    *count += !reader->scan.failed;
    return reader->scan.failed ? NULL : label;
}
