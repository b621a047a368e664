/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a scenario has said so far: pods by their names, and the slow model of the ledger
 * (tests/property), which is told the same as the service. Whom to believe about a pod's place is
 * written down here once more, from docs/contract.md, section 4.
 */
#include "service_rig.h"

#include "../../../property/model.h"
#include "rows.h"
#include "scenario.h"

struct pod {
    char name[32], uid[32], node[32], idx[24], phase[16], nominated[32];
    char labels[256], notes[512], spec[512], created[64];
    long units, cores, priority, cpu;
    unsigned count;
    enum gs_code shown; /* what asking the API for it answers */
    bool deleting;
    uint64_t revision;
    uint32_t model; /* which of the model's UIDs it has */
};

static struct rig rig;
static struct gs_election *election; /* of a replica, else NULL */
static char *answer;
static struct pod pods[M_UIDS];
static char nodes[M_NODES][32];
static struct model model;
static char uids[M_UIDS][32]; /* the model's */
static bool ended[M_UIDS], open_bind[M_UIDS], waits[M_UIDS], modelled, listing;
static struct scenario *running; /* for the port's hooks */

/* --- names --- */

static uint32_t node_number(struct scenario *s, const char *name)
{
    uint32_t i = 0;
    while (i < M_NODES && nodes[i][0] && strcmp(nodes[i], name) != 0)
        i++;
    if (i == M_NODES)
        scenario_fail(s, "more nodes than the model has");
    snprintf(nodes[i], sizeof(nodes[i]), "%s", name);
    return i;
}

static uint32_t uid_number(struct scenario *s, const char *uid)
{
    uint32_t i = 0;
    while (i < M_UIDS && uids[i][0] && strcmp(uids[i], uid) != 0)
        i++;
    if (i == M_UIDS)
        scenario_fail(s, "more pods than the model has");
    snprintf(uids[i], sizeof(uids[i]), "%s", uid);
    return i;
}

/* A pod that was spoken of, or a new one. */
static struct pod *pod_named(struct scenario *s, const char *name)
{
    struct pod *pod = pods;
    while (pod->name[0] && strcmp(pod->name, name) != 0)
        pod++;
    if (!pod->name[0]) {
        *pod = (struct pod){.phase = "Pending"};
        snprintf(pod->name, sizeof(pod->name), "%s", name);
        snprintf(pod->uid, sizeof(pod->uid), "u-%s", name);
    }
    pod->model = uid_number(s, pod->uid);
    return pod;
}

/* --- the slow model --- */

/* "0,1" or "0+1"; 0: that is no list of GPUs. */
static gs_gpu_mask gpus_of(const char *text)
{
    gs_gpu_mask gpus = 0;
    for (; *text >= '0' && *text <= '9'; text += text[1] ? 2 : 1) {
        if (text[1] && text[1] != ',' && text[1] != '+')
            return 0;
        gpus |= GS_GPU_BIT(*text - '0');
        if (text[1] && !text[2])
            return 0;
    }
    return *text ? 0 : gpus;
}

static bool has_a_place(uint32_t number)
{
    const gs_gpu_mask also = model.claims[number].also;
    bool unplaced;
    model.claims[number].also = 0;
    m_charged(&model, number, &unplaced);
    model.claims[number].also = also;
    return !unplaced;
}

/* Its record is believed when it is seen for the first time, when it comes with the Binding's own
 * event, and of a pod in doubt once the plugin has recorded it. Others are of its owner's making;
 * where the plugin tells of no moves it may have gone by one all the same. */
