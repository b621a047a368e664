/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/pod.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/codec/rfc3339.h"
#include "pod_reader.h"

enum { STATIC_UID_BYTES = 64, API_UID_LEN = 36 };

static void read_created(struct gs_reader *reader, int64_t *ret_s)
{
    struct gs_scan_text text;
    char time[GS_RFC3339_BYTES];
    int64_t ns;
    if (gs_read_text(reader, "metadata.creationTimestamp", &text) &&
        gs_scan_text_copy(text, time, sizeof(time)) && gs_rfc3339_parse(gs_slice_of(time), &ns))
        *ret_s = ns / GS_NS_PER_S;
}

static void read_owners(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    if (!gs_read_array(reader, "metadata.ownerReferences"))
        return;
    while (gs_scan_element(&reader->scan)) {
        struct gs_scan_text key;
        const char *uid = "";
        bool controller = false, daemon = false;
        struct gs_scan_text api = {0}, kind = {0}, name = {0};
        gs_scan_object(&reader->scan, "metadata.ownerReferences entry");
        while (gs_scan_key(&reader->scan, &key)) {
            if (gs_scan_text_is(key, "uid"))
                gs_read_string(reader, "metadata.ownerReferences.uid", &uid);
            else if (gs_scan_text_is(key, "controller"))
                gs_read_bool(reader, "metadata.ownerReferences.controller", &controller);
            else if (gs_scan_text_is(key, "kind"))
                daemon = gs_read_text(reader, "metadata.ownerReferences.kind", &kind) &&
                         gs_scan_text_is(kind, "DaemonSet");
            else if (gs_scan_text_is(key, "name"))
                gs_read_text(reader, "metadata.ownerReferences.name", &name);
            else if (gs_scan_text_is(key, "apiVersion"))
                gs_read_text(reader, "metadata.ownerReferences.apiVersion", &api);
            else
                gs_scan_skip(&reader->scan);
        }
        if (!controller)
            continue;
        pr->pod->owner_uid = uid;
        pr->pod->daemon = daemon;
        pr->owner_api = api;
        pr->owner_kind = kind;
        pr->owner_name = name;
    }
}

static void read_labels(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    gs_scan_peek(&reader->scan);
    const char *begin = reader->scan.at;
    if (!gs_read_object(reader, "metadata.labels"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is_name(key, pr->names->gpu_count))
            gs_read_text(reader, "label gpu-count", &pr->count_label);
        else if (gs_scan_text_is(key, "pod-template-hash"))
            gs_read_text(reader, "label pod-template-hash", &pr->template_hash);
        else if (gs_scan_text_is(key, "scheduling.x-k8s.io/pod-group"))
            gs_read_string(reader, "label pod-group", &pr->group_label);
        else if (gs_scan_text_is(key, "pod-group.scheduling.sigs.k8s.io"))
            gs_read_string(reader, "label pod-group", &pr->old_group_label);
        else
            gs_scan_skip(&reader->scan);
    }
    pr->labels = (struct gs_slice){begin, (size_t)(reader->scan.at - begin)};
}

/* The annotations this project reads; `what` names them without their domain. */
static bool find_annotation(struct gs_pod_reader *pr, struct gs_scan_text key,
                            const char **ret_what, struct gs_scan_text **ret)
{
    const struct gs_names *names = pr->names;
    const struct {
        const char *name;
        const char *what;
        struct gs_scan_text *to;
    } known[] = {
        {names->idx, "annotation GPU_MEM_IDX", &pr->idx},
        {GS_ALLOCATION_KEY, "annotation " GS_ALLOCATION_KEY, &pr->allocation},
        {names->assigned, "annotation GPU_MEM_ASSIGNED", &pr->assigned},
        {names->assume_time, "annotation GPU_MEM_ASSUME_TIME", &pr->assume_time},
        {names->gpu_count, "annotation gpu-count", &pr->count_annotation},
        {names->placement, "annotation gpu-placement", &pr->placement},
        {names->enforce, "annotation gpu-enforce", &pr->enforce},
        {names->offer, "annotation gpu-offer", &pr->offer},
        {GS_MIRROR_KEY, "annotation " GS_MIRROR_KEY, &pr->mirror},
        {GS_TERM_KEY, "annotation " GS_TERM_KEY, &pr->term},
        {names->model, "annotation gpu-model", &pr->model},
        {names->model_deny, "annotation gpu-model-deny", &pr->model_deny},
        {names->uuid, "annotation gpu-uuid", &pr->uuid},
        {names->uuid_deny, "annotation gpu-uuid-deny", &pr->uuid_deny},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (gs_scan_text_is_name(key, known[i].name)) {
            *ret_what = known[i].what;
            *ret = known[i].to;
            return true;
        }
    }
    return false;
}

