/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/buf.h"
#include "gpushare/codec/quantity.h"
#include "sim/rest.h"
#include "sim/scheduler.h"

/* ---- reading ---- */

void sched_nodes_release(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->node_count; i++) {
        free(sched->nodes[i].name);
        json_decref(sched->nodes[i].object);
    }
    free(sched->nodes);
    sched->nodes = NULL;
    sched->node_count = 0;
}

static int64_t quantity(const json_t *map, const char *key, bool milli)
{
    int64_t amount = 0;
    struct gs_slice text = gs_slice_of(rest_text(map, key));
    if (milli)
        gs_quantity_milli(text, &amount);
    else
        gs_quantity_value(text, &amount);
    return amount;
}

static int take_node(struct sched *sched, json_t *object)
{
    const json_t *allocatable = rest_member(object, "status", "allocatable", NULL);
    struct sched_node node = {
        .name = strdup(rest_text(rest_member(object, "metadata", NULL), "name")),
        .object = json_incref(object),
        .allocatable = {.cpu_milli = quantity(allocatable, "cpu", true),
                        .memory_bytes = quantity(allocatable, "memory", false),
                        .gpu_units = (uint64_t)quantity(allocatable, sched->names.gpu_mem, false),
                        .cores_pct = (uint64_t)quantity(allocatable, sched->names.gpu_cores, false),
                        .pods = (uint64_t)quantity(allocatable, "pods", false)},
    };
    sched->nodes[sched->node_count++] = node;
    return node.name ? 0 : -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct sched_node *)a)->name, ((const struct sched_node *)b)->name);
}

int sched_nodes_refresh(struct sched *sched, struct gs_error *err)
{
    pthread_mutex_lock(&sched->lock);
    bool changed = sched->nodes_changed;
    sched->nodes_changed = false;
    pthread_mutex_unlock(&sched->lock);
    if (!changed)
        return 0;
    json_auto_t *list = NULL;
    if (rest_call(sched->api, "GET", "/api/v1/nodes", NULL, NULL, &list, err) < 0)
        return -1;
    sched_nodes_release(sched);
    json_t *items = json_object_get(list, "items"), *object;
    sched->nodes = calloc(json_array_size(items) + 1, sizeof(*sched->nodes));
    if (!sched->nodes)
        return gs_fail_nomem(err);
    size_t i;
    json_array_foreach(items, i, object)
    {
        if (take_node(sched, object) < 0)
            return gs_fail_nomem(err);
    }
    qsort(sched->nodes, sched->node_count, sizeof(*sched->nodes), by_name);
    return 0;
}

/* ---- judging: the plugins NodeUnschedulable, NodeAffinity, TaintToleration, NodeResourcesFit ----
 */

static bool tolerates(const json_t *pod, const char *key, const char *value, const char *effect)
{
    const json_t *tolerations = json_object_get(rest_member(pod, "spec", NULL), "tolerations");
    json_t *entry;
    size_t i;
    json_array_foreach((json_t *)tolerations, i, entry)
    {
        const char *wanted = rest_text(entry, "key");
        bool exists = strcmp(rest_text(entry, "operator"), "Exists") == 0;
        bool same_effect =
            !rest_text(entry, "effect")[0] || strcmp(rest_text(entry, "effect"), effect) == 0;
        if (same_effect && (strcmp(wanted, key) == 0 || (exists && !wanted[0])) &&
            (exists || strcmp(rest_text(entry, "value"), value) == 0))
            return true;
    }
    return false;
}

static bool untolerated_taint(const json_t *node, const json_t *pod, char *ret, size_t size)
{
    const json_t *taints = json_object_get(rest_member(node, "spec", NULL), "taints");
    json_t *taint;
    size_t i;
    json_array_foreach((json_t *)taints, i, taint)
    {
        const char *key = rest_text(taint, "key"), *value = rest_text(taint, "value");
        const char *effect = rest_text(taint, "effect");
        if (strcmp(effect, "PreferNoSchedule") == 0 || tolerates(pod, key, value, effect))
            continue;
        snprintf(ret, size, "node(s) had untolerated taint {%s: %s}", key, value);
        return true;
    }
    return false;
}

