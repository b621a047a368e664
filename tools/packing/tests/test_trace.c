/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "trace.h"

enum { LONG_BYTES = 1 << 16 };

static void nodes_are_read(void **state)
{
    static const struct {
        const char *row, *csv;
        uint32_t count;
        struct gs_trace_node last;
    } rows[] = {
        {"as published",
         "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\n",
         2,
         {"n1", 96000, 393216, 8, "G2"}},
        {"columns in another order, and more of them",
         "model,gpu,zone,cpu_milli,sn,memory_mib\nT4,1,z,4000,n,8\n",
         1,
         {"n", 4000, 8, 1, "T4"}},
        {"no newline at the end",
         "sn,cpu_milli,memory_mib,gpu,model\nn,1,2,3,M",
         1,
         {"n", 1, 2, 3, "M"}},
        {"carriage returns and empty lines",
         "sn,cpu_milli,memory_mib,gpu,model\r\n\r\nn,1,2,3,M\r\n\n",
         1,
         {"n", 1, 2, 3, "M"}},
        {"fractions are dropped",
         "sn,cpu_milli,memory_mib,gpu,model\nn,1.0,2.9,3.,M\n",
         1,
         {"n", 1, 2, 3, "M"}},
        {"no GPU", "sn,cpu_milli,memory_mib,gpu,model\nn,1,2,0,\n", 1, {"n", 1, 2, 0, ""}},
        {"a short line: the rest is empty",
         "gpu,cpu_milli,memory_mib,sn,model\n1,2,3\n",
         1,
         {"", 2, 3, 1, ""}},
        {"the largest",
         "sn,cpu_milli,memory_mib,gpu,model\nn,2147483647,1099511627776,64,M\n",
         1,
         {"n", INT32_MAX, (int64_t)1 << 40, 64, "M"}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace trace = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_trace_read_nodes(&trace, gs_slice_of(r->csv), &err), 0);
        row_equal(r->row, trace.node_count, r->count);
        const struct gs_trace_node *last = &trace.nodes[r->count - 1];
        row_text(r->row, last->name, r->last.name);
        row_equal(r->row, last->cpu_milli, r->last.cpu_milli);
        row_equal(r->row, last->memory_mib, r->last.memory_mib);
        row_equal(r->row, last->gpus, r->last.gpus);
        row_text(r->row, last->model, r->last.model);
        gs_trace_release(&trace);
    }
}

#define PODS "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"

static void pods_are_read_and_made_regular(void **state)
{
    static const struct {
        const char *row, *csv;
        struct gs_trace_pod pod;
    } rows[] = {
        {"a part of a GPU", PODS "p,6000,12288,1,460,,LS\n", {"p", 6000, 12288, 1, 460, ""}},
        {"models", PODS "p,1,2,1,460,T4|P100,LS\n", {"p", 1, 2, 1, 460, "T4|P100"}},
        {"no column for models",
         "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,460\n",
         {"p", 1, 2, 1, 460, ""}},
        {"more than a GPU is a GPU", PODS "p,1,2,1,1500,,\n", {"p", 1, 2, 1, 1000, ""}},
        {"several GPUs are whole ones", PODS "p,1,2,4,250,,\n", {"p", 1, 2, 4, 1000, ""}},
        {"several, without a share", PODS "p,1,2,4,0,,\n", {"p", 1, 2, 4, 1000, ""}},
        {"without GPU there are no models", PODS "p,1,2,0,460,T4,\n", {"p", 1, 2, 0, 0, ""}},
        {"floating point", PODS "p,1.0,2.0,1.0,460.0,,\n", {"p", 1, 2, 1, 460, ""}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace trace = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_trace_read_pods(&trace, gs_slice_of(r->csv), &err), 0);
        row_equal(r->row, trace.pod_count, 1);
        row_text(r->row, trace.pods[0].name, r->pod.name);
        row_equal(r->row, trace.pods[0].cpu_milli, r->pod.cpu_milli);
        row_equal(r->row, trace.pods[0].memory_mib, r->pod.memory_mib);
        row_equal(r->row, trace.pods[0].gpus, r->pod.gpus);
        row_equal(r->row, trace.pods[0].gpu_milli, r->pod.gpu_milli);
        row_text(r->row, trace.pods[0].models, r->pod.models);
        gs_trace_release(&trace);
    }
}

#define TIMED "name,cpu_milli,memory_mib,num_gpu,gpu_milli,priority,creation_time,deletion_time"