static void read_annotations(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key, *to;
    const char *what;
    if (!gs_read_object(reader, "metadata.annotations"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (find_annotation(pr, key, &what, &to))
            gs_read_text(reader, what, to);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_metadata(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_pod *pod = pr->pod;
    struct gs_scan_text key, deleted;
    if (!gs_read_object(reader, "metadata"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "name"))
            gs_read_string(reader, "metadata.name", &pod->name);
        else if (gs_scan_text_is(key, "namespace"))
            gs_read_string(reader, "metadata.namespace", &pod->ns);
        else if (gs_scan_text_is(key, "uid"))
            gs_read_string(reader, "metadata.uid", &pod->uid);
        else if (gs_scan_text_is(key, "resourceVersion"))
            gs_read_string(reader, "metadata.resourceVersion", &pod->resource_version);
        else if (gs_scan_text_is(key, "creationTimestamp"))
            read_created(reader, &pod->created_s);
        else if (gs_scan_text_is(key, "deletionTimestamp"))
            pod->deleting |= gs_read_text(reader, "metadata.deletionTimestamp", &deleted);
        else if (gs_scan_text_is(key, "labels"))
            read_labels(pr);
        else if (gs_scan_text_is(key, "annotations"))
            read_annotations(pr);
        else if (gs_scan_text_is(key, "ownerReferences"))
            read_owners(pr);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_status(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "status"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "phase"))
            gs_read_text(reader, "status.phase", &pr->phase);
        else if (gs_scan_text_is(key, "qosClass"))
            gs_read_text(reader, "status.qosClass", &pr->qos);
        else if (gs_scan_text_is(key, "nominatedNodeName"))
            gs_read_string(reader, "status.nominatedNodeName", &pr->pod->nominated_node);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_pod(struct gs_pod_reader *pr)
{
    struct gs_scan *scan = &pr->reader.scan;
    struct gs_scan_text key;
    gs_scan_object(scan, "pod");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "metadata"))
            read_metadata(pr);
        else if (gs_scan_text_is(key, "spec"))
            gs_read_pod_spec(pr);
        else if (gs_scan_text_is(key, "status"))
            read_status(pr);
        else
            gs_scan_skip(scan);
    }
}

static enum gs_pod_phase phase_of(struct gs_scan_text text)
{
    static const struct {
        const char *word;
        enum gs_pod_phase phase;
    } phases[] = {
        {"Running", GS_PHASE_RUNNING},
        {"Pending", GS_PHASE_PENDING},
        {"Succeeded", GS_PHASE_SUCCEEDED},
        {"Failed", GS_PHASE_FAILED},
    };
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (gs_scan_text_is_name(text, phases[i].word))
            return phases[i].phase;
    }
    return GS_PHASE_UNKNOWN;
}

/* 1..GS_GPUS_MAX, 0 when broken. */
static uint32_t count_of(struct gs_scan_text text)
{
    char digits[16];
    uint32_t count;
    if (!gs_scan_text_copy(text, digits, sizeof(digits)) ||
        !gs_parse_u32(digits, strlen(digits), &count) || count > GS_GPUS_MAX)
        return 0;
    return count;
}

static void judge_count(const struct gs_pod_reader *pr)
{
    struct gs_scan_text label = pr->count_label, annotation = pr->count_annotation;
    if (!label.at && !annotation.at)
        return;
    uint32_t count = count_of(label.at ? label : annotation);
    bool agree = !label.at || !annotation.at || count == count_of(annotation);
    pr->pod->count_kind = count && agree ? GS_COUNT_VALID : GS_COUNT_BROKEN;
    if (pr->pod->count_kind == GS_COUNT_VALID)
        pr->pod->gpu_count = count;
}

