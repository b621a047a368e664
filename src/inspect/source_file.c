/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/array.h"
#include "gpushare/base/file.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/manifest.h"
#include "inspect/app.h"
#include "inspect/lookup.h"

/* --from-file: a v1.List in memory. It answers lists of nodes and pods, page by page, and each of
 * them by its path. It knows no selector: whoever asks with one filters the answer. */

struct object {
    char *path; /* of the API */
    struct gs_slice json;
};

struct file {
    const char *name;
    char *text;
    struct object *objects;
    uint32_t count, cap;
    struct gs_error *err;
};

static void close_file(void *ctx)
{
    struct file *file = ctx;
    for (size_t i = 0; i < file->count; i++)
        free(file->objects[i].path);
    free(file->objects);
    free(file->text);
    free(file);
}

/* ---- reading ---- */

/* Objects of other kinds are passed over. */
static int take(void *ctx, struct gs_scan *scan)
{
    struct file *file = ctx;
    struct object object = {0};
    if (!gs_scan_raw(scan, &object.json))
        return 0; /* the list itself is broken, and says so */
    json_auto_t *item =
        json_loadb(object.json.at, object.json.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    const char *kind = lookup_text(item, "kind", NULL);
    const char *name = lookup_text(item, "metadata", "name", NULL);
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    if (!item)
        return gs_fail(file->err, GS_EPROTO, "an object of the list is not JSON");
    const bool pod = strcmp(kind, "Pod") == 0;
    if (!pod && strcmp(kind, "Node") != 0)
        return 0;
    if (!name[0] || (pod && !lookup_text(item, "metadata", "uid", NULL)[0]))
        return gs_fail(file->err, GS_EPROTO, "the %s \"%.100s\" has no UID", kind, name);
    if (pod)
        source_pods(&path, lookup_text(item, "metadata", "namespace", NULL), name);
    else
        gs_buf_printf(&path, "/api/v1/nodes/%s", name);
    if (!gs_array_reach(&file->objects, &file->cap, file->count, sizeof(object)) ||
        gs_buf_failed(&path) || !(object.path = strdup(path.data)))
        return gs_fail_nomem(file->err);
    file->objects[file->count++] = object;
    return 0;
}

/* ---- answering ---- */

static size_t number_in(const char *query, const char *name)
{
    const char *at = query ? strstr(query, name) : NULL;
    uint64_t number = 0;
    if (at)
        gs_parse_u64(at + strlen(name), strspn(at + strlen(name), "0123456789"), &number);
    return number;
}

static bool is_list(const char *path)
{
    const char *last = strrchr(path, '/');
    return last && (strcmp(last, "/nodes") == 0 || strcmp(last, "/pods") == 0);
}

static bool is_of(const struct object *object, const char *path)
{
    const size_t len = strlen(path);
    if (strcmp(path, "/api/v1/pods") == 0)
        return strncmp(object->path, "/api/v1/nodes/", strlen("/api/v1/nodes/")) != 0;
    return strncmp(object->path, path, len) == 0 && object->path[len] == '/';
}

static void put_page(const struct file *file, const struct gs_kube_request *request,
                     struct gs_buf *body)
{
    const size_t limit = number_in(request->query, "limit=");
    size_t at = number_in(request->query, "continue="), put = 0;
    gs_buf_puts(body, "{\"items\":[");
    for (; at < file->count && (!limit || put < limit); at++) {
        if (!is_of(&file->objects[at], request->path))
            continue;
        gs_buf_puts(body, put++ ? "," : "");
        gs_buf_append(body, file->objects[at].json.at, file->objects[at].json.len);
    }
    gs_buf_puts(body, "],\"metadata\":{");
    if (at < file->count)
        gs_buf_printf(body, "\"continue\":\"%zu\"", at);
    gs_buf_puts(body, "}}");
}

static int ask_file(void *ctx, const struct gs_kube_request *request, int *ret_status,
                    struct gs_buf *body, struct gs_error *err)
{
    const struct file *file = ctx;
    size_t i = 0;
    gs_buf_reset(body);
    if (is_list(request->path)) {
        put_page(file, request, body);
    } else {
        while (i < file->count && strcmp(file->objects[i].path, request->path) != 0)
            i++;
        if (i == file->count)
            return gs_fail(err, GS_ENOENT, "%.100s contains only nodes and pods, not %.100s",
                           file->name, request->path);
        gs_buf_append(body, file->objects[i].json.at, file->objects[i].json.len);
    }
    *ret_status = 200;
    return gs_buf_failed(body) ? gs_fail(err, GS_ETOOBIG, "the response is too large") : 0;
}

/* ---- the source ---- */

static int read_file(struct file *file)
{
    struct gs_list_meta ignored;
    size_t len;
    if (gs_file_read(file->name, GS_MANIFEST_BYTES_MAX, &file->text, &len, file->err) < 0)
        return -1;
    if (gs_codec_list_items((struct gs_slice){file->text, len}, take, file, &ignored, file->err) <
            0 ||
        (!file->count && gs_fail(file->err, GS_EINVAL, "items contains no Node and no Pod") < 0))
        return gs_error_prefix(file->err, "%.100s", file->name);
    return 0;
}

int connect_file(const char *path, const struct connection *connection, struct source *ret,
                 struct gs_error *err)
{
    struct gs_error why = {0};
    struct file *file = calloc(1, sizeof(*file));
    if (!file)
        return gs_fail_nomem(err);
    *file = (struct file){.name = path, .err = &why};
    if (read_file(file) < 0) {
        close_file(file);
        return gs_fail(err, GS_EINVAL,
                       "%.150s; --from-file reads what snapshot writes, or `kubectl get nodes,pods "
                       "-A -o json`",
                       why.msg);
    }
    *ret = (struct source){.ctx = file, .ask = ask_file, .close = close_file};
    snprintf(ret->server, sizeof(ret->server), "%s", path);
    snprintf(ret->ns, sizeof(ret->ns), "%s", connection->ns ? connection->ns : "default");
    return 0;
}
