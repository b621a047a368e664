/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits, and who places pods here, after what a watch tells. */
#include "gpushare/base/cleanup.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "inspect/snapshot.h"
#include "rows.h"

static struct snapshot snapshot;
static struct gs_watch_sink sink;
static struct gs_names names;

/* Without a node it has gone. */
static void pod_is(char name, const char *node, const char *scheduler)
{
    _cleanup_(gs_pod_release) struct gs_pod pod = {0};
    char json[512];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%c\",\"uid\":\"%c\","
             "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},"
             "\"spec\":{\"nodeName\":\"%s\",\"schedulerName\":\"%s\",\"containers\":"
             "[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\"}}}]}}",
             name, name, node ? node : "", scheduler);
    assert_int_equal(gs_codec_pod(&names, gs_slice_of(json), &pod, NULL), 0);
    assert_int_equal((node ? sink.pod : sink.pod_gone)(sink.ctx, &pod), 0);
}

static void node_is(const char *name, bool ready, bool cordoned)
{
    _cleanup_(gs_node_release) struct gs_node node = {0};
    char json[256];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"unschedulable\":%s},\"status\":"
             "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
             name, cordoned ? "true" : "false", ready ? "True" : "False");
    assert_int_equal(gs_codec_node(&names, gs_slice_of(json), &node, NULL), 0);
    assert_int_equal(sink.node(sink.ctx, &node), 0);
}

/* "[" and "]": a list of pods; "{" and "}": of nodes; "a": the pod waits; "A": it is bound; "-a":
 * it is deleted. */
static void watch(const char *steps)
{
    for (; *steps; steps++) {
        if (*steps == '[')
            sink.list_begin(sink.ctx, GS_KIND_POD);
        else if (*steps == ']')
            sink.list_end(sink.ctx, GS_KIND_POD);
        else if (*steps == '{')
            sink.list_begin(sink.ctx, GS_KIND_NODE);
        else if (*steps == '}')
            sink.list_end(sink.ctx, GS_KIND_NODE);
        else if (*steps == '-')
            pod_is(*++steps, NULL, "");
        else
            pod_is((char)(*steps | 0x20), *steps < 'a' ? "n1" : "", "");
    }
}

static void up(void)
{
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    assert_int_equal(snapshot_init(&snapshot, NULL), 0);
    sink = snapshot_sink(&snapshot);
}

static void who_waits_is_who_is_told_to(void **state)
{
    static const struct {
        const char *name, *steps, *waiting;
    } rows[] = {
        {"of one list", "[ab]", "ab"},
        {"one that is bound meanwhile", "[ab]A", "b"},
        {"one that a later list has not", "[ab][b]", "b"},
        {"before that list has ended", "[ab][b", "ab"},
        {"one that comes between lists", "[a]b[b]", "b"},
        {"one that is bound in a later list", "[ab][aB]", "a"},
        {"one that is deleted", "[ab]-a", "b"},
        {"while nodes are listed, too", "[ab][a{b}]", "ab"},
    };
    GS_FOR_EACH_ROW (row, rows) {
        print_message("  %s\n", row->name);
        up();
        watch(row->steps);
        assert_int_equal(HASH_COUNT(snapshot.waiting), strlen(row->waiting));
        EACH_POD (at, snapshot.waiting)
            assert_non_null(strchr(row->waiting, at->pod->name[0]));
        snapshot_release(&snapshot);
    }
}

static void a_node_is_as_it_was_told_last(void **state)
{
    up();
    watch("{");
    node_is("a", true, true);
    node_is("b", false, false);
    watch("}");
    node_is("a", false, false);
    const struct snap_node *node = snapshot_node(&snapshot, "a");
    assert_true(node && !node->ready && !node->unschedulable);
    watch("{");
    node_is("b", true, true);
    watch("}");
    assert_null(snapshot_node(&snapshot, "a"));
    node = snapshot_node(&snapshot, "b");
    assert_true(node && node->ready && node->unschedulable);
    snapshot_release(&snapshot);
}

/* Pods that were bound under a scheduler's name, by its first letter, in the order in which they
 * were seen; "A": the first is seen again. */
static void most_pods_tell_who_places_them(void **state)
{
    static const struct {
        const char *bound, *usual;
        bool elsewhere; /* a pod of "d" */
    } rows[] = {
        {"", NULL, false},       {"a", "a", true},     {"abb", "b", true},    {"bba", "b", true},
        {"ab", "a", true},       {"abbAA", "b", true}, {"abbccc", "c", true}, {"abbd", "b", false},
        {"abcefghi", "a", false} /* and who knows of whom else */};
    const struct gs_pod waits = {.scheduler_name = "d"};
    GS_FOR_EACH_ROW (row, rows) {
        print_message("  %s\n", row->bound);
        up();
        for (const char *at = row->bound; *at; at++)
            pod_is(*at < 'a' ? 'p' : (char)('p' + (at - row->bound)), "n1",
                   (const char[]){(char)(*at | 0x20), 0});
        if (row->usual)
            assert_string_equal(snapshot_scheduler(&snapshot), row->usual);
        else
            assert_null(snapshot_scheduler(&snapshot));
        assert_int_equal(snapshot_is_elsewhere(&snapshot, &waits), row->elsewhere);
        snapshot_release(&snapshot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_waits_is_who_is_told_to),
                                       cmocka_unit_test(a_node_is_as_it_was_told_last),
                                       cmocka_unit_test(most_pods_tell_who_places_them)};
    return GS_RUN(tests);
}
