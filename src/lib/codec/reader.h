/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/codec/quantity.h"
#include "gpushare/codec/scan.h"
#include "gpushare/model/kv.h"
#include "gpushare/model/names.h"

/*
 * Private to the decoders of whole objects: a scanner with an arena for what is kept, and failures
 * that are not the text's fault. Nulls count as absent: *ret stays as it is. A failure names the
 * value by the keys that lead to it ("spec.containers.resources is not an object"): the tables'
 * readers put them before what a function says, which is "" for the value itself.
 */
struct gs_reader {
    struct gs_scan scan;
    struct gs_arena *arena;
    const struct gs_names *names; /* for GS_NAMED members; NULL if there are none */
    bool any_case;                /* members are found in any case, as Go's encoding/json does */
    enum gs_code code;            /* GS_OK: failures are GS_EPROTO */
};

/* How a value is read, and the type of the field it goes to. */
enum gs_member_kind {
    GS_READ_END,  /* ends a table */
    GS_READ_NAME, /* const char *, gs_read_name() */
    GS_READ_LIST, /* const char *, no more than one byte above GS_LIST_BYTES_MAX */
    GS_READ_COPY, /* char[] */
    GS_READ_TEXT, /* struct gs_scan_text */
    GS_READ_RAW,  /* struct gs_slice: the value's own bytes */
    GS_READ_BOOL,
    GS_READ_I32,
    GS_READ_I64,
    GS_READ_U31,   /* uint32_t below 2^31 */
    GS_READ_MILLI, /* int64_t: gs_read_quantity() */
    GS_READ_VALUE,
    GS_READ_WHOLE,
    GS_READ_OBJECT, /* has members of its own */
    GS_READ_CALL,   /* a function reads it */
    GS_READ_EACH,   /* an array; a function reads each element */
};

/*
 * A member of an object that is read; others are skipped. The value goes to the byte `at` of
 * the struct that the table is for. Tables are static, and end with a zeroed member:
 *
 *   static const struct gs_member members[] = {
 *       GS_OBJECT("metadata", GS_MEMBERS(GS_MEMBER(struct gs_pod, "name", name))),
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
    const struct gs_member *members;
    void (*read)(struct gs_reader *reader, void *to);
};

#define GS_KEY_(text)        .key = (text), .key_len = sizeof(text) - 1
#define GS_AT_(T, field)     .at = offsetof(T, field), .size = sizeof(((T *)0)->field)
#define GS_CALL_(read_)      .kind = GS_READ_CALL, .read = (read_)
#define GS_OBJECT_(members_) .kind = GS_READ_OBJECT, .members = (members_)
#define GS_EACH_(read_)      .kind = GS_READ_EACH, .read = (read_)
#define GS_KIND_OF_(T, field, whole)                                                               \
    _Generic(((T *)0)->field, const char * : GS_READ_NAME, char * : GS_READ_COPY,                  \
        struct gs_scan_text : GS_READ_TEXT, struct gs_slice : GS_READ_RAW, bool : GS_READ_BOOL,    \
        int32_t : GS_READ_I32, int64_t : (whole), uint32_t : GS_READ_U31)

/* As the field's type says. */
#define GS_MEMBER(T, text, field) GS_MEMBER_AS(T, text, field, GS_KIND_OF_(T, field, GS_READ_I64))
#define GS_MEMBER_AS(T, text, field, kind_)                                                        \
    {                                                                                              \
        GS_KEY_(text), GS_AT_(T, field), .kind = (kind_)                                           \
    }
/* With a key of struct gs_names; int64_t is GS_READ_WHOLE. */
#define GS_NAMED(T, name_, field) GS_NAMED_AS(T, name_, field, GS_KIND_OF_(T, field, GS_READ_WHOLE))
#define GS_NAMED_AS(T, name_, field, kind_)                                                        \
    {                                                                                              \
        .name = offsetof(struct gs_names, name_), GS_AT_(T, field), .kind = (kind_)                \
    }
/* A nested table. */
#define GS_MEMBERS(...) ((const struct gs_member[]){__VA_ARGS__, {0}})
/* An object whose members are stored in the same struct, or in one of its fields. */
#define GS_OBJECT(text, members_)                                                                  \
    {                                                                                              \
        GS_KEY_(text), GS_OBJECT_(members_)                                                        \
    }
#define GS_OBJECT_AT(T, text, field, members_)                                                     \
    {                                                                                              \
        GS_KEY_(text), GS_AT_(T, field), GS_OBJECT_(members_)                                      \
    }
