/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "gpushare/base/clock.h"

#define SHORT_NS (20 * GS_NS_PER_MS)
#define LONG_NS  (600 * GS_NS_PER_S) /* beyond the test's own limit */

static struct gs_sim_watch *watch_from(struct gs_sim_cluster *cluster, uint64_t from,
                                       const char *fields)
{
    struct gs_sim_query query = {.kind = GS_SIM_PODS, .field_selector = fields};
    struct gs_sim_watch *watch;
    struct gs_error err = {0};
    if (gs_sim_watch_open(cluster, &query, from, &watch, &err) < 0)
        fail_msg("%s", err.msg);
    return watch;
}

/* "A:name", "M:name", "D:name", "-" for nothing, "!" and the code for the end. */
static const char *next_of(struct gs_sim_watch *watch)
{
    static char text[64];
    struct gs_sim_event event;
    struct gs_error err = {0};
    int rc = gs_sim_watch_next(watch, SHORT_NS, &event, &err);
    if (rc == 0)
        return "-";
    if (rc < 0) {
        snprintf(text, sizeof(text), "!%s", gs_code_name(err.code));
        return text;
    }
    snprintf(text, sizeof(text), "%c:%s", "AMD"[event.change], event.object->name);
    gs_sim_object_unref(event.object);
    return text;
}

static int label(struct gs_sim_cluster *cluster, const char *name, const char *value)
{
    char body[96];
    snprintf(body, sizeof(body), "{\"metadata\":{\"labels\":{\"l\":\"%s\"}}}", value);
    return gs_sim_patch(cluster, GS_SIM_PODS, GS_SIM_MAIN, GS_SIM_PATCH_MERGE, "default", name,
                        gs_slice_of(body), NULL, NULL);
}

static int drop(struct gs_sim_cluster *cluster, const char *name)
{
    return gs_sim_delete(cluster, GS_SIM_PODS, "default", name, (struct gs_slice){0}, NULL, NULL);
}

static void a_watch_without_a_version_begins_with_what_is_there(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    add_pod(cluster, "b", "");
    add_pod(cluster, "a", "");
    struct gs_sim_watch *watch = watch_from(cluster, 0, NULL);
    assert_string_equal(next_of(watch), "A:a");
    add_pod(cluster, "c", "");
    assert_string_equal(next_of(watch), "A:b");
    assert_string_equal(next_of(watch), "A:c");
    assert_string_equal(next_of(watch), "-");
    gs_sim_watch_free(watch);
}

static void a_watch_resumes_after_a_version_and_misses_nothing(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    uint64_t version = add_pod(cluster, "a", "");
    add_pod(cluster, "b", "");
    assert_int_equal(label(cluster, "a", "1"), 0);
    assert_int_equal(drop(cluster, "b"), 0);
    struct gs_sim_watch *watch = watch_from(cluster, version, NULL);
    assert_string_equal(next_of(watch), "A:b");
    assert_true(gs_sim_watch_version(watch) == version + 1);
    assert_string_equal(next_of(watch), "M:a");
    assert_string_equal(next_of(watch), "D:b");
    assert_string_equal(next_of(watch), "-");
    assert_true(gs_sim_watch_version(watch) == version + 3);
    gs_sim_watch_free(watch);
}

static void an_object_enters_and_leaves_a_selector(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    uint64_t version = add_pod(cluster, "a", "");
    struct gs_sim_watch *bound = watch_from(cluster, version, "spec.nodeName=n1");
    struct gs_sim_watch *free_ones = watch_from(cluster, version, "spec.nodeName=");
    assert_int_equal(label(cluster, "a", "1"), 0);
    assert_string_equal(next_of(bound), "-");
    assert_string_equal(next_of(free_ones), "M:a");
    assert_int_equal(bind_pod(cluster, "a", "{\"target\":{\"name\":\"n1\"}}", NULL), 0);
    assert_string_equal(next_of(bound), "A:a");
    struct gs_sim_event event;
    assert_int_equal(gs_sim_watch_next(free_ones, SHORT_NS, &event, NULL), 1);
    assert_int_equal(event.change, GS_SIM_DELETED);
    assert_string_equal(event.object->node, ""); /* as it was when it still matched */
    assert_true(event.object->version == version + 2);
    gs_sim_object_unref(event.object);
    assert_int_equal(drop(cluster, "a"), 0);
    assert_string_equal(next_of(bound), "D:a");
    assert_string_equal(next_of(free_ones), "-");
    gs_sim_watch_free(bound);
    gs_sim_watch_free(free_ones);
}

static void a_version_that_the_log_forgot_is_gone(void **state)
{
    struct gs_sim_cluster *cluster = *state; /* keeps 128 changes */
    uint64_t version = add_pod(cluster, "a", "");
    struct gs_sim_watch *slow = watch_from(cluster, version, NULL);
    for (int i = 0; i < 128; i++)
        assert_int_equal(label(cluster, "a", i % 2 ? "1" : "2"), 0);
    struct gs_sim_watch *edge = watch_from(cluster, version, NULL);
    assert_string_equal(next_of(edge), "M:a");
    gs_sim_watch_free(edge);
    assert_int_equal(label(cluster, "a", "3"), 0);
    struct gs_sim_watch *late = watch_from(cluster, version, NULL);
    assert_string_equal(next_of(late), "!EGONE");
    assert_string_equal(next_of(slow), "!EGONE");
    gs_sim_watch_free(late);
    gs_sim_watch_free(slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_cluster(a_watch_without_a_version_begins_with_what_is_there),
        test_with_cluster(a_watch_resumes_after_a_version_and_misses_nothing),
        test_with_cluster(an_object_enters_and_leaves_a_selector),
        test_with_cluster(a_version_that_the_log_forgot_is_gone),
    };
    return GS_RUN(tests);
}
