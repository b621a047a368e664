/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/extender.h"

#define POD "{'metadata':{'name':'p','uid':'u'}}"

/* With a bar after each. */
static void tell_names(const struct gs_filter_args *args, char *text, size_t size)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < gs_filter_args_count(args); i++) {
        struct gs_slice name = gs_filter_args_name(args, i);
        snprintf(text + strlen(text), size - strlen(text), "%.*s|", (int)name.len, name.at);
    }
}

static void requests_are_read_in_any_key_case(void **state)
{
    static const struct {
        const char *row;
        const char *body;
        bool has_names, has_nodes;
        const char *names; /* with a bar after each */
        const char *nodes;
    } rows[] = {
        {"by name", "{'Pod':" POD ",'Nodes':null,'NodeNames':['n1','n2']}", true, false, "n1|n2|",
         ""},
        {"escaped key", "{'Pod':" POD ",'node\\u004eames':['n1']}", true, false, "n1|", ""},
        {"spaces", " { 'Pod' : " POD " , 'NodeNames' : [ 'n1' , 'n2' ] } ", true, false, "n1|n2|",
         ""},
        {"escaped name", "{'Pod':" POD ",'NodeNames':['n1','n\\u0032','n3']}", true, false,
         "n1|n2|n3|", ""},
        {"objects",
         "{'Pod':" POD ",'Nodes':{'metadata':{},'items':[{'metadata':{'name':'n1'}}, "
         "{'spec':{},'metadata':{'labels':{},'name':'n\\u0032'}},{}]},'NodeNames':null}",
         false, true, "n1|n2||",
         "{'metadata':{'name':'n1'}}|{'spec':{},'metadata':{'labels':{},"
         "'name':'n\\u0032'}}|{}|"},
        {"objects without a list", "{'Pod':" POD ",'Nodes':{}}", false, true, "", ""},
        {"both: names count", "{'Pod':" POD ",'Nodes':{'items':[{}]},'NodeNames':['n1']}", true,
         true, "n1|", "{}|"},
        {"twice: the last one counts",
         "{'Pod':" POD ",'NodeNames':['a','\\u0062'],'nodeNames':['c']}", true, false, "c|", ""},
        {"unknown keys", "{'Pod':" POD ",'NodeNames':['a'],'Extra':{'Pod':1}}", true, false, "a|",
         ""},
    };
    struct gs_filter_args args = {0}; /* one for all rows: it must be emptied each time */
    GS_FOR_EACH_ROW (r, rows) {
        char names[64] = "", nodes[256] = "";
        struct gs_error err = {0};
        row_equal(r->row, gs_codec_filter_args(default_names(), json_of(r->body), &args, &err), 0);
        row_text(r->row, err.msg, "");
        row_equal(r->row, args.has_names, r->has_names);
        row_equal(r->row, args.has_nodes, r->has_nodes);
        tell_names(&args, names, sizeof(names));
        for (uint32_t i = 0; i < args.node_count; i++)
            snprintf(nodes + strlen(nodes), sizeof(nodes) - strlen(nodes), "%.*s|",
                     (int)args.nodes[i].len, args.nodes[i].at);
        row_text(r->row, names, r->names);
        row_text(r->row, nodes, json_of(r->nodes).at);
        row_text(r->row, args.pod.name, "p");
        row_text(r->row, args.pod.uid, "u");
    }
    gs_filter_args_release(&args);
}

