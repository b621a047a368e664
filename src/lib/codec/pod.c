/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/pod.h"

#include <stdio.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/model/budget.h"
#include "pod_reader.h"

enum { API_UID_LEN = 36, KIND_LEN_MAX = 63, NAME_LEN_MAX = 253 };

static const struct gs_member owner_members[] = {
    GS_MEMBER(struct gs_pod_owner, "uid", uid),
    GS_MEMBER(struct gs_pod_owner, "controller", controller),
    GS_MEMBER(struct gs_pod_owner, "kind", kind),
    GS_MEMBER(struct gs_pod_owner, "name", name),
    GS_MEMBER(struct gs_pod_owner, "apiVersion", api),
    {0},
};

static void read_owner(struct gs_reader *reader, void *to)
{
    struct gs_pod_owner owner = {.uid = "", .api = "", .kind = "", .name = ""};
    gs_read_entry(reader, "[]", owner_members, &owner);
    if (owner.controller)
        ((struct gs_pod_reader *)to)->owner = owner;
}

struct condition {
    struct gs_scan_text type;
    const char *message;
};

static const struct gs_member condition_members[] = {
    GS_MEMBER(struct condition, "type", type),
    GS_MEMBER_AS(struct condition, "message", message, GS_READ_LIST),
    {0},
};

/* Skipped for bound pods, whose spec stands before their status: only pending pods' are shown. */
static void read_condition(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    struct condition condition = {.message = ""};
    if (pr->pod.node_name[0])
        gs_scan_skip(&reader->scan);
    else
        gs_read_entry(reader, "[]", condition_members, &condition);
    if (gs_scan_text_is(condition.type, "PodScheduled"))
        pr->pod.said = condition.message;
}

#define NAMED(name, field) GS_NAMED(struct gs_pod_reader, name, field)
#define LIST(name, field)  GS_NAMED_AS(struct gs_pod_reader, name, field, GS_READ_LIST)

static const struct gs_member label_members[] = {
    NAMED(gpu_count, count_label),
    GS_POD_MEMBER("pod-template-hash", template_hash),
    GS_POD_MEMBER("scheduling.x-k8s.io/pod-group", group_label),
    GS_POD_MEMBER("pod-group.scheduling.sigs.k8s.io", old_group_label),
    {0},
};

static void read_labels(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    gs_scan_peek(&reader->scan);
    const char *begin = reader->scan.at;
    if (gs_read_members(reader, label_members, pr))
        pr->labels = (struct gs_slice){begin, (size_t)(reader->scan.at - begin)};
}

static const struct gs_member pod_members[] = {
    GS_OBJECT(
        "metadata",
        GS_MEMBERS(
            GS_POD_MEMBER("name", pod.name), GS_POD_MEMBER("namespace", pod.ns),
            GS_POD_MEMBER("uid", pod.uid), GS_POD_MEMBER("resourceVersion", pod.resource_version),
            GS_POD_MEMBER("creationTimestamp", created),
            GS_POD_MEMBER("deletionTimestamp", deleted), GS_CALL("labels", read_labels),
            GS_OBJECT(
                "annotations",
                GS_MEMBERS(NAMED(idx, idx), GS_POD_MEMBER(GS_ALLOCATION_KEY, allocation),
                           NAMED(assigned, assigned), NAMED(assume_time, assume_time),
                           NAMED(gpu_count, count_annotation), NAMED(placement, placement),
                           NAMED(enforce, enforce), LIST(offer, pod.offer),
                           GS_POD_MEMBER(GS_MIRROR_KEY, mirror),
                           GS_MEMBER_AS(struct gs_pod_reader, GS_TERM_KEY, pod.term, GS_READ_LIST),
                           LIST(model, pod.gpu_model), LIST(model_deny, pod.gpu_model_deny),
                           LIST(uuid, pod.gpu_uuid), LIST(uuid_deny, pod.gpu_uuid_deny))),
            GS_EACH("ownerReferences", read_owner))),
    GS_OBJECT("spec", gs_pod_spec_members),
    GS_OBJECT("status", GS_MEMBERS(GS_POD_MEMBER("phase", phase), GS_POD_MEMBER("qosClass", qos),
                                   GS_EACH("conditions", read_condition),
                                   GS_POD_MEMBER("nominatedNodeName", pod.nominated_node))),
    {0},
};

