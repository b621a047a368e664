/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rows.h"

#include "kube_ops_contract.h"

/* What the tests of the contract share. */

/* A cmocka state: the fixture of one test. */
int contract_open(void **state);
int contract_close(void **state);

/* Node with `units` of GPU memory on `count` GPUs, Ready. */
void make_node(struct gs_kube_fixture *f, const char *name, unsigned units, unsigned count);

/* Pod of one container; units 0: it asks for no GPU memory. node "": not bound. */
void make_pod(struct gs_kube_fixture *f, const char *ns, const char *name, unsigned units,
              const char *node);

/* The object's UID, copied into ret. */
enum { UID_BYTES = 64 };
void uid_of_pod(struct gs_kube_fixture *f, const char *ns, const char *name, char ret[UID_BYTES]);

/* The text of the object contains `words`. */
bool pod_says(struct gs_kube_fixture *f, const char *ns, const char *name, const char *words);
bool node_says(struct gs_kube_fixture *f, const char *name, const char *words);

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

/* The parts of the suite. */
extern const struct CMUnitTest contract_object_tests[];
extern const struct CMUnitTest contract_watch_tests[];
extern const size_t contract_object_test_count;
extern const size_t contract_watch_test_count;

#define CONTRACT_TEST(name)                                                                        \
    {                                                                                              \
#name, name, contract_open, contract_close, NULL                                           \
    }
