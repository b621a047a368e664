/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "inspect/web.h"

/* The page of somebody who may not see the cluster: his pods, asked for anew each time. It has no
 * script; the browser loads it again by itself. */

static bool matches(const struct own_pod *pod, const char *text)
{
    char full[800];
    snprintf(full, sizeof(full), "%.100s/%.253s %.253s", pod->pod.ns, pod->pod.name,
             pod->pod.node_name);
    return !text[0] || strcasestr(full, text);
}

static void put_cell(struct gs_buf *out, const char *class, const char *text)
{
    gs_buf_printf(out, "<td%s>", class);
    web_escape(out, text);
}

static void put_pod(struct gs_buf *out, const struct own_pod *pod, int64_t now_s)
{
    struct own_row row;
    own_row(pod, now_s, &row);
    gs_buf_puts(out, "<tr>");
    put_cell(out, "", pod->pod.ns);
    put_cell(out, "", pod->pod.name);
    put_cell(out, " class=num", row.asks);
    put_cell(out, " class=num", row.since);
    put_cell(out, "",
             pod->pod.node_name[0] ? pod->pod.node_name
             : pod->said[0]        ? pod->said
                                   : "waits");
    put_cell(out, "", row.gpus);
    gs_buf_putc(out, '\n');
}

static void put_pods(struct gs_buf *out, const struct own *own, const struct web_query *query,
                     int64_t now_s)
{
    char note[OWN_TEXT_BYTES];
    own_note(own, note);
    gs_buf_puts(out, "<main id=main><p id=lost role=status>");
    web_escape(out, note);
    gs_buf_puts(out,
                "</p>\n<section id=waiting aria-label=Pods><h2>Pods with GPU memory</h2><table>"
                "<thead><tr><th>Namespace<th>Pod<th class=num>Asks<th class=num>Since<th>Node, "
                "or what kube-scheduler said<th>GPU<tbody>\n");
    /* the address of one thing finds what bears its name */
    const char *slash = strrchr(query->name, '/');
    const char *text = query->view == WEB_ALL ? query->text : slash ? slash + 1 : query->name;
    for (size_t i = 0; i < own->count; i++) {
        if (matches(&own->pods[i], text))
            put_pod(out, &own->pods[i], now_s);
    }
    gs_buf_puts(out, "</table>");
    if (own->left_out)
        gs_buf_printf(out, "<p>and %zu more", own->left_out);
    gs_buf_puts(out, "</section></main>\n</body></html>\n");
}

void web_own_page(struct web *web, const struct web_query *query, struct gs_http_response *res)
{
    struct own own;
    struct gs_error err = {0};
    int64_t now_s = common_now_s(web->own.common);
    pthread_mutex_lock(&web->lock);
    if (own_fetch(&web->own, &own, &err) == 0) {
        res->content_type = "text/html; charset=utf-8";
        web_head(&res->body, web->own.common->source.server, now_s, false, query->text);
        gs_buf_puts(&res->body, "<button>Show</button></form>\n");
        put_pods(&res->body, &own, query, now_s);
    } else {
        gs_http_error(res, 503, "%s", err.msg);
    }
    own_release(&own);
    pthread_mutex_unlock(&web->lock);
}
