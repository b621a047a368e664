/* SPDX-License-Identifier: Apache-2.0 */
/* What happens next, and what must be true then. */
#include "service_world.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/base/num.h"

static const unsigned full_size[SW_NODES][SW_GPUS] = {{16, 16, 16}, {8, 16, 24}, {12, 12, 12}};

static struct sw_replica *any_replica(void)
{
    return &sw.replicas[sw_random((unsigned)sw.replica_count)];
}

/* --- pods --- */

static void create_pod(int p)
{
    struct sw_pod *pod = &sw.pods[p];
    *pod = (struct sw_pod){.exists = true,
                           .uid = ++sw.uids,
                           .group = sw_once_in(2) ? 1 + sw_random(3) : 0,
                           .total = sw_once_in(2) ? 4 : 2 + sw_random(11),
                           .priority = sw_once_in(4) ? 10 : 0,
                           .node = -1};
    if (sw_once_in(4)) {
        pod->label = 2;
        pod->total *= 2;
    }
    sw_tell_pod(p, false);
}

static bool any_open_bind(void)
{
    bool any = sw.depth || sw_any_late();
    for (int r = 0; r < sw.replica_count; r++)
        any |= gs_service_unresolved_binds(sw.replicas[r].service) != 0;
    return any;
}

/* One that cannot be; or one that can, where there is room. */
static void forge(int p)
{
    struct sw_pod *pod = &sw.pods[p];
    const gs_gpu_mask gpus = 1 + sw_random((1u << SW_GPUS) - 1);
    const unsigned share = sw_share_of(pod, gs_gpu_mask_count(gpus));
    if (!share || sw_once_in(2))
        snprintf(pod->record, sizeof(pod->record), "%u", SW_GPUS + sw_random(3));
    else if (sw_has_room(pod->node, gpus, share))
        sw_format_gpus(gpus, pod->record);
}

/* With nodeName set by hand, and now and then a record of its owner's. Seen by all at once, and
 * while no bind is under way: one that does not know of it cannot know better. */
static void create_by_hand(int p)
{
    const int n = (int)sw_random(SW_NODES);
    if (any_open_bind() || !sw.nodes[n].exists || !sw.nodes[n].speaks)
        return;
    create_pod(p);
    struct sw_pod *pod = &sw.pods[p];
    pod->by_hand = true;
    pod->node = n;
    if (sw_once_in(3))
        forge(p);
    pod->bound_at = sw.history[GS_KIND_POD].count;
    sw_tell_pod(p, false);
    sw.counts.by_hand++;
    sw.quiet = true; /* nobody binds before */
    for (int r = 0; r < sw.replica_count; r++) {
        sw.replicas[r].frozen_until_ns = 0;
        sw_deliver(&sw.replicas[r], GS_KIND_POD, SIZE_MAX);
    }
    sw.quiet = false;
}

void sw_end_pod(int p, bool gone)
{
    struct sw_pod *pod = &sw.pods[p];
    for (int r = 0; pod->listed && r < sw.replica_count; r++)
        sw_deliver_nodes(&sw.replicas[r]);
    if (gone)
        pod->exists = false;
    else
        pod->ended = true;
    sw_tell_pod(p, gone);
}

static bool all_saw(const struct sw_pod *pod)
{
    for (int r = 0; r < sw.replica_count; r++) {
        if (sw.replicas[r].seen[GS_KIND_POD] <= pod->bound_at)
            return false;
    }
    return true;
}

/* gpu-count, whenever its owner likes: of a pod that was bound by hand and has no GPU yet it is
 * what it will be given. */
static void edit_count(int p)
{
    struct sw_pod *pod = &sw.pods[p];
    if (pod->ended || (pod->node >= 0 && !pod->runs_on))
        return;
    sw.counts.edits++;
    pod->label = sw_random(5);
    pod->group = sw_once_in(4) ? sw_random(4) : pod->group;
    sw_tell_pod(p, false);
}

/* A tenant with the right to patch his pods. */
static void edit(int p)
{
    static const char *const records[] = {"0", "1", "2", "0,1", "1,2", "0,1,2", "7", "x", "", "63"};
    struct sw_pod *pod = &sw.pods[p];
    if (!sw_runs(pod) || !pod->runs_on || !sw.nodes[pod->node].exists ||
        !sw.nodes[pod->node].speaks || !all_saw(pod))
        return;
    sw.counts.edits++;
    if (!sw_once_in(3))
        snprintf(pod->record, sizeof(pod->record), "%s", records[sw_random(10)]);
    sw_tell_pod(p, false);
}

