/* SPDX-License-Identifier: Apache-2.0 */
#include "reader.h"

#include <stdio.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/rfc3339.h"
#include "gpushare/model/pod.h"

bool gs_reader_stop(struct gs_reader *reader, enum gs_code code, const char *why)
{
    if (!reader->scan.failed)
        reader->code = code;
    return gs_scan_refuse(&reader->scan, "", why);
}

int gs_reader_finish(struct gs_reader *reader, struct gs_error *err)
{
    if (reader->code == GS_ENOMEM)
        return gs_fail_nomem(err);
    if (reader->scan.what && !reader->scan.what[0])
        reader->scan.what = "the value";
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
    (void)gs_scan_peek(from); /* skip white space */
    gs_scan_init(&reader->scan, (struct gs_slice){from->at, (size_t)(from->end - from->at)});
    reader->scan.trusting = true;
}

int gs_reader_leave(struct gs_reader *reader, struct gs_scan *from, struct gs_error *err)
{
    if (!reader->scan.failed && !from->failed) {
        from->at = reader->scan.at;
        return from->whole ? gs_scan_finish(from, err) : 0;
    }
    gs_scan_skip(from);
    return gs_reader_finish(reader, err);
}

bool gs_read_object(struct gs_reader *reader)
{
    return !gs_scan_null(&reader->scan) && gs_scan_object(&reader->scan, "");
}

bool gs_read_array(struct gs_reader *reader)
{
    return !gs_scan_null(&reader->scan) && gs_scan_array(&reader->scan, "");
}

bool gs_read_text(struct gs_reader *reader, struct gs_scan_text *ret)
{
    return !gs_scan_null(&reader->scan) && gs_scan_string(&reader->scan, "", ret);
}

const char *gs_read_dup(struct gs_reader *reader, struct gs_scan_text text)
{
    const char *copy = gs_scan_string_dup(reader->arena, text);
    if (copy)
        return copy;
    gs_reader_stop(reader, GS_ENOMEM, "");
    return "";
}

static struct gs_scan_text name_text(struct gs_scan_text text)
{
    bool fits = text.len <= GS_NAME_BYTES_MAX;
    if (!fits && text.escaped) {
        char name[GS_NAME_BYTES_MAX + 1];
        fits = gs_scan_text_copy(text, name, sizeof(name));
    }
    return fits ? text : (struct gs_scan_text){.at = ""};
}

static bool read_copy(struct gs_reader *reader, enum gs_member_kind kind, const char **ret)
{
    struct gs_scan_text text;
    if (!gs_read_text(reader, &text))
        return false;
    if (kind == GS_READ_NAME)
        text = name_text(text);
    else if (kind == GS_READ_LIST)
        text = gs_scan_text_head(text, GS_LIST_BYTES_MAX + 1);
    *ret = gs_read_dup(reader, text);
    return true;
}

bool gs_read_name(struct gs_reader *reader, const char **ret)
{
    return read_copy(reader, GS_READ_NAME, ret);
}

bool gs_text_time(struct gs_scan_text text, int64_t *ret_ns)
{
    char time[GS_RFC3339_BYTES];
    return gs_scan_text_copy(text, time, sizeof(time)) &&
           gs_rfc3339_parse(gs_slice_of(time), ret_ns);
}

void gs_read_cut(struct gs_scan_text text, char *to, size_t size)
{
    char whole[2048] = ""; /* U+0000 becomes three bytes */
    gs_scan_text_copy(gs_scan_text_head(text, size), whole, sizeof(whole));
    size_t len = gs_utf8_cut(whole, strlen(whole), size - 1);
    memset(to, 0, size);
    memcpy(to, whole, len);
}

void gs_read_names(struct gs_reader *reader, const char ***names, uint32_t *count, uint32_t max)
{
    if (!gs_read_array(reader))
        return;
    while (gs_scan_element(&reader->scan)) {
        const char **name = gs_read_append(reader, names, count, sizeof(*name), max);
        if (name && !gs_read_name(reader, name))
            gs_scan_refuse(&reader->scan, "", "contains an invalid entry");
    }
}

