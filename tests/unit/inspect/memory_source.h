/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "inspect/app.h"
#include "sim/apiserver/api.h"

/*
 * app.connect for tests: the REST API of a cluster in memory, without a socket. What it does not
 * serve can be given as canned answers: {"GET /path": {"status": 200, "body": …}}.
 * "POST /path WORDS" is for requests whose body holds these words; it stands before "POST /path".
 */
struct memory_source {
    const char *cluster_file; /* Kubernetes objects */
    const struct gs_clock *clock;
    json_t *answers;   /* NULL: none */
    const char *token; /* what the server wants; NULL: nothing. The client has none */
    struct gs_names names;
    struct gs_sim_cluster *cluster;
    struct gs_sim_api api;
};

/* The one that memory_connect() opens; a test process has one. */
extern struct memory_source memory_source;

int memory_connect(const struct connection *connection, struct source *ret, struct gs_error *err);
