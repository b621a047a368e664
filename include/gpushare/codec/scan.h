/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <strings.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * A pull scanner over JSON text that lies in memory: no tree, no copy, no allocation. Strict RFC
 * 8259: well-formed UTF-8, no lone surrogates, nothing after the value, at most GS_SCAN_DEPTH_MAX
 * levels. What is skipped is checked as strictly as what is read, unless `trusting` is set.
 * Not thread-safe; plain data, a copy of it is a bookmark.
 *
 *   struct gs_scan scan;
 *   gs_scan_init(&scan, json);
 *   struct gs_scan_text key, name = {0};
 *   gs_scan_object(&scan, "the body");
 *   while (gs_scan_key(&scan, &key)) {
 *       if (gs_scan_text_is(key, "name"))
 *           gs_scan_string(&scan, "name", &name);
 *       else
 *           gs_scan_skip_value(&scan, key);
 *   }
 *   if (gs_scan_finish(&scan, err) < 0) ...              checked once, at the end
 *
 * Exactly one value must be taken after each key and each element. A failure (syntax, depth, a
 * value of another type) sticks: every later call returns false and takes nothing, so loops end by
 * themselves. The same key twice arrives twice: assigning each time makes the last one win, as in
 * Go. `what` names the value in the message ("spec.nodeName is not a string"); *borrowed* until
 * gs_scan_finish(), string literals in practice.
 */
enum { GS_SCAN_DEPTH_MAX = 64 };

struct gs_scan {
    const char *at;
    const char *end;
    const char *begin;
    uint32_t depth;
    bool first;    /* nothing taken yet from the innermost object or array */
    bool failed;   /* see gs_scan_finish() */
    bool trusting; /* set after init, for what an API server wrote: objects and arrays that are
                      skipped are not judged, only followed to their closing bracket */
    bool unread;   /* in metadata.managedFields, whose depth its owner may choose: what lies
                      deeper than GS_SCAN_DEPTH_MAX is skipped so, too */
    bool whole;    /* nothing follows the value: whoever takes all of it calls gs_scan_finish() */
    const char *what; /* of the failure; NULL when only `why` counts */
    const char *why;
};

/* The bytes between a string's quotes, escapes as they stand; *borrowed* from the scanned text. */
struct gs_scan_text {
    const char *at; /* NULL: never filled */
    size_t len;
    bool escaped; /* holds a backslash: at/len are not the characters themselves */
};

enum gs_scan_type {
    GS_SCAN_NOTHING, /* end of text, a failure, or no value here */
    GS_SCAN_OBJECT,
    GS_SCAN_ARRAY,
    GS_SCAN_STRING,
    GS_SCAN_NUMBER,
    GS_SCAN_BOOL,
    GS_SCAN_NULL,
};

void gs_scan_init(struct gs_scan *scan, struct gs_slice text);

/* What kind of value starts here, judged by its first byte. Takes nothing. */
enum gs_scan_type gs_scan_peek(struct gs_scan *scan);

/* Enters an object or array; false: something else is here, which fails. */
bool gs_scan_object(struct gs_scan *scan, const char *what);
bool gs_scan_array(struct gs_scan *scan, const char *what);

/* Inside an object: the next key, or false at its end (which is taken) or on failure. */
bool gs_scan_key(struct gs_scan *scan, struct gs_scan_text *ret_key);

/* Inside an array: another value follows; false at its end (which is taken) or on failure. */
bool gs_scan_element(struct gs_scan *scan);

/*
 * Inside an array: takes up to max strings as long as they stand as machines write them, without
 * space and of plain ASCII without escapes; their bytes to ret, *borrowed* from the text. Returns
 * how many. What follows, be it another string, is for gs_scan_element().
 */
uint32_t gs_scan_plain_strings(struct gs_scan *scan, struct gs_slice *ret, uint32_t max);

