/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's lists are its author's: whatever they say, a request costs as many comparisons in a large
 * cluster as in a small one. */
#include "service_rig.h"

#include "compared.h"
#include "rows.h"

enum { NODES = 50 };

static void add_node(struct rig *rig, const char *name, struct gs_gpu *gpus, uint32_t count)
{
    const struct gs_node node = {.name = name, .gpus = gpus, .gpu_count = count};
    assert_int_equal(rig->sink.node(rig->sink.ctx, &node), 0);
}

static void add_a100(struct rig *rig, unsigned n)
{
    struct gs_gpu gpu = {.mem_units = 80, .healthy = true, .schedulable = true};
    char name[16];
    snprintf(name, sizeof(name), "n%u", n);
    snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%u", n);
    snprintf(gpu.model, sizeof(gpu.model), "NVIDIA A100-SXM4-80GB");
    add_node(rig, name, &gpu, 1);
}

/* "q0,q1,…": `entries` of them, each beginning as the model does. */
static void make_list(char *out, size_t size, unsigned entries)
{
    size_t len = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < entries; i++)
        len += (size_t)snprintf(out + len, size - len, "%sn%u", i ? "," : "", i);
}

static char list[1 << 19], body[(1 << 20) + 16384];

static unsigned long ask(const char *verb, unsigned entries, unsigned nodes)
{
    struct rig rig;
    rig_start(&rig);
    rig_lists(&rig);
    for (unsigned n = 0; n < nodes; n++)
        add_a100(&rig, n);
    make_list(list, sizeof(list), entries);
    int len =
        snprintf(body, sizeof(body),
                 "{'Pod':{'metadata':{'name':'p','namespace':'default','uid':'u','annotations'"
                 ":{'aliyun.com/gpu-model-deny':'%s','aliyun.com/gpu-uuid-deny':'%s'}},'spec':"
                 "{'containers':[{'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':"
                 "'8'}}}]}},",
                 list, list);
    bool preempts = strcmp(verb, "preempt") == 0;
    len += snprintf(body + len, sizeof(body) - (size_t)len,
                    preempts ? "'NodeNameToMetaVictims':{" : "'NodeNames':[");
    for (unsigned n = 0; n < nodes; n++)
        len += snprintf(body + len, sizeof(body) - (size_t)len,
                        preempts ? "%s'n%u':{'Pods':[]}" : "%s'n%u'", n ? "," : "", n);
    snprintf(body + len, sizeof(body) - (size_t)len, preempts ? "}}" : "]}");
    rig_quote(body);
    compared = 0;
    free(rig_ask(&rig,
                 preempts                      ? gs_service_preempt
                 : strcmp(verb, "filter") == 0 ? gs_service_filter
                                               : gs_service_prioritize,
                 body));
    unsigned long count = compared;
    rig_stop(&rig);
    return count;
}

/* How often texts were compared because of lists of so many entries. */
static unsigned long ask_about(const char *verb, unsigned entries, unsigned nodes)
{
    return ask(verb, entries, nodes) - ask(verb, 0, nodes); /* less what reading takes */
}

static void work_does_not_grow_with_the_cluster(void **state)
{
    static const char *const verbs[] = {"filter", "prioritize", "preempt"};
    GS_FOR_EACH_ROW (r, verbs) {
        unsigned long one = ask_about(*r, GS_LIST_ENTRIES_MAX, 1);
        row_true(*r, one > 0);
        row_equal(*r, ask_about(*r, GS_LIST_ENTRIES_MAX, NODES), one);
    }
}

/* GPUs of sixteen models, all of which begin as every entry of the pods' lists does. */
static void give_models(struct rig *rig, const char *name)
{
    struct gs_gpu gpus[GS_NODE_MODELS_MAX] = {0};
    for (uint32_t i = 0; i < GS_NODE_MODELS_MAX; i++) {
        gpus[i] = (struct gs_gpu){.idx = i, .mem_units = 1, .healthy = true};
        memset(gpus[i].model, 'q', 60);
        gpus[i].model[60] = (char)('a' + i);
    }
    add_node(rig, name, gpus, GS_NODE_MODELS_MAX);
}

static void refuse(struct rig *rig, const char *deny, int pod)
{
    snprintf(body, sizeof(body),
             "{'metadata':{'name':'p%d','namespace':'a','uid':'p%d','resourceVersion':'%llu',"
             "'annotations':{'aliyun.com/gpu-model-deny':'%s'}},'spec':{'containers':[{'name':'c',"
             "'resources':{'limits':{'aliyun.com/gpu-mem':'1'}}}]},'status':{'phase':'Pending'}}",
             pod, pod, (unsigned long long)++rig->revision, deny);
    rig_quote(body);
    rig_feed(rig, body, false);
    rig_expect(rig_filter(rig, body, "\"n1\""), "\"NodeNames\":[]");
}

static void a_tick_matches_few_of_the_longest_lists(void **state)
{
    enum { PODS = 300 };
    static struct rig rig;
    char deny[GS_LIST_BYTES_MAX + 1] = "";
    for (int i = 0; i < GS_LIST_ENTRIES_MAX; i++)
        snprintf(deny + strlen(deny), sizeof(deny) - strlen(deny), "%sqqqqqqqqqqqqqqqqqqqqqqqqx",
                 i ? "," : "");
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "old", 16, "n1", "0");
    give_models(&rig, "m");
    compared = 0;
    for (int i = 0; i < PODS; i++)
        refuse(&rig, deny, i);
    unsigned long each = compared / PODS;
    for (int i = 0; i < 10; i++)
        rig_tick(&rig, GS_NS_PER_S / 10);
    rig_pod_gone(&rig, "old");
    compared = 0;
    rig_tick(&rig, GS_NS_PER_S / 10);
    assert_in_range(compared, 1, PODS / 4 * each);
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_does_not_grow_with_the_cluster),
        cmocka_unit_test(a_tick_matches_few_of_the_longest_lists),
    };
    return GS_RUN(tests);
}
