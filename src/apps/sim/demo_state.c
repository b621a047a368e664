/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/demo_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/annotation.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/model/names.h"
#include "sim/rest.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* What every step needs. */
struct reading {
    struct demo_state *state;
    struct gs_names names;
    struct gs_error *err;
};

static const char *keep(struct reading *reading, const char *text)
{
    const char *copy = gs_arena_strndup(&reading->state->arena, text, strlen(text));
    return copy ? copy : "";
}

/* ---- nodes ---- */

static int take_node(struct reading *reading, struct gs_slice text)
{
    struct demo_state *state = reading->state;
    struct gs_node node = {0};
    if (gs_codec_node(&reading->names, text, &node, reading->err) < 0)
        return -1;
    struct gs_gpu *gpus = gs_arena_calloc(&state->arena, node.gpu_count + 1, sizeof(struct gs_gpu));
    if (gpus) {
        memcpy(gpus, node.gpus ? node.gpus : gpus, node.gpu_count * sizeof(*gpus));
        const char *unit = gs_unit_name(node.unit);
        state->nodes[state->node_count++] = (struct demo_node){
            .name = keep(reading, node.name),
            .unit = unit[0] ? unit : "units",
            .gpus = gpus,
            .gpu_count = node.gpu_count,
        };
    }
    gs_node_release(&node);
    return gpus ? 0 : gs_fail_nomem(reading->err);
}

static struct demo_node *find_node(struct demo_state *state, const char *name)
{
    for (size_t i = 0; i < state->node_count; i++) {
        if (strcmp(state->nodes[i].name, name) == 0)
            return &state->nodes[i];
    }
    return NULL;
}

/* ---- pods ---- */

/* Appends the sizes of the containers of one kind, "6+4", after `intro`. */
static int add_sizes(const struct gs_pod *pod, enum gs_container_kind kind, const char *intro,
                     char *text, int len, int size)
{
    const char *before = intro;
    for (uint32_t i = 0; i < pod->container_count && len < size; i++) {
        const struct gs_container *c = &pod->containers[i];
        if (c->kind != kind || !c->gpu_units)
            continue;
        len += snprintf(text + len, (size_t)(size - len), "%s%u", before, c->gpu_units);
        before = "+";
    }
    return len;
}

/* "8", "6+4", "60 over 2 GPUs", "8, init 14", "6, sidecar 2, init 4" */
static const char *describe(struct reading *reading, const struct gs_pod *pod)
{
    enum { SIZE = 128 };
    char text[SIZE] = "";
    int len = add_sizes(pod, GS_CONTAINER_MAIN, "", text, 0, SIZE);
    len = add_sizes(pod, GS_CONTAINER_SIDECAR, len ? ", sidecar " : "sidecar ", text, len, SIZE);
    len = add_sizes(pod, GS_CONTAINER_INIT, len ? ", init " : "init ", text, len, SIZE);
    if (len == 0)
        return "no GPU memory";
    if (pod->count_kind == GS_COUNT_VALID && len < SIZE)
        snprintf(text + len, (size_t)(SIZE - len), " over %u GPUs", pod->gpu_count);
    return keep(reading, text);
}

static void charge(struct demo_state *state, const struct demo_pod *pod, struct demo_node *node)
{
    gs_gpu_mask left = pod->gpus;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        if (!(pod->gpus & GS_GPU_BIT(node->gpus[i].idx)))
            continue;
        node->used[i] += pod->units;
        left &= ~GS_GPU_BIT(node->gpus[i].idx);
    }
    node->misplaced |= left != 0;
}

static void fill_pod(struct reading *reading, const json_t *object, const struct gs_pod *pod)
{
    struct demo_state *state = reading->state;
    const json_t *annotations = rest_member(object, "metadata", "annotations", NULL);
    struct gs_charge asked;
    struct demo_pod *ret = &state->pods[state->pod_count];
    struct demo_node *node = pod->node_name[0] ? find_node(state, pod->node_name) : NULL;
    gs_pod_charge(pod, &asked);
    *ret = (struct demo_pod){
        .name = keep(reading, pod->name),
        .asks = describe(reading, pod),
        .node = node,
        .gpus = gs_pod_recorded(pod),
        .units = asked.units,
        .gpu_count = asked.gpu_count,
        .idx = keep(reading, rest_text(annotations, reading->names.idx)),
        .message = keep(reading, rest_text(rest_condition(object, "PodScheduled"), "message")),
        .expect = keep(reading, rest_text(annotations, "demo.gpushare/expect")),
        .expect_reason = keep(reading, rest_text(annotations, "demo.gpushare/expect-reason")),
        .letter = letters[state->pod_count % (sizeof(letters) - 1)],
    };
    state->pod_count++;
    if (node)
        charge(state, ret, node);
    state->bound += node != NULL;
    state->waiting += node == NULL;
}

