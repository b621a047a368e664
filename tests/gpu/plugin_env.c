/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_env ROOT UUID GIB: environment and mounts that the device plugin answers a container of so
 * much GPU memory with, where gpushare-mps keeps its daemons in ROOT: "NAME=value", "mount HOST
 * CONTAINER". */
#include <stdio.h>
#include <stdlib.h>

#include "device_plugin/container_env.h"

int64_t gs_loop_now_ns(const struct gs_loop *loop)
{
    return gs_clock_now_ns(gs_clock_system());
}

int main(int argc, char **argv)
{
    static struct plugin plugin;
    struct gs_arena arena = {0};
    struct gs_dp_container made;
    struct gs_error err = {0};
    if (argc != 4)
        return 2;
    uint32_t units = (uint32_t)strtoul(argv[3], NULL, 10);
    const struct gs_allocate_answer answer = {
        .gpus = 1, .idx = "0", .units = units, .pod_units = units, .dev_units = units};
    plugin.settings.mps_root = argv[1];
    plugin.settings.device_lists = DEVICE_LIST_ENVVAR;
    plugin.devices.unit = GS_UNIT_GIB;
    plugin.devices.set.count = 1;
    plugin.devices.set.gpus[0] =
        (struct gs_gpu){.mem_units = units, .healthy = true, .schedulable = true};
    snprintf(plugin.devices.set.gpus[0].uuid, sizeof(plugin.devices.set.gpus[0].uuid), "%s",
             argv[2]);
    if (gs_names_init(&plugin.names, "aliyun.com", &err) < 0 ||
        container_env_build(&plugin, &answer, &arena, &made) < 0 ||
        mps_add(&plugin, &answer, NULL, &arena, &made, &err) < 0) {
        fprintf(stderr, "plugin_env: %s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < made.env_count; i++)
        printf("%s=%s\n", made.envs[i].key, made.envs[i].value);
    for (size_t i = 0; i < made.mount_count; i++)
        printf("mount %s %s\n", made.mounts[i].host, made.mounts[i].container);
    gs_arena_release(&arena);
    return 0;
}
