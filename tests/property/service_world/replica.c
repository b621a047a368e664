/* SPDX-License-Identifier: Apache-2.0 */
/* A replica of the service: how it sees the API server, and how time passes for it. */
#include "service_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/annotation.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"

#include "../../support/service_calls.h"
#include "extender/service/service_internal.h"

enum { LATE_MAX_S = 60 };

bool sw_paused(const struct sw_replica *replica)
{
    return !replica->service || replica->paused_until_ns > sw.now_ns;
}

/* --- the watches --- */

static void feed_pod(struct sw_replica *replica, const char *json, bool gone)
{
    struct gs_pod pod = {0};
    struct gs_error err = {0};
    if (gs_codec_pod(&sw.names, gs_slice_of(json), &pod, &err) < 0)
        sw_fail("%s in %.100s", err.msg, json);
    else if (gone)
        replica->sink.pod_gone(replica->sink.ctx, &pod);
    else
        replica->sink.pod(replica->sink.ctx, &pod);
    gs_pod_release(&pod);
}

static void feed_node(struct sw_replica *replica, const char *json, bool gone)
{
    struct gs_node node = {0};
    struct gs_error err = {0};
    if (gs_codec_node(&sw.names, gs_slice_of(json), &node, &err) < 0 || node.moved_error[0])
        sw_fail("%s%s in %.100s", err.msg, node.moved_error, json);
    else if (gone)
        replica->sink.node_gone(replica->sink.ctx, &node);
    else
        replica->sink.node(replica->sink.ctx, &node);
    gs_node_release(&node);
}

static void feed(struct sw_replica *replica, enum gs_kind kind, const struct sw_event *event)
{
    if (kind == GS_KIND_NODE)
        feed_node(replica, event->json, event->gone);
    else
        feed_pod(replica, event->json, event->gone);
}

void sw_deliver(struct sw_replica *replica, enum gs_kind kind, size_t count)
{
    const struct sw_history *history = &sw.history[kind];
    if (!replica->service)
        return; /* it starts only now */
    if (kind == GS_KIND_POD) {
        if (replica->listing)
            return;
        if (atomic_load(gs_service_list_wanted(replica->service)))
            sw_list_pods(replica);
        if (replica->frozen_until_ns > sw.now_ns)
            return;
    }
    for (; count && replica->seen[kind] < history->count; count--) {
        const struct sw_event event = history->events[replica->seen[kind]++];
        feed(replica, kind, &event);
    }
}

void sw_deliver_nodes(struct sw_replica *replica)
{
    sw_deliver(replica, GS_KIND_NODE, SIZE_MAX);
}

/* A snapshot; what happens while it is taken in comes by the watch that goes on from there. What
 * owners edited has been seen by the plugins, and their word by this replica: service_world.h. */
void sw_list_pods(struct sw_replica *replica)
{
    char *snapshot[SW_PODS] = {0};
    sw.counts.lists++;
    sw.now_ns++; /* no two lists begin at once */
    replica->listing = true;
    atomic_store(gs_service_list_wanted(replica->service), false);
    replica->sink.list_begin(replica->sink.ctx, GS_KIND_POD);
    if (!sw.quiet && sw_once_in(2))
        sw_interlude();
    sw_plugins_look();
    sw_deliver_nodes(replica);
    replica->seen[GS_KIND_POD] = sw.history[GS_KIND_POD].count;
    for (int p = 0; p < SW_PODS; p++)
        snapshot[p] = sw.pods[p].exists ? sw_pod_json(p) : NULL;
    for (int p = 0; p < SW_PODS; p++) {
        if (!sw.quiet && sw_once_in(10))
            sw_interlude();
        if (snapshot[p])
            feed_pod(replica, snapshot[p], false);
        free(snapshot[p]);
    }
    replica->sink.list_end(replica->sink.ctx, GS_KIND_POD);
    if (atomic_load(&replica->service->drifted_pods))
        sw_fail("the ledger differed from what its watch had shown");
    replica->sink.live(replica->sink.ctx, GS_KIND_POD, true, NULL);
    replica->listing = false;
}

