/* SPDX-License-Identifier: Apache-2.0 */
#include "spoil.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/status.h"

enum { DELAY_MIN_MS = 20, DELAY_SPAN_MS = 280, HELD_BYTES_MAX = 8 << 20 };

/* In real time, whatever the cluster's clock says, because a client waits. */
static void sleep_ns(int64_t ns)
{
    struct timespec left = {.tv_sec = ns / GS_NS_PER_S, .tv_nsec = ns % GS_NS_PER_S};
    nanosleep(&left, NULL);
}

static void sleep_a_little(struct gs_sim_faults *faults)
{
    sleep_ns((DELAY_MIN_MS + (int64_t)gs_sim_faults_random(faults, DELAY_SPAN_MS)) * GS_NS_PER_MS);
}

/* ---- requests ---- */

static void refuse(struct gs_sim_reply *ret, int http, const char *reason, const char *message)
{
    struct gs_api_status status = {.code = http};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    snprintf(status.message, sizeof(status.message), "%s", message);
    gs_buf_reset(&ret->body);
    gs_codec_status_encode(&ret->body, &status);
    ret->status = http;
}

bool gs_sim_faults_serve(struct gs_sim_faults *faults, const struct gs_sim_request *request,
                         struct gs_sim_reply *ret)
{
    struct gs_error err = {0};
    if (strcmp(request->path, "/faults") != 0)
        return false;
    if (strcmp(request->method, "PUT") == 0 && gs_sim_faults_plan(faults, request->body, &err) < 0)
        refuse(ret, 422, "Invalid", err.msg);
    else
        gs_sim_faults_print(faults, &ret->body);
    return true;
}

static bool is_read(const struct gs_sim_request *request)
{
    return strcmp(request->method, "GET") == 0;
}

/* A list or watch: of the kinds served here, only their paths end like this. */
static bool is_list(const struct gs_sim_request *request)
{
    static const char *const ends[] = {"/pods", "/nodes", "/events", "/leases", "/namespaces"};
    size_t len = strlen(request->path);
    for (size_t i = 0; is_read(request) && i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t end = strlen(ends[i]);
        if (len >= end && strcmp(request->path + len - end, ends[i]) == 0)
            return true;
    }
    return false;
}

bool gs_sim_faults_before(struct gs_sim_faults *faults, const struct gs_sim_request *request,
                          struct gs_sim_reply *ret, bool *ret_cut)
{
    static const struct {
        enum gs_sim_fault fault;
        int http;
        const char *reason;
    } refusals[] = {
        {GS_SIM_CONFLICT, 409, "Conflict"},
        {GS_SIM_GONE, 410, "Expired"},
        {GS_SIM_THROTTLE, 429, "TooManyRequests"},
        {GS_SIM_INTERNAL, 500, "InternalError"},
        {GS_SIM_UNAVAILABLE, 503, "ServiceUnavailable"},
    };
    if (gs_sim_faults_hit(faults, GS_SIM_DELAY, request->agent))
        sleep_a_little(faults);
    if (gs_sim_faults_hit(faults, GS_SIM_DROP, request->agent)) {
        *ret_cut = true;
        return true;
    }
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        enum gs_sim_fault fault = refusals[i].fault;
        if ((fault == GS_SIM_CONFLICT && is_read(request)) ||
            (fault == GS_SIM_GONE && !is_list(request)) ||
            !gs_sim_faults_hit(faults, fault, request->agent))
            continue;
        refuse(ret, refusals[i].http, refusals[i].reason, "injected fault");
        return true;
    }
    return false;
}

/* The list as a server would give it that lags behind: its own version is the one of a while ago,
 * and a watch from there repeats what the list has already. */
static void age_list(struct gs_sim_faults *faults, struct gs_buf *body)
{
    static const char key[] = "\"metadata\":{\"resourceVersion\":\"";
    char *at = body->data ? strstr(body->data, key) : NULL;
    uint64_t version;
    if (!at)
        return;
    at += sizeof(key) - 1;
    size_t len = strspn(at, "0123456789");
    if (!gs_parse_u64(at, len, &version) || version < 2)
        return;
    uint32_t back = gs_sim_faults_random(faults, version < 50 ? (uint32_t)version : 50);
    char older[24];
    snprintf(older, sizeof(older), "%0*llu", (int)len, (unsigned long long)(version - back));
    memcpy(at, older, len);
}

static void pad(struct gs_buf *out, size_t bytes)
{
    char *at = gs_buf_reserve(out, bytes);
    if (!at)
        return;
    memset(at, ' ', bytes);
    gs_buf_advance(out, bytes);
}

void gs_sim_faults_after(struct gs_sim_faults *faults, const struct gs_sim_request *request,
                         struct gs_sim_reply *ret, bool *ret_cut)
{
    const char *agent = request->agent;
    if (ret->status >= 300)
        return;
    if (gs_sim_faults_hit(faults, GS_SIM_STALL, agent))
        sleep_ns(gs_sim_faults_stall_ns(faults));
    if (ret->stream)
        return;
    if (!is_read(request)) {
        if (gs_sim_faults_hit(faults, GS_SIM_LOST_ANSWER, agent)) {
            gs_buf_reset(&ret->body);
            *ret_cut = true;
            return;
        }
        if (gs_sim_faults_hit(faults, GS_SIM_LATE_TIMEOUT, agent))
            refuse(ret, 504, "Timeout", "injected fault, after it was done");
    }
    if (is_list(request) && gs_sim_faults_hit(faults, GS_SIM_OLD_LIST, agent))
        age_list(faults, &ret->body);
    if (gs_sim_faults_hit(faults, GS_SIM_OVERSIZED, agent))
        pad(&ret->body, gs_sim_faults_big_bytes(faults));
    if (ret->body.len > 0 && gs_sim_faults_hit(faults, GS_SIM_TRUNCATED, agent)) {
        ret->body.len = gs_sim_faults_random(faults, (uint32_t)ret->body.len);
        *ret_cut = true;
    }
}

