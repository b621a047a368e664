/* SPDX-License-Identifier: Apache-2.0 */
/* The API server: objects, their history, bindings. */
#include "service_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/buf.h"
#include "gpushare/codec/moved.h"

enum { JSON_MAX = 8192 };

bool sw_runs(const struct sw_pod *pod)
{
    return pod->exists && !pod->ended && pod->node >= 0;
}

unsigned sw_share_of(const struct sw_pod *pod, unsigned gpus)
{
    return gpus && pod->total % gpus == 0 ? pod->total / gpus : 0;
}

unsigned sw_share(const struct sw_pod *pod)
{
    return sw_share_of(pod, gs_gpu_mask_count(pod->runs_on));
}

void sw_format_gpus(gs_gpu_mask gpus, char out[32])
{
    size_t len = 0;
    uint32_t idx;
    out[0] = '\0';
    GS_FOR_EACH_GPU (idx, gpus)
        len += (size_t)snprintf(out + len, 32 - len, "%s%u", len ? "," : "", idx);
}

static void put_notes(struct gs_buf *out, const struct sw_pod *pod)
{
    const char *joint = "";
    if (pod->record[0]) {
        gs_buf_printf(out, "\"ALIYUN_COM_GPU_MEM_IDX\":\"%s\"", pod->record);
        joint = ",";
    }
    if (sw.healed && pod->runs_on)
        gs_buf_printf(out, "%s\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"", joint);
}

char *sw_pod_json(int p)
{
    const struct sw_pod *pod = &sw.pods[p];
    struct gs_buf out = GS_BUF(JSON_MAX);
    gs_buf_printf(&out,
                  "{\"metadata\":{\"name\":\"p%d\",\"namespace\":\"d\",\"uid\":\"u%u\","
                  "\"resourceVersion\":\"%llu\",\"labels\":{",
                  p, pod->uid, (unsigned long long)sw.revision);
    if (pod->label)
        gs_buf_printf(&out, "\"aliyun.com/gpu-count\":\"%u\"", pod->label);
    if (pod->group)
        gs_buf_printf(&out, "%s\"scheduling.x-k8s.io/pod-group\":\"g%u\"", pod->label ? "," : "",
                      pod->group);
    gs_buf_puts(&out, "},\"annotations\":{");
    put_notes(&out, pod);
    gs_buf_puts(&out, "}");
    if (pod->deleting)
        gs_buf_puts(&out, ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    gs_buf_puts(&out, "},\"spec\":{");
    if (pod->node >= 0)
        gs_buf_printf(&out, "\"nodeName\":\"n%d\",", pod->node);
    gs_buf_printf(&out,
                  "\"priority\":%d,\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
                  "\"aliyun.com/gpu-mem\":\"%u\"}}}]},\"status\":{\"phase\":\"%s\"",
                  pod->priority, pod->total,
                  pod->ended       ? "Failed"
                  : pod->node >= 0 ? "Running"
                                   : "Pending");
    if (pod->nominated)
        gs_buf_printf(&out, ",\"nominatedNodeName\":\"n%d\"", pod->nominated - 1);
    gs_buf_puts(&out, "}}");
    return gs_buf_steal(&out);
}

/* As it stands between quotes. */
static void put_quoted(struct gs_buf *out, const char *key, struct gs_buf *text)
{
    gs_buf_printf(out, "\"%s\":", key);
    gs_buf_json_string(out, text->data, text->len);
    gs_buf_release(text);
}

static void put_inventory(struct gs_buf *out, const struct sw_node *node)
{
    struct gs_buf text = GS_BUF(JSON_MAX);
    gs_buf_puts(&text, "{\"v\":1,\"unit\":\"GiB\",\"gpus\":[");
    for (int g = 0; g < SW_GPUS; g++)
        gs_buf_printf(&text, "%s{\"idx\":%d,\"mem\":%u}", g ? "," : "", g, node->size[g]);
    gs_buf_puts(&text, node->speaks ? "],\"reassignments\":true}" : "]}");
    put_quoted(out, sw.names.inventory, &text);
}

static void put_moved(struct gs_buf *out, int n)
{
    struct gs_moved moved[SW_PODS];
    char uids[SW_PODS][16];
    size_t count = 0;
    for (int p = 0; p < SW_PODS; p++) {
        const struct sw_pod *pod = &sw.pods[p];
        if (!pod->exists || pod->node != n || !pod->listed)
            continue;
        snprintf(uids[count], sizeof(uids[count]), "u%u", pod->uid);
        moved[count] = (struct gs_moved){uids[count], pod->listed};
        count++;
    }
    struct gs_buf text = GS_BUF(JSON_MAX);
    gs_codec_moved_encode(&text, moved, count);
    put_quoted(out, sw.names.moved, &text);
}

char *sw_node_json(int n)
{
    const struct sw_node *node = &sw.nodes[n];
    struct gs_buf out = GS_BUF(JSON_MAX);
    gs_buf_printf(&out, "{\"metadata\":{\"name\":\"n%d\",\"annotations\":{", n);
    if (node->inventory) {
        put_inventory(&out, node);
        if (node->speaks)
            gs_buf_putc(&out, ',');
    }
    if (node->inventory && node->speaks)
        put_moved(&out, n);
    gs_buf_puts(&out, "}},\"status\":{\"allocatable\":{\"cpu\":\"64\"}}}");
    return gs_buf_steal(&out);
}

static void append(enum gs_kind kind, char *json, bool gone)
{
    struct sw_history *history = &sw.history[kind];
    if (history->count == history->cap) {
        history->cap = history->cap ? 2 * history->cap : 4096;
        history->events = reallocarray(history->events, history->cap, sizeof(*history->events));
    }
    if (!json || !history->events)
        abort();
    history->events[history->count++] = (struct sw_event){json, gone};
}

void sw_tell_pod(int p, bool gone)
{
    sw.revision++;
    append(GS_KIND_POD, sw_pod_json(p), gone);
}

void sw_tell_node(int n, bool gone)
{
    sw.revision++;
    append(GS_KIND_NODE, sw_node_json(n), gone);
}

void sw_tell_own_pod(const struct sw_replica *replica)
{
    char *json;
    sw.revision++;
    if (asprintf(&json,
                 "{\"metadata\":{\"name\":\"r%d\",\"namespace\":\"own\",\"uid\":\"r%d\","
                 "\"resourceVersion\":\"%llu\",\"annotations\":{\"gpushare/leader-term\":\"%s\"}},"
                 "\"spec\":{\"nodeName\":\"control\"},\"status\":{\"phase\":\"Running\"}}",
                 replica->number, replica->number, (unsigned long long)sw.revision,
                 replica->term) < 0)
        abort();
    append(GS_KIND_POD, json, false);
}

enum gs_code sw_carry_out(int p, unsigned uid, int n, gs_gpu_mask gpus)
{
    struct sw_pod *pod = &sw.pods[p];
    if (!pod->exists)
        return GS_ENOENT;
    if (pod->uid != uid || pod->node >= 0 || pod->deleting || pod->ended)
        return GS_ECONFLICT;
    pod->node = n;
    pod->runs_on = gpus;
    if (!sw_share(pod))
        sw_fail("p%d was bound to GPUs over which it does not divide", p);
    sw_format_gpus(gpus, pod->record);
    pod->bound_at = sw.history[GS_KIND_POD].count;
    sw_tell_pod(p, false);
    sw_check("after a bind was carried out");
    return GS_OK;
}

void sw_carry_out_late(bool all)
{
    for (int i = 0; i < SW_LATE; i++) {
        struct sw_late *late = &sw.late[i];
        if (!late->open || (!all && late->at_ns > sw.now_ns))
            continue;
        late->open = false;
        sw_carry_out(late->pod, late->uid, late->node, late->gpus);
    }
}

bool sw_any_late(void)
{
    for (int i = 0; i < SW_LATE; i++) {
        if (sw.late[i].open)
            return true;
    }
    return false;
}