void sw_list_nodes(struct sw_replica *replica)
{
    replica->sink.list_begin(replica->sink.ctx, GS_KIND_NODE);
    replica->seen[GS_KIND_NODE] = sw.history[GS_KIND_NODE].count;
    for (int n = 0; n < SW_NODES; n++) {
        char *json = sw.nodes[n].exists ? sw_node_json(n) : NULL;
        if (json)
            feed_node(replica, json, false);
        free(json);
    }
    replica->sink.list_end(replica->sink.ctx, GS_KIND_NODE);
    replica->sink.live(replica->sink.ctx, GS_KIND_NODE, true, NULL);
}

/* --- the port --- */

static gs_gpu_mask gpus_of(const struct gs_binding *binding)
{
    gs_gpu_mask gpus = 0;
    for (size_t i = 0; i < binding->annotation_count; i++) {
        if (strcmp(binding->annotations[i].key, sw.names.idx) == 0)
            gs_codec_idx_parse(gs_slice_of(binding->annotations[i].value), &gpus);
    }
    return gpus;
}

/* Carried out when its caller has given up, at a deadline of its own at the latest. */
static void send_late(int p, unsigned uid, int n, gs_gpu_mask gpus, int64_t deadline_ns)
{
    int64_t at_ns = sw.now_ns + (int64_t)sw_random(LATE_MAX_S * 1000) * 1000000;
    if (deadline_ns && at_ns > deadline_ns)
        at_ns = deadline_ns;
    for (int i = 0; i < SW_LATE; i++) {
        if (sw.late[i].open)
            continue;
        sw.late[i] = (struct sw_late){true, at_ns, p, n, uid, gpus};
        sw.counts.late++;
        return;
    }
}

/* Its owner is quick: the answer to the bind is still under way. */
static void edit_at_once(int p)
{
    struct sw_pod *pod = &sw.pods[p];
    if (!pod->exists || !sw.nodes[pod->node].exists || !sw.nodes[pod->node].speaks)
        return;
    snprintf(pod->record, sizeof(pod->record), "%u", sw_random(SW_GPUS + 1));
    if (sw_once_in(4))
        pod->record[0] = '\0';
    if (sw_once_in(3))
        pod->label = sw_random(5);
    sw.counts.edits++;
    sw_tell_pod(p, false);
}

static enum gs_code try_bind(int p, unsigned uid, int n, gs_gpu_mask gpus, int64_t deadline_ns)
{
    const enum gs_code no_answer = sw_once_in(2) ? GS_ETIMEOUT : GS_EIO;
    switch (sw.quiet ? 9 : sw_random(10)) {
    case 0:
        return no_answer;
    case 1:
        sw_carry_out(p, uid, n, gpus);
        sw.counts.lost++;
        return no_answer;
    case 2:
        send_late(p, uid, n, gpus, deadline_ns);
        return no_answer;
    case 3:
        return sw_once_in(2) ? GS_EDENIED : GS_EBUSY;
    default:
        break;
    }
    enum gs_code code = sw_carry_out(p, uid, n, gpus);
    sw.counts.bound += code == GS_OK;
    if (code == GS_OK && !sw.quiet && sw_once_in(10))
        edit_at_once(p);
    return code;
}

static int port_bind(void *ctx, const struct gs_binding *binding, struct gs_error *err)
{
    const int p = atoi(binding->name + 1), n = atoi(binding->node + 1);
    const unsigned uid = (unsigned)atoi(binding->uid + 1);
    const int64_t deadline_ns = binding->deadline_ns;
    const gs_gpu_mask gpus = gpus_of(binding);
    sw.counts.binds++;
    sw.depth++;
    sw_interlude();
    enum gs_code code = GS_EBUSY; /* not sent any more */
    if (!deadline_ns || sw.now_ns < deadline_ns) {
        const struct sw_replica *replica = ctx;
        if (replica->election && strcmp(sw.lease.holder, replica->identity) != 0)
            sw_fail("%s binds, and the lease is %s's", replica->identity, sw.lease.holder);
        code = try_bind(p, uid, n, gpus, deadline_ns);
        if (!sw.quiet)
            sw.now_ns += (int64_t)sw_random(2000) * 1000000;
        sw_interlude();
    }
    sw.depth--;
    return code ? gs_fail(err, code, "scripted") : 0;
}

