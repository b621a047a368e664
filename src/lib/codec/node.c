/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/node.h"

#include "gpushare/base/num.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/codec/moved.h"
#include "reader.h"

struct node_reader {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    struct gs_node node;
    struct gs_scan_text inventory, cordon, moved;
    int64_t units, count, cores_pct, others; /* of status.capacity */
    int64_t allocatable;
};

#define MEMBER(key, field) GS_MEMBER(struct node_reader, key, field)
#define NAMED(name, field) GS_NAMED(struct node_reader, name, field)

/* Keeps all labels, because pods' rules may refer to any. */
static void read_labels(struct gs_reader *reader, void *to)
{
    struct gs_node_rules *rules = &((struct node_reader *)to)->node.rules;
    struct gs_scan_text key;
    if (!gs_read_object(reader))
        return;
    rules->label_count = 0;
    while (gs_scan_key(&reader->scan, &key))
        gs_read_label(reader, &rules->labels, &rules->label_count, key);
    gs_node_labels_sort(rules->labels, rules->label_count);
}

static bool is_labelled(const struct gs_node *node, const char *key)
{
    const char *value = gs_node_label(&node->rules, key);
    return value && strcmp(value, "true") == 0;
}

static void apply_labels(struct gs_node *node, const struct gs_names *names)
{
    const char *enforced = gs_node_label(&node->rules, names->enforced);
    node->labelled = is_labelled(node, GS_NODE_LABEL);
    node->driver_upgrade = is_labelled(node, names->driver_upgrade);
    node->mps = is_labelled(node, names->mps);
    node->enforced = enforced ? enforced : "";
}

static const struct gs_member taint_members[] = {
    GS_MEMBER(struct gs_taint, "key", key),
    GS_MEMBER(struct gs_taint, "value", value),
    GS_MEMBER(struct gs_taint, "effect", effect),
    {0},
};

static void read_taint(struct gs_reader *reader, void *to)
{
    struct gs_node_rules *rules = &((struct node_reader *)to)->node.rules;
    struct gs_taint *taint =
        gs_read_append(reader, &rules->taints, &rules->taint_count, sizeof(*taint), UINT32_MAX);
    if (!taint)
        return;
    *taint = (struct gs_taint){"", "", ""};
    gs_read_entry(reader, "[]", taint_members, taint);
}

/* Resources of NVIDIA's device plugin: nvidia.com/gpu, gpu.shared, mig-1g.10gb, … */
static void add_whole(struct gs_reader *reader, void *to)
{
    int64_t *sum = &((struct node_reader *)to)->others;
    int64_t more = 0;
    gs_read_quantity(reader, GS_QUANTITY_WHOLE, &more);
    *sum = more < INT32_MAX - *sum ? *sum + more : INT32_MAX;
}

#define WHOLE(prefix) GS_PREFIXED(prefix, add_whole)

#define AMOUNT(key, field, kind) GS_MEMBER_AS(struct node_reader, key, field, kind)

/* An entry of status.addresses or status.conditions. */
struct entry {
    struct gs_scan_text type, address, status;
};

static const struct gs_member entry_members[] = {
    GS_MEMBER(struct entry, "type", type),
    GS_MEMBER(struct entry, "address", address),
    GS_MEMBER(struct entry, "status", status),
    {0},
};

/* The first InternalIP counts. */
static void read_address(struct gs_reader *reader, void *to)
{
    struct gs_node *node = &((struct node_reader *)to)->node;
    struct entry entry = {0};
    gs_read_entry(reader, "[]", entry_members, &entry);
    if (!node->address[0] && gs_scan_text_is(entry.type, "InternalIP"))
        node->address = gs_read_dup(reader, entry.address);
}

static void read_condition(struct gs_reader *reader, void *to)
{
    struct entry entry = {0};
    gs_read_entry(reader, "[]", entry_members, &entry);
    if (gs_scan_text_is(entry.type, "Ready"))
        ((struct node_reader *)to)->node.ready = gs_scan_text_is(entry.status, "True");
}

