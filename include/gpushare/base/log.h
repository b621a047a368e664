/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * One line per happening on stderr, as key=value or JSON, written with a single write(2): lines of
 * different threads do not mix. Only programs and the service layer speak; libraries
 * return errors. Never log a whole pod: specs hold secrets.
 *
 *   gs_log(GS_LOG_INFO, "bound", GS_STR("pod", name), GS_STR("node", node), GS_INT("gpu", 2));
 *   → time=2026-11-21T10:00:00.123Z level=info msg=bound pod=default/p1 node=n1 gpu=2
 *
 * Arguments are not evaluated below the level. Text values are cut after 1024 bytes. Of one
 * gs_log() 5,000 lines at info come at once and then 500 a second, 200 and 20 above; the next one
 * that is written says suppressed=N.
 */
enum gs_log_level { GS_LOG_ERROR, GS_LOG_WARN, GS_LOG_INFO, GS_LOG_DEBUG };
enum gs_log_format { GS_LOG_TEXT, GS_LOG_JSON };

struct gs_log_field {
    const char *key;
    const char *str; /* NULL: the number counts */
    long long num;
};

static inline const char *gs_log_text(const char *text)
{
    return text ? text : "";
}

#define GS_STR(key, value) ((struct gs_log_field){(key), gs_log_text(value), 0})
#define GS_INT(key, value) ((struct gs_log_field){(key), NULL, (long long)(value)})

/* Process-wide, the only mutable globals; call before threads start. Default: info, text. */
void gs_log_init(enum gs_log_level level, enum gs_log_format format);

bool gs_log_enabled(enum gs_log_level level);

/* Which lines of one gs_log() were written lately. */
struct gs_log_flow {
    int64_t filled_ms, room;
    long long suppressed;
};

void gs_log_fields(struct gs_log_flow *flow, enum gs_log_level level, const char *msg,
                   const struct gs_log_field *fields, int count);

#define gs_log(level, msg, ...)                                                                    \
    do {                                                                                           \
        if (gs_log_enabled(level)) {                                                               \
            static struct gs_log_flow gs_flow_;                                                    \
            const struct gs_log_field gs_fields_[] = {__VA_ARGS__};                                \
            gs_log_fields(&gs_flow_, level, msg, gs_fields_,                                       \
                          (int)(sizeof(gs_fields_) / sizeof(gs_fields_[0])));                      \
        }                                                                                          \
    } while (0)
