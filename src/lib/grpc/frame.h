/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"

/*
 * gRPC's length-prefixed messages: one byte "compressed" (0 or 1), four bytes length, big-endian,
 * then the message (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). They may be
 * cut anywhere by HTTP/2 DATA frames. Pure; not thread-safe.
 *
 *   struct gs_frame_reader reader = GS_FRAME_READER(4 << 20);
 *   while (len > 0) {
 *       switch (gs_frame_feed(&reader, data, len, &used)) { ... }
 *       data += used, len -= used;
 *   }
 *   gs_frame_release(&reader);
 */
#define GS_FRAME_HEADER_BYTES 5

enum gs_frame_result {
    GS_FRAME_MORE,       /* all bytes taken, message not complete */
    GS_FRAME_MESSAGE,    /* reader.body holds a whole message until the next gs_frame_feed() */
    GS_FRAME_COMPRESSED, /* its compressed flag is set */
    GS_FRAME_BAD_FLAG,   /* its first byte is neither 0 nor 1 */
    GS_FRAME_TOO_BIG,    /* its length is above the ceiling */
    GS_FRAME_NOMEM,
};

struct gs_frame_reader {
    struct gs_buf body; /* body.max is the ceiling for one message, in bytes */
    uint32_t need;      /* length of the message, once the header is complete */
    unsigned head_len;  /* bytes of the header seen */
    int done;           /* body is a whole message, to be forgotten by the next feed */
    uint8_t head[GS_FRAME_HEADER_BYTES];
};

#define GS_FRAME_READER(ceiling_bytes) ((struct gs_frame_reader){.body = GS_BUF(ceiling_bytes)})

/* Takes bytes up to the end of one message; *ret_used says how many. Memory grows with the bytes
 * that came, not with the length that was promised. After one of the failures the reader must not
 * be fed again. */
enum gs_frame_result gs_frame_feed(struct gs_frame_reader *reader, const void *data, size_t len,
                                   size_t *ret_used);

/* Whether the input may end here: not within a message. */
int gs_frame_at_boundary(const struct gs_frame_reader *reader);

void gs_frame_release(struct gs_frame_reader *reader);

/* A message with its header, that several streams may share. Loop thread only. */
struct gs_grpc_message {
    size_t refs;
    size_t len; /* of bytes */
    uint8_t bytes[];
};

/* Room for len bytes in *ret_body; NULL when memory is out, or above the 4 GiB of a message. One
 * reference, the caller's. */
struct gs_grpc_message *gs_grpc_message_new(size_t len, uint8_t **ret_body);
void gs_grpc_message_unref(struct gs_grpc_message *message);
GS_DEFINE_CLEANUP(struct gs_grpc_message *, gs_grpc_message_unref)
bool gs_grpc_message_equal(const struct gs_grpc_message *a, const struct gs_grpc_message *b);

/* The part of it from *sent on that has room there; how much, and *sent goes on. */
size_t gs_grpc_message_copy(const struct gs_grpc_message *message, size_t *sent, uint8_t *to,
                            size_t room);
