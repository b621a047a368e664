/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trash.h"
#include "device_plugin/allocate/allocator.h"
#include "gpushare/base/arena.h"
#include "gpushare/base/file.h"
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/model/enforced.h"

struct plugin;

/*
 * --hook-library: a library that the operator installed is preloaded into containers with GPU
 * memory, and limits the calls of CUDA that it knows (docs/limits.md). It is HAMi-core's libvgpu.so
 * whose environment and paths are meant (github.com/Project-HAMi/HAMi-core, README); nothing of it
 * is in here. Without that option nothing here does anything. Below --hook-root, which is root's:
 *
 *   libvgpu.so              a copy of what was verified, so that nobody changes it afterwards
 *   lock/                   the library's own, of all containers
 *   ID/ld.so.preload        the library, or nothing; ID is the least of a container's device ids
 *   ID/cache/               writable to that container, empty when it starts
 *   .trash/                 the folders of containers that ended (trash.h)
 *
 * An id belongs to one container at a time. A start moves the folder ID to the trash and makes it
 * anew: nothing that a container leaves behind is in the way of the next one.
 */
struct hook {
    int64_t look_ns; /* when the library is looked at again, and some of the trash removed */
    struct gs_file_mark seen;
    bool looked; /* it was, and seen is what it was then */
    bool ready;  /* it is what was pinned */
    struct trash trash;
};

/* Of --hook-root. */
enum { HOOK_ROOT_MAX = 300 };

/* What is wrong with the options; NULL: nothing. */
const char *hook_settings_wrong(const char *library, const char *sha256);

/* Looks at the library and empties the trash bit by bit: every ten seconds, every second while
 * there is more to remove. */
void hook_round(struct plugin *plugin);
void hook_release(struct plugin *plugin);

/* The word of every GPU. */
enum gs_enforced hook_word(const struct plugin *plugin, const struct gs_gpu *gpu, uint32_t pods);

/* Adds environment and mounts to an answer, all in the arena: the same whatever becomes of the
 * library until the container starts. GS_EINVAL: ids that name no folder; GS_ENOMEM. */
int hook_add(const struct plugin *plugin, const struct gs_allocate_answer *answer,
             const struct gs_dp_ids *ids, struct gs_arena *arena, struct gs_dp_container *container,
             struct gs_error *err);

/* Looks at the library, and makes what the container mounts. False: its start is blocked, as that
 * cannot be made, or as its pod requires a limit and there is none. */
bool hook_may_start(struct plugin *plugin, const struct gs_start_request *request,
                    const struct gs_placed *pod, struct gs_error *err);
