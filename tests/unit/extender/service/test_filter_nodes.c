/* SPDX-License-Identifier: Apache-2.0 */
/* Filter with Node objects: kube-scheduler without nodeCacheCapable, and Cluster Autoscaler, which
 * asks about nodes that do not exist. */
#include "rows.h"

#include "service_rig.h"

#include "extender/service/service_internal.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "o", 4, "n1", "0");
    rig_pod(&rig, "q", 6, "n1", "0");
    service_tick(rig.service);
    *state = &rig;
    return 0;
}

#define CAPACITY(mem, count)                                                                       \
    "'status':{'capacity':{'cpu':'8','aliyun.com/gpu-mem':'" mem                                   \
    "','aliyun.com/gpu-count':'" count "'}}"
#define SIZED(name, mem, count) "{'metadata':{'name':'" name "'}," CAPACITY(mem, count) "}"
#define INVENTORY(gpus)                                                                            \
    "'annotations':{'aliyun.com/gpu-inventory':'{\\'v\\':1,\\'unit\\':\\'GiB\\',\\'gpus\\':[" gpus \
    "]}'}"
#define GPU(idx, mem, rest) "{\\'idx\\':" idx ",\\'mem\\':" mem rest "}"
#define A100                                                                                       \
    ",\\'model\\':\\'A100\\',\\'uuid\\':\\'GPU-1\\',\\'healthy\\':true,\\'schedulable\\':true"
#define LISTED(name, gpus)                                                                         \
    "{'metadata':{'name':'" name "'," INVENTORY(gpus) "}," CAPACITY("1", "1") "}"

#define GROUPED "'labels':{'scheduling.x-k8s.io/pod-group':'g'},"
#define BROKEN                                                                                     \
    "{'metadata':{'name':'new','annotations':{'aliyun.com/gpu-inventory':'{'}}," CAPACITY("16",    \
                                                                                          "1") "}"

/* A pod's units; the nodes asked about; those that must come back, and the reason that must be
 * among the others. Beside it, as Cluster Autoscaler simulates, a pod that nobody waits for, of
 * each kind that is remembered when somebody does: a member of a group, one of a scheduler that
 * never asked, one with a nominated node. */
static const struct {
    const char *row;
    unsigned units;
    const char *nodes;
    const char *kept;
    const char *reason;
    const char *metadata, *spec, *status;
} rows[] = {
    {"capacity divided by count", 16, SIZED("new", "32", "2"), SIZED("new", "32", "2"), ""},
    {"larger than each", 17, SIZED("new", "32", "2"), "", "no GPU large enough for the request"},
    {"the inventory wins over the capacity", 24, LISTED("new", GPU("0", "24", A100)),
     LISTED("new", GPU("0", "24", A100)), ""},
    {"a broken inventory", 8, BROKEN, BROKEN, ""},
    {"several, in their order", 8,
     SIZED("b", "16", "1") "," SIZED("small", "4", "1") "," SIZED("a", "8", "1"),
     SIZED("b", "16", "1") "," SIZED("a", "8", "1"), "no GPU large enough"},
    {"a node that exists counts what is used there", 7,
     SIZED("n1", "16", "1") "," SIZED("new", "4", "1"), "", "insufficient free GPU memory"},
    {"and has the size of the object", 7, SIZED("n1", "20", "1") "," SIZED("new", "4", "1"),
     SIZED("n1", "20", "1"), ""},
    {"only in its place", 7, SIZED("n2", "16", "1") "," SIZED("new", "4", "1"), "",
     "reserved for a nominated pod"},
    {"no nodes", 1, "", "", ""},
    {"a pod without GPU memory", 0, "{'metadata':{'name':'cpu'}}", "{'metadata':{'name':'cpu'}}",
     ""},
    {"a member fits", 8, SIZED("new", "32", "2"), SIZED("new", "32", "2"), "", GROUPED},
    {"a member fits none", 8, SIZED("new", "4", "1"), "", "no GPU large enough", GROUPED},
    {"of a scheduler that never asked", 8, SIZED("new", "32", "2"), SIZED("new", "32", "2"), "", "",
     "'schedulerName':'stranger',"},
    {"nominated there", 8, SIZED("new", "8", "1"), SIZED("new", "8", "1"), "", "", "'priority':9,",
     ",'nominatedNodeName':'new'"},
};

