/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect/doctor.h"
#include "inspect/lookup.h"

/* The device plugin's pods: that they run one release, and which. */

/* One page says enough: an image that a few of 500 nodes do not have is what to look for. */
#define PLUGIN_QUERY "labelSelector=app.kubernetes.io%2Fname%3Dgpushare-device-plugin&limit=500"

static const char *image_of(const json_t *pod)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    return lookup_text(json_array_get(containers, 0), "image", NULL);
}

static void check_images(struct doctor *doctor, const json_t *items)
{
    const char *first = image_of(json_array_get(items, 0));
    struct doctor_names others = {0};
    size_t i;
    json_t *pod;
    json_array_foreach(items, i, pod)
    {
        if (strcmp(image_of(pod), first) != 0)
            doctor_add_name(&others, lookup_text(pod, "spec", "nodeName", NULL));
    }
    doctor_say_list(doctor, FINDING_WARN, "device plugin", &others,
                    "another image of the device plugin than on other nodes; kubectl rollout "
                    "status, or wait for it");
}

static void check_release(struct doctor *doctor, const json_t *pod)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(1 << 20);
    struct gs_error ignored = {0};
    const char *name = lookup_text(pod, "metadata", "name", NULL);
    gs_buf_printf(&path, "/api/v1/namespaces/%s/pods/%s:39997/proxy/version",
                  doctor->common.system_ns, name);
    if (gs_buf_failed(&path) || source_get(&doctor->source, path.data, NULL, &body, &ignored) < 0)
        return;
    const char *text = body.data ? body.data : "";
    if (doctor_skew(text) == SKEW_FAR)
        doctor_say(doctor, FINDING_WARN, "device plugin",
                   "%s answers: %.*s; this program is " GS_VERSION
                   ": use releases that are one apart at most",
                   name, (int)strcspn(text, "\n"), text);
}

void doctor_check_plugin_pods(struct doctor *doctor)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    struct gs_error ignored = {0};
    gs_buf_puts(&path, "/api/v1/namespaces/");
    gs_url_escape(&path, doctor->common.system_ns);
    gs_buf_puts(&path, "/pods");
    if (gs_buf_failed(&path))
        return;
    json_auto_t *list = lookup_json(&doctor->source, path.data, PLUGIN_QUERY, &ignored);
    const json_t *items = json_object_get(list, "items");
    size_t i;
    json_t *pod;
    if (!json_array_size(items))
        return;
    check_images(doctor, items);
    json_array_foreach(items, i, pod)
    {
        if (!lookup_is_ready(pod))
            continue;
        check_release(doctor, pod);
        return;
    }
}
