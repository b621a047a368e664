/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * A plan of what an embedded API server does wrong, to whom and how often; drawn from a seed, and
 * counted. spoil.h applies it where replies and watch lines leave. The plan may change while
 * requests are served.
 *
 * A plan is a comma list of NAME=NUMBER and settings:
 *
 *   agent=gpushare-extender,lost_answer=50,watch_cut=20,stall_ms=2000
 *
 * NUMBER is the chance in 1,000 requests (of the sort that the fault concerns) or watch lines.
 *
 *   delay          a request is carried out 20 to 300 ms late
 *   stall          its answer comes after stall_ms
 *   drop           the connection breaks, nothing was carried out
 *   conflict       409 to a write; nothing was carried out, as in those that follow
 *   gone           410 to a list or watch
 *   throttle       429
 *   internal       500
 *   unavailable    503
 *   lost_answer    a write is carried out, then the connection breaks
 *   late_timeout   a write is carried out and answered 504
 *   truncated      the answer breaks off in the middle
 *   oversized      the answer is followed by big_mib of spaces
 *   old_list       a list says an older resourceVersion than it has
 *   watch_delay    a line comes 20 to 300 ms late
 *   watch_stall    a line comes after stall_ms
 *   watch_cut      the connection breaks in the middle of a line
 *   watch_end      the watch ends properly, but early
 *   watch_gone     it ends with an ERROR of 410
 *   watch_error    it ends with an ERROR of 500
 *   watch_garbage  a line is no JSON
 *   watch_big      a line has big_mib of spaces in it
 *   watch_back     a bookmark takes the resourceVersion back to 1
 *   watch_twice    a line comes again, at once or after the next one
 *   watch_swap     a line comes after the next one
 *   watch_lose     a line never comes. No API server does that; the comparison of ledger and API
 *                  is there for it
 *
 * all=NUMBER sets every one of these but watch_lose. Settings: agent=PREFIX of the User-Agent that
 * is concerned [everybody], stall_ms [2000], big_mib [17].
 */
enum gs_sim_fault {
    GS_SIM_DELAY,
    GS_SIM_STALL,
    GS_SIM_DROP,
    GS_SIM_CONFLICT,
    GS_SIM_GONE,
    GS_SIM_THROTTLE,
    GS_SIM_INTERNAL,
    GS_SIM_UNAVAILABLE,
    GS_SIM_LOST_ANSWER,
    GS_SIM_LATE_TIMEOUT,
    GS_SIM_TRUNCATED,
    GS_SIM_OVERSIZED,
    GS_SIM_OLD_LIST,
    GS_SIM_WATCH_DELAY,
    GS_SIM_WATCH_STALL,
    GS_SIM_WATCH_CUT,
    GS_SIM_WATCH_END,
    GS_SIM_WATCH_GONE,
    GS_SIM_WATCH_ERROR,
    GS_SIM_WATCH_GARBAGE,
    GS_SIM_WATCH_BIG,
    GS_SIM_WATCH_BACK,
    GS_SIM_WATCH_TWICE,
    GS_SIM_WATCH_SWAP,
    GS_SIM_WATCH_LOSE,
    GS_SIM_FAULTS,
};

/* The next KEY=VALUE of a comma list; false: there is none. Without "=" the value is empty. */
bool gs_sim_next_item(struct gs_slice *text, struct gs_slice *ret_key, struct gs_slice *ret_value);

/* Any thread may call what follows. */
struct gs_sim_faults;

/* No faults yet. *caller frees*; NULL when out of memory. */
struct gs_sim_faults *gs_sim_faults_new(uint64_t seed);
void gs_sim_faults_free(struct gs_sim_faults *faults);
GS_DEFINE_CLEANUP(struct gs_sim_faults *, gs_sim_faults_free)

/* Replaces the plan; "" means no faults. The counts go on. GS_EINVAL: the old plan stays. */
int gs_sim_faults_plan(struct gs_sim_faults *faults, struct gs_slice plan, struct gs_error *err);

/* Draws: true, and counted, when the fault happens now to a client of this User-Agent (may be
 * NULL). */
bool gs_sim_faults_hit(struct gs_sim_faults *faults, enum gs_sim_fault fault, const char *agent);

/* A number below `below`, which is at least 1. */
uint32_t gs_sim_faults_random(struct gs_sim_faults *faults, uint32_t below);

int64_t gs_sim_faults_stall_ns(struct gs_sim_faults *faults);
size_t gs_sim_faults_big_bytes(struct gs_sim_faults *faults);

/* {"delay":3,…}: every fault with its count. */
void gs_sim_faults_print(struct gs_sim_faults *faults, struct gs_buf *out);
