/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/allocate/allocator.h"
#include "device_plugin/gpu_indices.h"
#include "device_plugin/unit.h"
#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/port/gpu_source.h"

struct ids_in_use;
struct plugin;

/*
 * What the kubelet wrote down of answers that it got, in the file "kubelet_internal_checkpoint" of
 * its device plugin folder: it replaces that file as a whole after every Allocate. Where an answer
 * points to its NVIDIA_VISIBLE_DEVICES says, in indices of the plugin's set: nowhere for one that
 * names no GPU index, or a GPU that is not in the set. *ret lies in the arena. To in_use, unless it
 * is NULL, come the ids of pods that may live. GS_ENOENT: the kubelet has written none. GS_EIO,
 * GS_ETOOBIG, GS_EPROTO, GS_ENOMEM.
 */
int checkpoint_read(const struct plugin *plugin, struct ids_in_use *in_use, struct gs_arena *arena,
                    struct gs_given **ret, size_t *ret_count, struct gs_error *err);

/* What answers of any plugin tell of the GPUs. */
struct checkpoint_notes {
    enum gs_unit unit;          /* unit_noted() of all; unknown: no answer tells */
    bool unclear;               /* an answer tells nothing of a GPU of the set */
    struct gpu_indices indices; /* which UUID had which index, also of GPUs that are not in the set;
                               of each mem_units as its container was told */
};

/* No file is none. Errors as above; there are no notes then. */
int checkpoint_units(const char *dir, const struct gs_names *names, const struct gs_gpu_set *set,
                     const struct gs_inventory *record, enum gs_unit wanted,
                     struct checkpoint_notes *ret, struct gs_error *err);

/* Reads it, and brings the allocator what it says (at_allocate: gs_allocator_observe()) and, if
 * asked for, the list of devices. Without a file, or with a torn one, the kubelet has begun with
 * nothing. false: the allocator was told nothing. */
bool checkpoint_observe(struct plugin *plugin, bool at_allocate, bool with_ids);

/* Brings the allocator what earlier runs answered, as soon as pods and GPUs are known; once they
 * are known for good it does nothing more. */
void checkpoint_restore(struct plugin *plugin);
