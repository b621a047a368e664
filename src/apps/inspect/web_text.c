/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/index.h"
#include "inspect/source.h"
#include "inspect/web_draw.h"

/* Words of others in a page and in a link, and what stands around the parts. */

void web_escape(struct gs_buf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            gs_buf_puts(out, "&lt;");
            break;
        case '>':
            gs_buf_puts(out, "&gt;");
            break;
        case '&':
            gs_buf_puts(out, "&amp;");
            break;
        case '"':
            gs_buf_puts(out, "&quot;");
            break;
        case '\'':
            gs_buf_puts(out, "&#39;");
            break;
        default:
            gs_buf_putc(out, *text);
        }
    }
}

static void put_argument(struct gs_buf *out, const char *name, const char *value)
{
    if (!value[0])
        return;
    gs_buf_printf(out, "%s=", name);
    gs_url_escape(out, value);
    gs_buf_puts(out, "&amp;");
}

static const char *const view_words[] = {
    [WEB_NODE] = "node", [WEB_NAMESPACE] = "namespace", [WEB_OWNER] = "owner", [WEB_POD] = "pod"};

void web_put_address(struct gs_buf *out, enum web_view view, const char *ns, const char *name)
{
    gs_buf_printf(out, "?%s=", view_words[view]);
    if (ns)
        gs_url_escape(out, ns);
    gs_buf_puts(out, ns ? "%2F" : "");
    gs_url_escape(out, name);
}

void web_link(struct gs_buf *out, enum web_view view, const char *ns, const char *name,
              const char *text)
{
    gs_buf_puts(out, "<a href=\"");
    web_put_address(out, view, ns, name);
    gs_buf_puts(out, "\">");
    web_escape(out, text);
    gs_buf_puts(out, "</a>");
}

void web_put_time(struct gs_buf *out, const char *before, int64_t at_s)
{
    char text[32];
    struct tm when;
    time_t at = (time_t)at_s;
    if (at_s && gmtime_r(&at, &when) && strftime(text, sizeof(text), "%F %H:%M", &when))
        gs_buf_printf(out, "%s%s UTC", before, text);
}

void web_query_text(const struct web_query *query, uint32_t page, struct gs_buf *out)
{
    const bool has_ns = query->view == WEB_OWNER || query->view == WEB_POD;
    if (query->view != WEB_ALL) {
        web_put_address(out, query->view, has_ns ? query->ns : NULL, query->name);
        gs_buf_puts(out, "&amp;");
    } else {
        gs_buf_putc(out, '?');
        put_argument(out, "q", query->text);
        put_argument(out, "ns", query->ns);
        put_argument(out, "model", query->model);
    }
    if (query->sort != SORT_NAME)
        put_argument(out, "sort", view_sorts[query->sort]);
    gs_buf_printf(out, "page=%" PRIu32, page + 1);
}

void web_put_width(struct gs_buf *out, uint64_t thousandths)
{
    gs_buf_printf(out, "t%" PRIu64 " u%" PRIu64 " d%" PRIu64, thousandths / 100,
                  thousandths / 10 % 10, thousandths % 10);
}

uint64_t web_share(uint64_t part, uint64_t whole)
{
    if (!whole)
        return 0;
    return part >= whole ? 1000 : (part * 1000 + whole / 2) / whole;
}

/* ---- what stands around the parts: the head, the filters ---- */

enum { CHOICES_MAX = 200 };

static void put_choice(struct gs_buf *out, const char *value, const char *label, const char *chosen)
{
    gs_buf_puts(out, "<option value=\"");
    web_escape(out, value);
    gs_buf_printf(out, "\"%s>", strcmp(value, chosen) == 0 ? " selected" : "");
    web_escape(out, label);
}

struct choices {
    const char *all[CHOICES_MAX + 1];
    size_t count;
};

static void add_choice(struct choices *choices, const char *text, size_t most)
{
    for (size_t i = 0; i < choices->count; i++) {
        if (strcmp(choices->all[i], text) == 0)
            return;
    }
    if (text[0] && choices->count < most)
        choices->all[choices->count++] = text;
}

/* What is chosen is among them, whatever the cluster has: the next change of the form keeps it. */
static void put_choices(struct gs_buf *out, struct choices *choices, const char *name,
                        const char *chosen)
{
    add_choice(choices, chosen, CHOICES_MAX + 1);
    gs_buf_printf(out, "<select name=%s>", name);
    put_choice(out, "", "all", chosen);
    for (size_t i = 0; i < choices->count; i++)
        put_choice(out, choices->all[i], choices->all[i], chosen);
    gs_buf_puts(out, "</select></label>");
}

