/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_READER_H
#define GPUSHARE_CODEC_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"
#include "gpushare/model/kv.h"
#include "gpushare/model/names.h"

/*
 * Private to the decoders of whole objects: a scanner with an arena for what is kept, and failures
 * that are not the text's fault. Nulls count as absent: *ret stays as it is.
 */
struct gs_reader {
    struct gs_scan scan;
    struct gs_arena *arena;
    const struct gs_names *names; /* of GS_NAMED members; may be NULL without any */
    bool any_case;                /* members are found in any case, as Go's encoding/json does */
    enum gs_code code;            /* GS_OK: failures are GS_EPROTO */
};

/* How a value is read, and the type of the field it goes to. */
enum gs_member_kind {
    GS_READ_END,    /* ends a table */
    GS_READ_NAME,   /* const char *, gs_read_name() */
    GS_READ_STRING, /* const char *, of any length */
    GS_READ_LIST,   /* const char *, no more than one byte above GS_LIST_BYTES_MAX */
    GS_READ_COPY,   /* char[] */
    GS_READ_TEXT,   /* struct gs_scan_text */
    GS_READ_RAW,    /* struct gs_slice: the value's own bytes */
    GS_READ_BOOL,
    GS_READ_I32,
    GS_READ_I64,
    GS_READ_U31,   /* uint32_t below 2^31 */
    GS_READ_MILLI, /* int64_t, a quantity: gs_read_milli() and so on */
    GS_READ_VALUE,
    GS_READ_WHOLE,
    GS_READ_OBJECT, /* has members of its own */
    GS_READ_CALL,   /* by a function */
    GS_READ_EACH,   /* an array: each element by a function */
};

/*
 * A member of an object that is read; others are skipped. The value goes to the byte `at` of
 * the struct that the table is for. Tables are static, and end with a zeroed member:
 *
 *   static const struct gs_member members[] = {
 *       GS_OBJECT("metadata", "metadata",
 *                 GS_MEMBERS(GS_MEMBER(struct gs_pod, "name", "metadata.name", name))),
 *       {0},
 *   };
 *   gs_read_entry(reader, "pod", members, pod);
 */
struct gs_member {
    const char *key;  /* NULL: it stands in the reader's names, `name` bytes from their begin */
    uint16_t key_len; /* 0: of names, and of any key that begins with `key` */
    uint16_t name;
    uint16_t at, size;
    enum gs_member_kind kind;
    const char *what; /* in failures */
    const struct gs_member *members;
    void (*read)(struct gs_reader *reader, const char *what, void *to);
};

#define GS_HEAD_(text, what_) .key = (text), .key_len = sizeof(text) - 1, .what = (what_)
#define GS_AT_(T, field)      .at = offsetof(T, field), .size = sizeof(((T *)0)->field)
#define GS_CALL_(read_)       .kind = GS_READ_CALL, .read = (read_)
#define GS_OBJECT_(members_)  .kind = GS_READ_OBJECT, .members = (members_)
#define GS_KIND_OF_(T, field, whole)                                                               \
    _Generic(((T *)0)->field, const char * : GS_READ_NAME, char * : GS_READ_COPY,                  \
        struct gs_scan_text : GS_READ_TEXT, struct gs_slice : GS_READ_RAW, bool : GS_READ_BOOL,    \
        int32_t : GS_READ_I32, int64_t : (whole), uint32_t : GS_READ_U31)

/* As the field's type says. */
#define GS_MEMBER(T, text, what_, field)                                                           \
    GS_MEMBER_AS(T, text, what_, field, GS_KIND_OF_(T, field, GS_READ_I64))
/* With a key of struct gs_names; int64_t is GS_READ_WHOLE. */
#define GS_NAMED(T, name_, what_, field)                                                           \
    GS_NAMED_AS(T, name_, what_, field, GS_KIND_OF_(T, field, GS_READ_WHOLE))
#define GS_NAMED_AS(T, name_, what_, field, kind_)                                                 \
    {                                                                                              \
        .name = offsetof(struct gs_names, name_), .what = (what_), GS_AT_(T, field),               \
        .kind = (kind_)                                                                            \
    }
#define GS_MEMBER_AS(T, text, what_, field, kind_)                                                 \
    {                                                                                              \
        GS_HEAD_(text, what_), GS_AT_(T, field), .kind = (kind_)                                   \
    }
/* A table in place, of an object that stands in one other only. */
#define GS_MEMBERS(...) ((const struct gs_member[]){__VA_ARGS__, {0}})
/* An object whose members go to the same struct, or to a field of it. */
#define GS_OBJECT(text, what_, members_)                                                           \
    {                                                                                              \
        GS_HEAD_(text, what_), GS_OBJECT_(members_)                                                \
    }
