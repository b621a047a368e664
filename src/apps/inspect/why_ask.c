/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/pod.h"
#include "inspect/calm.h"
#include "inspect/lookup.h"
#include "inspect/why.h"

/* What is asked about one pod, and what the cluster has of it. */

#define LIST_NS (5 * GS_NS_PER_S)

/* The first container that cannot start, init containers first; "" when none says so. */
static void find_stuck(const json_t *status, char *to, size_t size)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    for (size_t l = 0; l < 2 && !to[0]; l++) {
        size_t i;
        json_t *container;
        json_array_foreach(json_object_get(status, lists[l]), i, container)
        {
            const char *reason = lookup_text(container, "state", "waiting", "reason", NULL);
            const char *message = lookup_text(container, "state", "waiting", "message", NULL);
            if (to[0] || !reason[0] || strcmp(reason, "ContainerCreating") == 0 ||
                strcmp(reason, "PodInitializing") == 0)
                continue;
            snprintf(to, size, "container %s is waiting: %s%s%s",
                     lookup_text(container, "name", NULL), reason, message[0] ? ": " : "", message);
        }
    }
}

/* What others wrote about the pod. */
static void read_words(struct why *why, const json_t *status)
{
    const char *reason = lookup_text(status, "reason", NULL);
    const char *message = lookup_text(status, "message", NULL);
    if (reason[0] || message[0])
        snprintf(why->trouble, sizeof(why->trouble), "%s%s%s", reason,
                 reason[0] && message[0] ? ": " : "", message);
    else
        find_stuck(status, why->trouble, sizeof(why->trouble));
    gs_utf8_calm(why->trouble);
}

static int take(struct why *why, const json_t *tree, struct gs_slice text, struct gs_error *err)
{
    read_words(why, json_object_get(tree, "status"));
    if (gs_codec_pod(&why->common->names, text, &why->pod, err) < 0)
        return -1;
    calm_pod(&why->pod.arena, &why->pod);
    gs_ask_of_pod(&why->ask, &why->pod);
    why->state = !gs_pod_wants_gpu(&why->pod) ? WHY_NO_GPU
                 : gs_pod_terminal(&why->pod) ? WHY_ENDED
                 : why->pod.node_name[0]      ? WHY_BOUND
                                              : WHY_WAITING;
    return 0;
}

static int fail_absent(const char *ns, const char *name, struct gs_error *err)
{
    gs_error_clear(err);
    return gs_fail(err, GS_ENOENT, "pod %.100s not found in namespace %.100s (use -n)", name, ns);
}

int why_fetch(struct why *why, const char *ns, const char *name, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    source_pods(&path, ns, name);
    if (gs_buf_failed(&path))
        return gs_fail(err, GS_EINVAL, "the pod name is too long");
    if (source_get(&why->common->source, path.data, NULL, &body, err) < 0)
        return err->code == GS_ENOENT ? fail_absent(ns, name, err) : -1;
    json_auto_t *tree = lookup_parse(&body);
    return take(why, tree, (struct gs_slice){body.data, body.len}, err);
}

/* Whoever knows no selector answers with all. */
static const json_t *item_of(const json_t *list, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        if (strcmp(lookup_text(item, "metadata", "name", NULL), name) == 0)
            return item;
    }
    return NULL;
}

int why_list(struct why *why, const char *ns, const char *name, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096), query = GS_BUF(4096);
    source_pods(&path, ns, NULL);
    gs_buf_puts(&query, "fieldSelector=metadata.name%3D");
    gs_url_escape(&query, name);
    if (gs_buf_failed(&path) || gs_buf_failed(&query))
        return gs_fail(err, GS_EINVAL, "the pod name is too long");
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    const struct gs_kube_request request = {
        .method = "GET", .path = path.data, .query = query.data, .timeout_ns = LIST_NS};
    if (source_ask(&why->common->source, &request, &body, err) < 0)
        return -1;
    json_auto_t *list = lookup_parse(&body);
    const json_t *item = item_of(list, name);
    if (!item)
        return fail_absent(ns, name, err);
    _cleanup_free_ char *text = json_dumps(item, JSON_COMPACT);
    return text ? take(why, item, gs_slice_of(text), err) : gs_fail_nomem(err);
}

void why_find(struct why *why, const struct view *view)
{
    const struct snapshot *snapshot = view->snapshot;
    why->view = view;
    why->node = NULL;
    why->unit = verdict_unit(snapshot);
    why->scheduler = snapshot_scheduler(snapshot);
    gs_ask_of_pod(&why->ask, &why->pod); /* it points into the pod, which may have been moved */
    if (why->state == WHY_WAITING)
        verdict_of(snapshot, &why->ask, &why->verdict);
    why->charged = gs_ledger_find_claim(snapshot->cluster.ledger, why->pod.uid, &why->own);
    EACH_ROW (node, view) {
        if (why->charged && strcmp(node->node->name, why->own.node) == 0)
            why->node = node;
    }
}

void why_release(struct why *why)
{
    gs_pod_release(&why->pod);
}
