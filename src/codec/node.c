/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/node.h"

#include "gpushare/base/num.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/codec/moved.h"
#include "reader.h"

struct node_reader {
    struct gs_reader reader; /* first: a call's reader is that of the node */
    struct gs_node node;
    struct gs_scan_text inventory, cordon, moved;
    int64_t units, count, cores_pct, others; /* of status.capacity */
    int64_t allocatable;
};

#define MEMBER(key, what, field) GS_MEMBER(struct node_reader, key, what, field)
#define NAMED(name, what, field) GS_NAMED(struct node_reader, name, what, field)

/* All of them: pods may name any in their rules. */
static void read_labels(struct gs_reader *reader, const char *what, void *to)
{
    struct node_reader *nr = to;
    struct gs_node *node = &nr->node;
    struct gs_node_rules *rules = &node->rules;
    struct gs_scan_text key;
    if (!gs_read_object(reader, what))
        return;
    rules->label_count = 0;
    while (gs_scan_key(&reader->scan, &key)) {
        const struct gs_kv *label =
            gs_read_label(reader, &rules->labels, &rules->label_count, key, what);
        bool yes = label && strcmp(label->value, "true") == 0;
        if (!label)
            return;
        if (gs_scan_text_is(key, GS_NODE_LABEL))
            node->labelled = yes;
        else if (gs_scan_text_is_name(key, reader->names->driver_upgrade))
            node->driver_upgrade = yes;
        else if (gs_scan_text_is_name(key, reader->names->mps))
            node->mps = yes;
        else if (gs_scan_text_is_name(key, reader->names->enforced))
            node->enforced = label->value;
    }
    gs_node_labels_sort(rules->labels, rules->label_count);
}

static const struct gs_member taint_members[] = {
    GS_MEMBER(struct gs_taint, "key", "key of a taint", key),
    GS_MEMBER(struct gs_taint, "value", "value of a taint", value),
    GS_MEMBER(struct gs_taint, "effect", "effect of a taint", effect),
    {0},
};

static void read_taint(struct gs_reader *reader, const char *what, void *to)
{
    struct gs_node_rules *rules = &((struct node_reader *)to)->node.rules;
    struct gs_taint *taint = gs_read_append(reader, &rules->taints, &rules->taint_count,
                                            sizeof(*taint), what, UINT32_MAX);
    if (!taint)
        return;
    *taint = (struct gs_taint){"", "", ""};
    gs_read_entry(reader, "spec.taints entry", taint_members, taint);
}

/* Of NVIDIA's device plugin: nvidia.com/gpu, gpu.shared, mig-1g.10gb, … */
static void add_whole(struct gs_reader *reader, const char *what, void *to)
{
    int64_t *sum = &((struct node_reader *)to)->others;
    int64_t more = 0;
    gs_read_whole(reader, what, &more);
    *sum = more < INT32_MAX - *sum ? *sum + more : INT32_MAX;
}

#define WHOLE(prefix) GS_PREFIXED(prefix, "a resource of nvidia.com in status.capacity", add_whole)

#define AMOUNT(key, what, field, kind) GS_MEMBER_AS(struct node_reader, key, what, field, kind)

/* An entry of status.addresses or status.conditions. */
struct entry {
    struct gs_scan_text type, address, status;
};

/* The first InternalIP counts. */
static void read_address(struct gs_reader *reader, const char *what, void *to)
{
    static const struct gs_member members[] = {
        GS_MEMBER(struct entry, "type", "entry of status.addresses", type),
        GS_MEMBER(struct entry, "address", "entry of status.addresses", address),
        {0},
    };
    struct gs_node *node = &((struct node_reader *)to)->node;
    struct entry entry = {0};
    gs_read_entry(reader, "entry of status.addresses", members, &entry);
    if (node->address[0] || !gs_scan_text_is(entry.type, "InternalIP"))
        return;
    const char *copy = gs_scan_string_dup(reader->arena, entry.address);
    if (copy)
        node->address = copy;
    else
        gs_reader_stop(reader, GS_ENOMEM, what, "");
}

