/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <pthread.h>

#define TARGET(node) "\"target\":{\"kind\":\"Node\",\"name\":\"" node "\"}"

static void a_binding_sets_node_annotations_and_condition_in_one_write(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    uint64_t version = add_pod(cluster, "p", ",\"annotations\":{\"old\":\"1\",\"both\":\"1\"}");
    assert_int_equal(bind_pod(cluster, "p",
                              "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"both\":\"2\","
                              "\"new\":\"3\"}}," TARGET("nowhere") "}",
                              NULL),
                     0);
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    assert_string_equal(text_at(tree, "spec", NULL, "nodeName"), "nowhere");
    assert_string_equal(text_at(tree, "metadata", "annotations", "old"), "1");
    assert_string_equal(text_at(tree, "metadata", "annotations", "both"), "2");
    assert_string_equal(text_at(tree, "metadata", "annotations", "new"), "3");
    json_t *condition =
        json_array_get(json_object_get(json_object_get(tree, "status"), "conditions"), 0);
    assert_string_equal(json_string_value(json_object_get(condition, "type")), "PodScheduled");
    assert_string_equal(json_string_value(json_object_get(condition, "status")), "True");
    assert_int_equal(gs_sim_cluster_version(cluster), version + 1);
}

static void a_binding_that_breaks_a_rule_changes_nothing(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "free", "");
    add_pod(cluster, "bound", "");
    assert_int_equal(bind_pod(cluster, "bound", "{" TARGET("n1") "}", NULL), 0);
    assert_int_equal(
        gs_sim_load(cluster, GS_SIM_PODS,
                    pod_text("dying", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""), NULL,
                    NULL),
        0);
    uint64_t version = gs_sim_cluster_version(cluster);
    static const struct {
        const char *row;
        const char *pod;
        const char *body;
        enum gs_code code;
        const char *words;
    } rows[] = {
        {"bound already", "bound", "{" TARGET("n2") "}", GS_ECONFLICT,
         "pod bound is already assigned to node \"n1\""},
        {"bound already, to the same node", "bound", "{" TARGET("n1") "}", GS_ECONFLICT,
         "already assigned to node \"n1\""},
        {"being deleted", "dying", "{" TARGET("n1") "}", GS_ECONFLICT, "being deleted"},
        {"unknown pod", "none", "{" TARGET("n1") "}", GS_ENOENT, "not found"},
        {"another uid", "free", "{\"metadata\":{\"uid\":\"u\"}," TARGET("n1") "}", GS_ECONFLICT,
         "UID in precondition: u"},
        {"another name", "free", "{\"metadata\":{\"name\":\"q\"}," TARGET("n1") "}", GS_EPROTO,
         "name in URL"},
        {"no target", "free", "{}", GS_EINVAL, "target.name"},
        {"no node", "free", "{\"target\":{\"kind\":\"Pod\",\"name\":\"n\"}}", GS_EINVAL,
         "target.kind"},
        {"an annotation that is a number", "free",
         "{\"metadata\":{\"annotations\":{\"a\":1}}," TARGET("n1") "}", GS_EPROTO, "not a string"},
        {"nothing", "free", "", GS_EPROTO, ""},
        {"cut short", "free", "{\"target\":{", GS_EPROTO, ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        row_equal(r->row, bind_pod(cluster, r->pod, r->body, &err), -1);
        row_equal(r->row, err.code, r->code);
        row_equal(r->row, strstr(err.msg, r->words) != NULL, 1);
    }
    assert_int_equal(gs_sim_cluster_version(cluster), version);
}

static void the_right_uid_binds(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "p", "");
    json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", "p");
    char body[160];
    snprintf(body, sizeof(body), "{\"metadata\":{\"uid\":\"%s\"}," TARGET("n") "}",
             text_at(tree, "metadata", NULL, "uid"));
    assert_int_equal(bind_pod(cluster, "p", body, NULL), 0);
}

/* ---- many at once ---- */

enum { THREADS = 4, PODS = 50 };

struct racer {
    struct gs_sim_cluster *cluster;
    unsigned number;
    unsigned won;
};

static void *race_for_all(void *arg)
{
    struct racer *racer = arg;
    for (unsigned i = 0; i < PODS; i++) {
        char name[16], body[96], patch[64];
        snprintf(name, sizeof(name), "p%u", i);
        snprintf(body, sizeof(body), "{\"target\":{\"name\":\"n%u\"}}", racer->number);
        snprintf(patch, sizeof(patch), "{\"metadata\":{\"labels\":{\"l%u\":\"x\"}}}",
                 racer->number);
        struct gs_error err = {0};
        if (bind_pod(racer->cluster, name, body, &err) == 0)
            racer->won++;
        else if (err.code != GS_ECONFLICT)
            racer->won += PODS * THREADS; /* seen below */
        if (gs_sim_patch(racer->cluster, GS_SIM_PODS, GS_SIM_MAIN, GS_SIM_PATCH_MERGE, "default",
                         name, gs_slice_of(patch), NULL, NULL) < 0)
            racer->won += PODS * THREADS;
    }
    return NULL;
}

static void one_of_several_binders_wins_and_no_patch_is_lost(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    struct racer racers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < PODS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        add_pod(cluster, name, "");
    }
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.cluster = cluster, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, race_for_all, &racers[i]), 0);
    }
    unsigned won = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        won += racers[i].won;
    }
    assert_int_equal(won, PODS);
    for (unsigned i = 0; i < PODS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        json_auto_t *tree = tree_of(cluster, GS_SIM_PODS, "default", name);
        assert_int_equal(
            json_object_size(json_object_get(json_object_get(tree, "metadata"), "labels")),
            THREADS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_cluster(a_binding_sets_node_annotations_and_condition_in_one_write),
        test_with_cluster(a_binding_that_breaks_a_rule_changes_nothing),
        test_with_cluster(the_right_uid_binds),
        test_with_cluster(one_of_several_binders_wins_and_no_patch_is_lost),
    };
    return GS_RUN(tests);
}
