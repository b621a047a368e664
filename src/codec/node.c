/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/node.h"

#include "gpushare/base/num.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/codec/moved.h"
#include "reader.h"

struct node_reader {
    struct gs_reader reader;
    const struct gs_names *names;
    struct gs_node *node;
    struct gs_scan_text inventory, cordon, moved;
};

/* All of them: pods may name any in their rules. */
static void read_labels(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_node *node = nr->node;
    struct gs_node_rules *rules = &node->rules;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata.labels"))
        return;
    rules->label_count = 0;
    while (gs_scan_key(&reader->scan, &key)) {
        const struct gs_kv *label =
            gs_read_label(reader, &rules->labels, &rules->label_count, key, "metadata.labels");
        bool yes = label && strcmp(label->value, "true") == 0;
        if (!label)
            return;
        if (gs_scan_text_is(key, GS_NODE_LABEL))
            node->labelled = yes;
        else if (gs_scan_text_is_name(key, nr->names->driver_upgrade))
            node->driver_upgrade = yes;
        else if (gs_scan_text_is_name(key, nr->names->mps))
            node->mps = yes;
        else if (gs_scan_text_is_name(key, nr->names->enforced))
            node->enforced = label->value;
    }
    gs_node_labels_sort(rules->labels, rules->label_count);
}

static void read_annotations(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata.annotations"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is_name(key, nr->names->inventory))
            gs_read_text(reader, "annotation gpu-inventory", &nr->inventory);
        else if (gs_scan_text_is_name(key, nr->names->moved))
            gs_read_text(reader, "annotation gpu-moved", &nr->moved);
        else if (gs_scan_text_is_name(key, nr->names->cordon))
            gs_read_text(reader, "annotation gpu-cordon", &nr->cordon);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_metadata(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_node *node = nr->node;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "name"))
            gs_read_string(reader, "metadata.name", &node->name);
        else if (gs_scan_text_is(key, "uid"))
            gs_read_string(reader, "metadata.uid", &node->uid);
        else if (gs_scan_text_is(key, "resourceVersion"))
            gs_read_string(reader, "metadata.resourceVersion", &node->resource_version);
        else if (gs_scan_text_is(key, "labels"))
            read_labels(nr);
        else if (gs_scan_text_is(key, "annotations"))
            read_annotations(nr);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_taint(struct node_reader *nr, struct gs_taint *taint)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text key;
    *taint = (struct gs_taint){"", "", ""};
    gs_scan_object(&reader->scan, "spec.taints entry");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "key"))
            gs_read_string(reader, "key of a taint", &taint->key);
        else if (gs_scan_text_is(key, "value"))
            gs_read_string(reader, "value of a taint", &taint->value);
        else if (gs_scan_text_is(key, "effect"))
            gs_read_string(reader, "effect of a taint", &taint->effect);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_taints(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_node_rules *rules = &nr->node->rules;
    if (!gs_read_array(reader, "spec.taints"))
        return;
    rules->taint_count = 0;
    while (gs_scan_element(&reader->scan)) {
        struct gs_taint *taints = gs_read_grow(reader, rules->taints, rules->taint_count,
                                               sizeof(*taints), "spec.taints", UINT32_MAX);
        if (!taints)
            return;
        rules->taints = taints;
        read_taint(nr, &taints[rules->taint_count++]);
    }
}

