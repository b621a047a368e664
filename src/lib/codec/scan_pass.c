/* SPDX-License-Identifier: Apache-2.0 */
#include "scan_pass.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "gpushare/base/num.h"

enum { BLOCK_BYTES = 64 };

/* Positions of the relevant bytes in a block: a bit for each byte, the first byte lowest. */
struct marks {
    uint64_t quote, backslash;
    uint64_t open, close; /* brackets and braces alike */
};

/* '[' and '{', ']' and '}' differ in this bit only, and no other byte becomes one by it. */
enum { BRACE_BIT = 0x20 };

#ifdef __SSE2__

static inline uint64_t equal(const __m128i part[4], char c)
{
    const __m128i wanted = _mm_set1_epi8(c);
    uint64_t bits = 0;
    for (int i = 3; i >= 0; i--)
        bits = bits << 16 | (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(part[i], wanted));
    return bits;
}

static inline struct marks mark(const char *block)
{
    const __m128i brace = _mm_set1_epi8(BRACE_BIT);
    __m128i part[4], braced[4];
    for (int i = 0; i < 4; i++) {
        part[i] = _mm_loadu_si128((const __m128i *)(const void *)(block + (size_t)i * 16));
        braced[i] = _mm_or_si128(part[i], brace);
    }
    return (struct marks){equal(part, '"'), equal(part, '\\'), equal(braced, '{'),
                          equal(braced, '}')};
}

#else

static inline struct marks mark(const char *block)
{
    struct marks marks = {0};
    for (int i = 0; i < BLOCK_BYTES; i++) {
        const uint64_t bit = (uint64_t)1 << i;
        const char c = block[i], braced = (char)(c | BRACE_BIT);
        marks.quote |= c == '"' ? bit : 0;
        marks.backslash |= c == '\\' ? bit : 0;
        marks.open |= braced == '{' ? bit : 0;
        marks.close |= braced == '}' ? bit : 0;
    }
    return marks;
}

#endif

/* The bytes that are escaped by a backslash. *carried: the previous block's last byte escapes this
 * block's first; on return, the same for the next block. */
static inline uint64_t escaped_by(uint64_t backslash, bool *carried)
{
    uint64_t escaped = *carried;
    backslash &= ~escaped;
    *carried = false;
    while (backslash) {
        const uint64_t bit = backslash & -backslash;
        escaped |= bit << 1;
        *carried = bit >> (BLOCK_BYTES - 1);
        backslash &= ~(bit | bit << 1);
    }
    return escaped;
}

/* Bit n is set if an odd number of quotes is at or before byte n, that is, if it is in a string. */
static inline uint64_t spread(uint64_t quotes)
{
    for (int width = 1; width < BLOCK_BYTES; width *= 2)
        quotes ^= quotes << width;
    return quotes;
}

struct passing {
    uint64_t in_string; /* all ones or none: at the end of the last block */
    bool escaped;       /* the next byte is */
    size_t depth;
};

/* The number of the value's bytes in this block if it ends there, else 0. */
static inline size_t pass_block(struct passing *passing, const char *block)
{
    struct marks marks = mark(block);
    if (__builtin_expect(marks.backslash || passing->escaped, 0))
        marks.quote &= ~escaped_by(marks.backslash, &passing->escaped);
    const uint64_t in_string = spread(marks.quote) ^ passing->in_string;
    passing->in_string = -(in_string >> (BLOCK_BYTES - 1));
    uint64_t brackets = (marks.open | marks.close) & ~in_string;
    for (; brackets; brackets &= brackets - 1) {
        passing->depth += marks.open & brackets & -brackets ? 1 : (size_t)-1;
        if (passing->depth == 0)
            return (size_t)__builtin_ctzll(brackets) + 1;
    }
    return 0;
}

/* The rest of the text, shorter than a block. */
__attribute__((noinline)) static const char *pass_rest(struct passing passing, const char *at,
                                                       const char *end)
{
    char last[BLOCK_BYTES];
    const size_t left = (size_t)(end - at);
    memset(last, ' ', sizeof(last));
    memcpy(last, at, left);
    const size_t taken = pass_block(&passing, last);
    return taken ? at + taken : NULL;
}

const char *gs_scan_pass(const char *at, const char *end)
{
    struct passing passing = {0};
    for (; end - at >= BLOCK_BYTES; at += BLOCK_BYTES) {
        const size_t taken = pass_block(&passing, at);
        if (taken)
            return at + taken;
    }
    return pass_rest(passing, at, end);
}
