/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_CHECKPOINT_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_CHECKPOINT_H

#include "device_plugin/numbers.h"
#include "device_plugin/unit.h"
#include "gpushare/allocate/allocator.h"
#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/port/gpu_source.h"

/*
 * What the kubelet wrote down of answers that it got, in the file "kubelet_internal_checkpoint" of
 * its device plugin folder: it replaces that file as a whole after every Allocate. Where an answer
 * points to its NVIDIA_VISIBLE_DEVICES says, in indices of the set. One that names no GPU index, or
 * a GPU that is not in the set, is left out. *ret lies in the arena. GS_ENOENT: the kubelet has
 * written none. GS_EIO, GS_ETOOBIG, GS_EPROTO, GS_ENOMEM.
 */
int checkpoint_read(const char *dir, const struct gs_names *names, const struct gs_gpu_set *set,
                    struct gs_arena *arena, struct gs_given **ret, size_t *ret_count,
                    struct gs_error *err);

/* What answers of any plugin tell of the GPUs. */
struct checkpoint_notes {
    struct unit_note *notes; /* into how many units each was divided: what the answer says, and at
                                least as many as the number of the last of its ids. In the arena */
    size_t count;
    size_t unclear;         /* answers that tell nothing of a GPU of the set */
    struct numbers indices; /* which UUID had which index, also of GPUs that are not in the set; of
                               each mem_units as its container was told */
};

/* No file is none. Errors as above. */
int checkpoint_units(const char *dir, const struct gs_names *names, const struct gs_gpu_set *set,
                     struct gs_arena *arena, struct checkpoint_notes *ret, struct gs_error *err);

struct plugin;

/* Whose these ids are, by gs_allocate_key(), as the kubelet wrote down before it started their
 * container. False: it did not, or it cannot be read. ret->uid lies in the arena. */
bool checkpoint_holder(const struct plugin *plugin, uint64_t key, struct gs_arena *arena,
                       struct gs_given *ret);

/* Brings the allocator what earlier runs answered, as soon as pods and GPUs are known; once they
 * are known for good it does nothing more. */
void checkpoint_restore(struct plugin *plugin);

#endif