/* Takes a value of one type; another type fails. *ret is untouched when false is returned. */
bool gs_scan_string(struct gs_scan *scan, const char *what, struct gs_scan_text *ret);
bool gs_scan_bool(struct gs_scan *scan, const char *what, bool *ret);
/* A number without fraction and exponent that fits; Go decodes integers by the same rule. */
bool gs_scan_i64(struct gs_scan *scan, const char *what, int64_t *ret);
bool gs_scan_i32(struct gs_scan *scan, const char *what, int32_t *ret);
/* The number's own characters. */
bool gs_scan_number(struct gs_scan *scan, const char *what, struct gs_slice *ret);

/* Takes a null and says true; takes nothing from any other value. Go leaves a field alone when it
 * meets null, so most readers begin with this. */
bool gs_scan_null_(struct gs_scan *scan); /* the next byte is its first one, or space */
static inline bool gs_scan_null(struct gs_scan *scan)
{
    const char next = scan->at < scan->end ? *scan->at : ' ';
    return (next <= ' ' || next == 'n') && gs_scan_null_(scan);
}

/* Takes any value; the second form says which bytes it was, without the space around them. */
bool gs_scan_skip(struct gs_scan *scan);
/* Of a key that is not read. */
void gs_scan_skip_value(struct gs_scan *scan, struct gs_scan_text key);
bool gs_scan_raw(struct gs_scan *scan, struct gs_slice *ret);

/* Marks a failure of the caller's own: "WHAT WHY", first one wins. Returns false. */
bool gs_scan_refuse(struct gs_scan *scan, const char *what, const char *why);

/* 0 when the whole text was one value, taken without failure; else GS_EPROTO with what, why and
 * at which byte. */
int gs_scan_finish(struct gs_scan *scan, struct gs_error *err);

/* For texts with escapes; use the functions below. */
bool gs_scan_text_eq_escaped(struct gs_scan_text text, struct gs_slice other, bool any_case);

/* Same characters; false for a text that was never filled. Inline, because decoders compare every
 * key with several literals. */
static inline bool gs_scan_text_eq(struct gs_scan_text text, struct gs_slice other)
{
    if (__builtin_expect(text.escaped, 0))
        return gs_scan_text_eq_escaped(text, other, false);
    return text.at && text.len == other.len && memcmp(text.at, other.at, other.len) == 0;
}

/* The same for a name that is known at run time only, without measuring it first. */
static inline bool gs_scan_text_is_name(struct gs_scan_text text, const char *name)
{
    if (__builtin_expect(text.escaped, 0))
        return gs_scan_text_eq_escaped(text, gs_slice_of(name), false);
    return text.len && text.at[0] == name[0] && strncmp(name, text.at, text.len) == 0 &&
           name[text.len] == '\0';
}

/* The same with ASCII letters in any case, as Go's encoding/json finds fields. */
static inline bool gs_scan_text_eq_nocase(struct gs_scan_text text, struct gs_slice other)
{
    if (__builtin_expect(text.escaped, 0))
        return gs_scan_text_eq_escaped(text, other, true);
    return text.at && text.len == other.len && strncasecmp(text.at, other.at, other.len) == 0;
}

#define gs_scan_text_is(text, literal) gs_scan_text_eq((text), GS_SLICE(literal))

/*
 * The characters. slice: the scanned text itself where it has no escapes, else a copy in the arena
 * (NUL bytes kept). dup: always a NUL-terminated copy in the arena, where U+0000 becomes U+FFFD
 * because C strings end there; "" for a text that was never filled. false, NULL: out of memory.
 */
bool gs_scan_text_slice(struct gs_arena *arena, struct gs_scan_text text, struct gs_slice *ret);
char *gs_scan_string_dup(struct gs_arena *arena, struct gs_scan_text text);
/* Its head: as many of its characters as make `bytes` bytes when copied, or just more; all of it
 * when it is shorter. */
struct gs_scan_text gs_scan_text_head(struct gs_scan_text text, size_t bytes);

/* Copies the characters and a NUL into a buffer, U+0000 as above; false: they do not fit, the
 * buffer is untouched. A text that was never filled gives "". */
bool gs_scan_text_copy(struct gs_scan_text text, char *to, size_t size);
