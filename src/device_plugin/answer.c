/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/answer.h"

bool answer_add_env(struct gs_dp_container *container, struct gs_arena *arena, const char *key,
                    const char *value)
{
    struct gs_dp_pair *envs =
        gs_arena_extend(arena, container->envs, container->env_count, 1, sizeof(*envs));
    if (!envs || !key || !value)
        return false;
    envs[container->env_count++] = (struct gs_dp_pair){key, value};
    container->envs = envs;
    return true;
}

bool answer_add_mount(struct gs_dp_container *container, struct gs_arena *arena,
                      struct gs_dp_path mount)
{
    struct gs_dp_path *mounts =
        gs_arena_extend(arena, container->mounts, container->mount_count, 1, sizeof(*mounts));
    if (!mounts || !mount.host || !mount.container)
        return false;
    mounts[container->mount_count++] = mount;
    container->mounts = mounts;
    return true;
}
