/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/own.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpushare/codec/annotation.h"
#include "inspect/terminal.h"
#include "inspect/waits.h"

struct own {
    const struct common *common;
    struct sheet sheet;
    bool pending;
};

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    sheet_release(&((struct own *)ctx)->sheet);
    return 0;
}

static void put(struct sheet *to, enum column_kind kind, const char *head, const char *text)
{
    column_text(to, kind, head, NULL, COLUMN_ALWAYS, text ? gs_arena_strdup(&to->texts, text) : "");
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    struct own *own = ctx;
    struct sheet *to = &own->sheet;
    char gpus[GS_IDX_TEXT_BYTES];
    if (!gs_pod_wants_gpu(pod) || gs_pod_terminal(pod) || (own->pending && pod->node_name[0]))
        return 0;
    sheet_row(to);
    put(to, COLUMN_TEXT, "NAMESPACE", pod->ns);
    put(to, COLUMN_TEXT, "POD", pod->name);
    put(to, COLUMN_RIGHT, "REQUEST", waits_request(&to->texts, pod));
    put(to, COLUMN_RIGHT, "AGE", waits_age(&to->texts, pod->created_s, common_now_s(own->common)));
    put(to, COLUMN_TEXT, "NODE", pod->node_name);
    put(to, COLUMN_TEXT, "GPU", gs_codec_idx_format(gs_pod_recorded(pod), gpus));
    return 0;
}

char *own_table(const struct fetch *fetch, const char *ns, bool pending, char note[OWN_NOTE_BYTES],
                struct gs_error *err)
{
    struct own own = {.common = fetch->common, .pending = pending};
    const struct gs_watch_sink sink = {.ctx = &own, .list_begin = on_list_begin, .pod = on_pod};
    int result = fetch_pods(fetch, ns, &sink, err);
    if (result < 0 && err->code == GS_EDENIED && !ns) {
        gs_error_clear(err);
        ns = fetch->common->source.ns;
        result = fetch_pods(fetch, ns, &sink, err);
    }
    snprintf(note, OWN_NOTE_BYTES,
             "this account may not list all nodes and pods; showing pods with GPU memory of "
             "%s%.255s, without totals (docs/cli.md, Rights)",
             ns ? "namespace " : "all namespaces", ns ? ns : "");
    _cleanup_free_ char *text = sheet_text(&own.sheet);
    if (result == 0 && !text)
        gs_fail_nomem(err);
    return result == 0 ? gs_steal(&text) : NULL;
}

int own_print(const struct fetch *fetch, const char *ns, bool pending, struct gs_error *err)
{
    struct gs_error why = {0};
    char note[OWN_NOTE_BYTES];
    _cleanup_free_ char *text =
        err->code == GS_EDENIED ? own_table(fetch, ns, pending, note, &why) : NULL;
    if (!text)
        return -1;
    gs_error_clear(err);
    fprintf(stderr, PROGRAM ": %s\n", note);
    fputs(text, stdout);
    return fflush(stdout) == 0 ? 0 : fail_output(err);
}
