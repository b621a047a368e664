/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/log.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/clock.h"

/* A longer value is cut, so that a line always fits and is never lost. */
enum { LINE_MAX_BYTES = 65536, VALUE_MAX_BYTES = 1024 };

static enum gs_log_level log_level = GS_LOG_INFO;
static enum gs_log_format log_format = GS_LOG_TEXT;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void gs_log_init(enum gs_log_level level, enum gs_log_format format)
{
    log_level = level;
    log_format = format;
}

bool gs_log_enabled(enum gs_log_level level)
{
    return level <= log_level;
}

static void put_time(struct gs_buf *line)
{
    struct timespec now;
    struct tm utc;
    char text[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    gs_buf_printf(line, "%s.%03ldZ", text, now.tv_nsec / 1000000);
}

/* A bare word stays bare; everything else is quoted as JSON would. */
static void put_text_value(struct gs_buf *line, const char *value)
{
    size_t plain = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "-_./:@,+*()[]#%");
    if (*value && !value[plain] && plain <= VALUE_MAX_BYTES)
        gs_buf_puts(line, value);
    else
        gs_buf_json_string(line, value, strnlen(value, VALUE_MAX_BYTES));
}

static void put_field(struct gs_buf *line, const struct gs_log_field *field)
{
    bool json = log_format == GS_LOG_JSON;
    gs_buf_printf(line, json ? ",\"%s\":" : " %s=", field->key);
    if (!field->str)
        gs_buf_printf(line, "%lld", field->num);
    else if (json)
        gs_buf_json_string(line, field->str, strnlen(field->str, VALUE_MAX_BYTES));
    else
        put_text_value(line, field->str);
}

/*
 * Whoever may ask can have a line written for each request: of one gs_log() at most so many come at
 * once and a second, more of what went well, which is scarce by itself. The next line that is
 * written says how many were not.
 */
static const struct {
    int64_t at_once, a_second;
} most[] = {[GS_LOG_ERROR] = {200, 20}, [GS_LOG_WARN] = {200, 20}, [GS_LOG_INFO] = {5000, 500}};

enum { LINE = 1000 }; /* of a flow's room, to which a millisecond adds what a_second says */

static pthread_mutex_t flow_lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether the line is written; *ret_suppressed: how many were not since the last. What was asked
 * for by --log-level=debug comes whole. */
static bool flows_on(struct gs_log_flow *flow, enum gs_log_level level, long long *ret_suppressed)
{
    *ret_suppressed = 0;
    if (level == GS_LOG_DEBUG)
        return true;
    int64_t now_ms = gs_clock_now_ns(gs_clock_system()) / GS_NS_PER_MS;
    pthread_mutex_lock(&flow_lock);
    flow->room += (now_ms - flow->filled_ms) * most[level].a_second;
    if (flow->room > most[level].at_once * LINE)
        flow->room = most[level].at_once * LINE;
    flow->filled_ms = now_ms;
    bool on = flow->room >= LINE;
    if (on) {
        flow->room -= LINE;
        *ret_suppressed = flow->suppressed;
        flow->suppressed = 0;
    } else {
        flow->suppressed++;
    }
    pthread_mutex_unlock(&flow_lock);
    return on;
}

void gs_log_fields(struct gs_log_flow *flow, enum gs_log_level level, const char *msg,
                   const struct gs_log_field *fields, int count)
{
    long long suppressed;
    if (!flows_on(flow, level, &suppressed))
        return;
    struct gs_buf line = GS_BUF(LINE_MAX_BYTES);
    bool json = log_format == GS_LOG_JSON;
    gs_buf_puts(&line, json ? "{\"time\":\"" : "time=");
    put_time(&line);
    gs_buf_printf(&line, json ? "\",\"level\":\"%s\"" : " level=%s", level_names[level]);
    const struct gs_log_field head = GS_STR("msg", msg);
    put_field(&line, &head);
    for (int i = 0; i < count; i++)
        put_field(&line, &fields[i]);
    const struct gs_log_field more = GS_INT("suppressed", suppressed);
    if (suppressed)
        put_field(&line, &more);
    gs_buf_puts(&line, json ? "}\n" : "\n");
    if (line.data && !gs_buf_failed(&line)) {
        ssize_t written = write(STDERR_FILENO, line.data, line.len);
        (void)written; /* there is nobody left to tell */
    }
    gs_buf_release(&line);
}
