/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_READER_H
#define GPUSHARE_CODEC_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"
#include "gpushare/model/kv.h"

/*
 * Private to the decoders of whole objects: a scanner with an arena for what is kept, and failures
 * that are not the text's fault. Nulls count as absent: *ret stays as it is.
 */
struct gs_reader {
    struct gs_scan scan;
    struct gs_arena *arena;
    enum gs_code code; /* GS_OK: failures are GS_EPROTO */
};

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
bool gs_read_bool(struct gs_reader *reader, const char *what, bool *ret);
bool gs_read_i32(struct gs_reader *reader, const char *what, int32_t *ret);

/* Of an object one text only: the one with this key, `what` in failures. What else the object has
 * is passed over; *ret is empty where it has no such key. */
void gs_read_text_of(struct gs_reader *reader, const char *object, struct gs_slice key,
                     const char *what, struct gs_scan_text *ret);

/* A copy in the arena. */
bool gs_read_string(struct gs_reader *reader, const char *what, const char **ret);

/* Quantities, as string or number; too large ones saturate, because API servers take them. milli
 * and value round up, whole refuses fractions and negatives. */
bool gs_read_milli(struct gs_reader *reader, const char *what, int64_t *ret);
bool gs_read_value(struct gs_reader *reader, const char *what, int64_t *ret);
bool gs_read_whole(struct gs_reader *reader, const char *what, int64_t *ret);

/* The start of the next entry of an array in the arena, which doubles when full: copied, zeroed.
 * NULL: out of memory, or `max` reached; the scan is stopped. */
void *gs_read_grow(struct gs_reader *reader, void *items, uint32_t count, size_t size,
                   const char *what, uint32_t max);

/* One label more, copied into the arena; null is "", as Go reads it into a map[string]string. NULL:
 * the scan is stopped. */
struct gs_kv *gs_read_label(struct gs_reader *reader, struct gs_kv **labels, uint32_t *count,
                            struct gs_scan_text key, const char *what);

#endif
