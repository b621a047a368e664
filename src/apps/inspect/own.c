/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/own.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpushare/codec/annotation.h"
#include "inspect/grid.h"
#include "inspect/terminal.h"
#include "inspect/waits.h"

struct own {
    const struct common *common;
    struct grid grid;
    bool pending;
};

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct own *own = ctx;
    grid_close(&own->grid);
    grid_open(&own->grid);
    grid_columns(&own->grid, "NAMESPACE\tPOD\t>REQUEST\t>AGE\tNODE\tGPU");
    return 0;
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    struct own *own = ctx;
    char asks[WAIT_SHORT_BYTES], since[WAIT_SHORT_BYTES], gpus[GS_IDX_TEXT_BYTES];
    if (!gs_pod_wants_gpu(pod) || gs_pod_terminal(pod) || (own->pending && pod->node_name[0]))
        return 0;
    waits_asks(pod, asks);
    waits_since(pod->created_s, common_now_s(own->common), since);
    gs_codec_idx_format(gs_pod_recorded(pod), gpus);
    grid_row(&own->grid);
    grid_cells(&own->grid, "%s\t%s\t%s\t%s\t%s\t%s", pod->ns, pod->name, asks, since,
               pod->node_name[0] ? pod->node_name : "-", gpus[0] ? gpus : "-");
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
    _cleanup_free_ char *text = grid_text(&own.grid);
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
