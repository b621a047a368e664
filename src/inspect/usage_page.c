/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/usage_page.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"
#include "gpushare/codec/scan.h"

/* The longest text is an owner: its kind (63 bytes), "/" and its name (253). */
enum { KEY_BYTES = 640, TEXT_BYTES_MAX = 320 };

/* The words of --enforce. */
enum { MODES = 4 };
static const char *const modes[MODES] = {"required", "preferred", "observe", "off"};

/* Whatever is not of the type that it should be is not known; the page itself is whole. Nothing of
 * it becomes a tree, which can be a thousand times as large. */

static const char *take_text(struct usage *usage, struct gs_scan *scan)
{
    struct gs_scan_text text = {0};
    if (gs_scan_peek(scan) != GS_SCAN_STRING)
        gs_scan_skip(scan);
    else
        gs_scan_string(scan, "a text", &text);
    char *copy = gs_scan_string_dup(&usage->arena, gs_scan_text_head(text, TEXT_BYTES_MAX));
    if (!copy)
        return "";
    gs_utf8_calm(copy);
    return copy;
}

static bool take_number(struct gs_scan *scan, uint64_t *ret)
{
    struct gs_slice digits;
    if (gs_scan_peek(scan) != GS_SCAN_NUMBER) {
        gs_scan_skip(scan);
        return false;
    }
    return gs_scan_number(scan, "a number", &digits) && gs_parse_u64(digits.at, digits.len, ret);
}

/* One entry of a list of GPUs, of a node or of a pod. */
struct gpu_entry {
    uint64_t idx, used_bytes, by_pods_bytes, peak_bytes;
    bool has_idx, has_used, has_by_pods, has_peak;
};

/* false: none that is a GPU. */
static bool take_gpu(struct gs_scan *scan, struct gpu_entry *ret)
{
    struct gs_scan_text key;
    *ret = (struct gpu_entry){0};
    gs_scan_object(scan, "a GPU");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "id"))
            ret->has_idx = take_number(scan, &ret->idx) && ret->idx < GS_GPUS_MAX;
        else if (gs_scan_text_is(key, "usedBytes"))
            ret->has_used = take_number(scan, &ret->used_bytes);
        else if (gs_scan_text_is(key, "usedByPodsBytes"))
            ret->has_by_pods = take_number(scan, &ret->by_pods_bytes);
        else if (gs_scan_text_is(key, "peakBytes"))
            ret->has_peak = take_number(scan, &ret->peak_bytes);
        else
            gs_scan_skip(scan);
    }
    return ret->has_idx;
}

/* Objects of a list, the first max of them; the others are passed over. */
static bool next_object(struct gs_scan *scan, uint32_t *left)
{
    while (gs_scan_element(scan)) {
        if (gs_scan_peek(scan) == GS_SCAN_OBJECT && *left) {
            (*left)--;
            return true;
        }
        gs_scan_skip(scan);
    }
    return false;
}

static void take_pod_gpus(struct usage *usage, struct gs_scan *scan, struct usage_pod *pod)
{
    struct usage_gpu gpus[GS_GPUS_MAX];
    struct gpu_entry entry;
    uint32_t left = GS_GPUS_MAX, count = 0;
    gs_scan_array(scan, "GPUs");
    while (next_object(scan, &left)) {
        if (!take_gpu(scan, &entry))
            continue;
        gpus[count++] = (struct usage_gpu){.idx = (uint32_t)entry.idx,
                                           .known = entry.has_used && entry.has_peak,
                                           .used_bytes = entry.used_bytes,
                                           .peak_bytes = entry.peak_bytes};
    }
    pod->gpus = gs_arena_calloc(&usage->arena, count, sizeof(*gpus));
    if (!pod->gpus)
        return;
    memcpy(pod->gpus, gpus, count * sizeof(*gpus));
    pod->gpu_count = count;
}

static void note_most(struct usage_pod *pod)
{
    for (uint32_t i = 0; i < pod->gpu_count; i++) {
        const struct usage_gpu *gpu = &pod->gpus[i];
        pod->known |= gpu->known;
        if (gpu->known && gpu->used_bytes > pod->used_bytes)
            pod->used_bytes = gpu->used_bytes;
        if (gpu->known && gpu->peak_bytes > pod->peak_bytes)
            pod->peak_bytes = gpu->peak_bytes;
    }
}

static void take_pod(struct usage *usage, struct gs_scan *scan, struct usage_pod *pod)
{
    struct gs_scan_text key;
    const char *enforced = "";
    gs_scan_object(scan, "a pod");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "uid"))
            pod->uid = take_text(usage, scan);
        else if (gs_scan_text_is(key, "namespace"))
            pod->ns = take_text(usage, scan);
        else if (gs_scan_text_is(key, "name"))
            pod->name = take_text(usage, scan);
        else if (gs_scan_text_is(key, "owner"))
            pod->owner = take_text(usage, scan);
        else if (gs_scan_text_is(key, "enforcedMessage"))
            pod->reason = take_text(usage, scan);
        else if (gs_scan_text_is(key, "enforced"))
            enforced = take_text(usage, scan);
        else if (gs_scan_text_is(key, "allocatedBytes"))
            take_number(scan, &pod->given_bytes);
        else if (gs_scan_text_is(key, "limitBytes"))
            take_number(scan, &pod->limit_bytes);
        else if (gs_scan_text_is(key, "gpus") && gs_scan_peek(scan) == GS_SCAN_ARRAY)
            take_pod_gpus(usage, scan, pod);
        else
            gs_scan_skip(scan);
    }
    pod->enforced = gs_enforced_parse(enforced, "");
    if (pod->enforced == GS_ENFORCED_UNKNOWN) /* a word that this version does not know */
        pod->enforced = GS_ENFORCED_OTHER;
    if (!pod->limit_bytes)
        pod->limit_bytes = pod->given_bytes;
    note_most(pod);
}