static void model_sees(const struct pod *pod)
{
    const struct m_claim *before = &model.claims[pod->model];
    struct m_claim claim = {
        .gpus = gpus_of(pod->idx), .cores = (uint32_t)pod->cores, .gpus_max = pod->count};
    claim.node = node_number(running, pod->node);
    claim.total = (uint32_t)pod->units;
    claim.gpu_count = (uint32_t)__builtin_popcountll(claim.gpus);
    if (!claim.gpu_count || pod->units % claim.gpu_count)
        claim.gpu_count = pod->count ? pod->count : 1;
    claim.units = (uint32_t)pod->units / claim.gpu_count;
    if (claim.gpu_count != (uint32_t)__builtin_popcountll(claim.gpus)) {
        claim.also = claim.gpus;
        claim.gpus = 0;
    }
    const bool recorded = before->also && model.nodes[claim.node].tells_moved &&
                          strstr(pod->notes, "_ASSIGNED':'true'");
    const bool valid =
        claim.gpus && !before->from_moved && ((waits[pod->model] && !listing) || recorded);
    if (before->there && before->node == claim.node && !valid) {
        const gs_gpu_mask now = claim.gpus;
        const bool reserved = before->reserved;
        claim = *before;
        claim.reserved = false;
        const bool told = model.nodes[claim.node].tells_moved || claim.from_moved;
        const uint32_t share = (uint32_t)pod->units / (uint32_t)(__builtin_popcountll(now) + !now);
        if (reserved && share > claim.units && now != claim.gpus)
            claim.units = share;
        if (reserved && !now)
            claim.gpus = 0; /* nobody knows, until the bind is answered */
        else if (has_a_place(pod->model))
            claim.also |= reserved || !told ? now & ~claim.gpus : 0;
        else if (!told)
            claim.gpus = now;
    }
    open_bind[pod->model] = waits[pod->model] = false;
    m_set_claim(&model, pod->model, &claim);
}

static void model_event(const struct pod *pod)
{
    if (ended[pod->model] && !listing)
        return;
    if (strcmp(pod->phase, "Failed") == 0 || strcmp(pod->phase, "Succeeded") == 0)
        m_remove(&model, pod->model);
    else if (pod->node[0] && pod->units > 0)
        model_sees(pod);
    else
        waits[pod->model] = true;
    ended[pod->model] &= !listing;
}

/* Where a bind to this node would have it; GPUs as the Binding says. */
static void model_reserves(struct pod *pod, const char *node)
{
    const char *idx = strstr(rig.annotations, "ALIYUN_COM_GPU_MEM_IDX=");
    struct m_claim claim = {.node = node_number(running, node), .reserved = true};
    char text[24] = "";
    if (!idx || model.claims[pod->model].there)
        return;
    idx += strlen("ALIYUN_COM_GPU_MEM_IDX=");
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(idx, ";"), idx);
    claim.gpus = gpus_of(text);
    claim.gpu_count = (uint32_t)__builtin_popcountll(claim.gpus);
    claim.units = (uint32_t)pod->units / claim.gpu_count;
    claim.cores = (uint32_t)pod->cores;
    open_bind[pod->model] = true;
    m_set_claim(&model, pod->model, &claim);
}

/* Binds that are not open any more were carried out, or never will be. */
static void model_looks(void)
{
    if (gs_service_unresolved_binds(rig.service))
        return;
    for (struct pod *pod = pods; pod->name[0]; pod++) {
        if (!open_bind[pod->model])
            continue;
        open_bind[pod->model] = false;
        if (pod->node[0] && !pod->shown && strcmp(pod->uid, uids[pod->model]) == 0)
            model_event(pod);
        else
            m_remove(&model, pod->model);
    }
}

static void compare(struct scenario *s)
{
    const bool asked = modelled && gs_service_ready(rig.service, NULL);
    for (uint32_t n = 0; n < M_NODES && asked; n++) {
        struct gs_node_view view;
        struct gs_gpu_state states[M_GPUS];
        if (!m_view(&model, n, &view, states))
            continue;
        for (uint32_t i = 0; i < view.gpu_count; i++) {
            long found = rig_used(&rig, nodes[n], states[i].idx);
            if ((uint64_t)found != states[i].used_units)
                scenario_fail(s, "%s has %ld units of GPU %u in use, the model %llu", nodes[n],
                              found, states[i].idx, (unsigned long long)states[i].used_units);
        }
    }
}
