/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/what_if.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/array.h"
#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"
#include "gpushare/codec/manifest.h"
#include "gpushare/codec/pod.h"
#include "inspect/lookup.h"

/* Appends a zeroed one; pods' asks borrow from their pods. NULL: there are ORDERS_MAX, or no
 * memory. Pointers to others become invalid. */
static struct order *add_order(struct orders *orders, struct gs_error *err)
{
    if (orders->count == ORDERS_MAX) {
        gs_fail(err, GS_ETOOBIG, "more than %d kinds of pods", ORDERS_MAX);
        return NULL;
    }
    if (!gs_array_reach(&orders->all, &orders->cap, orders->count, sizeof(*orders->all))) {
        gs_fail_nomem(err);
        return NULL;
    }
    struct order *made = &orders->all[orders->count];
    *made = (struct order){.kind = ORDER_ASKED, .turn = (uint32_t)orders->count++};
    return made;
}

void orders_release(struct orders *orders)
{
    GS_EACH_OF (order, orders->all, orders->count) {
        free(order->places);
        gs_pod_release(&order->pod);
    }
    free(orders->all);
    *orders = (struct orders){0};
}

/* ---- sizes of the command line ---- */

static int add_size(struct orders *orders, struct gs_slice text, const struct gs_ask *ask,
                    uint32_t replicas, struct gs_error *err)
{
    const char *times = memchr(text.at, 'x', text.len);
    size_t len = times ? (size_t)(times - text.at) : text.len;
    uint32_t units = 0;
    if (!gs_parse_u32(text.at, len, &units) ||
        (times && !gs_parse_u32(times + 1, text.len - len - 1, &replicas)) || !units ||
        units > INT32_MAX || !replicas || replicas > REPLICAS_MAX)
        return gs_fail(err, GS_EINVAL,
                       "--gpu-mem: \"%.*s\" is not a size such as 6, or 6x10 for ten pods",
                       text.len > 60 ? 60 : (int)text.len, text.at);
    if (units % ask->gpu_count)
        return gs_fail(err, GS_EINVAL, "--gpu-mem %u is not divisible by --gpu-count %u",
                       (unsigned)units, (unsigned)ask->gpu_count);
    struct order *order = add_order(orders, err);
    if (!order)
        return -1;
    order->ask = *ask;
    order->ask.units = units / ask->gpu_count;
    order->replicas = replicas;
    return 0;
}

int orders_of_sizes(struct orders *orders, const char *text, const struct gs_ask *ask,
                    uint32_t replicas, struct gs_error *err)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        if (add_size(orders, (struct gs_slice){at, len}, ask, replicas, err) < 0)
            return -1;
        at += len + (at[len] == ',');
    }
    return 0;
}

/* ---- pods ---- */

int orders_of_pod(struct orders *orders, enum order_kind kind, const struct gs_pod *pod,
                  struct gs_error *err)
{
    struct order *order = add_order(orders, err);
    if (!order)
        return -1;
    if (gs_pod_copy(&order->pod, pod) < 0)
        return gs_fail_nomem(err);
    order->kind = kind;
    order->replicas = 1;
    gs_ask_of_pod(&order->ask, &order->pod);
    return 0;
}

/* ---- a manifest ---- */

struct reading {
    struct orders *orders;
    const struct gs_names *names;
};

static uint32_t number_of(const json_t *spec, const char *name, uint32_t absent)
{
    const json_t *number = json_object_get(spec, name);
    json_int_t value = json_is_integer(number) ? json_integer_value(number) : absent;
    return value < 0 ? 0 : value > REPLICAS_MAX ? REPLICAS_MAX : (uint32_t)value;
}