/* No node can say anything of a pod of another, or take its place. */
static bool put_key(const char *node, const char *uid, char to[KEY_BYTES])
{
    int len = snprintf(to, KEY_BYTES, "%s/%s", node, uid);
    return uid[0] && len > 0 && len < KEY_BYTES;
}

static void read_pod(struct usage *usage, const struct usage_node *node, struct gs_scan *scan)
{
    char text[KEY_BYTES];
    struct usage_pod *pod = gs_arena_alloc(&usage->arena, sizeof(*pod));
    if (!pod) {
        gs_scan_skip(scan);
        return;
    }
    *pod = (struct usage_pod){
        .node = node->name, .uid = "", .ns = "", .name = "", .owner = "", .reason = ""};
    take_pod(usage, scan, pod);
    if (!pod->ns[0] || !pod->name[0] || !put_key(node->name, pod->uid, text) ||
        usage_pod_find(usage, node->name, pod->uid))
        return;
    const char *key = gs_arena_strdup(&usage->arena, text);
    if (key)
        HASH_ADD_KEYPTR(hh, usage->pods, key, strlen(key), pod);
}

static void read_gpus(struct usage_node *node, struct gs_scan *scan)
{
    struct gpu_entry entry;
    uint32_t left = GS_GPUS_MAX;
    gs_scan_array(scan, "GPUs");
    while (next_object(scan, &left)) {
        if (!take_gpu(scan, &entry) || !(entry.has_used || entry.has_by_pods))
            continue;
        node->used_bytes[entry.idx] = entry.has_used ? entry.used_bytes : entry.by_pods_bytes;
        node->known |= GS_GPU_BIT(entry.idx);
    }
}

static void read_pods(struct usage *usage, struct usage_node *node, struct gs_scan *scan)
{
    uint32_t left = USAGE_PODS_MAX;
    node->names_pods = true;
    gs_scan_array(scan, "pods");
    while (next_object(scan, &left))
        read_pod(usage, node, scan);
}

static const char *take_mode(struct usage *usage, struct gs_scan *scan)
{
    const char *word = take_text(usage, scan);
    for (int i = 0; i < MODES; i++) {
        if (strcmp(word, modes[i]) == 0)
            return modes[i];
    }
    return NULL;
}

void usage_page_read(struct usage *usage, struct usage_node *node, struct gs_slice text)
{
    struct gs_scan scan, *page = &scan;
    struct gs_scan_text key;
    gs_scan_init(page, text);
    gs_scan_object(page, "the page");
    while (gs_scan_key(page, &key)) {
        bool list = gs_scan_peek(page) == GS_SCAN_ARRAY;
        if (list && gs_scan_text_is(key, "pods"))
            read_pods(usage, node, page);
        else if (list && gs_scan_text_is(key, "gpus"))
            read_gpus(node, page);
        else if (gs_scan_text_is(key, "enforceMode"))
            node->mode = take_mode(usage, page);
        else if (gs_scan_text_is(key, "overRequestPodCount"))
            take_number(page, &node->over_pods);
        else
            gs_scan_skip(page);
    }
    node->answered = true;
    usage->names_pods |= node->names_pods;
    usage->answered++;
}

int usage_page_check(struct gs_slice text, struct gs_error *err)
{
    struct gs_scan scan;
    struct gs_error why = {0};
    gs_scan_init(&scan, text);
    bool object = gs_scan_peek(&scan) == GS_SCAN_OBJECT;
    gs_scan_skip(&scan);
    if (gs_scan_finish(&scan, &why) == 0 && object)
        return 0;
    return gs_fail(err, GS_EPROTO, "the device plugin's answer is not a JSON object");
}

const struct usage_node *usage_node_find(const struct usage *usage, const char *name)
{
    struct usage_node *node = NULL;
    if (usage)
        HASH_FIND(hh, usage->nodes, name, strlen(name), node);
    return node && node->answered ? node : NULL;
}

const struct usage_pod *usage_pod_find(const struct usage *usage, const char *node, const char *uid)
{
    struct usage_pod *pod = NULL;
    char key[KEY_BYTES];
    if (usage && usage->pods && put_key(node, uid, key))
        HASH_FIND(hh, usage->pods, key, strlen(key), pod);
    return pod;
}

void usage_text(uint64_t bytes, enum gs_unit unit, char to[USAGE_TEXT_BYTES])
{
    double mib = (double)bytes / (1 << 20);
    uint32_t unit_mib = gs_unit_mib(unit);
    snprintf(to, USAGE_TEXT_BYTES, "%.1f", mib / (unit_mib ? unit_mib : 1024));
}
