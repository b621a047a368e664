/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "service_rig.h"

#include "item_lists.h"

/*
 * Two nodes: n1 has two GPUs of 16, n2 one of 16. Pods "uid@node:gpu:units!priority" apart by
 * blanks, "~" for one that is being deleted. A pod of priority 10 asks for `units`; `nodes` is what
 * kube-scheduler proposes and `kept` what must come back, both as the body's JSON with ' for ".
 */
struct row {
    const char *row;
    const char *pods;
    unsigned units;
    const char *nodes;
    const char *kept;
};

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,16");
    rig_node(&rig, "n2", "16");
    *state = &rig;
    return 0;
}

/* "a@n1:0:8!5" */
static void feed(const char *text)
{
    char uid[8] = "", node[8] = "", idx[8];
    unsigned numbers[3] = {0};
    size_t len = strcspn(text, "@");
    memcpy(uid, text, len);
    text += len + 1;
    len = strcspn(text, ":");
    memcpy(node, text, len);
    text += len;
    for (int i = 0; i < 3; i++) {
        for (text++; *text >= '0' && *text <= '9'; text++)
            numbers[i] = numbers[i] * 10 + (unsigned)(*text - '0');
    }
    snprintf(idx, sizeof(idx), "%u", numbers[0] & 63);
    const struct rig_pod pod = {.name = uid,
                                .uid = uid,
                                .units = numbers[1],
                                .priority = (int)numbers[2],
                                .node = node,
                                .idx = idx,
                                .deleting = *text == '~'};
    rig_feed(&rig, rig_json(&rig, pod), false);
}

static void feed_all(const char *text)
{
    for (; *text; text += strcspn(text, " "), text += *text == ' ')
        feed(text);
}

static char *preempt(unsigned units, const char *nodes)
{
    static char body[1 << 15];
    snprintf(body, sizeof(body),
             "{'Pod':{'metadata':{'name':'p','namespace':'default','uid':'up'},"
             "'spec':{'priority':10,'containers':[{'name':'c','resources':{'limits':{"
             "'aliyun.com/"
             "gpu-mem':'%u'}}}]},'status':{'phase':'Pending'}},'NodeNameToMetaVictims':{%s}}",
             units, nodes);
    rig_quote(body);
    return rig_ask(&rig, gs_service_preempt, body);
}

static void expect_nodes(const char *row, char *answer, const char *nodes)
{
    char expected[2048];
    snprintf(expected, sizeof(expected), "{'NodeNameToMetaVictims':{%s}}", nodes);
    rig_quote(expected);
    row_text(row, answer, expected);
    free(answer);
}

