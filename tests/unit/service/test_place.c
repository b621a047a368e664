/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the ledger believes about a pod's place (docs/contract.md, section 4): the node's list of
 * moved pods, then what was bound or believed before, then the pod's record when it is first seen.
 */
#include "service_rig.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    *state = &rig;
    return 0;
}

/* "8 0 16": what is charged on the GPUs of n1, which has three at most. */
static const char *used(int gpus)
{
    static char text[64];
    size_t len = 0;
    for (int i = 0; i < gpus; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%ld", i ? " " : "",
                                rig_used(&rig, "n1", (unsigned)i));
    return text;
}

static void expect_used(const char *row, const char *expected)
{
    int gpus = 1;
    for (const char *at = expected; *at; at++)
        gpus += *at == ' ';
    if (strcmp(used(gpus), expected) != 0)
        fail_msg("%s: charged %s instead of %s", row, used(gpus), expected);
}

/* An event of u1 on n1 with these words in its metadata, and 16 units in one container. */
static void edited(const char *labels, const char *annotations)
{
    char json[2048];
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'p','namespace':'default','uid':'u1','resourceVersion':'%llu',"
             "'labels':{%s},'annotations':{%s}},'spec':{'nodeName':'n1','containers':[{'name':'c',"
             "'resources':{'limits':{'aliyun.com/gpu-mem':'16'}}}]},'status':{'phase':'Running'}}",
             (unsigned long long)++rig.revision, labels, annotations);
    rig_quote(json);
    rig_feed(&rig, json, false);
}

static const struct {
    const char *row;
    const char *labels, *annotations;
} edits[] = {
    {"another index", "'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'1,2'"},
    {"one index", "'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'2'"},
    {"an index out of range", "'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'99'"},
    {"no index", "'aliyun.com/gpu-count':'2'", ""},
    {"no count", "", "'ALIYUN_COM_GPU_MEM_IDX':'0,1'"},
    {"neither", "", ""},
    {"a count of one", "'aliyun.com/gpu-count':'1'", "'ALIYUN_COM_GPU_MEM_IDX':'0,1'"},
    {"a larger count", "'aliyun.com/gpu-count':'8'", "'ALIYUN_COM_GPU_MEM_IDX':'0,1'"},
    {"a count that is none", "'aliyun.com/gpu-count':'x'", "'ALIYUN_COM_GPU_MEM_IDX':'0,1'"},
    {"a count that contradicts", "'aliyun.com/gpu-count':'2'",
     "'ALIYUN_COM_GPU_MEM_IDX':'0,1','aliyun.com/gpu-count':'4'"},
    {"one GPU for all", "'aliyun.com/gpu-count':'1'", "'ALIYUN_COM_GPU_MEM_IDX':'2'"},
};

/* Seen, or told, to be over two GPUs; then its owner edits. */
static void no_edit_of_a_pod_moves_or_resizes_its_claim(void **state)
{
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        rig_stop(&rig);
        setup(state);
        rig_node_moved(&rig, "n1", "8,8,16", "{}");
        edited("'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'0,1'");
        edited(edits[i].labels, edits[i].annotations);
        expect_used(edits[i].row, "8 8 0");
        edited("'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'0,1'");
        expect_used(edits[i].row, "8 8 0");
        rig_stop(&rig); /* a service that comes up with the edit, and with the plugin's word */
        setup(state);
        edited(edits[i].labels, edits[i].annotations);
        rig_node_moved(&rig, "n1", "8,8,16", "{\\\"u1\\\":[0,1]}");
        expect_used(edits[i].row, "8 8 0");
    }
}

