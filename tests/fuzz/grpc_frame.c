/* SPDX-License-Identifier: Apache-2.0 */
/* Cut into pieces of any size, the same bytes give the same messages. The first byte is the size.
 */
#include "fuzz.h"
#include "grpc/frame.h"

#define CEILING 300

struct outcome {
    enum gs_frame_result last;
    size_t messages, bytes, used;
    int boundary;
};

static struct outcome read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct gs_frame_reader reader = GS_FRAME_READER(CEILING);
    struct outcome out = {.last = GS_FRAME_MORE};
    while (out.used < size && (out.last == GS_FRAME_MORE || out.last == GS_FRAME_MESSAGE)) {
        size_t left = size - out.used;
        size_t used = 0;
        out.last = gs_frame_feed(&reader, data + out.used, left < piece ? left : piece, &used);
        FUZZ_CHECK(used > 0 && used <= left);
        out.used += used;
        if (out.last == GS_FRAME_MESSAGE) {
            FUZZ_CHECK(reader.body.len == reader.need && reader.need <= CEILING);
            out.messages++;
            out.bytes += reader.body.len;
        }
    }
    out.boundary = gs_frame_at_boundary(&reader);
    gs_frame_release(&reader);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t piece = data[0] > 0 ? data[0] : 1;
    struct outcome whole = read_all(data + 1, size - 1, size);
    struct outcome cut = read_all(data + 1, size - 1, piece);
    FUZZ_CHECK(whole.last == cut.last && whole.messages == cut.messages);
    FUZZ_CHECK(whole.bytes == cut.bytes && whole.used == cut.used);
    FUZZ_CHECK(whole.boundary == cut.boundary);
    return 0;
}