static void how_long_a_pod_ran_is_read(void **state)
{
    static const struct {
        const char *row, *csv;
        int64_t lasts_s;
        uint32_t priority;
    } rows[] = {
        {"from its start", TIMED ",scheduled_time\np,1,2,1,5,7,10,100,40\n", 60, 7},
        {"it waited until it was deleted", TIMED ",scheduled_time\np,1,2,1,5,0,10,100,\n", 0, 0},
        {"no column for the start: from its creation", TIMED "\np,1,2,1,5,,10,100\n", 90, 0},
        {"floating point", TIMED "\np,1,2,1,5,3.0,10.0,100.0\n", 90, 3},
        {"less than a second is one", TIMED "\np,1,2,1,5,,10,10\n", 1, 0},
        {"it has not ended", TIMED "\np,1,2,1,5,,10,\n", 0, 0},
        {"it never began", TIMED "\np,1,2,1,5,,,10\n", 0, 0},
        {"it ended before it began", TIMED "\np,1,2,1,5,,10,9\n", 0, 0},
        {"no columns at all", PODS "p,1,2,1,460,,\n", 0, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace trace = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_trace_read_pods(&trace, gs_slice_of(r->csv), &err), 0);
        row_equal(r->row, trace.stays[0].lasts_s, r->lasts_s);
        row_equal(r->row, trace.stays[0].priority, r->priority);
        gs_trace_release(&trace);
    }
}

