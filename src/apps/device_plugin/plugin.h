/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_PLUGIN_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_PLUGIN_H

#include "device_plugin/devices.h"
#include "device_plugin/enforce.h"
#include "device_plugin/hook.h"
#include "device_plugin/mps.h"
#include "device_plugin/node_events.h"
#include "device_plugin/node_object.h"
#include "device_plugin/ownership.h"
#include "device_plugin/pages.h"
#include "device_plugin/settings.h"
#include "device_plugin/shutdown.h"
#include "device_plugin/worker.h"
#include "gpushare/allocate/allocator.h"
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/grpc/kubelet_link.h"
#include "gpushare/grpc/loop.h"
#include "gpushare/kube/client.h"
#include "gpushare/port/gpu_source.h"

/*
 * What the parts of the program share. It belongs to the loop thread: the other threads (GPUs, pod
 * watch, two workers for the API) bring what they have as tasks on the loop.
 *
 * Callbacks (of the loop, gRPC, workers) only write here what they learned, and return. After every
 * step of the loop plugin_round() looks at all of it and does what is to be done, in one order.
 */
enum node_outcome { NODE_NOT_TRIED, NODE_WRITTEN, NODE_NOT_WRITTEN };

struct pending_call;
struct gpu_thread;
struct pod_watch;

struct plugin {
    struct settings settings;
    struct gs_names names;
    struct gs_kube_client *client;
    struct gs_kube kube;
    struct gs_loop *loop;
    char endpoint[96]; /* file name of our socket */
    struct gs_dp *dp;
    struct gs_kubelet_link *link;
    struct gs_allocator *alloc;
    struct gpu_thread *gpu_thread;
    struct pod_watch *pod_watch;
    struct pages pages; /* what /readyz and /metrics show */
    int result;         /* the program's exit code */
    bool stopping;      /* nothing new is begun; the kubelet is still answered */
    int64_t give_up_ns; /* stopping: its calls are not waited for any longer */
    struct gs_loop_timer wake;
    int64_t wake_ns; /* a round is wanted then, whatever happens; INT64_MAX: none is */
    int64_t tick_ns; /* the next look at everything */
    uint32_t ticks;

    /* gpus */
    struct devices devices;
    struct gs_gpu_set set; /* mem_units are set, in the unit in force */
    bool have_gpus;
    int64_t gpus_since_ns;

    /* pods */
    bool pods_listed;
    bool restored; /* what earlier runs answered to all of them */

    /* kubelet calls that wait for something (kubelet_calls.c) */
    struct pending_call *pending_calls;
    struct pages_calls calls;
    int64_t podres_silent_ns; /* since then the kubelet has listed no pods; 0: it does */
    bool reconcile_due;       /* the kubelet is to be asked whose ids are whose */
    struct worker *lister;
    uint64_t list_round; /* of the list of pods that runs, or ran last */
    bool listing;
    bool list_failed;             /* that one */
    bool pods_changed;            /* since the last round */
    enum node_outcome node_write; /* since the last round */

    /* writes to the API (writes.c) */
    struct worker *writer;
    bool writing;
    bool pods_turn;                         /* the next is a pod's, if there is one */
    uint32_t node_failures, event_failures; /* in a row */
    int64_t node_again_ns;                  /* when the node is looked at again; 0: not put off */
    int64_t event_due_ns;                   /* the node's next event is put off until then */
    struct node_object node;
    struct ownership ownership;
    struct node_events node_events;

    struct enforce enforce;
    struct mps mps;
    struct hook hook;
    bool usage_due; /* all pods were looked at: the pages are to show it */

    struct shutdown leave;
};

/* How long the end waits for the answers that the kubelet is owed. */
#define PLUGIN_ANSWERS_NS (1 * GS_NS_PER_S)

/* Asks for a round at that time at the latest; a part that waits says so in every round anew. */
static inline void plugin_wake_at(struct plugin *plugin, int64_t at_ns)
{
    if (at_ns < plugin->wake_ns)
        plugin->wake_ns = at_ns;
}

/* Ends the program once the kubelet's calls are answered. */
static inline void plugin_stop(struct plugin *plugin, int result)
{
    if (plugin->stopping)
        return;
    plugin->stopping = true;
    plugin->result = result;
    plugin->give_up_ns = gs_loop_now_ns(plugin->loop) + PLUGIN_ANSWERS_NS;
}

/* Once there are a loop and the record, and before the loop is freed. GS_ENOMEM. */
int plugin_start(struct plugin *plugin, struct gs_error *err);
void plugin_release(struct plugin *plugin);

/* Steps the loop, with a round after every step, until the program is to end. */
int plugin_run(struct plugin *plugin, struct gs_error *err);
/* One of these rounds, for who steps the loop by himself. */
void plugin_round(struct plugin *plugin);

#endif