static int take_pod(struct reading *reading, const json_t *object, struct gs_slice text)
{
    struct gs_pod pod = {0};
    if (gs_codec_pod(&reading->names, text, &pod, reading->err) < 0)
        return -1;
    if (!gs_pod_terminal(&pod))
        fill_pod(reading, object, &pod);
    gs_pod_release(&pod);
    return 0;
}

/* ---- everything ---- */

static int each_item(struct reading *reading, const json_t *list, bool pods)
{
    json_t *items = json_object_get(list, "items"), *object;
    size_t i, count = json_array_size(items);
    struct demo_state *state = reading->state;
    void *room = gs_arena_calloc(&state->arena, count + 1,
                                 pods ? sizeof(*state->pods) : sizeof(*state->nodes));
    if (!room)
        return gs_fail_nomem(reading->err);
    if (pods)
        state->pods = room;
    else
        state->nodes = room;
    json_array_foreach(items, i, object)
    {
        _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
        if (!text)
            return gs_fail_nomem(reading->err);
        if ((pods ? take_pod(reading, object, gs_slice_of(text))
                  : take_node(reading, gs_slice_of(text))) < 0)
            return -1;
    }
    return 0;
}

static int read_list(struct reading *reading, struct gs_kube_client *api, bool pods)
{
    json_auto_t *list = NULL;
    if (rest_call(api, "GET", pods ? "/api/v1/pods" : "/api/v1/nodes", NULL, NULL, &list,
                  reading->err) < 0)
        return -1;
    return each_item(reading, list, pods);
}

/* The original's inspect: nodes[].devs[].{id,usedGPU}. */
static int read_inspect(struct reading *reading, const char *url)
{
    struct gs_kube_client *extender = NULL;
    json_auto_t *answer = NULL;
    json_t *entry, *dev;
    size_t i, k;
    int rc = rest_connect(url, NULL, &reading->names, &extender, reading->err);
    if (rc == 0)
        rc = rest_call(extender, "GET", "/gpushare-scheduler/inspect", NULL, NULL, &answer,
                       reading->err);
    gs_kube_client_free(extender);
    if (rc < 0)
        return -1;
    json_array_foreach(json_object_get(answer, "nodes"), i, entry)
    {
        struct demo_node *node = find_node(reading->state, rest_text(entry, "name"));
        json_array_foreach(json_object_get(entry, "devs"), k, dev)
        {
            json_int_t id = json_integer_value(json_object_get(dev, "id"));
            for (uint32_t g = 0; node && g < node->gpu_count; g++) {
                if ((json_int_t)node->gpus[g].idx == id)
                    node->inspect_used[g] =
                        (uint64_t)json_integer_value(json_object_get(dev, "usedGPU"));
            }
        }
    }
    reading->state->inspected = true;
    return 0;
}

int demo_state_read(const char *api, const char *kubeconfig, const char *extender,
                    const char *domain, struct demo_state *ret, struct gs_error *err)
{
    struct reading reading = {.state = ret, .err = err};
    struct gs_kube_client *client = NULL;
    if (gs_names_init(&reading.names, domain, err) < 0 ||
        rest_connect(api, kubeconfig, &reading.names, &client, err) < 0)
        return -1;
    int rc = read_list(&reading, client, false);
    if (rc == 0)
        rc = read_list(&reading, client, true);
    if (rc == 0 && extender)
        rc = read_inspect(&reading, extender);
    gs_kube_client_free(client);
    return rc;
}

void demo_state_release(struct demo_state *state)
{
    gs_arena_release(&state->arena);
    *state = (struct demo_state){0};
}