/* *Caller frees*; metadata, spec and status: more of the pod, NULL: nothing. */
static char *filter_as(unsigned units, const char *nodes, const char *metadata, const char *spec,
                       const char *status)
{
    char body[8192];
    struct gs_buf answer = GS_BUF(1 << 20);
    snprintf(body, sizeof(body),
             "{'Pod':{'metadata':{%s'name':'p','namespace':'default','uid':'up'},'spec':{%s"
             "'containers':[{'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'%u'}}}]},"
             "'status':{'phase':'Pending'%s}},'Nodes':{'items':[%s]},'NodeNames':null}",
             metadata ? metadata : "", spec ? spec : "", units, status ? status : "", nodes);
    rig_quote(body);
    if (service_try(rig.service, GS_VERB_FILTER, body, strlen(body), &answer) != GS_ANSWERED)
        fail_msg("no answer to %s", body);
    return gs_buf_steal(&answer);
}

static char *filter(unsigned units, const char *nodes)
{
    return filter_as(units, nodes, NULL, NULL, NULL);
}

/* What any of them would keep: the ledger and the promises in it, all promises, and the metrics but
 * the count and time of filter's own answers. *Caller frees.* */
static char *all_that_is_kept(void)
{
    struct gs_buf text = GS_BUF(1 << 20), metrics = GS_BUF(1 << 20);
    struct gs_error err = {0};
    assert_int_equal(gs_service_inspect(rig.service, NULL, &text, &err), 0);
    assert_int_equal(gs_service_reservations(rig.service, &text, &err), 0);
    gs_service_metrics(rig.service, &metrics);
    for (char *line = strtok(metrics.data, "\n"); line; line = strtok(NULL, "\n")) {
        if (!strstr(line, "{verb=\"filter\""))
            gs_buf_printf(&text, "\n%s", line);
    }
    gs_buf_release(&metrics);
    assert_false(gs_buf_failed(&text));
    return gs_buf_steal(&text);
}

static void nodes_are_judged_as_given_and_echoed_and_nothing_is_left(void **state)
{
    const struct rig_pod urgent = {.name = "v", .priority = 9, .units = 10, .nominated = "n2"};
    rig_feed(&rig, rig_json(&rig, urgent), false);
    rig_node(&rig, "n2", "16");
    GS_FOR_EACH_ROW (r, rows) {
        char kept[4096];
        snprintf(kept, sizeof(kept), "\"items\":[%s]", r->kept);
        rig_quote(kept);
        char *before = all_that_is_kept();
        char *answer = filter_as(r->units, r->nodes, r->metadata, r->spec, r->status);
        if (!strstr(answer, kept) || !strstr(answer, r->reason))
            fail_msg("%s: %s and \"%s\" expected in %s", r->row, kept, r->reason, answer);
        char *after = all_that_is_kept();
        row_text(r->row, after, before);
        free(answer);
        free(before);
        free(after);
    }
    rig_pod_gone(&rig, "v");
    rig_pod_gone(&rig, "q"); /* memory comes free: nobody is told */
    for (int i = 0; i < 20; i++)
        rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.binds + rig.gets + rig.patches + rig.events, 0);
}

/* Nobody who never asked by name is woken or nominated: a simulation says nothing of it. */
static void a_simulation_is_no_scheduler_that_asked(void **state)
{
    struct gs_service *service = rig.service;
    free(filter(8, SIZED("new", "32", "2")));
    assert_false(atomic_load(&service->schedulers.asked[0]));
    free(filter(8, SIZED("n1", "16", "1")));
    assert_true(atomic_load(&service->schedulers.asked[0]));
}

/* With --filter-names=one, as for a member of a group. */
static void no_gpu_is_reserved_for_a_pod_by_whole_nodes(void **state)
{
    rig.service->config.names_one = true;
    rig_pod(&rig, "p", 8, NULL, NULL);
    free(filter(8, SIZED("n1", "20", "1")));
    assert_int_equal(gs_ledger_promises(rig.service->ledger), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nodes_are_judged_as_given_and_echoed_and_nothing_is_left),
        T(a_simulation_is_no_scheduler_that_asked),
        T(no_gpu_is_reserved_for_a_pod_by_whole_nodes),
    };
    return GS_RUN(tests);
}
