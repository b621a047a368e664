/* SPDX-License-Identifier: Apache-2.0 */
#include "common/watching.h"

#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"

enum { TENTHS = 10 };

void watch_until_stopped(struct gs_kube kube, const struct gs_watch_spec *spec,
                         const struct gs_watch_sink *sink, const atomic_bool *stop)
{
    while (!atomic_load(stop)) {
        struct gs_error err = {0};
        if (kube.ops->watch(kube.ctx, spec, sink, stop, &err) == 0)
            return;
        gs_log(GS_LOG_ERROR, "watch cannot begin",
               GS_STR("kind", spec->kind == GS_KIND_POD ? "pods" : "nodes"),
               GS_STR("why", err.msg));
        for (int i = 0; i < TENTHS && !atomic_load(stop); i++)
            nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_S / TENTHS}, NULL);
    }
}
