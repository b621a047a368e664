/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/error.h"

static void start_over(struct gs_frame_reader *reader)
{
    gs_buf_reset(&reader->body);
    reader->head_len = 0;
    reader->need = 0;
    reader->done = 0;
}

static enum gs_frame_result check_header(struct gs_frame_reader *reader)
{
    const uint8_t *head = reader->head;
    if (head[0] > 1)
        return GS_FRAME_BAD_FLAG;
    if (head[0] == 1)
        return GS_FRAME_COMPRESSED;
    reader->need = (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 |
                   (uint32_t)head[4];
    return reader->need > reader->body.max ? GS_FRAME_TOO_BIG : GS_FRAME_MORE;
}

enum gs_frame_result gs_frame_feed(struct gs_frame_reader *reader, const void *data, size_t len,
                                   size_t *ret_used)
{
    const uint8_t *bytes = data;
    size_t used = 0;
    if (reader->done)
        start_over(reader);
    while (reader->head_len < GS_FRAME_HEADER_BYTES) {
        if (used == len) {
            *ret_used = used;
            return GS_FRAME_MORE;
        }
        reader->head[reader->head_len++] = bytes[used++];
        if (reader->head_len == GS_FRAME_HEADER_BYTES) {
            enum gs_frame_result result = check_header(reader);
            if (result != GS_FRAME_MORE) {
                *ret_used = used;
                return result;
            }
        }
    }
    size_t missing = reader->need - reader->body.len;
    size_t take = len - used < missing ? len - used : missing;
    if (take > 0)
        gs_buf_append(&reader->body, bytes + used, take);
    *ret_used = used + take;
    if (gs_buf_failed(&reader->body))
        return GS_FRAME_NOMEM;
    if (take < missing)
        return GS_FRAME_MORE;
    reader->done = 1;
    return GS_FRAME_MESSAGE;
}

int gs_frame_at_boundary(const struct gs_frame_reader *reader)
{
    return reader->done || reader->head_len == 0;
}

void gs_frame_release(struct gs_frame_reader *reader)
{
    start_over(reader);
    gs_buf_release(&reader->body);
}

struct gs_grpc_message *gs_grpc_message_new(size_t len, uint8_t **ret_body)
{
    struct gs_grpc_message *message =
        len > UINT32_MAX ? NULL : calloc(1, sizeof(*message) + GS_FRAME_HEADER_BYTES + len);
    if (!message)
        return NULL;
    message->refs = 1;
    message->len = GS_FRAME_HEADER_BYTES + len;
    for (unsigned i = 1; i < GS_FRAME_HEADER_BYTES; i++)
        message->bytes[i] = (uint8_t)(len >> (8 * (GS_FRAME_HEADER_BYTES - 1 - i)));
    *ret_body = message->bytes + GS_FRAME_HEADER_BYTES;
    return message;
}

void gs_grpc_message_unref(struct gs_grpc_message *message)
{
    if (--message->refs == 0)
        free(message);
}

bool gs_grpc_message_equal(const struct gs_grpc_message *a, const struct gs_grpc_message *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

size_t gs_grpc_message_copy(const struct gs_grpc_message *message, size_t *sent, uint8_t *to,
                            size_t room)
{
    const size_t left = message->len - *sent, take = left < room ? left : room;
    memcpy(to, message->bytes + *sent, take);
    *sent += take;
    return take;
}
