/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "trace.h"

enum { ARRIVALS_MAX = 16000000 };

struct words {
    struct gs_slice rest; /* of one line */
    unsigned line;
};

/* The next number of a line; false when there is none. A line's end is no blank. */
static bool next_number(struct words *words, uint32_t *ret)
{
    if (!words->rest.len)
        return false;
    const char *blank = memchr(words->rest.at, ' ', words->rest.len);
    size_t len = blank ? (size_t)(blank - words->rest.at) : words->rest.len;
    if (!gs_parse_u32(words->rest.at, len, ret))
        return false;
    size_t step = blank ? len + 1 : len;
    words->rest = (struct gs_slice){words->rest.at + step, words->rest.len - step};
    return true;
}

static struct gs_slice take_line(struct gs_slice *rest)
{
    const char *end = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->at) : rest->len;
    struct gs_slice line = {rest->at, len};
    size_t step = end ? len + 1 : len;
    *rest = (struct gs_slice){rest->at + step, rest->len - step};
    while (line.len && (line.at[line.len - 1] == '\r' || line.at[line.len - 1] == ' '))
        line.len--;
    return line;
}

/* Exactly `count` numbers below `bound`. */
static int read_numbers(struct words words, uint32_t count, uint32_t bound, uint32_t *ret,
                        struct gs_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!next_number(&words, &ret[i]) || ret[i] >= bound)
            return gs_fail(err, GS_EPROTO, "line %u: entry %u is no number below %u", words.line,
                           i + 1, bound);
    }
    if (words.rest.len)
        return gs_fail(err, GS_EPROTO, "line %u has more than %u entries", words.line, count);
    return 0;
}

static int check_permutation(const uint32_t *rank, uint32_t count, struct gs_error *err)
{
    _cleanup_free_ char *seen = calloc(count + 1u, 1);
    if (!seen)
        return gs_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        if (seen[rank[i]]++)
            return gs_fail(err, GS_EPROTO, "line 2: rank %u is there twice", rank[i]);
    }
    return 0;
}

int gs_trace_read_sequence(struct gs_trace_sequence *ret, const struct gs_trace *trace,
                           struct gs_slice text, struct gs_error *err)
{
    struct words counts = {take_line(&text), 1};
    struct words ranks = {take_line(&text), 2};
    struct words pods = {take_line(&text), 3};
    uint32_t sizes[2];
    if (read_numbers(counts, 2, ARRIVALS_MAX, sizes, err) < 0)
        return -1;
    if (sizes[0] != trace->node_count)
        return gs_fail(err, GS_EINVAL, "the sequence is for %u nodes, the trace has %u", sizes[0],
                       trace->node_count);
    _cleanup_free_ uint32_t *rank = calloc(sizes[0] + 1u, sizeof(*rank));
    _cleanup_free_ uint32_t *order = calloc(sizes[1] + 1u, sizeof(*order));
    if (!rank || !order)
        return gs_fail_nomem(err);
    if (read_numbers(ranks, sizes[0], sizes[0], rank, err) < 0 ||
        check_permutation(rank, sizes[0], err) < 0 ||
        read_numbers(pods, sizes[1], trace->pod_count, order, err) < 0)
        return -1;
    *ret = (struct gs_trace_sequence){gs_steal(&rank), gs_steal(&order), sizes[0], sizes[1]};
    return 0;
}

void gs_trace_sequence_release(struct gs_trace_sequence *sequence)
{
    free(sequence->rank);
    free(sequence->pods);
    *sequence = (struct gs_trace_sequence){0};
}