bool gs_read_quantity(struct gs_reader *reader, enum gs_quantity_as as, int64_t *ret)
{
    struct gs_slice text;
    struct gs_scan_text string;
    const bool number = gs_scan_peek(&reader->scan) == GS_SCAN_NUMBER;
    if (number ? !gs_scan_number(&reader->scan, "", &text) : !gs_read_text(reader, &string))
        return false;
    if (!number && !gs_scan_text_slice(reader->arena, string, &text))
        return gs_reader_stop(reader, GS_ENOMEM, "");
    int64_t value = 0;
    enum gs_quantity result = gs_quantity_read(text, as, &value);
    if (result == GS_QUANTITY_TOO_LARGE)
        value = text.at[0] == '-' ? INT64_MIN : INT64_MAX;
    else if (result != GS_QUANTITY_OK)
        return gs_scan_refuse(&reader->scan, "", gs_quantity_why(result));
    if (as == GS_QUANTITY_WHOLE && value < 0)
        return gs_scan_refuse(&reader->scan, "", "is negative");
    *ret = value;
    return true;
}

static void read_copy_into(struct gs_reader *reader, char *to, size_t size)
{
    struct gs_scan_text text;
    if (gs_scan_string(&reader->scan, "", &text) && !gs_scan_text_copy(text, to, size))
        gs_reader_stop(reader, GS_ETOOBIG, "is too long");
}

static void read_u31(struct gs_reader *reader, uint32_t *ret)
{
    int32_t value;
    if (!gs_scan_i32(&reader->scan, "", &value))
        return;
    if (value < 0)
        gs_scan_refuse(&reader->scan, "", "is negative");
    else
        *ret = (uint32_t)value;
}

static void read_each(struct gs_reader *reader, const struct gs_member *member, void *base)
{
    if (member->size)
        memset((char *)base + member->at, 0, member->size);
    gs_scan_array(&reader->scan, "");
    while (gs_scan_element(&reader->scan))
        member->read(reader, base);
}

static void read_member(struct gs_reader *reader, const struct gs_member *member, void *base)
{
    struct gs_scan *scan = &reader->scan;
    void *to = (char *)base + member->at;
    if (gs_scan_null(scan))
        return;
    switch (member->kind) {
    case GS_READ_NAME:
    case GS_READ_LIST:
        read_copy(reader, member->kind, to);
        break;
    case GS_READ_COPY:
        read_copy_into(reader, to, member->size);
        break;
    case GS_READ_TEXT:
        gs_scan_string(scan, "", to);
        break;
    case GS_READ_RAW:
        gs_scan_raw(scan, to);
        break;
    case GS_READ_BOOL:
        gs_scan_bool(scan, "", to);
        break;
    case GS_READ_I32:
        gs_scan_i32(scan, "", to);
        break;
    case GS_READ_I64:
        gs_scan_i64(scan, "", to);
        break;
    case GS_READ_U31:
        read_u31(reader, to);
        break;
    case GS_READ_MILLI:
        gs_read_quantity(reader, GS_QUANTITY_MILLI, to);
        break;
    case GS_READ_VALUE:
        gs_read_quantity(reader, GS_QUANTITY_VALUE, to);
        break;
    case GS_READ_WHOLE:
        gs_read_quantity(reader, GS_QUANTITY_WHOLE, to);
        break;
    case GS_READ_CALL:
        member->read(reader, to);
        break;
    case GS_READ_EACH:
        read_each(reader, member, base);
        break;
    default:
        gs_read_entry(reader, "", member->members, to);
    }
}

/* Matches a member whose key is a name or a prefix. */
static bool is_special(const struct gs_reader *reader, const struct gs_member *member,
                       struct gs_scan_text key)
{
    if (!member->key)
        return gs_scan_text_is_name(key, (const char *)reader->names + member->name);
    const struct gs_slice begin = gs_slice_of(member->key);
    return gs_scan_text_eq(gs_scan_text_head(key, begin.len), begin);
}

static inline bool is_key(const struct gs_member *member, struct gs_scan_text key)
{
    return member->key_len == key.len && member->key[0] == key.at[0] &&
           memcmp(member->key, key.at, key.len) == 0;
}

