/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Checked numbers from outside. Where a length is given the text need not be terminated. All accept
 * the whole text or nothing, and leave *ret untouched when they return false. No white space, no
 * plus sign, no leading "0x".
 */
bool gs_parse_u64(const char *text, size_t len, uint64_t *ret);
bool gs_parse_u32(const char *text, size_t len, uint32_t *ret);
bool gs_parse_i64(const char *text, size_t len, int64_t *ret);

static inline bool gs_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A hexadecimal digit's value; -1: it is none. */
static inline int gs_hex_value(char c)
{
    if (gs_is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The nearest number that fits. */
uint32_t gs_clamp_u32(int64_t value);

/* Their sum, or INT64_MAX; neither is negative. */
static inline int64_t gs_sat_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Their sum, or their product, or UINT64_MAX: what others say may be any number. */
static inline uint64_t gs_sat_add_u64(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t gs_sat_mul_u64(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* true|false|yes|no|on|off|1|0, any case: what YAML and the environment offer. */
bool gs_parse_bool(const char *text, bool *ret);

/* "150ms", "1.5s", "1m", "2h", or a sum such as "1m30s" (as Go's time.ParseDuration, without a
 * sign); a bare "0" is allowed. */
bool gs_parse_duration_ns(const char *text, int64_t *ret_ns);
