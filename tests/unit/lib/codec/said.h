/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec_fixture.h"

#include "gpushare/codec/annotation.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/model/charge.h"

/* A pod and a node in words, for tables: whatever is not as in an object that says nothing. */

/* " word=text" or " word=number", where it says something. */
struct said {
    const char *word, *text;
    int64_t number;
};

static inline void say(FILE *to, const struct said *said, size_t count)
{
    for (; count--; said++) {
        if (said->text && said->text[0])
            fprintf(to, " %s=%s", said->word, said->text);
        if (said->number)
            fprintf(to, " %s=%lld", said->word, (long long)said->number);
    }
}

static inline FILE *begin_saying(char *text, size_t size)
{
    text[0] = '\0'; /* a stream that nothing is written to leaves it */
    return fmemopen(text, size, "w");
}

/* " word=0,3", " word=broken", or nothing. */
static inline void say_record(FILE *to, const char *word, enum gs_recorded recorded,
                              gs_gpu_mask gpus)
{
    char list[GS_IDX_TEXT_BYTES] = "broken";
    if (recorded == GS_RECORDED_VALID)
        gs_codec_idx_format(gpus, list);
    if (recorded)
        fprintf(to, " %s=%s", word, list);
}

/* " init:8" or " main:8,1000m,1024B,30%": units, CPU, memory and compute. */
static inline bool say_container(FILE *to, const struct gs_container *container)
{
    static const char *const kinds[] = {"init", "sidecar", "main"};
    fprintf(to, " %s:%u", kinds[container->kind], container->gpu_units);
    if (container->cpu_milli)
        fprintf(to, ",%lldm", (long long)container->cpu_milli);
    if (container->memory_bytes)
        fprintf(to, ",%lldB", (long long)container->memory_bytes);
    if (container->cores_pct)
        fprintf(to, ",%u%%", container->cores_pct);
    return container->gpu_units != 0;
}

/* "CONTAINER… WORD=…"; *borrowed* until the next. */
static inline const char *say_pod(const struct gs_pod *pod)
{
    static char text[1024];
    static const char *const phases[] = {"", "Pending", "Running", "Succeeded", "Failed"};
    static const char *const classes[] = {"Guaranteed", "Burstable", ""};
    static const char *const placements[] = {"", "binpack", "spread", "rollout", "broken"};
    bool units = pod->gpu_units_overflow;
    FILE *to = begin_saying(text, sizeof(text));
    for (uint32_t i = 0; i < pod->container_count; i++)
        units |= say_container(to, &pod->containers[i]);
    const struct said said[] = {
        {"named", NULL, pod->names_gpu != units},
        {"ns", pod->ns},
        {"name", pod->name},
        {"uid", pod->uid},
        {"version", pod->resource_version},
        {"on", pod->node_name},
        {"to", pod->nominated_node},
        {"phase", phases[pod->phase]},
        {"class", classes[pod->qos]},
        {"deleting", NULL, pod->deleting},
        {"priority", NULL, pod->priority},
        {"created", NULL, pod->created_s},
        {"overhead", NULL, pod->overhead_cpu_milli},
        {"overflow", NULL, pod->gpu_units_overflow},
        {"prefers", NULL, pod->has_preferences},
        {"gated", NULL, pod->gated},
        {"never-preempts", NULL, pod->never_preempts},
        {"own-shm", NULL, pod->own_shm},
        {"sets-mps", NULL, pod->sets_mps},
        {"overrides", pod->overrides},
        {"group", pod->group},
        {"said", pod->said},
        {"static", pod->static_uid},
        {"owner", pod->owner},
        {"owner-uid", pod->owner_uid},
        {"daemon", NULL, pod->daemon},
        {"count", pod->count_kind == GS_COUNT_BROKEN ? "broken" : "", pod->gpu_count},
        {"placement", placements[pod->placement]},
        {"assumed", NULL, pod->assume_time_ns},
        {"assigned", pod->assigned       ? "true"
                     : pod->has_assigned ? "false"
                                         : ""},
        {"offer", pod->offer},
        {"required", NULL, pod->enforce_required},
        {"model", pod->gpu_model},
        {"not-model", pod->gpu_model_deny},
        {"uuid", pod->gpu_uuid},
        {"not-uuid", pod->gpu_uuid_deny},
        {"idx-missing", NULL, pod->idx_missing},
        {"uneven", NULL, pod->uneven},
    };
    say(to, said, GS_COUNT_OF(said));
    if (pod->has_own_cpu || pod->has_own_memory) /* in place of its containers' */
        fprintf(to, " own=%lldm,%lldB", (long long)gs_pod_cpu_milli(pod),
                (long long)gs_pod_memory_bytes(pod));
    if (pod->owner_kind[0])
        fprintf(to, " by=%s/%s/%s", pod->owner_api, pod->owner_kind, pod->owner_name);
    say_record(to, "gpus", pod->recorded, pod->recorded_gpus);
    fclose(to);
    return text + (text[0] == ' ');
}

/* "INDEX:UNITS=UUID… WORD=…", likewise; "!" behind a GPU that is not healthy, "-" behind one that
 * is cordoned. */
static inline const char *say_node(const struct gs_node *node)
{
    static char text[1024];
    FILE *to = begin_saying(text, sizeof(text));
    for (uint32_t i = 0; i < node->gpu_count && i < 4; i++) {
        const struct gs_gpu *gpu = &node->gpus[i];
        fprintf(to, " %u:%u%s%s%s%s", gpu->idx, gpu->mem_units, gpu->uuid[0] ? "=" : "", gpu->uuid,
                gpu->healthy ? "" : "!", gpu->schedulable ? "" : "-");
    }
    const struct said said[] = {
        {"name", node->name},
        {"uid", node->uid},
        {"version", node->resource_version},
        {"gpus", NULL, node->gpu_count > 4 ? node->gpu_count : 0},
        {"units", NULL, (int64_t)node->capacity_units},
        {"count", NULL, node->capacity_count},
        {"cordoned", NULL, node->unschedulable},
        {"ready", NULL, node->ready},
        {"labelled", NULL, node->labelled},
        {"upgrade", NULL, node->driver_upgrade},
        {"mps", NULL, node->mps},
        {"whole", NULL, node->whole_gpus},
        {"enforced", node->enforced},
        {"allocatable", NULL, (int64_t)node->allocatable_units},
        {"cores", NULL, node->capacity_cores_pct},
        {"cpu", NULL, node->cpu_milli},
        {"memory", NULL, node->memory_bytes},
        {"address", node->address},
        {"kubelet", node->kubelet},
        {"unit", gs_unit_name(node->unit)},
        {"inventory", node->inventory_error, node->inventory},
        {"reassigns", node->moved_error, node->tells_moved},
        {"cordon-unknown", NULL, node->cordon_unknown},
        {"unit-conflict", NULL, node->unit_doubted},
        {"rev", NULL, node->inventory_rev},
    };
    say(to, said, GS_COUNT_OF(said));
    if (node->cordoned)
        say_record(to, "off", GS_RECORDED_VALID, node->cordoned);
    for (uint32_t i = 0; i < node->moved_count; i++)
        say_record(to, node->moved[i].uid, GS_RECORDED_VALID, node->moved[i].gpus);
    fclose(to);
    return text + (text[0] == ' ');
}