static const struct row rows[] = {
    {"PDB counts come back", "a@n2:0:16!0", 8, "'n2':{'Pods':[{'UID':'a'}],'NumPDBViolations':3}",
     "'n2':{'Pods':[{'UID':'a'}],'NumPDBViolations':3}"},
    {"unknown UIDs pass and count for nothing", "a@n2:0:16!0", 8,
     "'n2':{'Pods':[{'UID':'stranger'},{'UID':'a'}]}",
     "'n2':{'Pods':[{'UID':'stranger'},{'UID':'a'}],'NumPDBViolations':0}"},
    {"a proposed one is never dropped, though it does not help", "a@n1:0:16!0 b@n1:1:8!0", 8,
     "'n1':{'Pods':[{'UID':'a'},{'UID':'b'}]}",
     "'n1':{'Pods':[{'UID':'a'},{'UID':'b'}],'NumPDBViolations':0}"},
    {"the most important one comes first", "a@n2:0:4!1 b@n2:0:12!7", 16,
     "'n2':{'Pods':[{'UID':'a'}]}", "'n2':{'Pods':[{'UID':'b'},{'UID':'a'}],'NumPDBViolations':0}"},
    /* from 1.38 on (kubernetes#135486): a list that is shown with victims may not come back empty
     */
    {"nodes that fit by their sums: victims are added, empty is passed on, one is left out",
     "a@n1:0:10!0 b@n1:1:10!99 c@n2:0:16!99", 12, "'n1':{'Pods':[]},'n2':{'Pods':[]}",
     "'n1':{'Pods':[{'UID':'a'}],'NumPDBViolations':0}"},
    {"... with one that has room by now", "a@n1:0:4!0 b@n1:1:4!99 c@n2:0:16!0", 12,
     "'n1':{'Pods':null},'n2':{'Pods':[]}",
     "'n1':{'Pods':[],'NumPDBViolations':0},'n2':{'Pods':[{'UID':'c'}],'NumPDBViolations':0}"},
    {"a node unknown here goes, others stay", "a@n1:0:16!99 b@n1:1:16!99 c@n2:0:16!0", 16,
     "'n1':{'Pods':[{'UID':'a'}],'NumPDBViolations':2},'n2':{'Pods':[{'UID':'c'}]},'n3':{'Pods':["
     "{'UID':'x'}]}",
     "'n1':{'Pods':[{'UID':'a'}],'NumPDBViolations':2},'n2':{'Pods':[{'UID':'c'}],"
     "'NumPDBViolations':0}"},
    {"no node proposed", "", 8, "", ""},
    {"no GPU memory asked: nothing is judged", "a@n2:0:16!0", 0,
     "'n2':{'Pods':[{'UID':'a'}]},'n9':{'Pods':[],'NumPDBViolations':1}",
     "'n2':{'Pods':[{'UID':'a'}],'NumPDBViolations':0},'n9':{'Pods':[],'NumPDBViolations':1}"},
};

static void every_rule_with_uids_only(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        setup(state);
        feed_all(r->pods);
        expect_nodes(r->row, preempt(r->units, r->nodes), r->kept);
        rig_stop(&rig);
    }
}

/* Labels are the pod's letter; what is said of them later counts. */
static void put_budgets(const char *items)
{
    struct gs_arena arena = {0};
    struct gs_budget *all;
    static char json[1 << 16];
    uint32_t count;
    snprintf(json, sizeof(json), "{'items':[%s]}", items);
    rig_quote(json);
    assert_int_equal(budget_list(gs_slice_of(json), &arena, &all, &count, NULL), 0);
    gs_service_budgets(rig.service, &arena, all, count);
}

static void repeat_budget(const char *budget, int times, const char *last)
{
    static char all[1 << 15];
    all[0] = '\0';
    for (int i = 0; i < times; i++)
        strcat(strcat(all, budget), ",");
    put_budgets(strcat(all, last));
}

static void label_on(const char *node, const char *uid, const char *idx, const char *labels)
{
    const struct rig_pod pod = {.name = uid,
                                .uid = uid,
                                .units = 16,
                                .priority = 1,
                                .node = node,
                                .idx = idx,
                                .labels = labels};
    rig_feed(&rig, rig_json(&rig, pod), false);
}

static void label(const char *uid, const char *idx, const char *labels)
{
    label_on("n1", uid, idx, labels);
}

#define BUDGET(ns, app, allowed)                                                                   \
    "{'metadata':{'namespace':'" ns "'},'spec':{'selector':{'matchLabels':{'app':'" app            \
    "'}}},'status':{'disruptionsAllowed':" allowed "}}"

static void expect_victim(const char *row, const char *uid, int violations)
{
    char kept[128];
    snprintf(kept, sizeof(kept), "'n1':{'Pods':[{'UID':'%s'}],'NumPDBViolations':%d}", uid,
             violations);
    expect_nodes(row, preempt(12, "'n1':{'Pods':[],'NumPDBViolations':1}"), kept);
}

