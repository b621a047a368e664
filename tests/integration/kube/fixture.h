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
    int64_t patience_ns; /* for a connection, a request, a page; 0: 2 s, 2 s, 3 s */
    int64_t stall_ns;    /* set before the start; 0: never in a test */
    uint32_t qps, burst;
    int64_t retry_after_max_ns;   /* likewise; 0: 400 ms */
    int64_t backoff_ns;           /* each wait; 0: from 20 to 200 ms */
    const struct gs_clock *clock; /* NULL: the machine's */
};

/* Starts the server, then a client without credentials. */
void fixture_start(struct fixture *f, const struct fake_rule *rules, size_t count);

/* The same with a configuration of the test's own, whose server is filled in when it is NULL.
 * *config is released. */
void fixture_start_with(struct fixture *f, const struct fake_rule *rules, size_t count,
                        struct gs_kube_config *config);

/* Quick options; names set. */
struct gs_kube_options fixture_options(const struct fixture *f);

void fixture_stop(struct fixture *f);

/* A bind whose deadline is 0.2 s away is refused as GS_EBUSY. */
void fixture_bind_runs_out(struct fixture *f);

/* GET path; returns the status, or 0 and *err. body may be NULL. */
int fixture_get(struct fixture *f, const char *path, struct gs_buf *body, struct gs_error *err);

/* A folder for one test's files, removed by folder_remove(). */
struct folder {
    char path[64];
};
void folder_make(struct folder *folder);
void folder_remove(struct folder *folder);

/* Writes FOLDER/name and returns its path (caller frees). mode as for chmod. A file that exists is
 * replaced by another inode. */
char *folder_write(const struct folder *folder, const char *name, const char *text, int mode);