static int port_get_pod(void *ctx, const char *ns, const char *name, struct gs_pod *ret,
                        struct gs_error *err)
{
    const int p = atoi(name + 1);
    if (!sw.quiet && sw_once_in(8))
        return gs_fail(err, GS_EIO, "scripted");
    if (!sw.pods[p].exists)
        return gs_fail(err, GS_ENOENT, "scripted");
    char *json = sw_pod_json(p);
    sw.depth++;
    sw_interlude(); /* the watch is faster than this answer */
    sw.depth--;
    int result = gs_codec_pod(&sw.names, gs_slice_of(json), ret, err);
    free(json);
    return result;
}

static void patch_waiting(int p, const char *nominated)
{
    struct sw_pod *pod = &sw.pods[p];
    if (!pod->exists)
        return;
    if (nominated)
        pod->nominated = nominated[0] ? atoi(nominated + 1) + 1 : 0;
    sw_tell_pod(p, false);
}

static int port_patch_pod(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    struct sw_replica *replica = ctx;
    if (!sw.quiet && sw_once_in(8))
        return gs_fail(err, GS_EIO, "scripted");
    if (patch->name[0] == 'r') {
        if (patch->annotation_count)
            snprintf(replica->term, sizeof(replica->term), "%s", patch->annotations[0].value);
        sw_tell_own_pod(replica);
    } else {
        patch_waiting(atoi(patch->name + 1), patch->nominated_node);
    }
    return 0;
}

static int port_create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    return 0;
}

static void port_wake(void *ctx)
{
}

static int port_get_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    const struct gs_lease asked = *lease;
    if (!sw.quiet && sw_once_in(20))
        return gs_fail(err, GS_EIO, "scripted");
    if (!sw.lease.resource_version[0])
        return gs_fail(err, GS_ENOENT, "scripted");
    *lease = sw.lease;
    lease->ns = asked.ns;
    lease->name = asked.name;
    return 0;
}

static int port_put_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    if (!sw.quiet && sw_once_in(20))
        return gs_fail(err, GS_EIO, "scripted");
    if (strcmp(lease->resource_version, sw.lease.resource_version) != 0)
        return gs_fail(err, GS_ECONFLICT, "scripted");
    snprintf(lease->resource_version, sizeof(lease->resource_version), "%llu",
             (unsigned long long)++sw.revision);
    sw.lease = *lease;
    return !sw.quiet && sw_once_in(20) ? gs_fail(err, GS_EIO, "scripted") : 0;
}

static const struct gs_kube_ops ops = {
    .bind = port_bind,
    .get_pod = port_get_pod,
    .patch_pod = port_patch_pod,
    .create_event = port_create_event,
    .wake = port_wake,
    .get_lease = port_get_lease,
    .put_lease = port_put_lease,
};

/* --- the process --- */

int sw_replica_start(struct sw_replica *replica, int number)
{
    const struct gs_kube kube = {&ops, replica};
    struct gs_error err = {0};
    replica->number = number;
    replica->process = ++sw.processes;
    replica->frozen_until_ns = replica->paused_until_ns = replica->next_step_ns = 0;
    snprintf(replica->identity, sizeof(replica->identity), "r%d_%u", number, replica->process);
    const struct gs_election_config election = {.kube = kube,
                                                .clock = &sw.clock,
                                                .ns = "own",
                                                .name = "lease",
                                                .identity = replica->identity};
    replica->election = sw.replica_count > 1 ? gs_election_new(&election) : NULL;
    const struct gs_service_config config = {
        .names = &sw.names,
        .clock = &sw.clock,
        .kube = kube,
        .reconcile_ns = 20 * GS_NS_PER_S,
        .policy = replica->process % 2 ? GS_PLACEMENT_BINPACK : GS_PLACEMENT_ROLLOUT,
        .election = replica->election,
        .nominates = replica->process % 3 == 0,
        .names_one = replica->process % 5 < 2,
        .pod_ns = "own",
        .pod_name = number ? "r1" : "r0",
    };
    replica->service = gs_service_new(&config, &err);
    if (!replica->service || (sw.replica_count > 1 && !replica->election))
        return -1;
    replica->sink = gs_service_sink(replica->service);
    sw_plugins_look();
    sw_list_nodes(replica);
    sw_list_pods(replica);
    return 0;
}

