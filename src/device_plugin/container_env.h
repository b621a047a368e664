/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/plugin.h"

/*
 * What a container is given, from what the allocator decided: the ALIYUN_COM_GPU_MEM_* of the
 * original, and its GPUs in each form that --device-list-strategy names. Everything lies in the
 * arena. -1: out of memory.
 */
int container_env_build(const struct plugin *plugin, const struct gs_allocate_answer *answer,
                        struct gs_arena *arena, struct gs_dp_container *ret);