static void read_spec(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "unschedulable"))
            gs_read_bool(reader, "spec.unschedulable", &nr->node->unschedulable);
        else if (gs_scan_text_is(key, "taints"))
            read_taints(nr);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_capacity(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text key;
    int64_t units = 0, count = 0, cores_pct = 0, whole = 0, shared = 0;
    if (!gs_read_object(reader, "status.capacity"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is_name(key, nr->names->gpu_mem))
            gs_read_whole(reader, "GPU memory in status.capacity", &units);
        else if (gs_scan_text_is_name(key, nr->names->gpu_count))
            gs_read_whole(reader, "GPU count in status.capacity", &count);
        else if (gs_scan_text_is_name(key, nr->names->gpu_cores))
            gs_read_whole(reader, "GPU compute in status.capacity", &cores_pct);
        else if (gs_scan_text_is(key, "nvidia.com/gpu"))
            gs_read_whole(reader, "nvidia.com/gpu in status.capacity", &whole);
        else if (gs_scan_text_is(key, "nvidia.com/gpu.shared"))
            gs_read_whole(reader, "nvidia.com/gpu.shared in status.capacity", &shared);
        else
            gs_scan_skip(&reader->scan);
    }
    nr->node->capacity_units = (uint64_t)units;
    nr->node->capacity_count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    nr->node->capacity_cores_pct = cores_pct < UINT32_MAX ? (uint32_t)cores_pct : UINT32_MAX;
    nr->node->whole_gpus = (uint32_t)(whole < INT32_MAX ? whole : INT32_MAX) +
                           (uint32_t)(shared < INT32_MAX ? shared : INT32_MAX);
}

static void read_allocatable(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text key;
    int64_t units = 0;
    if (!gs_read_object(reader, "status.allocatable"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is_name(key, nr->names->gpu_mem))
            gs_read_whole(reader, "GPU memory in status.allocatable", &units);
        else if (gs_scan_text_is(key, "cpu"))
            gs_read_milli(reader, "cpu in status.allocatable", &nr->node->cpu_milli);
        else if (gs_scan_text_is(key, "memory"))
            gs_read_value(reader, "memory in status.allocatable", &nr->node->memory_bytes);
        else
            gs_scan_skip(&reader->scan);
    }
    nr->node->allocatable_units = (uint64_t)units;
}

/* Two words of an entry of status.addresses or status.conditions. */
static void read_pair(struct gs_reader *reader, const char *what, struct gs_slice second,
                      struct gs_scan_text *ret_type, struct gs_scan_text *ret_second)
{
    struct gs_scan_text key;
    *ret_type = *ret_second = (struct gs_scan_text){0};
    gs_scan_object(&reader->scan, what);
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "type"))
            gs_read_text(reader, what, ret_type);
        else if (gs_scan_text_eq(key, second))
            gs_read_text(reader, what, ret_second);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_addresses(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text type, address, found = {0};
    if (!gs_read_array(reader, "status.addresses"))
        return;
    while (gs_scan_element(&reader->scan)) {
        read_pair(reader, "entry of status.addresses", GS_SLICE("address"), &type, &address);
        if (!found.at && gs_scan_text_is(type, "InternalIP"))
            found = address;
    }
    if (!found.at || reader->scan.failed)
        return;
    const char *copy = gs_scan_string_dup(reader->arena, found);
    if (copy)
        nr->node->address = copy;
    else
        gs_reader_stop(reader, GS_ENOMEM, "status.addresses", "");
}

static void read_conditions(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text type, status;
    if (!gs_read_array(reader, "status.conditions"))
        return;
    nr->node->ready = false;
    while (gs_scan_element(&reader->scan)) {
        read_pair(reader, "entry of status.conditions", GS_SLICE("status"), &type, &status);
        if (gs_scan_text_is(type, "Ready"))
            nr->node->ready = gs_scan_text_is(status, "True");
    }
}

static void read_status(struct node_reader *nr)
{
    struct gs_reader *reader = &nr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "status"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "capacity"))
            read_capacity(nr);
        else if (gs_scan_text_is(key, "allocatable"))
            read_allocatable(nr);
        else if (gs_scan_text_is(key, "addresses"))
            read_addresses(nr);
        else if (gs_scan_text_is(key, "conditions"))
            read_conditions(nr);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_node(struct node_reader *nr)
{
    struct gs_scan *scan = &nr->reader.scan;
    struct gs_scan_text key;
    gs_scan_object(scan, "node");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "metadata"))
            read_metadata(nr);
        else if (gs_scan_text_is(key, "spec"))
            read_spec(nr);
        else if (gs_scan_text_is(key, "status"))
            read_status(nr);
        else
            gs_scan_skip(scan);
    }
}