static void step_of_pod(int p)
{
    struct sw_pod *pod = &sw.pods[p];
    if (!pod->exists) {
        if (sw_once_in(12))
            create_by_hand(p);
        else if (!sw_once_in(3))
            create_pod(p);
        return;
    }
    switch (sw_random(5)) {
    case 0:
        sw_end_pod(p, true);
        break;
    case 3:
        edit_count(p);
        break;
    case 1:
        if (pod->node >= 0 && !pod->ended)
            sw_end_pod(p, false);
        break;
    case 2:
        pod->deleting |= pod->node >= 0 && sw_once_in(2);
        sw_tell_pod(p, false);
        break;
    default:
        edit(p);
    }
}

/* --- nodes --- */

static void step_of_node(int n)
{
    struct sw_node *node = &sw.nodes[n];
    const unsigned g = sw_random(SW_GPUS);
    switch (sw_random(6)) {
    case 0: /* its plugin or its GPUs go, and come back */
        node->inventory = node->exists && !node->inventory;
        break;
    case 1: /* the object goes, and comes back before its plugin writes to it */
        if (node->exists)
            sw_plugins_look();
        sw_tell_node(n, node->exists);
        node->exists = !node->exists;
        node->inventory = false;
        break;
    case 2: /* a driver that reserves more */
        node->size[g] = full_size[n][g] - (node->size[g] == full_size[n][g]);
        break;
    case 3:
        if (sw_once_in(20))
            sw_upgrade(n);
        break;
    default:
        node->inventory = node->exists;
    }
    if (node->exists)
        sw_tell_node(n, false);
}

/* --- replicas --- */

static void step_of_replica(struct sw_replica *replica)
{
    const int64_t while_ns = (int64_t)sw_random(40) * GS_NS_PER_S;
    switch (sw_random(8)) {
    case 0:
        replica->frozen_until_ns = sw.now_ns + while_ns;
        break;
    case 1:
        replica->paused_until_ns = sw.now_ns + while_ns;
        break;
    case 2:
        replica->sink.live(replica->sink.ctx, GS_KIND_POD, false, "cut");
        sw_list_pods(replica);
        break;
    case 3:
        if (sw_once_in(4) && !sw.depth && (sw.replica_count > 1 || !sw_any_late())) {
            sw.counts.restarts++;
            sw_replica_stop(replica);
            if (sw_replica_start(replica, replica->number) < 0)
                sw_fail("out of memory");
        }
        break;
    case 4:
        sw_list_nodes(replica);
        break;
    default:
        break;
    }
}

/* --- time --- */

static void deliver_something(void)
{
    struct sw_replica *replica = any_replica();
    if (sw_paused(replica))
        return;
    sw_deliver(replica, GS_KIND_POD, sw_random(8));
    if (sw_once_in(2))
        sw_deliver(replica, GS_KIND_NODE, sw_random(4));
}

void sw_interlude(void)
{
    if (sw.quiet)
        return;
    if (sw_once_in(3))
        deliver_something();
    if (sw.depth < 3 && sw_once_in(3))
        sw_bind_something(any_replica());
    if (sw.depth < 2 && sw_once_in(25)) {
        struct sw_replica *replica = any_replica();
        sw.depth += 2;
        if (!replica->listing && !sw_paused(replica))
            sw_list_pods(replica);
        sw.depth -= 2;
    }
    const int p = (int)sw_random(SW_PODS);
    if (sw_once_in(8) && sw.pods[p].exists)
        sw_end_pod(p, true);
}

void sw_step(void)
{
    sw.counts.steps++;
    switch (sw_random(16)) {
    case 0:
    case 1:
    case 2:
        for (int i = 0; i < 4; i++) /* so many that nodes are full */
            step_of_pod((int)sw_random(SW_PODS));
        break;
    case 3:
    case 4:
    case 5:
        for (int i = 0; i < 8; i++) {
            sw_ask_something(any_replica());
            sw_bind_something(any_replica());
        }
        break;
    case 6:
    case 7:
    case 8:
        deliver_something();
        break;
    case 9:
    case 10:
        sw_pass((int64_t)sw_random(3000) * 1000000);
        break;
    case 11:
        for (int i = 0; i < 30; i++)
            sw_exchange();
        break;
    case 12:
    case 13:
        if (sw_once_in(2))
            sw_plugins_look();
        else
            sw_plugins_allocate();
        break;
    case 14:
        if (sw_once_in(10))
            step_of_node((int)sw_random(SW_NODES));
        break;
    default:
        if (sw_once_in(10))
            step_of_replica(any_replica());
    }
    sw_check("after a step");
}