/* A service that comes up and knows nothing but the pod's object. */
static void a_bound_pod_that_is_seen_first_is_its_record(void **state)
{
    static const struct {
        const char *row;
        const char *labels, *annotations;
        const char *used; /* of 16 on each of three GPUs */
    } rows[] = {
        {"the original's extender", "",
         "'ALIYUN_COM_GPU_MEM_IDX':'1','ALIYUN_COM_GPU_MEM_DEV':'16',"
         "'ALIYUN_COM_GPU_MEM_POD':'16','ALIYUN_COM_GPU_MEM_ASSIGNED':'true',"
         "'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'1'",
         "0 16 0"},
        {"the original's successor", "",
         "'scheduler.framework.gpushare.allocation':'{\\'0\\':{\\'1\\':16}}'", "0 16 0"},
        {"its successor, unequal shares", "",
         "'scheduler.framework.gpushare.allocation':'{\\'0\\':{\\'0\\':12,\\'1\\':4}}'",
         "16 16 16"},
        {"ours, over two GPUs", "'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'0,2'",
         "8 0 8"},
        {"bound by hand", "", "", "16 16 16"},
        {"bound by hand, with a count", "'aliyun.com/gpu-count':'2'", "", "8 8 8"},
        {"bound by hand, a forged record", "", "'ALIYUN_COM_GPU_MEM_IDX':'2'", "0 0 16"},
        {"a forged record of no GPU here", "", "'ALIYUN_COM_GPU_MEM_IDX':'7'", "16 16 16"},
        {"a forged record that divides nothing", "", "'ALIYUN_COM_GPU_MEM_IDX':'0,1,2'",
         "16 16 16"},
        {"the count was raised since", "'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'0'",
         "16 0 0"},
        {"the count was lowered since", "'aliyun.com/gpu-count':'1'",
         "'ALIYUN_COM_GPU_MEM_IDX':'0,1'", "8 8 0"},
        {"the count was taken off since", "", "'ALIYUN_COM_GPU_MEM_IDX':'0,1'", "8 8 0"},
        {"the count was broken since", "'aliyun.com/gpu-count':'x'",
         "'ALIYUN_COM_GPU_MEM_IDX':'0,1'", "8 8 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static const char *const plugins[] = {NULL, "{}"}; /* the original's, and ours */
        for (int plugin = 0; plugin < 2; plugin++) {
            rig_stop(&rig);
            setup(state);
            rig_node_moved(&rig, "n1", "16,16,16", plugins[plugin]);
            edited(rows[i].labels, rows[i].annotations);
            expect_used(rows[i].row, rows[i].used);
        }
    }
}

/* Nobody knows then whether the plugin gives it one GPU or two. */
static void a_record_that_is_not_on_the_node_is_charged_by_the_larger_number(void **state)
{
    rig_node_moved(&rig, "n1", "8,16,7", "{}");
    edited("'aliyun.com/gpu-count':'2'", "'ALIYUN_COM_GPU_MEM_IDX':'7'");
    expect_used("half of it fits there", "16 16 0");
}

/* The original's extender wrote it and died, or an owner did. */
static void a_record_on_a_pod_that_is_not_bound_is_nothing(void **state)
{
    rig_node_moved(&rig, "n1", "16,16,16", "{}");
    rig_pod(&rig, "p", "u1", 16, NULL, "1", "Pending");
    expect_used("not bound", "0 0 0");
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "\"Error\":\"\"");
    expect_used("bound where there is room", "16 0 0");
}

/* Made anew under its name, with the record of the one before, as some tools do. */
static void a_pod_made_anew_is_another_pod(void **state)
{
    rig_node_moved(&rig, "n1", "16,16,16", "{\\\"u1\\\":[2]}");
    rig_pod(&rig, "p", "u1", 16, "n1", "0", "Running");
    expect_used("the first", "0 0 16");
    rig_pod_gone(&rig, "p", "u1");
    rig_pod(&rig, "p", "u2", 8, NULL, "0", "Pending");
    expect_used("the second, not bound", "0 0 0");
    rig_pod(&rig, "p", "u2", 8, "n1", "0", "Running");
    expect_used("the second", "8 0 0");
}

static void an_exchange_moves_both_on_the_nodes_one_event(void **state)
{
    rig_node_moved(&rig, "n1", "8,8", "{}");
    rig_pod(&rig, "a", "ua", 8, "n1", "0", "Running");
    rig_pod(&rig, "b", "ub", 8, "n1", "1", "Running");
    rig_node_moved(&rig, "n1", "8,8", "{\\\"ua\\\":[1],\\\"ub\\\":[0]}");
    rig_pod(&rig, "a", "ua", 8, "n1", "1", "Running"); /* the records follow */
    rig_pod_gone(&rig, "a", "ua");
    expect_used("one ends before the other's record", "8 0");
    rig_pod(&rig, "b", "ub", 8, "n1", "0", "Running");
    expect_used("exchanged", "8 0");
}

/* What a tenant did with two patches of one pod, and with another's UID. */
static void an_exchange_taken_back_or_made_up_moves_nobody(void **state)
{
    rig_node_moved(&rig, "n1", "16,16", "{}");
    rig_pod(&rig, "stranger", "u2", 16, "n1", "1", "Running");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'0'");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'1'");
    expect_used("made up", "16 16");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'0'");
    expect_used("taken back", "16 16");
    rig_pod_gone(&rig, "p", "u1");
    expect_used("ended", "0 16");
}

static void the_word_of_the_plugin_places_what_it_placed_itself(void **state)
{
    rig_node_moved(&rig, "n1", "16,16,16", "{}");
    edited("", "");
    expect_used("by hand", "16 16 16");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'2'"); /* anybody may have written that */
    expect_used("a later record", "16 16 16");
    rig_node_moved(&rig, "n1", "16,16,16", "{\\\"u1\\\":[1]}");
    expect_used("told", "0 16 0");
}

