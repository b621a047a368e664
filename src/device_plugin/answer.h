/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/grpc/device_plugin.h"

/*
 * Adds to what a container is given. Texts are *borrowed* for the answer's life, lists lie in the
 * arena. False: out of memory, which a NULL among the texts stands for, too.
 */
bool answer_add_env(struct gs_dp_container *container, struct gs_arena *arena, const char *key,
                    const char *value);
bool answer_add_mount(struct gs_dp_container *container, struct gs_arena *arena,
                      struct gs_dp_path mount);