void sw_replica_stop(struct sw_replica *replica)
{
    replica->terms += replica->election ? gs_election_terms(replica->election) : 0;
    gs_service_free(replica->service);
    gs_election_free(replica->election);
    replica->service = NULL;
    replica->election = NULL;
}

static void bind_pod(struct sw_replica *replica, int p)
{
    const struct sw_pod *pod = &sw.pods[p];
    char body[256];
    snprintf(body, sizeof(body),
             "{\"PodName\":\"p%d\",\"PodNamespace\":\"d\",\"PodUID\":\"u%u\",\"Node\":\"n%d\"}", p,
             pod->uid, pod->asked);
    struct gs_buf answer = GS_BUF(1 << 16);
    struct gs_error err = {0};
    service_bind(replica->service, body, strlen(body), &answer, &err);
    gs_buf_release(&answer);
    sw_check("after a bind");
}

void sw_bind_something(struct sw_replica *replica)
{
    const int p = (int)sw_random(SW_PODS);
    struct sw_pod *pod = &sw.pods[p];
    if (!pod->exists || pod->node >= 0 || pod->ended || sw_paused(replica))
        return;
    if (sw_once_in(2))
        pod->asked = (int)sw_random(SW_NODES);
    bind_pod(replica, p);
}

unsigned sw_promises(const struct sw_replica *replica)
{
    return gs_ledger_promises(replica->service->ledger);
}

/* The pod goes to one of the nodes that filter names. */
static void ask_where(struct sw_replica *replica, int p, const struct gs_buf *body,
                      struct gs_buf *answer)
{
    if (service_try(replica->service, GS_VERB_FILTER, body->data, body->len, answer) ==
        GS_ANSWER_FAILED)
        return;
    gs_buf_putc(answer, '\0');
    const char *named = answer->len > 1 ? strstr(answer->data, "\"NodeNames\":[\"n") : NULL;
    if (named)
        sw.pods[p].asked = atoi(named + strlen("\"NodeNames\":[\"n"));
    sw.counts.promises += sw_promises(replica) != 0;
}

void sw_ask_something(struct sw_replica *replica)
{
    const int p = (int)sw_random(SW_PODS);
    struct gs_buf answer = GS_BUF(1 << 16), body = GS_BUF(1 << 16);
    if (sw.pods[p].exists && sw.pods[p].node < 0 && !sw_paused(replica)) {
        char *json = sw_pod_json(p);
        gs_buf_printf(&body, "{\"Pod\":%s,\"NodeNames\":[\"n0\",\"n1\",\"n2\"]}", json);
        free(json);
        ask_where(replica, p, &body, &answer);
    }
    gs_buf_release(&body);
    gs_buf_release(&answer);
}

bool sw_any_hold(const struct sw_replica *replica)
{
    for (int p = 0; p < SW_PODS; p++) {
        char uid[16];
        snprintf(uid, sizeof(uid), "u%u", sw.pods[p].uid);
        if (sw.pods[p].exists && !sw.pods[p].nominated &&
            gs_ledger_find_hold(replica->service->ledger, uid))
            return true;
    }
    return false;
}

void sw_check_once(const struct sw_replica *replica)
{
    for (int p = 0; p < SW_PODS; p++) {
        char uid[16];
        struct gs_claim claim;
        snprintf(uid, sizeof(uid), "u%u", sw.pods[p].uid);
        if (sw_runs(&sw.pods[p]) && sw.pods[p].runs_on &&
            gs_ledger_find_claim(replica->service->ledger, uid, &claim) &&
            claim.charged != sw.pods[p].runs_on)
            sw_fail("p%d is charged twice by %s", p, replica->identity);
    }
}

void sw_pass(int64_t ns)
{
    sw.now_ns += ns;
    sw_carry_out_late(false);
    for (int r = 0; r < sw.replica_count; r++) {
        struct sw_replica *replica = &sw.replicas[r];
        if (sw_paused(replica))
            continue;
        if (replica->election && sw.now_ns >= replica->next_step_ns)
            replica->next_step_ns = gs_election_step(replica->election, NULL);
        if (replica->election)
            gs_service_tick_part(replica->service, GS_TICK_TERM);
        service_tick(replica->service);
    }
}