/* Those that have most first; then those whose pods all wait. */
static void put_namespaces(struct gs_buf *out, const struct view *view,
                           const struct web_query *query)
{
    struct choices choices = {.count = 0};
    for (size_t i = 0; i < view->ns_count && i < CHOICES_MAX; i++)
        choices.all[choices.count++] = view->namespaces[i].name;
    for (size_t i = 0; i < view->waits.count && choices.count < CHOICES_MAX; i++)
        add_choice(&choices, view->waits.all[i].waiting->pod.ns, CHOICES_MAX);
    gs_buf_puts(out, "<label>Namespace ");
    put_choices(out, &choices, "ns", query->ns);
}

static void put_models(struct gs_buf *out, const struct view *view, const struct web_query *query)
{
    struct choices choices = {.count = 0};
    for (size_t i = 0; i < view->node_count && choices.count < CHOICES_MAX; i++) {
        const struct view_node *node = &view->nodes[i];
        for (uint32_t g = 0; g < node->gpu_count; g++)
            add_choice(&choices, node->gpus[g].gpu->model, CHOICES_MAX);
    }
    gs_buf_puts(out, "<label>Model ");
    put_choices(out, &choices, "model", query->model);
}

static const char *const sort_labels[] = {
    [SORT_NAME] = "by name",      [SORT_FREE] = "most free",
    [SORT_USED] = "most used",    [SORT_LARGEST] = "largest free piece",
    [SORT_STRANDED] = "stranded", [SORT_PODS] = "most pods",
};

static void put_filters(struct gs_buf *out, const struct view *view, const struct web_query *query)
{
    put_namespaces(out, view, query);
    put_models(out, view, query);
    gs_buf_puts(out, "<label>Order <select name=sort>");
    for (int i = SORT_NAME; i <= SORT_PODS; i++)
        put_choice(out, view_sorts[i], sort_labels[i], view_sorts[query->sort]);
    gs_buf_puts(out, "</select></label><button>Show</button></form>");
}

void web_head(struct gs_buf *out, const char *server, int64_t now_s, bool live, const char *text)
{
    char at[32] = "";
    struct tm when;
    time_t shown_s = (time_t)now_s;
    if (gmtime_r(&shown_s, &when))
        strftime(at, sizeof(at), "%F %T", &when);
    gs_buf_puts(out, "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>gpushare: ");
    web_escape(out, server);
    gs_buf_printf(out,
                  "</title><meta name=viewport content=\"width=device-width\"><meta "
                  "name=color-scheme content=\"light dark\"><link rel=icon href=\"icon.svg\"><link "
                  "rel=stylesheet href=\"style.css\">%s</head>\n<body><header><h1>gpushare</h1><p "
                  "class=server>",
                  live ? "<script src=\"app.js\" defer></script>"
                       : "<meta http-equiv=refresh content=10>");
    web_escape(out, server);
    gs_buf_printf(out,
                  "<p id=age>as of %s UTC</p>%s</header>\n<form method=get action=\"./\" "
                  "role=search><label class=search>Search <input type=search name=q maxlength=100 "
                  "placeholder=\"node or pod\" value=\"",
                  at, live ? "<noscript><p>Reload to see changes.</noscript>" : "");
    web_escape(out, text);
    gs_buf_puts(out, "\"></label>");
}

void web_parts_sum(const struct web_parts *parts, char to[WEB_SUM_BYTES])
{
    uint64_t all[WEB_PARTS_MAX];
    for (uint32_t i = 0; i < parts->count; i++)
        all[i] = parts->part[i].content;
    snprintf(to, WEB_SUM_BYTES, "%016" PRIx64, gs_hash_bytes(all, parts->count * sizeof(all[0])));
}

void web_document(const struct web_state *state, const struct web_query *query,
                  const struct web_parts *parts, struct gs_buf *out)
{
    char sum[WEB_SUM_BYTES];
    web_head(out, state->server, state->view.now_s, true, query->text);
    put_filters(out, &state->view, query);
    web_parts_sum(parts, sum);
    gs_buf_printf(out, "\n<main id=main data-sum=%s>\n", sum);
    if (!gs_buf_failed(&parts->html))
        gs_buf_append(out, parts->html.data, parts->html.len);
    gs_buf_puts(out, "</main>\n</body></html>\n");
}

/* ---- parts ---- */

void web_begin(const struct web_draw *draw, const char *id)
{
    struct web_parts *parts = draw->parts;
    parts->part[parts->count].from = parts->html.len;
    parts->part[parts->count].id = gs_hash_text(id);
}

void web_end(const struct web_draw *draw)
{
    struct web_parts *parts = draw->parts;
    size_t from = parts->part[parts->count].from;
    parts->part[parts->count].to = parts->html.len;
    if (!gs_buf_failed(&parts->html))
        parts->part[parts->count].content =
            gs_hash_bytes(parts->html.data + from, parts->html.len - from);
    parts->count++;
}
