/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model.h"

/*
 * One run: a ledger and its model, driven by the same operations. An operation is a kind and a
 * seed; everything else it does follows from these and from the state, so that a list of
 * operations can be replayed, and still makes sense when some of them are left out.
 */
struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *rng);
/* 0 .. below - 1 */
uint32_t rng_below(struct rng *rng, uint32_t below);
/* true once in n */
bool rng_once_in(struct rng *rng, uint32_t n);

/* What a node's view looked like when it was last compared: another look needs another version. */
struct snapshot {
    uint64_t digest, version;
};

struct world {
    struct gs_ledger *ledger;
    struct model model;
    uint32_t node_count, uid_count; /* of the names in model.h, this run uses so many */
    bool tidy;                      /* no strangers: every claim was placed by best fit */
    struct m_claim past[M_UIDS];    /* an earlier state of each claim, for events out of order */
    struct snapshot seen[M_NODES];
    uint32_t node, uid; /* what the last operation was about */
    uint32_t questions; /* fit answers and picks compared */
    uint64_t acted_by_kind[64];
    bool tell;            /* fill said */
    bool acted;           /* the last operation found something to do */
    bool wrong;           /* a difference was found */
    char said[200];       /* what the last operation did */
    char difference[300]; /* the first one */
};

struct op {
    uint8_t kind;
    uint64_t seed;
};

/* False when out of memory. config decides how many nodes and pods there are. */
bool world_start(struct world *world, uint64_t config);
void world_end(struct world *world);

uint32_t op_kinds(void);
const char *op_name(uint32_t kind);
/* A kind, the frequent ones more often. */
uint8_t op_choose(struct rng *rng);
void op_run(struct world *world, struct op op);

/* Once in a while an operation runs out of memory (op_run()). A call that may: to be made again
 * when it did, which has changed nothing. */
bool runs_out(struct world *world, int result, const struct gs_error *err);

/* Notes a difference; the first one stays. */
void differ(struct world *world, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Says what the operation does; one that never does had nothing to do and is not counted. */
void tell(struct world *world, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Compare what the last operation touched; everything. */
void compare_touched(struct world *world);
void compare_all(struct world *world);

/* Operations that ask and change nothing (ops_ask.c), and those about nodes and rounds
 * (ops_node.c); the rest is in ops_pod.c. */
uint32_t random_cores(struct rng *rng);
void random_ask(struct world *world, struct rng *rng, struct gs_ask *ask);
void op_ask_fit(struct world *world, struct rng *rng);
void op_ask_beside_holds(struct world *world, struct rng *rng);
void op_ask_node_outside(struct world *world, struct rng *rng);

struct m_claim random_claim(struct world *world, struct rng *rng);
void put_claim(struct world *world, uint32_t uid, const struct m_claim *claim);
void put_other(struct world *world, uint32_t uid, uint32_t node, int64_t cpu_milli);
void put_hold(struct world *world, uint32_t uid, const struct m_hold *hold);
void put_node(struct world *world, uint32_t node, const struct m_node *as);

#define NODE_OPS(X)                                                                                \
    X(node_new, 4)                                                                                 \
    X(node_changed, 14)                                                                            \
    X(node_dropped, 2)                                                                             \
    X(node_moves_pods, 5)                                                                          \
    X(node_list_round, 1)                                                                          \
    X(restart, 1)

#define POD_OPS(X)                                                                                 \
    X(bind_reserves, 10)                                                                           \
    X(bind_confirmed, 6)                                                                           \
    X(bind_undone, 3)                                                                              \
    X(bind_placed, 3)                                                                              \
    X(watch_bound, 9)                                                                              \
    X(watch_changed, 16)                                                                           \
    X(pod_removed, 10)                                                                             \
    X(other_set, 6)                                                                                \
    X(hold_set, 6)                                                                                 \
    X(hold_lists_changed, 2)                                                                       \
    X(hold_for_leaving, 2)                                                                         \
    X(hold_released, 2)                                                                            \
    X(pod_list_round, 1)

#define ASK_OPS(X)                                                                                 \
    X(ask_fit, 8)                                                                                  \
    X(ask_beside_holds, 6)                                                                         \
    X(ask_node_outside, 1)

#define DECLARE_OP(name, weight) void op_##name(struct world *world, struct rng *rng);
NODE_OPS(DECLARE_OP)
POD_OPS(DECLARE_OP)
#undef DECLARE_OP