/* --- what must be true --- */

static void count(unsigned used[SW_NODES][SW_GPUS])
{
    memset(used, 0, sizeof(unsigned[SW_NODES][SW_GPUS]));
    for (int p = 0; p < SW_PODS; p++) {
        const struct sw_pod *pod = &sw.pods[p];
        for (unsigned g = 0; sw_runs(pod) && g < SW_GPUS; g++)
            used[pod->node][g] += pod->runs_on >> g & 1 ? sw_share(pod) : 0;
    }
}

void sw_check(const char *when)
{
    unsigned used[SW_NODES][SW_GPUS];
    count(used);
    for (int n = 0; n < SW_NODES; n++) {
        for (int g = 0; g < SW_GPUS; g++) {
            if (used[n][g] > full_size[n][g])
                sw_fail("n%d GPU %d holds %u of %u, %s", n, g, used[n][g], full_size[n][g], when);
        }
    }
}

/* What inspect says is charged on a GPU. */
static unsigned charged(const struct sw_replica *replica, int n, int g)
{
    struct gs_buf answer = GS_BUF(1 << 20);
    struct gs_error err = {0};
    char name[8], key[16];
    uint32_t units = 0;
    snprintf(name, sizeof(name), "n%d", n);
    snprintf(key, sizeof(key), "{\"id\":%d,", g);
    if (gs_service_inspect(replica->service, name, &answer, &err) == 0) {
        const char *dev = strstr(answer.data, key);
        const char *used = dev ? strstr(dev, "\"usedGPU\":") : NULL;
        const char *digits = used ? used + strlen("\"usedGPU\":") : "";
        gs_parse_u32(digits, strspn(digits, "0123456789"), &units);
    }
    gs_buf_release(&answer);
    return units;
}

static void compare(const struct sw_replica *replica)
{
    unsigned used[SW_NODES][SW_GPUS];
    if (sw_promises(replica) || sw_any_hold(replica))
        sw_fail("%u places are kept by %s, or others", sw_promises(replica), replica->identity);
    count(used);
    for (int n = 0; n < SW_NODES; n++) {
        for (int g = 0; g < SW_GPUS; g++) {
            const unsigned has = charged(replica, n, g);
            if (has != used[n][g])
                sw_fail("n%d GPU %d: %u charged by %s, %u held", n, g, has, replica->identity,
                        used[n][g]);
        }
    }
}

static void heal(void)
{
    sw.quiet = sw.healed = true;
    sw_carry_out_late(true);
    for (int n = 0; n < SW_NODES; n++) {
        sw.nodes[n].exists = sw.nodes[n].inventory = true;
        memcpy(sw.nodes[n].size, full_size[n], sizeof(full_size[n]));
        sw_tell_node(n, false);
        sw_upgrade(n);
    }
    sw_plugins_allocate();
    sw_plugins_look();
    for (int p = 0; p < SW_PODS; p++) {
        if (sw_runs(&sw.pods[p]))
            sw_tell_pod(p, false);
    }
    for (int r = 0; r < sw.replica_count; r++)
        sw.replicas[r].frozen_until_ns = sw.replicas[r].paused_until_ns = 0;
}

/* Everything is well again for a quarter of an hour; then every replica starts anew. */
void sw_settle(void)
{
    heal();
    for (int second = 0; second < 900; second++) {
        for (int r = 0; r < sw.replica_count; r++) {
            sw_deliver_nodes(&sw.replicas[r]);
            sw_deliver(&sw.replicas[r], GS_KIND_POD, SIZE_MAX);
        }
        sw_pass(GS_NS_PER_S);
        for (int r = 0; second == 25 && r < sw.replica_count; r++) {
            if (!gs_service_unresolved_binds(sw.replicas[r].service))
                sw_check_once(&sw.replicas[r]);
        }
    }
    for (int r = 0; r < sw.replica_count; r++) {
        sw_deliver(&sw.replicas[r], GS_KIND_POD, SIZE_MAX);
        compare(&sw.replicas[r]);
        sw_replica_stop(&sw.replicas[r]);
        if (sw_replica_start(&sw.replicas[r], r) < 0)
            sw_fail("out of memory");
        else
            compare(&sw.replicas[r]);
    }
}
