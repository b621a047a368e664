/* SPDX-License-Identifier: Apache-2.0 */
/* What pods and nodes say about each other is read so that gs_eligible() judges it. */
#include "codec_fixture.h"

#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"

#define POD(spec) "{'metadata':{'name':'p'},'spec':{" spec "}}"
#define AFFINITY(terms)                                                                            \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"                \
    "{'nodeSelectorTerms':[" terms "]}}}"

static const char node_json[] =
    "{'metadata':{'name':'n1','labels':{'zone':'b','rank':'7','empty':''}},'spec':{'taints':["
    "{'key':'the last taints count','effect':'NoExecute'}],'taints':["
    "{'key':'team','value':'x','effect':'NoSchedule','timeAdded':null},"
    "{'key':'soft','effect':'PreferNoSchedule'}]}}";

#define TOLERATES "'tolerations':[{'key':'x'},{'key':'team','operator':'Equal','value':'x'}],"

static void decode_pod(const char *json, struct gs_pod *pod)
{
    struct gs_error err = {0};
    if (gs_codec_pod(default_names(), json_of(json), pod, &err) < 0)
        fail_msg("%s", err.msg);
}

static void decode_node(const char *json, struct gs_node *node)
{
    struct gs_error err = {0};
    if (gs_codec_node(default_names(), json_of(json), node, &err) < 0)
        fail_msg("%s", err.msg);
}

/* As it is read, and as a copy says. */
static enum gs_eligible judge(const char *json, const struct gs_node *node)
{
    struct gs_pod pod = {0}, copy = {0};
    decode_pod(json, &pod);
    enum gs_eligible verdict = gs_eligible(&pod.rules, &node->rules);
    assert_int_equal(gs_pod_copy(&copy, &pod), 0);
    gs_pod_release(&pod);
    assert_int_equal(gs_eligible(&copy.rules, &node->rules), verdict);
    gs_pod_release(&copy);
    return verdict;
}

static void rules_are_read_as_kubernetes_means_them(void **state)
{
    static const struct {
        const char *row;
        const char *pod;
        enum gs_eligible verdict;
    } rows[] = {
        {"nulls", POD("'tolerations':null,'nodeSelector':null,'affinity':{'nodeAffinity':null}"),
         GS_ELIGIBLE_NOT_TAINTED},
        {"no operator is Equal", POD("'tolerations':[{'key':'team','value':'x'}]"), GS_ELIGIBLE},
        {"everything is tolerated", POD("'tolerations':[{'operator':'Exists'},{'key':'x'}]"),
         GS_ELIGIBLE},
        {"the operators of 1.35", POD("'tolerations':[{'key':'team','operator':'Gt','value':'1'}]"),
         GS_ELIGIBLE_UNKNOWN},
        {"not known, and not selected",
         POD("'tolerations':[{'key':'team','operator':'Gt'}],'nodeSelector':{'no':''}"),
         GS_ELIGIBLE_NOT_SELECTED},
        {"selected", POD(TOLERATES "'nodeSelector':{'zone':'b','empty':''}"), GS_ELIGIBLE},
        {"not selected", POD(TOLERATES "'nodeSelector':{'zone':'b','rank':'8','empty':''}"),
         GS_ELIGIBLE_NOT_SELECTED},
        {"affine",
         POD(TOLERATES AFFINITY(
             "{'matchExpressions':[{'key':'zone','operator':'In',"
             "'values':['a','b']},{'key':'rank','operator':'Gt','values':['6']}]},{}")),
         GS_ELIGIBLE},
        {"one term of two",
         POD(TOLERATES AFFINITY("{'matchExpressions':[{'key':'zone','operator':'NotIn',"
                                "'values':['b']}]},{'matchFields':[{'key':'metadata.name',"
                                "'operator':'In','values':['n1']}]}")),
         GS_ELIGIBLE},
        {"expressions and fields of one term",
         POD(TOLERATES AFFINITY("{'matchExpressions':[{'key':'zone','operator':'Exists'}],"
                                "'matchFields':[{'key':'metadata.name','operator':'In','values':["
                                "'n2']},{'key':'metadata.name','operator':'NotIn'}]}")),
         GS_ELIGIBLE_NOT_AFFINE},
        {"an empty term", POD(TOLERATES AFFINITY("{}")), GS_ELIGIBLE_NOT_AFFINE},
        {"an operator that nobody knows",
         POD(TOLERATES AFFINITY("{'matchExpressions':[{'key':'zone','operator':'Like',"
                                "'values':['b*']}]}")),
         GS_ELIGIBLE_UNKNOWN},
        {"Lt and DoesNotExist",
         POD(TOLERATES AFFINITY("{'matchExpressions':[{'key':'rank','operator':'Lt',"
                                "'values':['8']},{'key':'no','operator':'DoesNotExist'}]}")),
         GS_ELIGIBLE},
        {"what is preferred is no rule",
         POD(TOLERATES "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuring"
                       "Execution':[{'weight':1,'preference':{'matchExpressions':[{'key':'no',"
                       "'operator':'Exists'}]}}]}}"),
         GS_ELIGIBLE},
    };
    struct gs_node node = {0};
    decode_node(node_json, &node);
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, judge(r->pod, &node), r->verdict);
    gs_node_release(&node);
    decode_node("{'metadata':{'name':'off'},'spec':{'unschedulable':true}}", &node);
    assert_int_equal(judge(POD("'containers':[]"), &node), GS_ELIGIBLE_NOT_CORDONED);
    gs_node_release(&node);
}

