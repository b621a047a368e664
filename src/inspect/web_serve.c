/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"
#include "inspect/web.h"
#include "inspect/web_files.h"

/* Who may ask, and what is answered. */

/* ---- who ---- */

/* Without a branch that depends on where the two differ. */
static bool same_secret(const char *a, const char *b, size_t len)
{
    unsigned char differ = 0;
    for (size_t i = 0; i < len; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

/* What follows "TOKEN/" in the path; NULL: it is not ours. */
static const char *behind_token(const struct web *web, const char *path)
{
    size_t len = strlen(web->token);
    if (!len)
        return path;
    if (strlen(path) <= len || !same_secret(path, web->token, len) || path[len] != '/')
        return NULL;
    return path + len + 1;
}

/* A name that only this machine answers to, whatever port it is forwarded from: a page that let its
 * own name point here (DNS rebinding) has another. */
static bool is_loopback(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; host && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t len = strlen(names[i]);
        if (strncasecmp(host, names[i], len) == 0 && (!host[len] || host[len] == ':'))
            return true;
    }
    return false;
}

static bool is_own_origin(const struct gs_http_request *req)
{
    const char *origin = gs_http_header(req, "Origin"), *host = gs_http_header(req, "Host");
    const char *site = gs_http_header(req, "Sec-Fetch-Site");
    if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return false;
    return !origin || (strncmp(origin, "http://", 7) == 0 && host && strcmp(origin + 7, host) == 0);
}

/* ---- what ---- */

static void read_text(const struct gs_http_request *req, const char *name, char *to, size_t size)
{
    const char *value = gs_http_query(req, name);
    snprintf(to, size, "%s", value ? value : "");
    gs_utf8_calm(to); /* may have been cut within a character */
}

/* "NAMESPACE/NAME" of an owner or a pod. */
static void split_name(struct web_query *query)
{
    char *slash = strchr(query->name, '/');
    if (!slash)
        return;
    snprintf(query->ns, sizeof(query->ns), "%.*s", (int)(slash - query->name), query->name);
    gs_utf8_calm(query->ns); /* may have been cut within a character */
    memmove(query->name, slash + 1, strlen(slash));
}

static void read_view(const struct gs_http_request *req, struct web_query *ret)
{
    for (int view = WEB_NAMESPACE; view <= WEB_POD && !ret->name[0]; view++) {
        read_text(req, web_views[view], ret->name, sizeof(ret->name));
        ret->view = ret->name[0] ? (enum web_view)view : WEB_ALL;
    }
    if (ret->view == WEB_ALL)
        return;
    ret->text[0] = ret->model[0] = ret->ns[0] = '\0';
    if (ret->view == WEB_NAMESPACE)
        read_text(req, "namespace", ret->ns, sizeof(ret->ns));
    else if (ret->view != WEB_NODE)
        split_name(ret);
    const char *gpu = ret->view == WEB_NODE ? gs_http_query(req, "gpu") : NULL;
    ret->has_gpu = gpu && gpu[0];
    if (gpu && !gs_parse_u32(gpu, strlen(gpu), &ret->gpu))
        ret->gpu = UINT32_MAX; /* no GPU has it */
}

static void read_query(const struct gs_http_request *req, struct web_query *ret)
{
    *ret = (struct web_query){0};
    read_text(req, "q", ret->text, sizeof(ret->text));
    read_text(req, "ns", ret->ns, sizeof(ret->ns));
    read_text(req, "model", ret->model, sizeof(ret->model));
    read_view(req, ret);
    read_text(req, "sort", ret->sort, sizeof(ret->sort));
    const char *page = gs_http_query(req, "page");
    if (page && gs_parse_u32(page, strlen(page), &ret->page) && ret->page)
        ret->page--;
}

/* To a user who may not list the cluster: the pods of one namespace, as a table. */
static void put_own(struct web *web, struct doc *doc, struct gs_error *err)
{
    char note[OWN_NOTE_BYTES];
    _cleanup_free_ char *table = own_table(web->watcher.fetch, web->common->ns, false, note, err);
    if (!table)
        return;
    doc_text(doc, "server", web->common->source.server);
    doc_text(doc, "lost", note);
    doc_text(doc, "own", table);
}

static bool has_seen(struct web *web, const char *seen)
{
    uint64_t version;
    if (!seen || !gs_parse_u64(seen, strlen(seen), &version))
        return false;
    pthread_mutex_lock(&web->watcher.lock);
    const bool same = version == web->version + web->watcher.changed;
    pthread_mutex_unlock(&web->watcher.lock);
    return same;
}

static void put_rows(struct web *web, const struct web_query *query, struct doc *doc,
                     struct gs_error *err)
{
    struct web_words words = {.events = ""};
    if (query->view >= WEB_NODE)
        web_ask(web, query, &words);
    pthread_mutex_lock(&web->watcher.lock);
    if (web_refresh(web, err) == 0)
        web_put_rows(web, query, &words, doc);
    pthread_mutex_unlock(&web->watcher.lock);
    why_release(&words.why);
}

/* Nothing to somebody who has seen the rows as they are. */
static void answer_rows(struct web *web, const struct gs_http_request *req,
                        struct gs_http_response *res)
{
    struct web_query query;
    struct gs_error err = {0};
    struct doc doc = {.text = res->body};
    web->asked_ns = gs_clock_now_ns(gs_clock_system());
    if (has_seen(web, gs_http_query(req, "seen"))) {
        res->status = 204;
        return;
    }
    read_query(req, &query);
    if (query.view >= WEB_NODE && !web->own_only && !req->may_block) {
        res->wants_worker = true;
        return;
    }
    doc_object(&doc, NULL);
    if (web->own_only)
        put_own(web, &doc, &err);
    else
        put_rows(web, &query, &doc, &err);
    doc_end(&doc);
    res->body = doc.text;
    if (err.code)
        gs_http_error(res, 503, "%s", err.msg);
    else if (doc.failed)
        gs_http_error(res, 500, "the page is too large");
}

static const struct {
    const char *name, *type;
    const struct web_file *file;
} files[] = {
    {"", "text/html; charset=utf-8", &web_index_html},
    {"style.css", "text/css; charset=utf-8", &web_style_css},
    {"app.js", "text/javascript; charset=utf-8", &web_app_js},
    {"icon.svg", "image/svg+xml", &web_icon_svg},
};

static void answer(struct web *web, const char *what, const struct gs_http_request *req,
                   struct gs_http_response *res)
{
    if (strcmp(what, "rows") == 0) {
        answer_rows(web, req, res);
        return;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(files[i].name, what) != 0)
            continue;
        res->content_type = files[i].type;
        gs_buf_append(&res->body, files[i].file->bytes, files[i].file->len);
        return;
    }
    gs_http_error(res, 404, "there is no such page");
}