/* `read` reads the value. */
#define GS_CALL(text, read_)                                                                       \
    {                                                                                              \
        GS_KEY_(text), GS_CALL_(read_)                                                             \
    }
#define GS_CALL_AT(T, text, field, read_)                                                          \
    {                                                                                              \
        GS_KEY_(text), GS_AT_(T, field), GS_CALL_(read_)                                           \
    }
/* `read` takes each element of an array, for the struct. Of GS_EACH_IN the field is the uint32_t
 * that counts them: it becomes 0 first, so that of the same key twice the last one counts. */
#define GS_EACH(text, read_)                                                                       \
    {                                                                                              \
        GS_KEY_(text), GS_EACH_(read_)                                                             \
    }
#define GS_EACH_IN(T, text, field, read_)                                                          \
    {                                                                                              \
        GS_KEY_(text), GS_AT_(T, field), GS_EACH_(read_)                                           \
    }
/* Every key with this prefix. */
#define GS_PREFIXED(text, read_)                                                                   \
    {                                                                                              \
        .key = (text), GS_CALL_(read_)                                                             \
    }

/* The index of the text in a list of words; entries may be NULL. none: the result for other texts.
 */
int gs_word_of(struct gs_scan_text text, const char *const *words, int count, int none);
#define GS_WORD_OF(text, words, none)                                                              \
    gs_word_of((text), (words), (int)(sizeof(words) / sizeof((words)[0])), (none))

/* Takes an object; false for null and failures. Of the same key twice the last one counts. */
bool gs_read_members(struct gs_reader *reader, const struct gs_member *members, void *to);
/* The same for an object that must not be null: an entry of an array ("[]"), or a document. */
void gs_read_entry(struct gs_reader *reader, const char *what, const struct gs_member *members,
                   void *to);

/* Fails the scan with a code other than GS_EPROTO. Returns false. */
bool gs_reader_stop(struct gs_reader *reader, enum gs_code code, const char *why);

/* gs_scan_finish() with that code. */
int gs_reader_finish(struct gs_reader *reader, struct gs_error *err);

/* Decodes a text that consists of one such object. */
int gs_read_document(struct gs_reader *reader, struct gs_slice json, const char *what,
                     const struct gs_member *members, void *to, struct gs_error *err);

/* Starts a reader for the next value of *from whose failures do not fail *from. gs_reader_leave()
 * returns the result, and skips the value in *from in any case. */
void gs_reader_enter(struct gs_reader *reader, struct gs_scan *from);
int gs_reader_leave(struct gs_reader *reader, struct gs_scan *from, struct gs_error *err);

/* Enters; false also for null, so: if (gs_read_object(…)) while (gs_scan_key(…)) */
bool gs_read_object(struct gs_reader *reader);
bool gs_read_array(struct gs_reader *reader);

bool gs_read_text(struct gs_reader *reader, struct gs_scan_text *ret);

/* A copy of the text in the arena. Out of memory: "", and the scan fails. */
const char *gs_read_dup(struct gs_reader *reader, struct gs_scan_text text);

/* A copy in the arena: "" where it has more bytes than any that Kubernetes lets through
 * (a group of 253, "/", 63), because the API server checks the length of some fields only. */
enum { GS_NAME_BYTES_MAX = 317 };
bool gs_read_name(struct gs_reader *reader, const char **ret);

/* A time in RFC 3339's form. */
bool gs_text_time(struct gs_scan_text text, int64_t *ret_ns);

/* As many of its characters as fit into `size` bytes, 512 at most, with a NUL. */
void gs_read_cut(struct gs_scan_text text, char *to, size_t size);

/* Appends the names of an array; null fails. */
void gs_read_names(struct gs_reader *reader, const char ***names, uint32_t *count, uint32_t max);

/* A quantity, as string or number; a too large one saturates, because API servers take them.
 * GS_QUANTITY_WHOLE refuses negatives, too. */
bool gs_read_quantity(struct gs_reader *reader, enum gs_quantity_as as, int64_t *ret);

/* The next entry of an array in the arena, which doubles when full; zeroed. items: a T **. NULL:
 * out of memory, or `max` reached; the scan is stopped. */
void *gs_read_append(struct gs_reader *reader, void *items, uint32_t *count, size_t size,
                     uint32_t max);

/* Appends a label, copied into the arena; null becomes "", as in Go's map[string]string. NULL: the
 * scan has failed. */
struct gs_kv *gs_read_label(struct gs_reader *reader, struct gs_kv **labels, uint32_t *count,
                            struct gs_scan_text key);
