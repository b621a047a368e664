/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Numbers drawn from a seed (splitmix64: Steele, Lea and Flood, 2014): the same on every machine,
 * for ever, whatever the seed. For dice and for spreading load, never for secrets. The state is
 * the caller's, 8 bytes that begin as the seed; not thread-safe.
 */
static inline uint64_t gs_splitmix_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* 0..bound-1; 0 for bound 0. */
static inline uint64_t gs_splitmix_below(uint64_t *state, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)gs_splitmix_next(state) * bound >> 64);
}
