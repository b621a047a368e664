/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An empty embedded cluster behind its REST API, and the curl client on a socket to it. */
#include "gpushare/kube/client.h"
#include "rows.h"
#include "sim/api_server.h"
#include "sim/apiserver/cluster.h"

struct scene {
    struct gs_names names;
    struct gs_sim_cluster *cluster;
    struct api_server *server;
    struct gs_kube_client *client;
    struct gs_kube kube; /* the port under test */
};

/* A cmocka state: the scene of one test. */
int scene_open(void **state);
int scene_close(void **state);

/* --- what happens behind the port's back, also while a watch runs in another thread --- */

/* Node with `units` of GPU memory on `count` GPUs, Ready. */
void make_node(struct scene *f, const char *name, unsigned units, unsigned count);

/* Pod of one container; units 0: it asks for no GPU memory. node "": not bound. */
void make_pod(struct scene *f, const char *ns, const char *name, unsigned units, const char *node);

/* At once, no grace period. */
void delete_object(struct scene *f, enum gs_sim_kind kind, const char *ns, const char *name);

/* The object's UID, copied into ret. */
enum { UID_BYTES = 64 };
void uid_of_pod(struct scene *f, const char *ns, const char *name, char ret[UID_BYTES]);

/* The text of the pod contains `words`. */
bool pod_says(struct scene *f, const char *ns, const char *name, const char *words);

#define expect_ok(call, err)                                                                       \
    do {                                                                                           \
        gs_error_clear(err);                                                                       \
        if ((call) != 0) {                                                                         \
            print_error("%s: %s %s\n", #call, gs_code_name((err)->code), (err)->msg);              \
            _fail(__FILE__, __LINE__);                                                             \
        }                                                                                          \
    } while (0)

#define expect_code(call, err, wanted)                                                             \
    do {                                                                                           \
        gs_error_clear(err);                                                                       \
        assert_int_equal((call), -1);                                                              \
        assert_string_equal(gs_code_name((err)->code), gs_code_name(wanted));                      \
        assert_true((err)->msg[0] != '\0');                                                        \
    } while (0)

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, scene_open, scene_close)