static void what_is_no_request_is_refused_and_leaves_nothing(void **state)
{
    static const struct {
        const char *row;
        const char *body;
        enum gs_code code;
        const char *why; /* up to the byte number */
    } rows[] = {
        {"no object", "[]", GS_EPROTO, "ExtenderArgs is not an object"},
        {"no pod", "{'NodeNames':['n1']}", GS_EINVAL, "Pod is missing"},
        {"null pod", "{'Pod':null,'NodeNames':['n1']}", GS_EINVAL, "Pod is missing"},
        {"null nodes", "{'Pod':" POD ",'Nodes':null,'NodeNames':null}", GS_EINVAL,
         "NodeNames and Nodes are missing"},
        {"a name is null", "{'Pod':" POD ",'NodeNames':['n1',null]}", GS_EPROTO,
         "NodeNames[] is not a string"},
        {"a node's name is none", "{'Pod':" POD ",'Nodes':{'items':[{'metadata':{'name':1}}]}}",
         GS_EPROTO, "Nodes.items.metadata.name is not a string"},
        {"a pod that is none", "{'Pod':[],'NodeNames':['n1']}", GS_EPROTO,
         "Pod: pod is not an object"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_filter_args args = {0};
        struct gs_error err = {0};
        const struct gs_slice old =
            json_of("{'Pod':" POD ",'NodeNames':['old'],'Nodes':{'items':[{}]}}");
        row_equal(r->row, gs_codec_filter_args(default_names(), old, &args, NULL), 0);
        row_equal(r->row, gs_codec_filter_args(default_names(), json_of(r->body), &args, &err), -1);
        row_equal(r->row, err.code, r->code);
        char *byte = strstr(err.msg, " at byte");
        row_equal(r->row, byte != NULL, r->code == GS_EPROTO);
        if (byte)
            *byte = '\0';
        row_text(r->row, err.msg, r->why);
        row_true(r->row, !args.has_names && !args.has_nodes);
        row_true(r->row, args.name_count == 0 && args.node_count == 0);
        row_text(r->row, args.pod.name, "");
        gs_filter_args_release(&args);
    }
}

/* The names, and what an answer that keeps all but the second says. */
static void tell_answer(const struct gs_filter_args *args, char *text, size_t size)
{
    static const uint8_t reasons[8] = {[1] = GS_REASON_NO_ROOM};
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(4096);
    tell_names(args, text, size);
    gs_codec_filter_result(&out, args, reasons, false);
    assert_false(gs_buf_failed(&out));
    snprintf(text + strlen(text), size - strlen(text), " %s", out.data);
}

/* One after the other with one struct, each body gone before the next comes: what is read is what a
 * new struct reads, and the id stays only where the names do. */
static void names_that_come_again_are_those_of_before(void **state)
{
    static const struct {
        const char *row;
        const char *body;
        bool same; /* as in the row before */
    } rows[] = {
        {"first", "{'Pod':" POD ",'NodeNames':['a','b','c']}", false},
        {"again", "{'Pod':" POD ",'Nodes':null,'NodeNames':['a','b','c']}", true},
        {"and again, pod last", "{'NodeNames': ['a','b','c'],'Pod':" POD "}", true},
        {"one more", "{'Pod':" POD ",'NodeNames':['a','b','c','d']}", false},
        {"one fewer", "{'Pod':" POD ",'NodeNames':['a','b','c']}", false},
        {"other order", "{'Pod':" POD ",'NodeNames':['a','c','b']}", false},
        {"escaped", "{'Pod':" POD ",'NodeNames':['a','\\u0062']}", false},
        {"escaped again", "{'Pod':" POD ",'NodeNames':['a','\\u0062']}", false},
        {"no ASCII", "{'Pod':" POD ",'NodeNames':['a','\xC3\xA9','z']}", false},
        {"no ASCII again", "{'Pod':" POD ",'NodeNames':['a','\xC3\xA9','z']}", true},
        {"objects", "{'Pod':" POD ",'Nodes':{'items':[{'metadata':{'name':'n'}}]}}", true},
        {"names after objects", "{'Pod':" POD ",'NodeNames':['a','\xC3\xA9','z']}", true},
        {"no pod", "{'NodeNames':['a','b']}", false},
        {"cut in its names", "{'Pod':" POD ",'NodeNames':['a','b'", false},
        {"after a failure", "{'Pod':" POD ",'NodeNames':['a','b']}", false},
        {"twice, the last one counts", "{'Pod':" POD ",'NodeNames':[],'nodeNames':['x','y']}",
         false},
        {"the last one again", "{'Pod':" POD ",'NodeNames':['x','y']}", true},
    };
    struct gs_filter_args args = {0};
    uint64_t id = 0;
    GS_FOR_EACH_ROW (r, rows) {
        char names[512] = "", alone[512] = "";
        struct gs_filter_args fresh = {0};
        char *body = strdup(json_of(r->body).at);
        int result = gs_codec_filter_args(default_names(), gs_slice_of(body), &args, NULL);
        row_equal(r->row, result,
                  gs_codec_filter_args(default_names(), gs_slice_of(body), &fresh, NULL));
        tell_answer(&args, names, sizeof(names));
        tell_answer(&fresh, alone, sizeof(alone));
        row_text(r->row, names, alone);
        row_equal(r->row, args.names_id == id, r->same);
        id = args.names_id;
        memset(body, 'X', strlen(body));
        free(body);
        gs_filter_args_release(&fresh);
    }
    gs_filter_args_release(&args);
}

/* field: "NodeNames" or "Nodes" */
static void make_body(struct gs_buf *body, bool nodes, int count)
{
    gs_buf_puts(body, "{\"Pod\":{},");
    gs_buf_puts(body, nodes ? "\"Nodes\":{\"items\":[" : "\"NodeNames\":[");
    for (int i = 0; i < count; i++) {
        if (i)
            gs_buf_putc(body, ',');
        gs_buf_puts(body, nodes ? "{}" : "\"n\"");
    }
    gs_buf_puts(body, nodes ? "]}}" : "]}");
}

static void there_is_a_ceiling_of_candidates(void **state)
{
    static const struct {
        const char *row;
        bool nodes;
        int count;
    } rows[] = {
        {"names", false, GS_EXTENDER_NODES_MAX},
        {"too many names", false, GS_EXTENDER_NODES_MAX + 1},
        {"objects", true, GS_EXTENDER_NODES_MAX},
        {"too many objects", true, GS_EXTENDER_NODES_MAX + 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(1 << 20);
        struct gs_filter_args args = {0};
        struct gs_error err = {0};
        bool fits = r->count <= GS_EXTENDER_NODES_MAX;
        make_body(&body, r->nodes, r->count);
        row_equal(r->row,
                  gs_codec_filter_args(default_names(), (struct gs_slice){body.data, body.len},
                                       &args, &err),
                  fits ? 0 : -1);
        row_equal(r->row, err.code, fits ? GS_OK : GS_ETOOBIG);
        row_equal(r->row, r->nodes ? args.node_count : args.name_count, fits ? r->count : 0);
        gs_filter_args_release(&args);
    }
}

enum {
    FIT = GS_FITS,
    ROOM = GS_REASON_NO_ROOM,
    NONE = GS_REASON_NO_GPUS,
    OUT = GS_VERDICT_LEFT_OUT
};
#define ROOM_TEXT "'insufficient free GPU memory'"
#define NONE_TEXT "'no shareable GPU memory'"

static void verdicts_are_answered_in_the_form_of_the_request(void **state)
{
    static const struct {
        const char *row;
        const char *candidates; /* of the request */
        uint8_t reasons[5];
        const char *kept; /* the answer's first two fields */
        const char *failed, *unresolvable;
    } rows[] = {
        {"none", "'NodeNames':[]", {0}, "'Nodes':null,'NodeNames':[]", "", ""},
        {"none fits",
         "'NodeNames':['a','b']",
         {ROOM, NONE},
         "'Nodes':null,'NodeNames':[]",
         "'a':" ROOM_TEXT ",'b':" NONE_TEXT,
         "'b':" NONE_TEXT},
        {"runs",
         "'NodeNames':['a', 'b','c','d' ,'e']",
         {FIT, FIT, NONE, FIT, FIT},
         "'Nodes':null,'NodeNames':['a', 'b','d' ,'e']",
         "'c':" NONE_TEXT,
         "'c':" NONE_TEXT},
        {"who is left out is named nowhere",
         "'NodeNames':['a','b','c','d']",
         {OUT, FIT, OUT, NONE},
         "'Nodes':null,'NodeNames':['b']",
         "'d':" NONE_TEXT,
         "'d':" NONE_TEXT},
        {"escaped names are written anew",
         "'NodeNames':['a','\\u0062','c\\n', 'd']",
         {FIT, FIT, ROOM, FIT},
         "'Nodes':null,'NodeNames':['a','b','d']",
         "'c\\n':" ROOM_TEXT,
         ""},
        {"long names of another alphabet",
         "'NodeNames':['\xC3\xA9']",
         {FIT},
         "'Nodes':null,'NodeNames':['\xC3\xA9']",
         "",
         ""},
        {"objects",
         "'Nodes':{'items':[{'metadata':{'name':'a'},'x':1}, {'metadata':{'name':'b'}}]}",
         {FIT, FIT},
         "'Nodes':{'metadata':{},'items':[{'metadata':{'name':'a'},'x':1}, "
         "{'metadata':{'name':'b'}}]},'NodeNames':null",
         "",
         ""},
        {"objects, one fits",
         "'Nodes':{'items':[{'metadata':{'name':'a'}},{'metadata':{'name':'\\u0062'}}]}",
         {FIT, NONE},
         "'Nodes':{'metadata':{},'items':[{'metadata':{'name':'a'}}]},'NodeNames':null",
         "'b':" NONE_TEXT,
         "'b':" NONE_TEXT},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_filter_args args = {0};
        struct gs_buf out = GS_BUF(4096);
        char text[1024], expected[1024];
        snprintf(text, sizeof(text), "{'Pod':{},%s}", r->candidates);
        snprintf(expected, sizeof(expected),
                 "{%s,'FailedNodes':{%s},'FailedAndUnresolvableNodes':{%s},'Error':''}", r->kept,
                 r->failed, r->unresolvable);
        row_equal(r->row, gs_codec_filter_args(default_names(), json_of(text), &args, NULL), 0);
        gs_codec_filter_result(&out, &args, r->reasons, false);
        row_json(r->row, &out, expected);
        gs_filter_args_release(&args);
    }
}

static void what_nothing_resolves_may_be_told_once(void **state)
{
    static const uint8_t reasons[] = {ROOM, NONE, FIT, OUT, NONE};
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(4096);
    struct gs_filter_args args = {0};
    assert_int_equal(gs_codec_filter_args(default_names(),
                                          json_of("{'Pod':{},'NodeNames':['a','b','c','d','e']}"),
                                          &args, NULL),
                     0);
    gs_codec_filter_result(&out, &args, reasons, true);
    row_json("once", &out,
             "{'Nodes':null,'NodeNames':['c'],'FailedNodes':{'a':" ROOM_TEXT
             "},'FailedAndUnresolvableNodes':{'b':" NONE_TEXT ",'e':" NONE_TEXT "},'Error':''}");
    gs_filter_args_release(&args);
}

static void scores_name_the_candidates(void **state)
{
    static const struct {
        const char *row;
        const char *candidates;
        uint8_t scores[4];
        const char *expected;
    } rows[] = {
        {"names",
         "'NodeNames':['a','b','c']",
         {0, 9, 10},
         "[{'Host':'a','Score':0},{'Host':'b','Score':9},{'Host':'c','Score':10}]"},
        {"first untold, escaped",
         "'NodeNames':['\\t','b']",
         {GS_SCORE_UNTOLD, 1},
         "[{'Host':'b','Score':1}]"},
        {"all untold", "'NodeNames':['a','b']", {GS_SCORE_UNTOLD, GS_SCORE_UNTOLD}, "[]"},
        {"objects",
         "'Nodes':{'items':[{'metadata':{'name':'a'}}]}",
         {7},
         "[{'Host':'a','Score':7}]"},
        {"escaped", "'NodeNames':['\\u0061\\t']", {10}, "[{'Host':'a\\t','Score':10}]"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_filter_args args = {0};
        struct gs_buf out = GS_BUF(4096);
        char text[256];
        snprintf(text, sizeof(text), "{'Pod':{},%s}", r->candidates);
        row_equal(r->row, gs_codec_filter_args(default_names(), json_of(text), &args, NULL), 0);
        gs_codec_host_priorities(&out, &args, r->scores);
        row_json(r->row, &out, r->expected);
        gs_filter_args_release(&args);
    }
}

static void errors_are_answered_without_percent_signs(void **state)
{
    struct gs_buf out = GS_BUF(4096);
    gs_codec_filter_error(&out, "100% of %s \"q\"");
    row_json("filter", &out,
             "{'Nodes':null,'NodeNames':null,'FailedNodes':null,"
             "'FailedAndUnresolvableNodes':null,'Error':'100 of s \\'q\\''}");
    gs_codec_filter_error(&out, "");
    row_json("empty", &out,
             "{'Nodes':null,'NodeNames':null,'FailedNodes':null,"
             "'FailedAndUnresolvableNodes':null,'Error':''}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read_in_any_key_case),
        cmocka_unit_test(what_is_no_request_is_refused_and_leaves_nothing),
        cmocka_unit_test(names_that_come_again_are_those_of_before),
        cmocka_unit_test(there_is_a_ceiling_of_candidates),
        cmocka_unit_test(verdicts_are_answered_in_the_form_of_the_request),
        cmocka_unit_test(what_nothing_resolves_may_be_told_once),
        cmocka_unit_test(scores_name_the_candidates),
        cmocka_unit_test(errors_are_answered_without_percent_signs),
    };
    return GS_RUN(tests);
}