static const struct gs_member node_members[] = {
    GS_OBJECT("metadata",
              GS_MEMBERS(MEMBER("name", node.name), MEMBER("uid", node.uid),
                         MEMBER("resourceVersion", node.resource_version),
                         GS_CALL("labels", read_labels),
                         GS_OBJECT("annotations",
                                   GS_MEMBERS(NAMED(inventory, inventory), NAMED(moved, moved),
                                              NAMED(cordon, cordon))))),
    GS_OBJECT("spec", GS_MEMBERS(MEMBER("unschedulable", node.unschedulable),
                                 GS_EACH_IN(struct node_reader, "taints", node.rules.taint_count,
                                            read_taint))),
    GS_OBJECT("status",
              GS_MEMBERS(GS_OBJECT("capacity",
                                   GS_MEMBERS(NAMED(gpu_mem, units), NAMED(gpu_count, count),
                                              NAMED(gpu_cores, cores_pct), WHOLE("nvidia.com/gpu"),
                                              WHOLE("nvidia.com/mig-"), WHOLE("nvidia.com/vgpu"))),
                         GS_OBJECT("allocatable",
                                   GS_MEMBERS(NAMED(gpu_mem, allocatable),
                                              AMOUNT("cpu", node.cpu_milli, GS_READ_MILLI),
                                              AMOUNT("memory", node.memory_bytes, GS_READ_VALUE))),
                         GS_OBJECT("nodeInfo", GS_MEMBERS(MEMBER("kubeletVersion", node.kubelet))),
                         GS_EACH("addresses", read_address),
                         GS_EACH("conditions", read_condition))),
    {0},
};

/* Ignores an invalid annotation: keeps the reason, and the node is decoded without it. */
static int ignore_annotation(struct gs_node *node, const struct gs_error *why,
                             const char **ret_words, struct gs_error *err)
{
    const char *words = gs_arena_strdup(&node->arena, why->msg);
    if (why->code == GS_ENOMEM || !words)
        return gs_fail_nomem(err);
    *ret_words = words;
    return 0;
}

static int apply_inventory(struct gs_node *node, struct gs_slice text, struct gs_error *err)
{
    struct gs_inventory inventory;
    struct gs_error why = {0};
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

static int apply_annotations(struct node_reader *nr, struct gs_error *err)
{
    struct gs_node *node = &nr->node;
    struct gs_slice inventory, moved, cordon;
    struct gs_error why = {0};
    if (!gs_scan_text_slice(&node->arena, nr->inventory, &inventory) ||
        !gs_scan_text_slice(&node->arena, nr->moved, &moved) ||
        !gs_scan_text_slice(&node->arena, nr->cordon, &cordon))
        return gs_fail_nomem(err);
    if (nr->inventory.at && apply_inventory(node, inventory, err) < 0)
        return -1;
    if (nr->moved.at &&
        gs_codec_moved_decode(moved, &node->arena, &node->moved, &node->moved_count, &why) < 0 &&
        ignore_annotation(node, &why, &node->moved_error, err) < 0)
        return -1;
    if (!node->inventory && gs_node_divide_capacity(node) < 0)
        return gs_fail_nomem(err);
    do
        apply_cordon_word(node, gs_slice_cut(&cordon, ','));
    while (cordon.at);
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
    node->capacity_units = (uint64_t)nr.units;
    node->capacity_count = gs_clamp_u32(nr.count);
    node->capacity_cores_pct = gs_clamp_u32(nr.cores_pct);
    node->whole_gpus = (uint32_t)nr.others;
    node->allocatable_units = (uint64_t)nr.allocatable;
    apply_labels(node, names);
    if (result == 0)
        result = apply_annotations(&nr, err);
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
    scan.whole = true;
    return gs_codec_node_take(names, &scan, node, err);
}