static void budgets_are_counted_for_added_victims(void **state)
{
    char many[32 * GS_POD_LABELS_MAX];
    label("a", "0", "{'app':'a'}");
    label("b", "1", "{'app':'b'}");
    expect_victim("no budgets are known", "a", 1);
    put_budgets(BUDGET("default", "a", "0"));
    expect_victim("the other one goes", "b", 1);
    put_budgets(BUDGET("default", "b", "0") "," BUDGET("x", "a", "0"));
    expect_victim("budgets of other namespaces", "a", 1);
    put_budgets(
        BUDGET("default", "b", "0") "," BUDGET("aa", "a", "0") "," BUDGET("default", "a", "0"));
    expect_victim("theirs and ours", "a", 2);
    put_budgets(BUDGET("default", "b", "0") "," BUDGET("default", "a", "1"));
    expect_victim("one may go", "a", 1);
    put_budgets(BUDGET("default", "a", "0") "," BUDGET("default", "a", "9"));
    expect_victim("the first of its budgets has none left", "b", 1);
    put_budgets(BUDGET("default", "a", "9") "," BUDGET("default", "a", "0"));
    expect_victim("the second of its budgets has none left", "b", 1);
    put_budgets(BUDGET("default", "a", "0"));
    put_budgets(BUDGET("default", "a", "-2147483648"));
    expect_victim("less than nobody may go", "b", 1);
    label("a", "0", "{'app':'c'}");
    expect_victim("its labels have changed", "a", 1);
    label("a", "0", "{'app':'a'}");
    expect_victim("and back", "b", 1);
    label("a", "0", "null");
    expect_victim("it has none", "a", 1);
    for (int i = 0, at = sprintf(many, "{"); i <= GS_POD_LABELS_MAX; i++)
        at += sprintf(many + at, i < GS_POD_LABELS_MAX ? "'x%d':''," : "'app':'a'}", i);
    label("a", "0", many);
    expect_victim("it has more than are kept", "a", 1);
    char *rest = strchr(many, ',');
    *rest = '{';
    label("a", "0", rest);
    expect_victim("it has as many as are kept", "b", 1);
    label("a", "0", "{'app':'a'}");
    repeat_budget(BUDGET("default", "a", "9"), 80, BUDGET("x", "a", "0"));
    expect_victim("eighty with room, more than are told apart: nobody may go", "b", 1);
    repeat_budget(BUDGET("default", "a", "9"), 60, BUDGET("default", "b", "0"));
    expect_victim("sixty with room", "a", 1);
    rig_node(&rig, "n2", "16");
    label_on("n2", "d", "0", "{'app':'d'}");
    repeat_budget(BUDGET("default", "a", "9") "," BUDGET("default", "d", "9"), 40,
                  BUDGET("default", "b", "0"));
    expect_nodes("eighty, of each node forty", preempt(12, "'n1':{'Pods':[]},'n2':{'Pods':[]}"),
                 "'n1':{'Pods':[{'UID':'a'}],'NumPDBViolations':0},"
                 "'n2':{'Pods':[{'UID':'d'}],'NumPDBViolations':0}");
    repeat_budget(BUDGET("default", "c", "9"), 240, BUDGET("x", "a", "0"));
    expect_victim("more than are asked: of no pod of theirs may one go", "a", 2);
    repeat_budget(BUDGET("aa", "a", "9"), 240, BUDGET("default", "a", "0"));
    expect_victim("another namespace's excess is its own", "b", 1);
    put_budgets("");
    expect_victim("they are gone", "a", 1);
}

/* One answer is for many nodes: here for one node many times. */
static void budgets_of_a_namespace_are_asked_so_often_for_an_answer(void **state)
{
    static char nodes[1 << 15] = "'n1':{'Pods':[]}";
    for (int i = 0; i < 1200; i++)
        strcat(nodes, ",'n1':{'Pods':[]}");
    label("a", "0", "{'app':'a'}");
    label("b", "1", "{'app':'b'}");
    repeat_budget(BUDGET("default", "c", "9"), 200, BUDGET("x", "a", "0"));
    char *answer = preempt(12, nodes);
    assert_non_null(strstr(answer, "\"NumPDBViolations\":0},\"n1\""));
    assert_non_null(strstr(answer, "\"NumPDBViolations\":1}}}"));
    free(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_with_uids_only),
        T(budgets_are_counted_for_added_victims),
        T(budgets_of_a_namespace_are_asked_so_often_for_an_answer),
    };
    return GS_RUN(tests);
}