#define GS_OBJECT_AT(T, text, what_, field, members_)                                              \
    {                                                                                              \
        GS_HEAD_(text, what_), GS_AT_(T, field), GS_OBJECT_(members_)                              \
    }
/* Anything else: `read` takes the value. */
#define GS_CALL(text, what_, read_)                                                                \
    {                                                                                              \
        GS_HEAD_(text, what_), GS_CALL_(read_)                                                     \
    }
#define GS_CALL_AT(T, text, what_, field, read_)                                                   \
    {                                                                                              \
        GS_HEAD_(text, what_), GS_AT_(T, field), GS_CALL_(read_)                                   \
    }
/* The same of each element of an array. */
#define GS_EACH(text, what_, read_)                                                                \
    {                                                                                              \
        GS_HEAD_(text, what_), .kind = GS_READ_EACH, .read = (read_)                               \
    }
/* Of any key that begins so. */
#define GS_PREFIXED(text, what_, read_)                                                            \
    {                                                                                              \
        .key = (text), .what = (what_), GS_CALL_(read_)                                            \
    }

/* The index of the word in a list whose gaps are NULL; none: what stands for others. */
int gs_word_of(struct gs_scan_text text, const char *const *words, int count, int none);
#define GS_WORD_OF(text, words, none)                                                              \
    gs_word_of((text), (words), (int)(sizeof(words) / sizeof((words)[0])), (none))

/* Takes an object; false for null and failures. Of the same key twice the last one counts. */
bool gs_read_members(struct gs_reader *reader, const char *what, const struct gs_member *members,
                     void *to);
/* The same of one that may not be null, as an entry of an array. */
void gs_read_entry(struct gs_reader *reader, const char *what, const struct gs_member *members,
                   void *to);

/* Stops the scan with another code than GS_EPROTO. */
bool gs_reader_stop(struct gs_reader *reader, enum gs_code code, const char *what, const char *why);

/* What gs_scan_finish() does, with that code. */
int gs_reader_finish(struct gs_reader *reader, struct gs_error *err);

/*
 * A decoder of its own for the next value of *from, so that its failures are not those of *from;
 * gs_reader_leave() says how it went, and takes that value off *from, whatever became of it.
 */
void gs_reader_enter(struct gs_reader *reader, struct gs_scan *from);
int gs_reader_leave(struct gs_reader *reader, struct gs_scan *from, struct gs_error *err);

/* Enters; false also for null, so: if (gs_read_object(…)) while (gs_scan_key(…)) */
bool gs_read_object(struct gs_reader *reader, const char *what);
bool gs_read_array(struct gs_reader *reader, const char *what);

bool gs_read_text(struct gs_reader *reader, const char *what, struct gs_scan_text *ret);
bool gs_read_i32(struct gs_reader *reader, const char *what, int32_t *ret);

/* Of an object one text only: the one with this key, `what` in failures. What else the object has
 * is skipped; *ret is empty where it has no such key. */
void gs_read_text_of(struct gs_reader *reader, const char *object, struct gs_slice key,
                     const char *what, struct gs_scan_text *ret);

/* A copy in the arena: "" where it has more bytes than any that Kubernetes lets through
 * (a group of 253, "/", 63), because the API server checks the length of some fields only. */
enum { GS_NAME_BYTES_MAX = 317 };
bool gs_read_name(struct gs_reader *reader, const char *what, const char **ret);
struct gs_scan_text gs_name_text(struct gs_scan_text text); /* the same without the copy */

/* A quantity, as string or number; a too large one saturates, because API servers take them. Of
 * GS_READ_… milli and value round up, whole refuses fractions and negatives. */
bool gs_read_whole(struct gs_reader *reader, const char *what, int64_t *ret);

/* The start of the next entry of an array in the arena, which doubles when full: copied, zeroed.
 * NULL: out of memory, or `max` reached; the scan is stopped. */
void *gs_read_grow(struct gs_reader *reader, void *items, uint32_t count, size_t size,
                   const char *what, uint32_t max);

/* The same of a list, of whose length it makes one more: the new entry, zeroed. items: a T **. */
void *gs_read_append(struct gs_reader *reader, void *items, uint32_t *count, size_t size,
                     const char *what, uint32_t max);

/* One label more, copied into the arena; null is "", as Go reads it into a map[string]string. NULL:
 * the scan is stopped. */
struct gs_kv *gs_read_label(struct gs_reader *reader, struct gs_kv **labels, uint32_t *count,
                            struct gs_scan_text key, const char *what);

#endif
