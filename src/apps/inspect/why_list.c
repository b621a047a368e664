/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "gpushare/base/utf8.h"
#include "inspect/lookup.h"
#include "inspect/terminal.h"
#include "inspect/why.h"

/* `why` without a pod: all that wait. */

/* When the extender is away no pod has a verdict: the one that waits longest is asked about it. */
static void warn_away(const struct why *why, const struct waits *waits)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    struct gs_error ignored = {0};
    if (!waits->count)
        return;
    const struct gs_pod *pod = &waits->all[0].waiting->pod;
    gs_buf_puts(&path, "/api/v1/namespaces/");
    gs_url_escape(&path, pod->ns);
    gs_buf_puts(&path, "/pods/");
    gs_url_escape(&path, pod->name);
    if (gs_buf_failed(&path))
        return;
    json_auto_t *tree = lookup_json(&why->source, path.data, NULL, &ignored);
    const json_t *condition = lookup_condition(json_object_get(tree, "status"), "PodScheduled");
    if (why_extender_is_away(lookup_text(condition, "message", NULL)))
        fputs(PROGRAM ": kube-scheduler gets no answer from the extender: kubectl inspect gpushare "
                      "doctor\n",
              stderr);
}

static int print(const struct why *why, const struct waits *waits)
{
    struct doc doc;
    if (why->format == FORMAT_TEXT) {
        if (!waits->count)
            fputs("No pod waits for GPU memory.\n", stderr);
        return waits_print(waits, &why->app->terminal, clock_unix_s(why->app->clock));
    }
    doc_open(&doc, stdout, why->format == FORMAT_YAML);
    doc_text(&doc, "unit", waits->unit);
    waits_document(&doc, waits);
    return doc_close(&doc);
}

int why_list(struct why *why, struct gs_error *err)
{
    struct waits waits;
    const char *ns = why->common.all_namespaces ? NULL : why->common.ns;
    int result = waits_find(&why->snapshot, ns, &waits, err);
    if (result == 0 && (print(why, &waits) < 0 || fflush(stdout) != 0))
        result = fail_output(err);
    if (result == 0)
        warn_away(why, &waits);
    waits_release(&waits);
    return result;
}