/* is_key() for keys in any case, with escapes, or empty. */
static bool is_odd_key(const struct gs_reader *reader, const struct gs_member *member,
                       struct gs_scan_text key)
{
    const struct gs_slice text = {member->key, member->key_len};
    return reader->any_case ? gs_scan_text_eq_nocase(key, text) : gs_scan_text_eq(key, text);
}

/* NULL: the table has no such key. Lists have hundreds of thousands of keys, and most members
 * differ in length. */
static inline const struct gs_member *find_member(const struct gs_reader *reader,
                                                  const struct gs_member *member,
                                                  struct gs_scan_text key, bool odd)
{
    for (;; member++) {
        if (member->key_len) {
            if (odd ? is_odd_key(reader, member, key) : is_key(member, key))
                return member;
        } else if (member->kind == GS_READ_END) {
            return NULL;
        } else if (is_special(reader, member, key)) {
            return member;
        }
    }
}

/* The keys that lead to this thread's last failure; its message is made before the next one. Not in
 * the reader, where each decode would have to zero it. */
static _Thread_local char failed_path[160];

static void prepend_key(struct gs_reader *reader, const struct gs_member *member)
{
    char path[sizeof(failed_path)];
    const char *key = member->key ? member->key : (const char *)reader->names + member->name;
    const char *rest = reader->scan.what;
    snprintf(path, sizeof(path), "%s%s%s", key, rest[0] && rest[0] != '[' ? "." : "", rest);
    memcpy(failed_path, path, sizeof(path));
    reader->scan.what = failed_path;
}

static void read_all(struct gs_reader *reader, const struct gs_member *members, void *to)
{
    const struct gs_member *member = NULL,
                           *next = members; /* keys are often in the table's order */
    struct gs_scan_text key;
    while (gs_scan_key(&reader->scan, &key)) {
        const bool odd = key.escaped || reader->any_case || !key.len;
        member = !odd && is_key(next, key) ? next : find_member(reader, members, key, odd);
        if (member) {
            read_member(reader, member, to);
            next = member + 1;
        } else {
            gs_scan_skip_value(&reader->scan, key);
        }
    }
    if (reader->scan.failed && reader->scan.what && member)
        prepend_key(reader, member);
}

bool gs_read_members(struct gs_reader *reader, const struct gs_member *members, void *to)
{
    if (!gs_read_object(reader))
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

int gs_read_document(struct gs_reader *reader, struct gs_slice json, const char *what,
                     const struct gs_member *members, void *to, struct gs_error *err)
{
    gs_scan_init(&reader->scan, json);
    gs_read_entry(reader, what, members, to);
    return gs_reader_finish(reader, err);
}

/* Returns the array with room for one more entry: copied if it was full. NULL: out of memory, or
 * `max` reached; the scan is stopped. */
static void *grow(struct gs_reader *reader, void *items, uint32_t count, size_t size, uint32_t max)
{
    enum { FIRST = 4 };
    if (count == max) {
        gs_reader_stop(reader, GS_ETOOBIG, "has too many entries");
        return NULL;
    }
    /* the array is full if the count is 0 or a power of two, at least FIRST */
    if (count != 0 && (count < FIRST || (count & (count - 1)) != 0))
        return items;
    void *wider = gs_arena_calloc(reader->arena, count ? (size_t)count * 2 : FIRST, size);
    if (!wider) {
        gs_reader_stop(reader, GS_ENOMEM, "");
        return NULL;
    }
    if (count)
        memcpy(wider, items, count * size);
    return wider;
}

void *gs_read_append(struct gs_reader *reader, void *items, uint32_t *count, size_t size,
                     uint32_t max)
{
    char *all;
    memcpy(&all, items, sizeof(all));
    all = grow(reader, all, *count, size, max);
    if (!all)
        return NULL;
    memcpy(items, &all, sizeof(all));
    return all + (*count)++ * size;
}

struct gs_kv *gs_read_label(struct gs_reader *reader, struct gs_kv **labels, uint32_t *count,
                            struct gs_scan_text key)
{
    struct gs_kv *label = gs_read_append(reader, labels, count, sizeof(*label), UINT32_MAX);
    if (!label)
        return NULL;
    *label = (struct gs_kv){gs_read_dup(reader, key), ""};
    gs_read_name(reader, &label->value);
    if (!reader->scan.failed)
        return label;
    --*count;
    return NULL;
}