/* *ret_even: it gives each of its GPUs the same. */
static void judge_allocation(const struct gs_pod_reader *pr, bool *ret_even)
{
    struct gs_pod *pod = pr->pod;
    char json[4096];
    if (!pr->allocation.at)
        return;
    pod->allocation =
        gs_scan_text_copy(pr->allocation, json, sizeof(json)) &&
                gs_codec_allocation_gpus(gs_slice_of(json), &pod->allocation_gpus, ret_even)
            ? GS_RECORDED_VALID
            : GS_RECORDED_BROKEN;
}

static void judge_recorded(const struct gs_pod_reader *pr)
{
    char list[GS_IDX_TEXT_BYTES];
    bool even = true;
    judge_allocation(pr, &even);
    if (!pr->idx.at) { /* the original's successor writes the JSON alone */
        pr->pod->recorded = pr->pod->allocation;
        pr->pod->recorded_gpus = pr->pod->allocation_gpus;
        pr->pod->idx_missing = pr->pod->allocation != GS_RECORDED_NONE;
        pr->pod->uneven = !even;
        return;
    }
    pr->pod->recorded = gs_scan_text_copy(pr->idx, list, sizeof(list)) &&
                                gs_codec_idx_parse(gs_slice_of(list), &pr->pod->recorded_gpus)
                            ? GS_RECORDED_VALID
                            : GS_RECORDED_BROKEN;
}

static void judge_words(const struct gs_pod_reader *pr)
{
    struct gs_pod *pod = pr->pod;
    char word[32];
    if (pr->placement.at && !(gs_scan_text_copy(pr->placement, word, sizeof(word)) &&
                              gs_placement_parse(word, strlen(word), &pod->placement)))
        pod->placement = GS_PLACEMENT_BROKEN;
    int64_t assumed;
    if (gs_scan_text_copy(pr->assume_time, word, sizeof(word)) &&
        gs_parse_i64(word, strlen(word), &assumed) && assumed > 0)
        pod->assume_time_ns = assumed;
    pod->has_assigned = pr->assigned.at != NULL;
    pod->assigned = gs_scan_text_is(pr->assigned, "true");
    pod->enforce_required = gs_scan_text_is(pr->enforce, "required");
    pod->phase = phase_of(pr->phase);
    if (gs_scan_text_is(pr->qos, "Guaranteed"))
        pod->qos = GS_QOS_GUARANTEED;
    else if (gs_scan_text_is(pr->qos, "Burstable"))
        pod->qos = GS_QOS_BURSTABLE;
}

/* The hash of its manifest, or the UID that its manifest names (pkg/kubelet/config/common.go). None
 * of the length of those that the API server gives: a limit that is meant for this pod never hits
 * another.
 */
