/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "faults.h"
#include "sim/apiserver/api.h"

/* Where a fault plan touches replies and watch lines. *ret_cut: the connection is to break after
 * these bytes of the body. */

/* GET /faults tells the counts, PUT /faults takes a plan; false: the request is something else. */
bool gs_sim_faults_serve(struct gs_sim_faults *faults, const struct gs_sim_request *request,
                         struct gs_sim_reply *ret);

/* True when the request shall not be carried out, because *ret or *ret_cut is its fate already.
 * May sleep. */
bool gs_sim_faults_before(struct gs_sim_faults *faults, const struct gs_sim_request *request,
                          struct gs_sim_reply *ret, bool *ret_cut);

/* Spoils the answer of a request that was carried out. May sleep. */
void gs_sim_faults_after(struct gs_sim_faults *faults, const struct gs_sim_request *request,
                         struct gs_sim_reply *ret, bool *ret_cut);

/* The faults of one watch. */
struct gs_sim_line_faults {
    struct gs_sim_faults *plan;
    char agent[64];        /* of the client */
    const char *type_json; /* of its objects */
    struct gs_buf held;    /* lines that come after the next one, or soon if none comes */
};

void gs_sim_line_faults_init(struct gs_sim_line_faults *faults, struct gs_sim_faults *plan,
                             const char *agent, const char *type_json);

enum gs_sim_line_fate { GS_SIM_LINES_GO_ON, GS_SIM_LINES_END, GS_SIM_LINES_CUT };

/* Spoils whole lines in place; what it returns is to happen after they were sent. May sleep. */
enum gs_sim_line_fate gs_sim_line_faults_apply(struct gs_sim_line_faults *faults,
                                               struct gs_buf *lines);