static const char *const phases[] = {
    [GS_PHASE_PENDING] = "Pending",
    [GS_PHASE_RUNNING] = "Running",
    [GS_PHASE_SUCCEEDED] = "Succeeded",
    [GS_PHASE_FAILED] = "Failed",
};
static const char *const qos_classes[] = {
    [GS_QOS_GUARANTEED] = "Guaranteed",
    [GS_QOS_BURSTABLE] = "Burstable",
};

/* 1 to GS_GPUS_MAX; 0: invalid. */
static uint32_t count_of(struct gs_scan_text text)
{
    char digits[16];
    uint32_t count;
    if (!gs_scan_text_copy(text, digits, sizeof(digits)) ||
        !gs_parse_u32(digits, strlen(digits), &count) || count > GS_GPUS_MAX)
        return 0;
    return count;
}

static void judge_count(struct gs_pod_reader *pr)
{
    struct gs_scan_text label = pr->count_label, annotation = pr->count_annotation;
    if (!label.at && !annotation.at)
        return;
    uint32_t count = count_of(label.at ? label : annotation);
    bool agree = count == count_of(annotation.at ? annotation : label);
    pr->pod.count_kind = count && agree ? GS_COUNT_VALID : GS_COUNT_BROKEN;
    if (pr->pod.count_kind == GS_COUNT_VALID)
        pr->pod.gpu_count = count;
}

/* *ret_even: every GPU has the same amount. */
static void judge_allocation(struct gs_pod_reader *pr, bool *ret_even)
{
    struct gs_pod *pod = &pr->pod;
    char json[4096];
    if (!pr->allocation.at)
        return;
    pod->allocation =
        gs_scan_text_copy(pr->allocation, json, sizeof(json)) &&
                gs_codec_allocation_gpus(gs_slice_of(json), &pod->allocation_gpus, ret_even)
            ? GS_RECORDED_VALID
            : GS_RECORDED_BROKEN;
}

static void judge_recorded(struct gs_pod_reader *pr)
{
    struct gs_pod *pod = &pr->pod;
    char list[GS_IDX_TEXT_BYTES];
    bool even = true;
    judge_allocation(pr, &even);
    if (!pr->idx.at) { /* the original's successor writes only the JSON */
        pod->recorded = pod->allocation;
        pod->recorded_gpus = pod->allocation_gpus;
        pod->idx_missing = pod->allocation != GS_RECORDED_NONE;
        pod->uneven = !even;
        return;
    }
    pod->recorded = gs_scan_text_copy(pr->idx, list, sizeof(list)) &&
                            gs_codec_idx_parse(gs_slice_of(list), &pod->recorded_gpus)
                        ? GS_RECORDED_VALID
                        : GS_RECORDED_BROKEN;
}

static void judge_words(struct gs_pod_reader *pr)
{
    struct gs_pod *pod = &pr->pod;
    char word[32];
    if (pr->placement.at && !(gs_scan_text_copy(pr->placement, word, sizeof(word)) &&
                              gs_placement_parse(word, strlen(word), &pod->placement)))
        pod->placement = GS_PLACEMENT_BROKEN;
    int64_t ns;
    if (gs_pod_wants_gpu(pod) && gs_text_time(pr->created, &ns))
        pod->created_s = ns / GS_NS_PER_S;
    if (gs_scan_text_copy(pr->assume_time, word, sizeof(word)) &&
        gs_parse_i64(word, strlen(word), &ns) && ns > 0)
        pod->assume_time_ns = ns;
    pod->has_assigned = pr->assigned.at != NULL;
    pod->assigned = gs_scan_text_is(pr->assigned, "true");
    pod->enforce_required = gs_scan_text_is(pr->enforce, "required");
    pod->phase = (enum gs_pod_phase)GS_WORD_OF(pr->phase, phases, GS_PHASE_UNKNOWN);
    pod->qos = (enum gs_qos)GS_WORD_OF(pr->qos, qos_classes, GS_QOS_BEST_EFFORT);
    pod->deleting = pr->deleted.at != NULL;
    pod->never_preempts = gs_scan_text_is(pr->preemption, "Never");
}

/* A hash of the manifest, or the UID in it (pkg/kubelet/config/common.go). UIDs with the length of
 * the API server's are refused: a limit for this pod must not apply to another. */