/* --- nodes of the original's plugin --- */

/* Our plugin's first word says of this pod nothing; and an edit of the owner's may come after it.
 */
static void what_comes_after_our_plugins_first_word_frees_nothing(void **state)
{
    rig_node(&rig, "n1", "16,16,16");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'0'");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'1'");
    rig_node_moved(&rig, "n1", "16,16,16", "{}");
    expect_used("not told", "16 16 0");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'2'");
    expect_used("edited", "16 16 0");
    rig_node_moved(&rig, "n1", "16,16,16", "{\\\"u1\\\":[0]}");
    expect_used("told", "16 0 0");
}

/* The node's object was made anew, and its plugin has not written to it yet. */
static void an_edit_while_the_node_shows_no_gpus_moves_nobody(void **state)
{
    rig_node_moved(&rig, "n1", "16,16,16", "{}");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'0'");
    rig_node(&rig, "n1", "");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'2'");
    rig_node_moved(&rig, "n1", "16,16,16", "{}");
    expect_used("before the plugin's word", "16 0 16");
    rig_node_moved(&rig, "n1", "16,16,16", "{\\\"u1\\\":[0]}");
    expect_used("told", "16 0 0");
}

static void a_record_places_what_had_no_place(void **state)
{
    rig_node(&rig, "n1", "16,16,16");
    edited("", "");
    expect_used("by hand", "16 16 16");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'2'");
    expect_used("recorded", "0 0 16");
}

/* --- a bind and the record that it leaves --- */

static void another_record_shows_up(struct rig *at)
{
    rig_pod(at, "p", "u1", 8, "n1", "1", "Pending");
}

static void no_record_shows_up(struct rig *at)
{
    rig_pod(at, "p", "u1", 8, "n1", NULL, "Pending");
}

static void the_answer_to_our_own_bind_is_believed_before_any_record(void **state)
{
    static const struct {
        const char *row;
        void (*during_bind)(struct rig *rig);
        enum gs_code code;
        const char *used;
    } rows[] = {
        {"edited before the answer", another_record_shows_up, GS_OK, "8 0 0"},
        {"taken off before the answer", no_record_shows_up, GS_OK, "8 0 0"},
        {"another's, or edited: nobody knows", another_record_shows_up, GS_ETIMEOUT, "8 8 0"},
        {"no record: nobody knows", no_record_shows_up, GS_ETIMEOUT, "8 8 8"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[2048];
        rig_stop(&rig);
        setup(state);
        rig_node_moved(&rig, "n1", "8,8,8", "{}");
        rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
        rig.during_bind = rows[i].during_bind;
        rig.bind_code = rows[i].code;
        rig.get_json = rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, "n1", "1", "Pending");
        rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "\"Error\":\"\"");
        expect_used(rows[i].row, rows[i].used);
        rig_pod(&rig, "p", "u1", 8, "n1", "2", "Running");
        expect_used(rows[i].row, rows[i].used);
        rig_node_moved(&rig, "n1", "8,8,8", "{\\\"u1\\\":[2]}");
        expect_used(rows[i].row, "0 0 8");
    }
}

/* --- a list that is not one --- */

static void a_list_that_cannot_be_read_moves_nobody(void **state)
{
    rig_node_moved(&rig, "n1", "16,16", "{\\\"u1\\\":[1]}");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'0'");
    rig_node_moved(&rig, "n1", "16,16", "{\\\"u1\\\":[64]}");
    edited("", "'ALIYUN_COM_GPU_MEM_IDX':'0'");
    expect_used("unreadable", "0 16");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(no_edit_of_a_pod_moves_or_resizes_its_claim),
        T(a_bound_pod_that_is_seen_first_is_its_record),
        T(a_record_that_is_not_on_the_node_is_charged_by_the_larger_number),
        T(a_record_on_a_pod_that_is_not_bound_is_nothing),
        T(a_pod_made_anew_is_another_pod),
        T(an_exchange_moves_both_on_the_nodes_one_event),
        T(an_exchange_taken_back_or_made_up_moves_nobody),
        T(the_word_of_the_plugin_places_what_it_placed_itself),
        T(what_comes_after_our_plugins_first_word_frees_nothing),
        T(an_edit_while_the_node_shows_no_gpus_moves_nobody),
        T(a_record_places_what_had_no_place),
        T(the_answer_to_our_own_bind_is_believed_before_any_record),
        T(a_list_that_cannot_be_read_moves_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