/* An annotation that is not believed: the reason is kept, and the node is read all the same. */
static int not_believed(struct gs_node *node, const struct gs_error *why, const char **ret_words,
                        struct gs_error *err)
{
    const char *words = gs_arena_strndup(&node->arena, why->msg, strlen(why->msg));
    if (why->code == GS_ENOMEM || !words)
        return gs_fail_nomem(err);
    *ret_words = words;
    return 0;
}

static int take_inventory(struct node_reader *nr, struct gs_error *err)
{
    struct gs_node *node = nr->node;
    struct gs_slice text;
    struct gs_inventory inventory;
    struct gs_error why = {0};
    if (!nr->inventory.at)
        return 0;
    if (!gs_scan_text_slice(&node->arena, nr->inventory, &text))
        return gs_fail_nomem(err);
    if (gs_codec_inventory_decode(text, &node->arena, &inventory, &why) < 0)
        return not_believed(node, &why, &node->inventory_error, err);
    node->inventory = true;
    node->unit = inventory.unit;
    node->gpus = inventory.gpus;
    node->gpu_count = inventory.gpu_count;
    node->tells_moved = inventory.tells_moved;
    node->unit_doubted = inventory.unit_doubted;
    node->inventory_rev = inventory.rev;
    return 0;
}

static int take_moved(struct node_reader *nr, struct gs_error *err)
{
    struct gs_node *node = nr->node;
    struct gs_slice text;
    struct gs_error why = {0};
    if (!nr->moved.at)
        return 0;
    if (!gs_scan_text_slice(&node->arena, nr->moved, &text))
        return gs_fail_nomem(err);
    if (gs_codec_moved_decode(text, &node->arena, &node->moved, &node->moved_count, &why) < 0)
        return not_believed(node, &why, &node->moved_error, err);
    return 0;
}

static void cordon_word(struct gs_node *node, struct gs_slice word)
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
    if (!gs_scan_text_slice(&nr->node->arena, nr->cordon, &text))
        return gs_fail_nomem(err);
    const char *at = text.at, *end = text.at + text.len;
    for (const char *word = at; at <= end; at++) {
        if (at == end || *at == ',') {
            cordon_word(nr->node, (struct gs_slice){word, (size_t)(at - word)});
            word = at + 1;
        }
    }
    return 0;
}

int gs_codec_node_take(const struct gs_names *names, struct gs_scan *from, struct gs_node *node,
                       struct gs_error *err)
{
    gs_node_reset(node);
    struct node_reader nr = {.reader = {.arena = &node->arena}, .names = names, .node = node};
    gs_reader_enter(&nr.reader, from);
    read_node(&nr);
    int result = gs_reader_leave(&nr.reader, from, err);
    if (result == 0)
        result = take_inventory(&nr, err);
    if (result == 0)
        result = take_moved(&nr, err);
    if (result == 0 && !node->inventory && gs_node_divide_capacity(node) < 0)
        result = gs_fail_nomem(err);
    if (result == 0)
        result = apply_cordon(&nr, err);
    node->rules.name = node->name;
    node->rules.unschedulable = node->unschedulable;
    if (result < 0)
        gs_node_reset(node);
    return result;
}

int gs_codec_node(const struct gs_names *names, struct gs_slice json, struct gs_node *node,
                  struct gs_error *err)
{
    struct gs_scan scan;
    gs_scan_init(&scan, json);
    if (gs_codec_node_take(names, &scan, node, err) < 0)
        return -1;
    if (gs_scan_finish(&scan, err) == 0)
        return 0;
    gs_node_reset(node);
    return -1;
}
