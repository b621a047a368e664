/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <strings.h>

#include "gpushare/base/index.h"
#include "gpushare/core/placement.h"

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

/* Takes the next entry off a comma list, without the blanks around it; false at its end. */
static bool list_next(struct gs_slice *rest, struct gs_slice *ret)
{
    if (!rest->at)
        return false;
    *ret = trim(gs_slice_cut(rest, ','));
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
    for (size_t entries = 0; list_next(&list, &entry); entries++) {
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

void gs_ask_of_pod(struct gs_ask *ret, const struct gs_pod *pod)
{
    struct gs_charge charge;
    enum gs_reason broken = gs_pod_charge(pod, &charge);
    struct gs_ask ask = {
        .each = charge.each,
        .gpu_count = charge.gpu_count,
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

/* Which GPUs a pod's lists allow. */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Nearly every place is done with its first character. */
static bool contains(const char *text, struct gs_slice word)
{
    char first = lower(word.at[0]);
    for (size_t len = strlen(text); len >= word.len; text++, len--) {
        if (lower(text[0]) == first && strncasecmp(text, word.at, word.len) == 0)
            return true;
    }
    return false;
}

static bool equals(const char *text, struct gs_slice word)
{
    return strlen(text) == word.len && strncasecmp(text, word.at, word.len) == 0;
}

static bool any_entry(struct gs_slice list, const char *text,
                      bool (*match)(const char *text, struct gs_slice word))
{
    struct gs_slice entry;
    while (list_next(&list, &entry)) {
        if (entry.len && match(text, entry))
            return true;
    }
    return false;
}

static bool allows_model(const struct gs_ask *ask, const char *model)
{
    if (ask->model.len && !any_entry(ask->model, model, contains))
        return false;
    return !(ask->model_deny.len && any_entry(ask->model_deny, model, contains));
}

static uint32_t hash_uuid(struct gs_slice uuid)
{
    char text[GS_UUID_BYTES];
    size_t len = uuid.len < sizeof(text) ? uuid.len : sizeof(text);
    for (size_t i = 0; i < len; i++)
        text[i] = lower(uuid.at[i]);
    return (uint32_t)gs_hash_bytes(text, len);
}

static uint32_t hash_list(struct gs_slice list, uint32_t hashes[GS_LIST_ENTRIES_MAX])
{
    struct gs_slice entry;
    uint32_t count = 0;
    while (count < GS_LIST_ENTRIES_MAX && list_next(&list, &entry))
        hashes[count++] = hash_uuid(entry);
    return count;
}

void gs_ask_match(struct gs_ask *ask, const struct gs_ledger *ledger, struct gs_match *room)
{
    if (!ask->selects || ask->broken)
        return;
    *room = (struct gs_match){0};
    if (ask->model.len || ask->model_deny.len)
        room->models = gs_ledger_model_count(ledger);
    for (uint16_t i = 0; i < room->models; i++) {
        if (allows_model(ask, gs_ledger_model_name(ledger, (uint16_t)(i + 1))))
            room->allowed[i / 64] |= (uint64_t)1 << (i % 64);
    }
    room->uuids = hash_list(ask->uuid, room->uuid);
    room->uuids_denied = hash_list(ask->uuid_deny, room->uuid_denied);
    ask->match = room;
}

static bool among(const uint32_t *hashes, uint32_t count, uint32_t hash)
{
    for (uint32_t i = 0; i < count; i++) {
        if (hashes[i] == hash)
            return true;
    }
    return false;
}

/* Equal hashes are looked at again, as texts. */
static bool allows_uuid(const struct gs_ask *ask, const char *uuid)
{
    const struct gs_match *match = ask->match;
    if (!ask->uuid.len && !ask->uuid_deny.len)
        return true;
    uint32_t hash = match ? hash_uuid(gs_slice_of(uuid)) : 0;
    bool maybe = !match || among(match->uuid, match->uuids, hash);
    bool maybe_denied = !match || among(match->uuid_denied, match->uuids_denied, hash);
    if (ask->uuid.len && !(maybe && any_entry(ask->uuid, uuid, equals)))
        return false;
    return !(ask->uuid_deny.len && maybe_denied && any_entry(ask->uuid_deny, uuid, equals));
}

/* What was found out about the GPU before: a node's are mostly of one model. */
struct last {
    const char *model;
    bool allowed;
};

static bool allows_model_of(const struct gs_ask *ask, const struct gs_gpu_state *state,
                            const char *model, struct last *last)
{
    if (!ask->model.len && !ask->model_deny.len)
        return true;
    if (ask->match && state->model && state->model <= ask->match->models)
        return ask->match->allowed[(state->model - 1) / 64] >> ((state->model - 1) % 64) & 1;
    if (!last->model || strcmp(last->model, model) != 0)
        *last = (struct last){model, allows_model(ask, model)};
    return last->allowed;
}

gs_gpu_mask gs_ask_allowed(const struct gs_ask *ask, const struct gs_node_view *view)
{
    if (!ask->selects)
        return ~(gs_gpu_mask)0;
    gs_gpu_mask mask = 0;
    struct last last = {0};
    for (uint32_t i = 0; view->inventory && i < view->gpu_count; i++) {
        const struct gs_gpu *gpu = &view->inventory[i];
        if (allows_model_of(ask, &view->gpus[i], gpu->model, &last) && allows_uuid(ask, gpu->uuid))
            mask |= GS_GPU_BIT(view->gpus[i].idx);
    }
    return mask;
}