static void read_condition(struct gs_reader *reader, const char *what, void *to)
{
    static const struct gs_member members[] = {
        GS_MEMBER(struct entry, "type", "entry of status.conditions", type),
        GS_MEMBER(struct entry, "status", "entry of status.conditions", status),
        {0},
    };
    struct entry entry = {0};
    gs_read_entry(reader, "entry of status.conditions", members, &entry);
    if (gs_scan_text_is(entry.type, "Ready"))
        ((struct node_reader *)to)->node.ready = gs_scan_text_is(entry.status, "True");
}

static const struct gs_member node_members[] = {
    GS_OBJECT(
        "metadata", "metadata",
        GS_MEMBERS(MEMBER("name", "metadata.name", node.name),
                   MEMBER("uid", "metadata.uid", node.uid),
                   MEMBER("resourceVersion", "metadata.resourceVersion", node.resource_version),
                   GS_CALL("labels", "metadata.labels", read_labels),
                   GS_OBJECT("annotations", "metadata.annotations",
                             GS_MEMBERS(NAMED(inventory, "annotation gpu-inventory", inventory),
                                        NAMED(moved, "annotation gpu-reassigned", moved),
                                        NAMED(cordon, "annotation gpu-cordon", cordon))))),
    GS_OBJECT("spec", "spec",
              GS_MEMBERS(MEMBER("unschedulable", "spec.unschedulable", node.unschedulable),
                         GS_EACH("taints", "spec.taints", read_taint))),
    GS_OBJECT(
        "status", "status",
        GS_MEMBERS(
            GS_OBJECT("capacity", "status.capacity",
                      GS_MEMBERS(NAMED(gpu_mem, "GPU memory in status.capacity", units),
                                 NAMED(gpu_count, "GPU count in status.capacity", count),
                                 NAMED(gpu_cores, "GPU compute in status.capacity", cores_pct),
                                 WHOLE("nvidia.com/gpu"), WHOLE("nvidia.com/mig-"),
                                 WHOLE("nvidia.com/vgpu"))),
            GS_OBJECT("allocatable", "status.allocatable",
                      GS_MEMBERS(
                          NAMED(gpu_mem, "GPU memory in status.allocatable", allocatable),
                          AMOUNT("cpu", "cpu in status.allocatable", node.cpu_milli, GS_READ_MILLI),
                          AMOUNT("memory", "memory in status.allocatable", node.memory_bytes,
                                 GS_READ_VALUE))),
            GS_OBJECT("nodeInfo", "status.nodeInfo",
                      GS_MEMBERS(MEMBER("kubeletVersion", "status.nodeInfo.kubeletVersion",
                                        node.kubelet))),
            GS_EACH("addresses", "status.addresses", read_address),
            GS_EACH("conditions", "status.conditions", read_condition))),
    {0},
};

static void apply_amounts(struct node_reader *nr)
{
    nr->node.capacity_units = (uint64_t)nr->units;
    nr->node.capacity_count = gs_clamp_u32(nr->count);
    nr->node.capacity_cores_pct = gs_clamp_u32(nr->cores_pct);
    nr->node.whole_gpus = (uint32_t)nr->others;
    nr->node.allocatable_units = (uint64_t)nr->allocatable;
}

/* An annotation that is ignored: the reason is kept, and the node is read all the same. */
static int ignore_annotation(struct gs_node *node, const struct gs_error *why,
                             const char **ret_words, struct gs_error *err)
{
    const char *words = gs_arena_strdup(&node->arena, why->msg);
    if (why->code == GS_ENOMEM || !words)
        return gs_fail_nomem(err);
    *ret_words = words;
    return 0;
}

