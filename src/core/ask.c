/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "ask.h"

/* What a pod asks for, from its resources, labels and annotations. */

static struct gs_slice trim(struct gs_slice text)
{
    while (text.len && isspace((unsigned char)text.at[0])) {
        text.at++;
        text.len--;
    }
    while (text.len && isspace((unsigned char)text.at[text.len - 1]))
        text.len--;
    return text;
}

bool gs_list_next(struct gs_slice *rest, struct gs_slice *ret)
{
    if (!rest->at)
        return false;
    const char *comma = memchr(rest->at, ',', rest->len);
    size_t len = comma ? (size_t)(comma - rest->at) : rest->len;
    *ret = trim((struct gs_slice){rest->at, len});
    if (comma)
        *rest = (struct gs_slice){comma + 1, rest->len - len - 1};
    else
        *rest = (struct gs_slice){0};
    return true;
}

/* An absent list is fine; one with an empty entry ("a,,b", ",") or a control character is not, nor
 * one past the ceilings. */
static bool is_list(struct gs_slice list)
{
    struct gs_slice entry;
    if (!list.len)
        return true;
    if (list.len > GS_LIST_BYTES_MAX)
        return false;
    for (size_t entries = 0; gs_list_next(&list, &entry); entries++) {
        if (!entry.len || entries == GS_LIST_ENTRIES_MAX)
            return false;
        for (size_t i = 0; i < entry.len; i++) {
            if (iscntrl((unsigned char)entry.at[i]))
                return false;
        }
    }
    return true;
}

/* The first of the four lists that is none, so that the user reads which one to mend. */
static enum gs_reason broken_list(const struct gs_ask *ask)
{
    if (!is_list(ask->model))
        return GS_REASON_BAD_MODEL;
    if (!is_list(ask->model_deny))
        return GS_REASON_BAD_MODEL_DENY;
    if (!is_list(ask->uuid))
        return GS_REASON_BAD_UUID;
    return is_list(ask->uuid_deny) ? GS_FITS : GS_REASON_BAD_UUID_DENY;
}

static enum gs_reason reason_of(enum gs_charge_result result)
{
    switch (result) {
    case GS_CHARGE_BAD_COUNT:
        return GS_REASON_BAD_COUNT;
    case GS_CHARGE_NOT_DIVISIBLE:
        return GS_REASON_NOT_DIVISIBLE;
    case GS_CHARGE_TOO_LARGE:
        return GS_REASON_GPU_TOO_SMALL;
    case GS_CHARGE_CORES_ALONE:
        return GS_REASON_CORES_ALONE;
    case GS_CHARGE_CORES_ABOVE:
        return GS_REASON_CORES_ABOVE;
    case GS_CHARGE_CORES_SPREAD:
        return GS_REASON_CORES_SPREAD;
    case GS_CHARGE_OK:
        break;
    }
    return GS_FITS;
}

void gs_ask_of_pod(struct gs_ask *ret, const struct gs_pod *pod)
{
    struct gs_charge charge;
    enum gs_reason broken = reason_of(gs_pod_charge(pod, &charge));
    struct gs_ask ask = {
        .units = charge.units,
        .gpu_count = charge.gpu_count,
        .cores_pct = charge.cores_pct,
        .priority = pod->priority,
        .placement = pod->placement,
        .cpu_milli = gs_pod_cpu_milli(pod),
        .model = gs_slice_of(pod->gpu_model),
        .model_deny = gs_slice_of(pod->gpu_model_deny),
        .uuid = gs_slice_of(pod->gpu_uuid),
        .uuid_deny = gs_slice_of(pod->gpu_uuid_deny),
        .uid = pod->uid,
        .group = pod->group[0] ? gs_pod_name_hash(pod->ns, pod->group) : 0,
        .ns = pod->ns,
        .rules = &pod->rules,
    };
    ask.selects = ask.model.len || ask.model_deny.len || ask.uuid.len || ask.uuid_deny.len;
    if (!broken && ask.units && pod->placement == GS_PLACEMENT_BROKEN)
        broken = GS_REASON_BAD_PLACEMENT;
    if (!broken && ask.units)
        broken = broken_list(&ask);
    ask.broken = broken;
    *ret = ask;
}
