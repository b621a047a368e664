/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/promised.h"

#include <inttypes.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/annotation.h"
#include "inspect/installed.h"
#include "inspect/lookup.h"

static uint64_t number_of(const json_t *entry, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(entry, key));
    return value > 0 ? (uint64_t)value : 0;
}

static gs_gpu_mask gpus_of(const json_t *entry)
{
    gs_gpu_mask gpus = 0;
    size_t i;
    json_t *idx;
    json_array_foreach(json_object_get(entry, "devs"), i, idx)
    {
        json_int_t value = json_integer_value(idx);
        if (value >= 0 && value < GS_GPUS_MAX)
            gpus |= GS_GPU_BIT(value);
    }
    return gpus;
}

static struct promised_group *need_group(struct promised *promised, const char *name)
{
    for (uint32_t i = 0; i < promised->count; i++) {
        if (strcmp(promised->groups[i].name, name) == 0)
            return &promised->groups[i];
    }
    if (promised->count == PROMISED_GROUPS_MAX)
        return NULL;
    struct promised_group *group = &promised->groups[promised->count++];
    snprintf(group->name, sizeof(group->name), "%s", name);
    return group;
}

static void add(struct promised *promised, const json_t *entry, const char *uid)
{
    char name[sizeof(promised->groups[0].name)];
    const gs_gpu_mask gpus = gpus_of(entry);
    const uint64_t left_ms = number_of(entry, "millisecondsLeft");
    snprintf(name, sizeof(name), "%s", lookup_text(entry, "group", NULL));
    gs_utf8_calm(name);
    struct promised_group *group = need_group(promised, name);
    if (!group) {
        promised->left_out++;
        return;
    }
    group->pods++;
    group->units += number_of(entry, "usedGPU") * gs_gpu_mask_count(gpus);
    if (left_ms > group->left_ms)
        group->left_ms = left_ms;
    if (strcmp(lookup_text(entry, "uid", NULL), uid) != 0)
        return;
    snprintf(promised->own_node, sizeof(promised->own_node), "%s",
             lookup_text(entry, "node", NULL));
    gs_utf8_calm(promised->own_node);
    promised->own_gpus = gpus;
    promised->own_left_ms = left_ms;
}

struct reading {
    struct promised *to;
    const char *uid;
};

/* Only who leads has any. */
static bool read_places(void *ctx, const json_t *answer)
{
    const struct reading *reading = ctx;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(answer, "promised"), i, entry)
        add(reading->to, entry, reading->uid);
    return reading->to->count > 0;
}

void promised_fetch(const struct common *common, const char *uid, struct promised *ret)
{
    struct reading reading = {ret, uid};
    *ret = (struct promised){0};
    installed_ask(common, INSTALLED_EXTENDER("promised"), read_places, &reading);
}

void promised_print(const struct promised *promised, const char *unit, FILE *out)
{
    char list[GS_IDX_TEXT_BYTES];
    if (promised->own_node[0])
        fprintf(out,
                "  it is promised GPU %s of node %s as a member of its pod group, until its bind, "
                "for %.1f s more at most\n",
                gs_codec_idx_format(promised->own_gpus, list), promised->own_node,
                (double)promised->own_left_ms / 1000);
    for (uint32_t i = 0; i < promised->count; i++) {
        const struct promised_group *group = &promised->groups[i];
        fprintf(out,
                "  pod group %s is promised %" PRIu64 " %s for %" PRIu32
                " of its pods, for %.1f s more at most: kept from pods of no higher priority\n",
                group->name, group->units, unit, group->pods, (double)group->left_ms / 1000);
    }
    if (promised->left_out)
        fprintf(out, "  and %" PRIu32 " pods of other groups are promised a place\n",
                promised->left_out);
}

void promised_document(struct doc *doc, const struct promised *promised)
{
    if (!promised->count)
        return;
    if (promised->own_node[0]) {
        doc_object(doc, "promised");
        doc_text(doc, "node", promised->own_node);
        doc_gpus(doc, "gpus", promised->own_gpus);
        doc_number(doc, "millisecondsLeft", promised->own_left_ms);
        doc_end(doc);
    }
    doc_list(doc, "promisedGroups");
    for (uint32_t i = 0; i < promised->count; i++) {
        doc_object(doc, NULL);
        doc_text(doc, "name", promised->groups[i].name);
        doc_number(doc, "pods", promised->groups[i].pods);
        doc_number(doc, "units", promised->groups[i].units);
        doc_number(doc, "millisecondsLeft", promised->groups[i].left_ms);
        doc_end(doc);
    }
    doc_end(doc);
}