static int apply_inventory(struct node_reader *nr, struct gs_error *err)
{
    struct gs_node *node = &nr->node;
    struct gs_slice text;
    struct gs_inventory inventory;
    struct gs_error why = {0};
    if (!nr->inventory.at)
        return 0;
    if (!gs_scan_text_slice(&node->arena, nr->inventory, &text))
        return gs_fail_nomem(err);
    if (gs_codec_inventory_decode(text, &node->arena, &inventory, &why) < 0)
        return ignore_annotation(node, &why, &node->inventory_error, err);
    node->inventory = true;
    node->unit = inventory.unit;
    node->gpus = inventory.gpus;
    node->gpu_count = inventory.gpu_count;
    node->tells_moved = inventory.tells_moved;
    node->unit_doubted = inventory.unit_doubted;
    node->inventory_rev = inventory.rev;
    return 0;
}

static int apply_moved(struct node_reader *nr, struct gs_error *err)
{
    struct gs_node *node = &nr->node;
    struct gs_slice text;
    struct gs_error why = {0};
    if (!nr->moved.at)
        return 0;
    if (!gs_scan_text_slice(&node->arena, nr->moved, &text))
        return gs_fail_nomem(err);
    if (gs_codec_moved_decode(text, &node->arena, &node->moved, &node->moved_count, &why) < 0)
        return ignore_annotation(node, &why, &node->moved_error, err);
    return 0;
}

static void apply_cordon_word(struct gs_node *node, struct gs_slice word)
{
    while (word.len && word.at[0] == ' ') {
        word.at++;
        word.len--;
    }
    while (word.len && word.at[word.len - 1] == ' ')
        word.len--;
    uint32_t idx;
    bool number = gs_parse_u32(word.at, word.len, &idx), known = false;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        struct gs_gpu *gpu = &node->gpus[i];
        if ((number && gpu->idx == idx) ||
            (word.len && gs_slice_eq(word, gs_slice_of(gpu->uuid)))) {
            gpu->schedulable = false;
            node->cordoned |= GS_GPU_BIT(gpu->idx);
            known = true;
        }
    }
    node->cordon_unknown += word.len && !known;
}

static int apply_cordon(struct node_reader *nr, struct gs_error *err)
{
    struct gs_slice text;
    if (!gs_scan_text_slice(&nr->node.arena, nr->cordon, &text))
        return gs_fail_nomem(err);
    const char *at = text.at, *end = text.at + text.len;
    for (const char *word = at; at <= end; at++) {
        if (at == end || *at == ',') {
            apply_cordon_word(&nr->node, (struct gs_slice){word, (size_t)(at - word)});
            word = at + 1;
        }
    }
    return 0;
}

int gs_codec_node_take(const struct gs_names *names, struct gs_scan *from, struct gs_node *ret,
                       struct gs_error *err)
{
    gs_node_reset(ret);
    struct node_reader nr = {.reader.names = names, .node = *ret};
    struct gs_node *node = &nr.node;
    nr.reader.arena = &node->arena;
    gs_reader_enter(&nr.reader, from);
    gs_read_entry(&nr.reader, "node", node_members, &nr);
    int result = gs_reader_leave(&nr.reader, from, err);
    apply_amounts(&nr);
    if (result == 0)
        result = apply_inventory(&nr, err);
    if (result == 0)
        result = apply_moved(&nr, err);
    if (result == 0 && !node->inventory && gs_node_divide_capacity(node) < 0)
        result = gs_fail_nomem(err);
    if (result == 0)
        result = apply_cordon(&nr, err);
    node->rules.name = node->name;
    node->rules.unschedulable = node->unschedulable;
    *ret = *node;
    if (result < 0)
        gs_node_reset(ret);
    return result;
}

int gs_codec_node(const struct gs_names *names, struct gs_slice json, struct gs_node *node,
                  struct gs_error *err)
{
    struct gs_scan scan;
    gs_scan_init(&scan, json);
    int result = gs_codec_node_take(names, &scan, node, err);
    if (result == 0)
        result = gs_scan_finish(&scan, err);
    if (result < 0)
        gs_node_reset(node);
    return result;
}