/* ---- watch lines ---- */

void gs_sim_line_faults_init(struct gs_sim_line_faults *faults, struct gs_sim_faults *plan,
                             const char *agent, const char *type_json)
{
    *faults = (struct gs_sim_line_faults){
        .plan = plan, .type_json = type_json, .held = GS_BUF(HELD_BYTES_MAX)};
    snprintf(faults->agent, sizeof(faults->agent), "%s", agent ? agent : "");
}

static bool hit(const struct gs_sim_line_faults *faults, enum gs_sim_fault fault)
{
    return gs_sim_faults_hit(faults->plan, fault, faults->agent);
}

static void put_error(int http, const char *reason, struct gs_buf *out)
{
    gs_buf_printf(out,
                  "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                  "\"metadata\":{},\"status\":\"Failure\",\"message\":\"injected fault\","
                  "\"reason\":\"%s\",\"code\":%d}}\n",
                  reason, http);
}

/* Ends the watch instead of, or after, this line; GO_ON: it does not end. */
static enum gs_sim_line_fate end_at(const struct gs_sim_line_faults *faults, struct gs_slice line,
                                    struct gs_buf *out)
{
    if (hit(faults, GS_SIM_WATCH_CUT)) {
        gs_buf_append(out, line.at, gs_sim_faults_random(faults->plan, (uint32_t)line.len));
        return GS_SIM_LINES_CUT;
    }
    if (hit(faults, GS_SIM_WATCH_GONE)) {
        put_error(410, "Expired", out);
        return GS_SIM_LINES_END;
    }
    if (hit(faults, GS_SIM_WATCH_ERROR)) {
        put_error(500, "InternalError", out);
        return GS_SIM_LINES_END;
    }
    return hit(faults, GS_SIM_WATCH_END) ? GS_SIM_LINES_END : GS_SIM_LINES_GO_ON;
}

/* Lines that were held back come after the line that was put before this call. */
static void release_held(struct gs_sim_line_faults *faults, struct gs_buf *out)
{
    gs_buf_append(out, faults->held.data ? faults->held.data : "", faults->held.len);
    gs_buf_reset(&faults->held);
}

static void put_line(struct gs_sim_line_faults *faults, struct gs_slice line, struct gs_buf *out)
{
    bool holds = faults->held.len > 0;
    if (hit(faults, GS_SIM_WATCH_LOSE))
        return;
    if (hit(faults, GS_SIM_WATCH_GARBAGE)) {
        gs_buf_puts(out, "{\"type\":\"MODIFIED\",\"object\":}\n");
        return;
    }
    if (hit(faults, GS_SIM_WATCH_BACK))
        gs_buf_printf(out,
                      "{\"type\":\"BOOKMARK\",\"object\":{%s,\"metadata\":{\"resourceVersion\":"
                      "\"1\"}}}\n",
                      faults->type_json);
    if (!holds && hit(faults, GS_SIM_WATCH_SWAP)) {
        gs_buf_append(&faults->held, line.at, line.len);
        return;
    }
    if (hit(faults, GS_SIM_WATCH_BIG)) {
        gs_buf_append(out, line.at, line.len - 2); /* "}\n" */
        pad(out, gs_sim_faults_big_bytes(faults->plan));
        gs_buf_puts(out, "}\n");
    } else {
        gs_buf_append(out, line.at, line.len);
    }
    release_held(faults, out);
    if (hit(faults, GS_SIM_WATCH_TWICE)) {
        bool later = gs_sim_faults_random(faults->plan, 2);
        gs_buf_append(later ? &faults->held : out, line.at, line.len);
    }
}

enum gs_sim_line_fate gs_sim_line_faults_apply(struct gs_sim_line_faults *faults,
                                               struct gs_buf *lines)
{
    enum gs_sim_line_fate fate = GS_SIM_LINES_GO_ON;
    struct gs_buf out = GS_BUF(lines->max);
    struct gs_slice rest = {lines->data, lines->len};
    if (rest.len == 0)
        release_held(faults, &out);
    while (rest.len > 0 && fate == GS_SIM_LINES_GO_ON) {
        const char *end = memchr(rest.at, '\n', rest.len);
        struct gs_slice line = {rest.at, end ? (size_t)(end - rest.at) + 1 : rest.len};
        if (hit(faults, GS_SIM_WATCH_DELAY))
            sleep_a_little(faults->plan);
        if (hit(faults, GS_SIM_WATCH_STALL))
            sleep_ns(gs_sim_faults_stall_ns(faults->plan));
        fate = end_at(faults, line, &out);
        if (fate == GS_SIM_LINES_GO_ON)
            put_line(faults, line, &out);
        rest = (struct gs_slice){rest.at + line.len, rest.len - line.len};
    }
    gs_buf_release(lines);
    *lines = out;
    return fate;
}
