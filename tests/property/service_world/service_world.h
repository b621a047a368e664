/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extender/service/service.h"

/*
 * A cluster in one thread: an API server with its history, one or two replicas of the service that
 * follow it, a device plugin on every node, and tenants, who edit their pods while they wait, while
 * they are bound and while they run. Everything that can be late, lost, doubled or edited is, by a
 * seed. What is asserted (sw_check, sw_settle): no GPU ever
 * holds more than it has, where the pods truly are; and in the end every ledger is what the API
 * says.
 *
 * Late in here means what it means outside: an answer that is lost, a binding that is carried out
 * after its caller gave up, a watch that stands still while others go on, a list that began before
 * what follows it. Calls nest: while one bind waits for the API, others run and the watches tell.
 *
 * Two things are left out because nothing that looks at the API alone can tell them, and are
 * written down in docs/security.md: a service that first sees a pod between its owner's edit of it
 * and the plugin's word about that; and a pod that ends while the watch of nodes is behind the
 * watch of pods by the exchange before.
 */
enum {
    SW_PODS = 40,
    SW_NODES = 3,
    SW_GPUS = 3,
    SW_REPLICAS = 2,
    SW_LATE = 64,
};

struct sw_pod {
    bool exists, ended, deleting;
    bool by_hand;        /* nodeName was set when it was created */
    unsigned uid, total; /* units of all its GPUs together */
    int node;            /* -1: not bound */
    int asked;           /* the node that it was last to be bound to */
    int nominated;       /* node + 1; 0: none */
    int priority;
    gs_gpu_mask runs_on; /* 0: the kubelet has not given it any yet */
    gs_gpu_mask listed;  /* in the node's list of moved pods; 0: not */
    char record[32];     /* ALIYUN_COM_GPU_MEM_IDX */
    unsigned label;      /* gpu-count; 0: none. Its owner's, at any time */
    unsigned group;      /* of pods; 0: none. Likewise */
    size_t bound_at;     /* in the history of pods: the event that bound it */
};

struct sw_node {
    bool exists;
    bool inventory; /* its plugin serves, and its GPUs are there */
    bool speaks;    /* its plugin writes gpu-reassigned; the original's does not */
    unsigned size[SW_GPUS];
};

struct sw_event {
    char *json;
    bool gone;
};

/* What a watch would show, from the beginning. */
struct sw_history {
    struct sw_event *events;
    size_t count, cap;
};

struct sw_late {
    bool open;
    int64_t at_ns;
    int pod, node;
    unsigned uid;
    gs_gpu_mask gpus;
};

struct sw_replica {
    int number;
    unsigned process; /* a new one after each restart */
    char identity[32];
    char term[64]; /* what its own pod is marked with */
    struct gs_service *service;
    struct gs_election *election;
    struct gs_watch_sink sink;
    size_t seen[2]; /* of each history */
    bool listing;
    int64_t frozen_until_ns; /* its watch of pods says nothing */
    int64_t paused_until_ns; /* the process does not run */
    int64_t next_step_ns;    /* of the election */
    uint64_t terms;          /* of its processes before this one */
};

struct sw_world {
    struct gs_names names;
    struct gs_clock clock;
    int64_t now_ns;
    uint64_t rng, revision;
    unsigned uids, processes;
    struct sw_pod pods[SW_PODS]; /* by name: p0, p1, … */
    struct sw_node nodes[SW_NODES];
    struct sw_history history[2]; /* by enum gs_kind */
    struct sw_late late[SW_LATE];
    struct sw_replica replicas[SW_REPLICAS];
    int replica_count;
    struct gs_lease lease;
    int depth;
    bool quiet;  /* nothing goes wrong any more */
    bool healed; /* and plugins say that all containers have their GPUs */
    bool wrong;
    char what[200]; /* went wrong */
    struct sw_counts {
        unsigned long steps, binds, bound, lost, late, lists, exchanges, edits, by_hand, terms,
            restarts, promises;
    } counts;
};

extern struct sw_world sw;

/* 0 .. below - 1 */
unsigned sw_random(unsigned below);
bool sw_once_in(unsigned n);

/* Notes what went wrong; the first one stays. */
void sw_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- the API server --- */
bool sw_runs(const struct sw_pod *pod);      /* bound, and not ended */
unsigned sw_share(const struct sw_pod *pod); /* on each GPU that it runs on; 0: on none */
/* Of so many GPUs; 0: the total does not divide. */
unsigned sw_share_of(const struct sw_pod *pod, unsigned gpus);
char *sw_pod_json(int p); /* *caller frees* */
char *sw_node_json(int n);
void sw_tell_pod(int p, bool gone);
void sw_tell_node(int n, bool gone);
void sw_tell_own_pod(const struct sw_replica *replica);
/* A binding: what the API server answers. */
enum gs_code sw_carry_out(int p, unsigned uid, int n, gs_gpu_mask gpus);
void sw_carry_out_late(bool all);
bool sw_any_late(void);
void sw_format_gpus(gs_gpu_mask gpus, char out[32]);

/* --- replicas --- */
int sw_replica_start(struct sw_replica *replica, int number);
void sw_replica_stop(struct sw_replica *replica);
/* Shows so many events of a kind, or lists when that is wanted. */
void sw_deliver(struct sw_replica *replica, enum gs_kind kind, size_t count);
void sw_deliver_nodes(struct sw_replica *replica); /* all there are */
void sw_list_pods(struct sw_replica *replica);
void sw_list_nodes(struct sw_replica *replica);
bool sw_paused(const struct sw_replica *replica);
/* kube-scheduler asks for some pod on some node, or on the same one again. */
void sw_bind_something(struct sw_replica *replica);
/* kube-scheduler asks which nodes have room for a pod. */
void sw_ask_something(struct sw_replica *replica);
unsigned sw_promises(const struct sw_replica *replica); /* places that filter keeps */
bool sw_any_hold(const struct sw_replica *replica);     /* of a pod that shows no nomination */
void sw_check_once(const struct sw_replica *replica); /* running pods are charged where they are */
void sw_pass(int64_t ns);

/* --- the plugins --- */
/* Makes pods and lists say the truth, on every node. */
void sw_plugins_look(void);
void sw_plugins_allocate(void); /* to what was bound by hand */
void sw_exchange(void);
void sw_upgrade(int n);
bool sw_has_room(int n, gs_gpu_mask gpus, unsigned units); /* truly */

/* --- steps and checks --- */
void sw_step(void);
void sw_interlude(void); /* while a call to the API is under way */
void sw_end_pod(int p, bool gone);
void sw_check(const char *when);
void sw_settle(void);