/* `before`, count times `each` with commas between, `after`. */
static enum gs_eligible judge_many(const char *before, const char *each, uint32_t count,
                                   const char *after, const struct gs_node *node)
{
    struct gs_buf json = GS_BUF(1 << 20);
    gs_buf_puts(&json, before);
    for (uint32_t i = 0; i < count; i++) {
        gs_buf_puts(&json, i ? "," : "");
        for (const char *at = each; *at; at++) {
            if (*at == '#')
                gs_buf_printf(&json, "%u", i);
            else
                gs_buf_putc(&json, *at);
        }
    }
    gs_buf_puts(&json, after);
    enum gs_eligible verdict = judge(json.data, node);
    gs_buf_release(&json);
    return verdict;
}

static void of_more_words_than_are_kept_nobody_knows_what_they_say(void **state)
{
    static const struct {
        const char *row, *before, *each, *after;
        uint32_t most; /* of which it is known */
        enum gs_eligible known;
    } rows[] = {
        {"tolerations", "{'spec':{'tolerations':[", "{'key':'k#','operator':'Exists'}", "]}}",
         GS_RULES_MAX, GS_ELIGIBLE_NOT_TAINTED},
        {"labels that are selected",
         "{'spec':{'tolerations':[{'operator':'Exists'}],'nodeSelector':{'zone':'b',", "'zone':'b'",
         "}}}", GS_RULES_MAX - 2, GS_ELIGIBLE},
        {"terms",
         "{'spec':{'tolerations':[{'operator':'Exists'}],'affinity':{'nodeAffinity':{'required"
         "DuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[",
         "{'matchExpressions':[{'key':'x#','operator':'Exists'}]}", "]}}}}}",
         (GS_RULES_MAX - 1) / 2, GS_ELIGIBLE_NOT_AFFINE},
        {"requirements",
         "{'spec':{'tolerations':[{'operator':'Exists'}],'affinity':{'nodeAffinity':{'required"
         "DuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':[",
         "{'key':'x#','operator':'DoesNotExist'}", "]}]}}}}}", GS_RULES_MAX - 2, GS_ELIGIBLE},
        {"values",
         "{'spec':{'tolerations':[{'operator':'Exists'}],'affinity':{'nodeAffinity':{'required"
         "DuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{'matchExpressions':["
         "{'key':'zone','operator':'NotIn','values':[",
         "'v#'", "]}]}]}}}}}", GS_RULES_VALUES_MAX, GS_ELIGIBLE},
    };
    struct gs_node node = {0};
    decode_node(node_json, &node);
    GS_FOR_EACH_ROW (r, rows) {
        row_equal(r->row, judge_many(r->before, r->each, r->most, r->after, &node), r->known);
        row_equal(r->row, judge_many(r->before, r->each, r->most + 1, r->after, &node),
                  GS_ELIGIBLE_UNKNOWN);
        row_equal(r->row, judge_many(r->before, r->each, 2000, r->after, &node),
                  GS_ELIGIBLE_UNKNOWN);
    }
    gs_node_release(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read_as_kubernetes_means_them),
        cmocka_unit_test(of_more_words_than_are_kept_nobody_knows_what_they_say),
    };
    return GS_RUN(tests);
}