static void broken_tables_are_refused_with_the_line(void **state)
{
    static const struct {
        const char *row, *csv, *words;
        bool pods;
    } rows[] = {
        {"empty", "", "empty", false},
        {"only line ends", "\n\r\n\n", "empty", false},
        {"no rows", "sn,cpu_milli,memory_mib,gpu,model\n", "no node", false},
        {"a column is missing", "sn,cpu_milli,memory_mib,gpu\nn,1,2,3\n", "no column model", false},
        {"names are exact", "sn,cpu_milli,memory_mib,GPU,model\nn,1,2,3,M\n", "no column gpu",
         false},
        {"no number", "sn,cpu_milli,memory_mib,gpu,model\nn,1,2,3,M\nn,x,2,3,M\n",
         "line 3: cpu_milli", false},
        {"an empty number", "sn,cpu_milli,memory_mib,gpu,model\nn,,2,3,M\n", "line 2: cpu_milli",
         false},
        {"a negative number", "sn,cpu_milli,memory_mib,gpu,model\nn,-1,2,3,M\n",
         "line 2: cpu_milli", false},
        {"only a fraction", "sn,cpu_milli,memory_mib,gpu,model\nn,.5,2,3,M\n", "line 2: cpu_milli",
         false},
        {"two points", "sn,cpu_milli,memory_mib,gpu,model\nn,1.2.3,2,3,M\n", "line 2: cpu_milli",
         false},
        {"too many GPUs", "sn,cpu_milli,memory_mib,gpu,model\nn,1,2,65,M\n", "line 2: gpu", false},
        {"overflow", "sn,cpu_milli,memory_mib,gpu,model\nn,18446744073709551616,2,3,M\n",
         "line 2: cpu_milli", false},
        {"too much CPU", "sn,cpu_milli,memory_mib,gpu,model\nn,2147483648,2,3,M\n",
         "line 2: cpu_milli", false},
        {"quotes", "sn,cpu_milli,memory_mib,gpu,model\n\"n\",1,2,3,M\n", "line 2 has a quoted",
         false},
        {"nothing of a GPU", PODS "p,1,2,1,0,,\n", "line 2: a GPU is asked for", true},
        {"a time that is none", TIMED "\np,1,2,1,5,,yesterday,9\n", "line 2: creation_time", true},
        {"a priority above a user's", TIMED "\np,1,2,1,5,1000000001,1,9\n", "line 2: priority",
         true},
        {"no pods", PODS, "no pod", true},
        {"more than 64 columns",
         ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n", "line 1 has more",
         true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace trace = {0};
        struct gs_error err = {0};
        int result = r->pods ? gs_trace_read_pods(&trace, gs_slice_of(r->csv), &err)
                             : gs_trace_read_nodes(&trace, gs_slice_of(r->csv), &err);
        row_equal(r->row, result, -1);
        row_equal(r->row, err.code, GS_EPROTO);
        if (!strstr(err.msg, r->words))
            fail_msg("row \"%s\": \"%s\" does not say \"%s\"", r->row, err.msg, r->words);
        row_true(r->row, !trace.nodes && !trace.pods && !trace.node_count && !trace.pod_count);
        gs_trace_release(&trace);
    }
}

static void what_is_written_is_read_again(void **state)
{
    static const struct gs_trace_node nodes[] = {{"a", 1, 2, 3, "X"}, {"b", 4, 5, 64, ""}};
    static const struct gs_trace_pod pods[] = {{"p", 1, 2, 0, 0, ""}, {"q", 3, 4, 1, 5, "X|Y"}};
    struct gs_trace trace = {0};
    struct gs_error err = {0};
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(LONG_BYTES);
    _cleanup_(gs_buf_release) struct gs_buf again = GS_BUF(LONG_BYTES);
    gs_trace_write_nodes(&text, nodes, 2);
    assert_int_equal(gs_trace_read_nodes(&trace, (struct gs_slice){text.data, text.len}, &err), 0);
    gs_trace_write_nodes(&again, trace.nodes, trace.node_count);
    assert_string_equal(text.data, again.data);
    assert_string_equal(text.data, "sn,cpu_milli,memory_mib,gpu,model\na,1,2,3,X\nb,4,5,64,\n");
    gs_buf_reset(&text);
    gs_buf_reset(&again);
    gs_trace_write_pods(&text, pods, NULL, 2);
    assert_int_equal(gs_trace_read_pods(&trace, (struct gs_slice){text.data, text.len}, &err), 0);
    gs_trace_write_pods(&again, trace.pods, NULL, trace.pod_count);
    assert_string_equal(text.data, again.data);
    static const struct gs_trace_stay stays[] = {{60, 2}, {0, 0}};
    gs_buf_reset(&text);
    gs_trace_write_pods(&text, pods, stays, 2);
    assert_int_equal(gs_trace_read_pods(&trace, (struct gs_slice){text.data, text.len}, &err), 0);
    assert_true(trace.stays[0].lasts_s == 60 && trace.stays[0].priority == 2);
    assert_true(trace.stays[1].lasts_s == 0 && trace.stays[1].priority == 0);
    gs_trace_release(&trace);
}

/* --- sequences, for 3 nodes and 2 pods --- */

static const struct gs_trace small = {.node_count = 3, .pod_count = 2};

static void a_sequence_is_read(void **state)
{
    static const char *const texts[] = {"3 4\n2 0 1\n1 0 0 1\n", "3 4\n2 0 1\n1 0 0 1",
                                        "3 4 \r\n2 0 1 \r\n1 0 0 1 \r\n"};
    static const uint32_t rank[] = {2, 0, 1}, pods[] = {1, 0, 0, 1};
    for (size_t i = 0; i < GS_COUNT_OF(texts); i++) {
        struct gs_trace_sequence sequence = {0};
        struct gs_error err = {0};
        assert_int_equal(gs_trace_read_sequence(&sequence, &small, gs_slice_of(texts[i]), &err), 0);
        assert_int_equal(sequence.node_count, 3);
        assert_int_equal(sequence.arrivals, 4);
        assert_memory_equal(sequence.rank, rank, sizeof(rank));
        assert_memory_equal(sequence.pods, pods, sizeof(pods));
        gs_trace_sequence_release(&sequence);
        assert_null(sequence.rank);
    }
}

static void broken_sequences_are_refused(void **state)
{
    static const struct {
        const char *row, *text;
        enum gs_code code;
    } rows[] = {
        {"empty", "", GS_EPROTO},
        {"one number", "3\n2 0 1\n1\n", GS_EPROTO},
        {"another number of nodes", "2 1\n1 0\n1\n", GS_EINVAL},
        {"a rank too few", "3 1\n2 0\n1\n", GS_EPROTO},
        {"a rank too many", "3 1\n2 0 1 0\n1\n", GS_EPROTO},
        {"a rank twice", "3 1\n2 0 2\n1\n", GS_EPROTO},
        {"a rank too large", "3 1\n3 0 1\n1\n", GS_EPROTO},
        {"a pod that is not there", "3 1\n2 0 1\n2\n", GS_EPROTO},
        {"a pod too few", "3 2\n2 0 1\n1\n", GS_EPROTO},
        {"a pod too many", "3 1\n2 0 1\n1 1\n", GS_EPROTO},
        {"two blanks", "3 1\n2  0 1\n1\n", GS_EPROTO},
        {"words", "3 1\n2 0 x\n1\n", GS_EPROTO},
        {"more arrivals than there may be", "3 4294967295\n2 0 1\n1\n", GS_EPROTO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace_sequence sequence = {.arrivals = 4711};
        struct gs_error err = {0};
        row_equal(r->row, gs_trace_read_sequence(&sequence, &small, gs_slice_of(r->text), &err),
                  -1);
        row_equal(r->row, err.code, r->code);
        row_true(r->row, sequence.arrivals == 4711 && !sequence.rank && !sequence.pods);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_read),
        cmocka_unit_test(pods_are_read_and_made_regular),
        cmocka_unit_test(how_long_a_pod_ran_is_read),
        cmocka_unit_test(broken_tables_are_refused_with_the_line),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(a_sequence_is_read),
        cmocka_unit_test(broken_sequences_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