/* The pod's template and how many of it; NULL: the object makes none. */
static json_t *template_of(json_t *object, const char *kind, uint32_t *ret_replicas)
{
    static const char *const replicated[] = {"Deployment", "StatefulSet", "ReplicaSet",
                                             "ReplicationController"};
    json_t *spec = json_object_get(object, "spec");
    *ret_replicas = 1;
    if (strcmp(kind, "Pod") == 0)
        return object;
    if (strcmp(kind, "CronJob") == 0)
        spec = json_object_get(json_object_get(spec, "jobTemplate"), "spec");
    if (strcmp(kind, "Job") == 0 || strcmp(kind, "CronJob") == 0) {
        uint32_t parallel = number_of(spec, "parallelism", 1);
        uint32_t wanted = number_of(spec, "completions", parallel);
        bool waits = json_is_true(json_object_get(spec, "suspend")) ||
                     json_is_true(json_object_get(json_object_get(object, "spec"), "suspend"));
        *ret_replicas = waits ? 0 : wanted < parallel ? wanted : parallel;
        return json_object_get(spec, "template");
    }
    for (size_t i = 0; i < sizeof(replicated) / sizeof(replicated[0]); i++) {
        if (strcmp(kind, replicated[i]) == 0) {
            *ret_replicas = number_of(spec, "replicas", 1);
            return json_object_get(spec, "template");
        }
    }
    return NULL;
}

/* It requests GPU memory, and how many pods it makes is its controller's to know. */
static void note_unread(struct orders *orders, const char *kind, const char *name)
{
    const size_t len = strlen(orders->unread);
    snprintf(orders->unread + len, sizeof(orders->unread) - len, "%s%.60s %.120s", len ? ", " : "",
             kind, name);
    gs_utf8_calm(orders->unread);
}

static int take(void *ctx, const char *version, const char *kind, struct gs_slice json,
                struct gs_error *err)
{
    struct reading *reading = ctx;
    uint32_t replicas;
    const size_t len = strlen(reading->names->gpu_mem);
    json_auto_t *object = json_loadb(json.at, json.len, 0, NULL);
    json_t *template = template_of(object, kind, &replicas);
    _cleanup_free_ char *text = template ? json_dumps(template, JSON_COMPACT) : NULL;
    if (!template && memmem(json.at, json.len, reading->names->gpu_mem, len))
        note_unread(reading->orders, kind, lookup_text(object, "metadata", "name", NULL));
    if (!text || !replicas)
        return 0;
    struct order *order = add_order(reading->orders, err);
    if (!order || gs_codec_pod(reading->names, gs_slice_of(text), &order->pod, err) < 0)
        return -1;
    if (!gs_pod_wants_gpu(&order->pod)) {
        gs_pod_release(&order->pod);
        reading->orders->count--;
        return 0;
    }
    snprintf(order->title, sizeof(order->title), "%.30s %.200s", kind,
             lookup_text(object, "metadata", "name", NULL));
    order->replicas = replicas;
    gs_ask_of_pod(&order->ask, &order->pod);
    return 0;
}

int orders_of_manifest(struct orders *orders, const struct gs_names *names, const char *path,
                       struct gs_error *err)
{
    struct reading reading = {orders, names};
    struct gs_error why = {0};
    size_t before = orders->count;
    /* whatever is wrong with a file, the API server is not: complain() has no advice then */
    if (gs_manifest_read(path, take, &reading, &why) < 0)
        return gs_fail(err, GS_EINVAL, "%s", why.msg);
    if (orders->count == before)
        return gs_fail(err, GS_EINVAL, "%.200s contains no pod that requests %s%s%s", path,
                       names->gpu_mem, orders->unread[0] ? "; not counted: " : "", orders->unread);
    return 0;
}

/* ---- all of them ---- */

static int by_turn(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->ask.priority != y->ask.priority)
        return x->ask.priority > y->ask.priority ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

void orders_sort(struct orders *orders)
{
    if (orders->count)
        qsort(orders->all, orders->count, sizeof(*orders->all), by_turn);
    for (size_t i = 0; i < orders->count; i++) { /* their pods have moved with them */
        struct order *order = &orders->all[i];
        if (order->ask.rules)
            order->ask.rules = &order->pod.rules;
    }
}

struct tally orders_tally(const struct orders *orders, enum order_kind kind)
{
    struct tally tally = {0};
    GS_EACH_OF (order, orders->all, orders->count) {
        tally.pods += order->kind == kind ? order->replicas : 0;
        tally.placed += order->kind == kind ? order->placed : 0;
    }
    return tally;
}