static bool is_static_uid(const char *uid)
{
    size_t len = strlen(uid);
    return len > 0 && len != API_UID_LEN &&
           strspn(uid, "0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == len;
}

static int keep_static_uid(struct gs_pod_reader *pr)
{
    char uid[GS_POD_UID_BYTES];
    if (!gs_scan_text_copy(pr->mirror, uid, sizeof(uid)) || !is_static_uid(uid))
        return 0;
    pr->pod.static_uid = gs_arena_strdup(&pr->pod.arena, uid);
    return pr->pod.static_uid ? 0 : -1;
}

/* The length of the Deployment's name in its ReplicaSet's, which adds "-" and the hash in the pods'
 * label (pkg/controller/deployment/sync.go). 0: not a Deployment's. */
static size_t deployment_len(const char *kind, const char *name, const char *hash)
{
    size_t len = strlen(name), tail = strlen(hash) + 1;
    if (strcmp(kind, "ReplicaSet") != 0 || !hash[0] || len <= tail || name[len - tail] != '-' ||
        strcmp(name + len - tail + 1, hash) != 0)
        return 0;
    return len - tail;
}

static int keep_owner(struct gs_pod_reader *pr)
{
    struct gs_pod *pod = &pr->pod;
    const struct gs_pod_owner *owner = &pr->owner;
    char hash[64] = "", text[KIND_LEN_MAX + 1 + NAME_LEN_MAX + 1];
    if (!owner->controller)
        return 0;
    pod->owner_uid = owner->uid;
    pod->daemon = strcmp(owner->kind, "DaemonSet") == 0;
    if (!owner->kind[0] || !owner->name[0] || strlen(owner->kind) > KIND_LEN_MAX ||
        strlen(owner->name) > NAME_LEN_MAX)
        return 0;
    gs_scan_text_copy(pr->template_hash, hash, sizeof(hash));
    size_t len = deployment_len(owner->kind, owner->name, hash);
    snprintf(text, sizeof(text), "%s/%.*s", len ? "Deployment" : owner->kind,
             (int)(len ? len : strlen(owner->name)), owner->name);
    pod->owner = gs_arena_strndup(&pod->arena, text, strlen(text));
    pod->owner_api = owner->api;
    pod->owner_kind = owner->kind;
    pod->owner_name = owner->name;
    return pod->owner ? 0 : -1;
}

/* Labels are kept only for pods that may be evicted. */
static int keep_labels(struct gs_pod_reader *pr)
{
    struct gs_pod *pod = &pr->pod;
    struct gs_reader reader = {.arena = &pod->arena};
    struct gs_kv *all = NULL;
    struct gs_scan_text key;
    uint32_t count = 0;
    if (!pod->node_name[0] || !pr->labels.len || !gs_pod_wants_gpu(pod))
        return 0;
    gs_scan_init(&reader.scan, pr->labels);
    gs_scan_object(&reader.scan, "labels");
    while (count < GS_POD_LABELS_MAX && gs_scan_key(&reader.scan, &key))
        gs_read_label(&reader, &all, &count, key);
    pod->labels = gs_labels_of(&pod->arena, all, count);
    return reader.code != GS_OK || !pod->labels ? -1 : 0;
}

int gs_codec_pod_take(const struct gs_names *names, struct gs_scan *from, struct gs_pod *pod,
                      struct gs_error *err)
{
    gs_pod_reset(pod);
    struct gs_pod_reader pr = {
        .reader.names = names, .pod = *pod, .own_cpu_milli = -1, .own_memory_bytes = -1};
    pr.reader.arena = &pr.pod.arena;
    gs_reader_enter(&pr.reader, from);
    gs_read_entry(&pr.reader, "pod", pod_members, &pr);
    int result = gs_reader_leave(&pr.reader, from, err);
    if (result == 0 && (gs_pod_reader_join(&pr) < 0 || keep_static_uid(&pr) < 0 ||
                        keep_owner(&pr) < 0 || keep_labels(&pr) < 0))
        result = gs_fail_nomem(err);
    if (!pr.pod.group[0])
        pr.pod.group = pr.group_label       ? pr.group_label
                       : pr.old_group_label ? pr.old_group_label
                                            : "";
    judge_count(&pr);
    judge_recorded(&pr);
    judge_words(&pr);
    *pod = pr.pod;
    if (result < 0)
        gs_pod_reset(pod);
    return result;
}

int gs_codec_pod(const struct gs_names *names, struct gs_slice json, struct gs_pod *pod,
                 struct gs_error *err)
{
    struct gs_scan scan;
    gs_scan_init(&scan, json);
    scan.whole = true;
    return gs_codec_pod_take(names, &scan, pod, err);
}
