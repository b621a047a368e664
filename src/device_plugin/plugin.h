/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/allocate/allocator.h"
#include "device_plugin/devices.h"
#include "device_plugin/driver_usage.h"
#include "device_plugin/enforce.h"
#include "device_plugin/guards.h"
#include "device_plugin/hook.h"
#include "device_plugin/kubelet_calls.h"
#include "device_plugin/mps.h"
#include "device_plugin/node_events.h"
#include "device_plugin/node_object.h"
#include "device_plugin/ownership.h"
#include "device_plugin/pages.h"
#include "device_plugin/settings.h"
#include "device_plugin/shutdown.h"
#include "device_plugin/writes.h"
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
struct gpu_thread;
struct pod_watch;

/* Of the rounds themselves. */
struct round {
    struct gs_loop_timer wake;
    int64_t wake_ns; /* a round is wanted then, whatever happens; INT64_MAX: none is */
    int64_t tick_ns; /* the next look at everything */
    uint32_t ticks;
    bool usage_due;     /* all pods were looked at: the pages are to show it */
    bool stopping;      /* nothing new is begun; the kubelet is still answered */
    int64_t give_up_ns; /* stopping: its calls are not waited for any longer */
    int result;         /* the program's exit code */
};

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
    struct round round;
    bool pods_listed;
    bool pods_changed;      /* since the last round */
    bool restored;          /* what earlier runs answered to all of them */
    bool checkpoint_unread; /* the kubelet's checkpoint could not be read last */

    /* the parts; each writes its own */
    struct gpu_thread *gpu_thread;
    struct pod_watch *pod_watch;
    struct devices devices;
    struct ownership ownership;
    struct kubelet_calls calls;
    struct writes writes;
    struct node_object node;
    struct node_events node_events;
    struct guards guards;
    struct enforce enforce;
    struct driver_usage driver_usage;
    struct mps mps;
    struct hook hook;
    struct shutdown leave;
    struct pages pages; /* what /readyz and /metrics show */
};

static inline int64_t plugin_now_ns(const struct plugin *plugin)
{
    return gs_loop_now_ns(plugin->loop);
}

/* GPUs, indices and unit are known, and it does not end: pods' limits may be looked after. */
bool plugin_knows(const struct plugin *plugin);

/* Asks for a round at that time at the latest; a part that waits says so in every round anew. */
void plugin_wake_at(struct plugin *plugin, int64_t at_ns);

/* Ends the program once the kubelet's calls are answered, or after a second. */
void plugin_stop(struct plugin *plugin, int result);

/* Once there is a loop, and before that is freed. */
void plugin_start(struct plugin *plugin);
void plugin_release(struct plugin *plugin);

/* Steps the loop, with a round after every step, until the program is to end. */
int plugin_run(struct plugin *plugin, struct gs_error *err);
/* One of these rounds, for who steps the loop by himself. */
void plugin_round(struct plugin *plugin);