/* A person may have asked. */
static void refuse(struct gs_http_response *res, const char *why)
{
    res->status = 403;
    res->content_type = "text/html; charset=utf-8";
    gs_buf_printf(&res->body,
                  "<!doctype html><html lang=en><title>gpushare: refused</title><h1>gpushare</h1>"
                  "<p>%s.</p></html>\n",
                  why);
}

static void on_request(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct web *web = ctx;
    const char *what = behind_token(web, req->rest);
    gs_http_add_header(res, "Content-Security-Policy",
                       "default-src 'none'; style-src 'self'; script-src 'self'; connect-src "
                       "'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
                       "frame-ancestors 'none'");
    gs_http_add_header(res, "X-Content-Type-Options", "nosniff");
    gs_http_add_header(res, "Referrer-Policy", "no-referrer");
    gs_http_add_header(res, "Cache-Control", "no-store");
    gs_http_add_header(res, "Cross-Origin-Resource-Policy", "same-origin");
    if (!is_loopback(gs_http_header(req, "Host")))
        refuse(res, "Ask for this page as 127.0.0.1 or localhost");
    else if (!is_own_origin(req))
        refuse(res, "A page of others asked for this one");
    else if (!what)
        refuse(res, "The address lacks its token: open the one that the program printed");
    else
        answer(web, what, req, res);
}

const struct gs_http_route web_routes[WEB_ROUTES] = {
    {"GET", "/", on_request, GS_HTTP_HEAVY | GS_HTTP_SMALL},
    {"GET", "/", on_request, GS_HTTP_PREFIX | GS_HTTP_HEAVY | GS_HTTP_SMALL},
};
