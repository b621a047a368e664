/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "trace.h"

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define PODS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
#define TIMED "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time"

static void nodes_are_read(void **state)
{
    static const struct {
        const char *row, *csv;
        struct gs_trace_node last;
    } rows[] = {
        {"as published",
         NODES "n0,64000,262144,2,P100\nn1,96000,393216,8,G2\n",
         {"n1", 96000, 393216, 8, "G2"}},
        {"columns in another order, and more of them",
         "model,gpu,zone,cpu_milli,sn,memory_mib\nT4,1,z,4000,n,8\n",
         {"n", 4000, 8, 1, "T4"}},
        {"carriage returns, empty lines, no newline at the end",
         "sn,cpu_milli,memory_mib,gpu,model\r\n\r\nn,1,2,3,M",
         {"n", 1, 2, 3, "M"}},
        {"fractions are dropped", NODES "n,1.0,2.9,3.,M\n", {"n", 1, 2, 3, "M"}},
        {"a short line: the rest is empty",
         "gpu,cpu_milli,memory_mib,sn,model\n1,2,3\n",
         {"", 2, 3, 1, ""}},
        {"the largest",
         NODES "n,2147483647,1099511627776,64,M\n",
         {"n", INT32_MAX, (int64_t)1 << 40, 64, "M"}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace trace = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_trace_read_nodes(&trace, gs_slice_of(r->csv), &err), 0);
        const struct gs_trace_node *last = &trace.nodes[trace.node_count - 1];
        row_text(r->row, last->name, r->last.name);
        row_equal(r->row, last->cpu_milli, r->last.cpu_milli);
        row_equal(r->row, last->memory_mib, r->last.memory_mib);
        row_equal(r->row, last->gpus, r->last.gpus);
        row_text(r->row, last->model, r->last.model);
        gs_trace_release(&trace);
    }
}

static void pods_are_read_and_made_regular(void **state)
{
    static const struct {
        const char *row, *csv;
        struct gs_trace_pod pod;
        int64_t lasts_s;
    } rows[] = {
        {"models", PODS "p,6000,2,1,460,T4|P100,LS\n", {"p", 6000, 2, 1, 460, "T4|P100"}, 0},
        {"more than a GPU is a GPU", PODS "p,1,2,1,1500,,\n", {"p", 1, 2, 1, 1000, ""}, 0},
        {"several GPUs are whole ones", PODS "p,1,2,4,0,,\n", {"p", 1, 2, 4, 1000, ""}, 0},
        {"without GPU there are no models", PODS "p,1,2,0,460,T4,\n", {"p", 1, 2, 0, 0, ""}, 0},
        {"it ran from its start",
         TIMED ",scheduled_time\np,1,2,1,5,10,100,40\n",
         {"p", 1, 2, 1, 5, ""},
         60},
        {"it waited until it was deleted",
         TIMED ",scheduled_time\np,1,2,1,5,10,100,\n",
         {"p", 1, 2, 1, 5, ""},
         0},
        {"from its creation; floating point",
         TIMED "\np,1.0,2,1,5,10.0,100.0\n",
         {"p", 1, 2, 1, 5, ""},
         90},
        {"less than a second is one", TIMED "\np,1,2,1,5,10,10\n", {"p", 1, 2, 1, 5, ""}, 1},
        {"it has not ended", TIMED "\np,1,2,1,5,10,\n", {"p", 1, 2, 1, 5, ""}, 0},
        {"it ended before it began", TIMED "\np,1,2,1,5,10,9\n", {"p", 1, 2, 1, 5, ""}, 0},
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
        row_equal(r->row, trace.lasts_s[0], r->lasts_s);
        gs_trace_release(&trace);
    }
}

static void broken_tables_are_refused_with_the_line(void **state)
{
    static const struct {
        const char *row, *csv, *words;
        bool pods;
    } rows[] = {
        {"only line ends", "\n\r\n\n", "empty", false},
        {"no rows", NODES, "no node", false},
        {"names are exact", "sn,cpu_milli,memory_mib,GPU,model\nn,1,2,3,M\n", "no column gpu",
         false},
        {"no number", NODES "n,1,2,3,M\nn,x,2,3,M\n", "line 3: cpu_milli", false},
        {"only a fraction", NODES "n,.5,2,3,M\n", "line 2: cpu_milli", false},
        {"two points", NODES "n,1.2.3,2,3,M\n", "line 2: cpu_milli", false},
        {"too many GPUs", NODES "n,1,2,65,M\n", "line 2: gpu", false},
        {"overflow", NODES "n,18446744073709551616,2,3,M\n", "line 2: cpu_milli", false},
        {"quotes", NODES "\"n\",1,2,3,M\n", "line 2 has a quoted", false},
        {"nothing of a GPU", PODS "p,1,2,1,0,,\n", "line 2: a GPU is asked for", true},
        {"a time that is none", TIMED "\np,1,2,1,5,yesterday,9\n", "line 2: creation_time", true},
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
        gs_trace_release(&trace);
    }
}

/* For 3 nodes and 2 pods; 0: read. */
static void sequences_are_read_or_refused(void **state)
{
    static const struct {
        const char *row, *text;
        enum gs_code code;
    } rows[] = {
        {"as written", "3 4\n2 0 1\n1 0 0 1\n", GS_OK},
        {"blanks and carriage returns at the ends", "3 4 \r\n2 0 1 \r\n1 0 0 1", GS_OK},
        {"empty", "", GS_EPROTO},
        {"another number of nodes", "2 1\n1 0\n1\n", GS_EINVAL},
        {"a rank too few", "3 1\n2 0\n1\n", GS_EPROTO},
        {"a rank too many", "3 1\n2 0 1 0\n1\n", GS_EPROTO},
        {"a rank twice", "3 1\n2 0 2\n1\n", GS_EPROTO},
        {"a rank too large", "3 1\n3 0 1\n1\n", GS_EPROTO},
        {"a pod that is not there", "3 1\n2 0 1\n2\n", GS_EPROTO},
        {"words", "3 1\n2 0 x\n1\n", GS_EPROTO},
        {"more arrivals than there may be", "3 4294967295\n2 0 1\n1\n", GS_EPROTO},
    };
    static const struct gs_trace small = {.node_count = 3, .pod_count = 2};
    static const uint32_t rank[] = {2, 0, 1}, pods[] = {1, 0, 0, 1};
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace_sequence sequence = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_trace_read_sequence(&sequence, &small, gs_slice_of(r->text), &err),
                  r->code ? -1 : 0);
        row_equal(r->row, err.code, r->code);
        row_equal(r->row, sequence.arrivals, r->code ? 0 : 4);
        if (sequence.rank) {
            assert_memory_equal(sequence.rank, rank, sizeof(rank));
            assert_memory_equal(sequence.pods, pods, sizeof(pods));
        }
        gs_trace_sequence_release(&sequence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_read),
        cmocka_unit_test(pods_are_read_and_made_regular),
        cmocka_unit_test(broken_tables_are_refused_with_the_line),
        cmocka_unit_test(sequences_are_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
