/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rows.h"

#include "device_plugin/plugin.h"

/* The pod whose container is about to start. */
static struct gs_placed starting;

int64_t gs_loop_now_ns(const struct gs_loop *loop)
{
    return gs_clock_now_ns(gs_clock_system());
}

static const char *env(const struct gs_dp_container *container, const char *name)
{
    for (size_t i = 0; i < container->env_count; i++)
        if (strcmp(container->envs[i].key, name) == 0)
            return container->envs[i].value;
    return "(not set)";
}
