/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_PLUGIN_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_PLUGIN_H

#include "device_plugin/devices.h"
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
 */
struct ask;
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
    bool stopping;

    /* gpus */
    struct devices devices;
    struct gs_gpu_set set; /* mem_units are set, in the unit in force */
    bool have_gpus;
    int64_t gpus_since_ns;

    /* pods */
    bool pods_listed;
    bool recalled; /* what earlier runs answered to all of them */

    /* kubelet calls that wait for something (kubelet_calls.c) */
    struct ask *asks;
    struct pages_calls calls;
    int64_t podres_silent_ns; /* since then the kubelet has told no pods; 0: it does */
    struct worker *lister;
    uint64_t list_round; /* of the list that runs, or ran last */
    bool listing, list_again;

    /* writes to the API (writes.c) */
    struct worker *writer;
    bool writing;
    bool pods_turn; /* the next is a pod's, if there is one */
    struct gs_loop_timer write_again, node_again;
    uint32_t node_failures, event_failures; /* in a row */
    int64_t event_due_ns;                   /* the node's next event is put off until then */
    struct node_object node;
    struct ownership ownership;
    struct node_events node_events;

    struct shutdown leave;
    struct gs_loop_timer patience; /* with an API that does not tell the pods */
    struct gs_loop_timer give_up;  /* answers owed to the kubelet, at the end */
    struct gs_loop_timer tick;
    uint32_t ticks;
};

/* plugin.c: the parts tell that something changed. */

/* Registers with the kubelet as soon as there are GPUs and pods; tells the pages. */
void plugin_changed(struct plugin *plugin);

void plugin_start_clocks(struct plugin *plugin);
void plugin_stop_clocks(struct plugin *plugin);

/* Ends the loop once the kubelet's calls are answered. */
void plugin_stop(struct plugin *plugin, int result);

#endif
