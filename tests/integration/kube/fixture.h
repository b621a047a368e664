/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rows.h"

#include "fake_api.h"
#include "gpushare/base/clock.h"
#include "gpushare/kube/client.h"
#include "gpushare/model/names.h"
#include "watch_recorder.h"

/* A scripted API server and a client of it that loses patience quickly. */
struct fixture {
    struct gs_names names;
    struct fake_api *api;
    struct gs_kube_client *client;
    struct gs_kube kube;
    struct gs_buf body;  /* of the last answer */
    struct gs_error err; /* of the last request */
    int64_t patience_ns; /* for a connection, a request, a page; 0: 2 s, 2 s, 3 s */
    int64_t stall_ns;    /* set before the start; 0: never in a test */
    uint32_t qps, burst;
    int64_t retry_after_max_ns;   /* likewise; 0: 400 ms */
    int64_t backoff_ns;           /* each wait; 0: from 20 to 200 ms */
    const struct gs_clock *clock; /* NULL: the machine's */
};

/* A clock whose sleeps take no time, and are added up. */
extern const struct gs_clock sleepless;
extern _Atomic int64_t slept_ns;

/* The rule of a server that answers whatever is asked. */
extern const struct fake_rule anything[1];

/* Starts the server, then a client without credentials. */
void fixture_start(struct fixture *f, const struct fake_rule *rules, size_t count);

/* The same with a configuration of the test's own, whose server is filled in when it is NULL.
 * *config is released. */
void fixture_start_with(struct fixture *f, const struct fake_rule *rules, size_t count,
                        struct gs_kube_config *config);
/* Without a server. Its client is refused, for that reason. */
void fixture_refuses(struct gs_kube_config *config, enum gs_code code, const char *why);

void fixture_stop(struct fixture *f);

/* The status, or 0 and f->err. */
int fixture_send(struct fixture *f, const struct gs_kube_request *request);
int fixture_get(struct fixture *f, const char *path);
/* Binds within that time, 0: for ever. */
int fixture_bind(struct fixture *f, int64_t within_ns, bool *ret_answered);
struct gs_kube_stats fixture_stats(const struct fixture *f);

void sleep_ms(int ms);
