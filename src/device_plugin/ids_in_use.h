/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/arena.h"

/*
 * The device ids that pods hold, as the kubelet's checkpoint has them. They stay listed whatever
 * plugin gave them out, since newer kubelets fail a running pod whose ids left the list
 * (pkg/kubelet/cm/devicemanager/manager.go, devicesToAllocate: "previously allocated devices are no
 * longer healthy"). Zeroed: none is in use.
 */
struct ids_in_use {
    struct gs_arena arena;
    const char **ids; /* ascending, none twice */
    uint32_t count, room;
    size_t unlistable; /* left out: an id that no list may carry (over 63 bytes) */
    size_t above; /* units that pods hold beyond what their GPUs offer now: they take no place of
                     others; the caller's */
};

/* One more, in any order, copied. -1: out of memory. */
int ids_in_use_add(struct ids_in_use *in_use, const char *id);
/* What was added to next is in use, and nothing else; it is *taken*. */
void ids_in_use_replace(struct ids_in_use *in_use, struct ids_in_use *next);
void ids_in_use_release(struct ids_in_use *in_use);

bool ids_in_use_has(const struct ids_in_use *in_use, const char *id);
