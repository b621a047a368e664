/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "inspect/doctor.h"
#include "inspect/lookup.h"

/* Does a kube-scheduler ask at all? That is what an operator sets up by hand, and nothing in the
 * API shows it: the extender's own counters do. */

/* Sum of the samples of filter in a text of metrics (docs/reference.md). */
static uint64_t count_filters(const struct gs_buf *text)
{
    static const char prefix[] = "gpushare_requests_total{verb=\"filter\",";
    uint64_t sum = 0, value;
    for (const char *at = text->data; at && (at = strstr(at, prefix));) {
        const char *number = strstr(at, "} ");
        at += strlen(prefix);
        if (number && gs_parse_u64(number + 2, strcspn(number + 2, "\n"), &value))
            sum += value;
    }
    return sum;
}

static int add_pod(const struct doctor *doctor, const char *name, uint64_t *asked,
                   struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    gs_buf_printf(&path, "/api/v1/namespaces/%s/pods/%s:39998/proxy/metrics",
                  doctor->common.system_ns, name);
    if (gs_buf_failed(&path))
        return gs_fail_nomem(err);
    if (source_get(&doctor->source, path.data, NULL, &body, err) < 0)
        return -1;
    *asked += count_filters(&body);
    return 0;
}

void doctor_check_asked(struct doctor *doctor)
{
    uint64_t asked = 0;
    size_t i, known = 0;
    json_t *pod;
    json_array_foreach(json_object_get(doctor->pods, "items"), i, pod)
    {
        struct gs_error err = {0};
        if (!lookup_is_ready(pod))
            continue;
        if (add_pod(doctor, lookup_text(pod, "metadata", "name", NULL), &asked, &err) < 0) {
            doctor_say(doctor, FINDING_SKIP, "scheduler",
                       "whether kube-scheduler asks is not known: %s", err.msg);
            return;
        }
        known++;
    }
    if (known == 0)
        return;
    unsigned waiting = HASH_COUNT(doctor->snapshot.waiting);
    if (asked > 0)
        doctor_say(doctor, FINDING_OK, "scheduler", "kube-scheduler asks the extender");
    else if (waiting > 0)
        doctor_say(doctor, FINDING_FAIL, "scheduler",
                   "%u pods with GPU memory wait, and no kube-scheduler has asked the extender "
                   "since it started; let it read the configuration, or give the pods the second "
                   "scheduler's schedulerName (docs/install.md)",
                   waiting);
    else
        doctor_say(doctor, FINDING_SKIP, "scheduler",
                   "nobody has asked the extender yet: as it should be before there is a pod with "
                   "GPU memory; kube-scheduler has to be told to ask (docs/install.md)");
}