static bool selected(const json_t *node, const json_t *pod)
{
    json_t *wanted = rest_member(pod, "spec", "nodeSelector", NULL);
    const json_t *labels = rest_member(node, "metadata", "labels", NULL);
    const char *key;
    json_t *value;
    json_object_foreach(wanted, key, value)
    {
        if (!json_equal(json_object_get(labels, key), value))
            return false;
    }
    return true;
}

void sched_reasons_add(struct sched_reasons *reasons, const char *reason)
{
    if (!reasons->counts)
        reasons->counts = json_object();
    json_int_t count = json_integer_value(json_object_get(reasons->counts, reason));
    json_object_set_new(reasons->counts, reason, json_integer(count + 1));
}

/* Every resource that is short is a reason of its own. */
static bool resources_fit(const struct sched *sched, const struct sched_node *node,
                          const struct sched_pod *asks, struct sched_reasons *reasons)
{
    const struct sched_use *total = &node->allocatable, *used = &node->used;
    char text[GS_NAME_BYTES + 16];
    bool fit = true;
    if (used->pods + 1 > total->pods) {
        sched_reasons_add(reasons, "Too many pods");
        fit = false;
    }
    if (asks->cpu_milli > 0 && used->cpu_milli + asks->cpu_milli > total->cpu_milli) {
        sched_reasons_add(reasons, "Insufficient cpu");
        fit = false;
    }
    if (asks->memory_bytes > 0 && used->memory_bytes + asks->memory_bytes > total->memory_bytes) {
        sched_reasons_add(reasons, "Insufficient memory");
        fit = false;
    }
    if (asks->gpu_units > 0 && used->gpu_units + asks->gpu_units > total->gpu_units) {
        snprintf(text, sizeof(text), "Insufficient %s", sched->names.gpu_mem);
        sched_reasons_add(reasons, text);
        fit = false;
    }
    if (asks->cores_pct > 0 && used->cores_pct + asks->cores_pct > total->cores_pct) {
        snprintf(text, sizeof(text), "Insufficient %s", sched->names.gpu_cores);
        sched_reasons_add(reasons, text);
        fit = false;
    }
    return fit;
}

static bool node_fits(const struct sched *sched, const struct sched_node *node, const json_t *pod,
                      const struct sched_pod *asks, struct sched_reasons *reasons)
{
    char taint[256];
    if (json_is_true(json_object_get(rest_member(node->object, "spec", NULL), "unschedulable")))
        sched_reasons_add(reasons, "node(s) were unschedulable");
    else if (!selected(node->object, pod))
        sched_reasons_add(reasons, "node(s) didn't match Pod's node affinity/selector");
    else if (untolerated_taint(node->object, pod, taint, sizeof(taint)))
        sched_reasons_add(reasons, taint);
    else
        return resources_fit(sched, node, asks, reasons);
    return false;
}

json_t *sched_feasible(struct sched *sched, const json_t *pod, const struct sched_pod *asks,
                       struct sched_reasons *reasons)
{
    json_t *names = json_array();
    sched_count_uses(sched);
    for (uint32_t i = 0; i < sched->node_count; i++) {
        if (node_fits(sched, &sched->nodes[i], pod, asks, reasons))
            json_array_append_new(names, json_string(sched->nodes[i].name));
    }
    return names;
}

/* ---- words: FitError.Error(), pkg/scheduler/framework/types.go ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *sched_reasons_text(const struct sched_reasons *reasons, uint32_t nodes)
{
    struct gs_buf text = GS_BUF(1 << 20);
    size_t count = json_object_size(reasons->counts), at = 0;
    char **lines = calloc(count + 1, sizeof(*lines));
    const char *reason;
    json_t *number;
    if (!lines)
        return NULL;
    json_object_foreach(reasons->counts, reason, number)
    {
        if (asprintf(&lines[at], "%lld %s", (long long)json_integer_value(number), reason) >= 0)
            at++;
    }
    qsort(lines, at, sizeof(*lines), by_text);
    gs_buf_printf(&text, "0/%u nodes are available", nodes);
    for (size_t i = 0; i < at; i++) {
        gs_buf_printf(&text, "%s%s", i ? ", " : ": ", lines[i]);
        free(lines[i]);
    }
    free(lines);
    gs_buf_putc(&text, '.');
    char *ret = gs_buf_steal(&text);
    gs_buf_release(&text);
    return ret;
}
