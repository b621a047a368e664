/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * What is always so, whatever the API says, unless this code is wrong. (Not for what comes from
 * outside: that gets an error. Not assert(), which Release builds leave out.)
 *
 *   if (!GS_INVARIANT(gpu->used_units <= gpu->total_units, "what was chosen has room"))
 *       return refuse(…);
 *
 * The words are a constant and say what should hold. Where it does not, the process ends at once,
 * with a line that says so: in every test, in fuzzing, and in builds with a sanitizer. A program
 * that serves must not end by a tenant's doing: after gs_invariants_survive() such a line is an
 * error in the log, gs_invariants_broken() counts it (metric gpushare_invariant_violations_total,
 * with an alert), and the expression is false, so that whoever is about to reserve something does
 * not. With GPUSHARE_INVARIANTS=fatal in its environment a program ends nevertheless: the scripts
 * of the tests set that. Any thread may use all of it.
 */
#define GS_INVARIANT(holds, words) gs_invariant_(holds, words, __FILE__, __LINE__)

/* Returns false, or not at all. */
__attribute__((cold)) bool gs_invariant_broken(const char *words, const char *file, int line);

static inline bool gs_invariant_(bool holds, const char *words, const char *file, int line)
{
    return __builtin_expect(holds, true) || gs_invariant_broken(words, file, line);
}

/* For programs, once, before they serve. */
void gs_invariants_survive(void);

/* How many were broken since the process began. */
uint64_t gs_invariants_broken(void);
