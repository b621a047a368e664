/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/patch.h"
#include "gpushare/codec/rfc3339.h"
#include "sim/rest.h"
#include "sim/scheduler.h"

/* What kube-scheduler says of a pod: Events, and the condition PodScheduled. */

static void send_event(struct sched *sched, const struct sched_pod *pod, bool warning,
                       const char *reason, const char *message)
{
    struct gs_error err = {0};
    struct gs_kube kube = gs_kube_client_port(sched->api);
    const struct gs_event event = {.kind = "Pod",
                                   .ns = pod->ns,
                                   .name = pod->name,
                                   .uid = pod->uid,
                                   .warning = warning,
                                   .reason = reason,
                                   .message = message,
                                   .component = sched->set.scheduler_name};
    if (kube.ops->create_event(kube.ctx, &event, &err) < 0)
        gs_log(GS_LOG_WARN, "no event", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
               GS_STR("why", err.msg));
}

void sched_report_bound(struct sched *sched, const struct sched_pod *pod, const char *node)
{
    char message[700];
    snprintf(message, sizeof(message), "Successfully assigned %s/%s to %s", pod->ns, pod->name,
             node);
    send_event(sched, pod, false, "Scheduled", message);
}

/* The condition says so already: kube-scheduler writes it only when it changes. */
static bool said_before(const json_t *object, const char *reason, const char *message)
{
    const json_t *condition = rest_condition(object, "PodScheduled");
    return condition && strcmp(rest_text(condition, "reason"), reason) == 0 &&
           strcmp(rest_text(condition, "message"), message) == 0;
}

static void patch_condition(struct sched *sched, const struct sched_pod *pod, const char *reason,
                            const char *message)
{
    char path[600], now[GS_RFC3339_BYTES];
    struct gs_error err = {0};
    const struct gs_clock *clock = gs_clock_system();
    gs_rfc3339_format(clock->wall_ns(clock->ctx), 0, now);
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/status", pod->ns, pod->name);
    json_auto_t *patch =
        json_pack("{s:{s:s},s:{s:[{s:s,s:s,s:s,s:s,s:s}]}}", "metadata", "uid", pod->uid, "status",
                  "conditions", "type", "PodScheduled", "status", "False", "reason", reason,
                  "message", message, "lastTransitionTime", now);
    if (!patch ||
        rest_call(sched->api, "PATCH", path, GS_TYPE_STRATEGIC_PATCH, patch, NULL, &err) < 0)
        gs_log(GS_LOG_WARN, "no condition", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
               GS_STR("why", err.msg));
}

void sched_report_failed(struct sched *sched, const struct sched_pod *pod, const json_t *object,
                         const char *reason, const char *message)
{
    if (!said_before(object, reason, message))
        patch_condition(sched, pod, reason, message);
    send_event(sched, pod, true, "FailedScheduling", message);
}