static bool is_static_uid(const char *uid)
{
    size_t len = strlen(uid);
    return len > 0 && len != API_UID_LEN &&
           strspn(uid, "0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == len;
}

static int keep_static_uid(const struct gs_pod_reader *pr)
{
    char uid[STATIC_UID_BYTES];
    if (!gs_scan_text_copy(pr->mirror, uid, sizeof(uid)) || !is_static_uid(uid))
        return 0;
    const char *copy = gs_scan_string_dup(&pr->pod->arena, pr->mirror);
    if (!copy)
        return -1;
    pr->pod->static_uid = copy;
    return 0;
}

/* A Deployment's ReplicaSet bears its name, "-" and the hash that its pods have as a label
 * (pkg/controller/deployment/sync.go). The length without these; 0: it is none of a Deployment. */
static size_t deployment_len(const char *kind, const char *name, const char *hash)
{
    size_t len = strlen(name), tail = strlen(hash) + 1;
    if (strcmp(kind, "ReplicaSet") != 0 || !hash[0] || len <= tail || name[len - tail] != '-' ||
        strcmp(name + len - tail + 1, hash) != 0)
        return 0;
    return len - tail;
}

static int keep_controller(const struct gs_pod_reader *pr)
{
    struct gs_pod *pod = pr->pod;
    pod->owner_api = gs_scan_string_dup(&pod->arena, pr->owner_api);
    pod->owner_kind = gs_scan_string_dup(&pod->arena, pr->owner_kind);
    pod->owner_name = gs_scan_string_dup(&pod->arena, pr->owner_name);
    return pod->owner_api && pod->owner_kind && pod->owner_name ? 0 : -1;
}

static int keep_owner(const struct gs_pod_reader *pr)
{
    char kind[64], name[254], hash[64], owner[sizeof(kind) + sizeof(name)];
    if (!gs_scan_text_copy(pr->owner_kind, kind, sizeof(kind)) ||
        !gs_scan_text_copy(pr->owner_name, name, sizeof(name)) || !kind[0] || !name[0])
        return 0;
    if (!gs_scan_text_copy(pr->template_hash, hash, sizeof(hash)))
        hash[0] = '\0';
    size_t len = deployment_len(kind, name, hash);
    snprintf(owner, sizeof(owner), "%s/%.*s", len ? "Deployment" : kind,
             (int)(len ? len : strlen(name)), name);
    const char *copy = gs_arena_strndup(&pr->pod->arena, owner, strlen(owner));
    if (!copy)
        return -1;
    pr->pod->owner = copy;
    return keep_controller(pr);
}

static int keep_lists(const struct gs_pod_reader *pr)
{
    struct gs_pod *pod = pr->pod;
    const struct {
        struct gs_scan_text text;
        const char **to;
    } kept[] = {
        {pr->model, &pod->gpu_model}, {pr->model_deny, &pod->gpu_model_deny},
        {pr->uuid, &pod->gpu_uuid},   {pr->uuid_deny, &pod->gpu_uuid_deny},
        {pr->offer, &pod->offer},     {pr->term, &pod->term},
    };
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (!kept[i].text.at)
            continue;
        struct gs_scan_text head = gs_scan_text_head(kept[i].text, GS_LIST_BYTES_MAX + 1);
        const char *copy = gs_scan_string_dup(&pod->arena, head);
        if (!copy)
            return -1;
        *kept[i].to = copy;
    }
    return 0;
}

/* Of pods that may be evicted alone. */
static int keep_labels(const struct gs_pod_reader *pr)
{
    struct gs_pod *pod = pr->pod;
    if (!pod->node_name[0] || !pr->labels.len || pr->labels.len > GS_POD_LABELS_MAX ||
        !gs_pod_wants_gpu(pod))
        return 0;
    const char *copy = gs_arena_strndup(&pod->arena, pr->labels.at, pr->labels.len);
    if (!copy)
        return -1;
    pod->labels = copy;
    return 0;
}

int gs_codec_pod_take(const struct gs_names *names, struct gs_scan *from, struct gs_pod *pod,
                      struct gs_error *err)
{
    gs_pod_reset(pod);
    struct gs_pod_reader pr = {.reader = {.arena = &pod->arena}, .names = names, .pod = pod};
    gs_reader_enter(&pr.reader, from);
    read_pod(&pr);
    int result = gs_reader_leave(&pr.reader, from, err);
    if (result == 0 && (gs_pod_reader_join(&pr) < 0 || keep_lists(&pr) < 0 ||
                        keep_static_uid(&pr) < 0 || keep_owner(&pr) < 0 || keep_labels(&pr) < 0))
        result = gs_fail_nomem(err);
    if (result < 0) {
        gs_pod_reset(pod);
        return -1;
    }
    if (!pod->group[0])
        pod->group = pr.group_label ? pr.group_label : pr.old_group_label ? pr.old_group_label : "";
    judge_count(&pr);
    judge_recorded(&pr);
    judge_words(&pr);
    return 0;
}

int gs_codec_pod(const struct gs_names *names, struct gs_slice json, struct gs_pod *pod,
                 struct gs_error *err)
{
    struct gs_scan scan;
    gs_scan_init(&scan, json);
    if (gs_codec_pod_take(names, &scan, pod, err) < 0)
        return -1;
    if (gs_scan_finish(&scan, err) == 0)
        return 0;
    gs_pod_reset(pod);
    return -1;
}
