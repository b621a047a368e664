/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/doc.h"

#include <inttypes.h>
#include <string.h>

enum { FLUSH_BYTES = 1 << 16, TEXT_MAX = 1 << 20 };

static void flush(struct doc *doc)
{
    if (gs_buf_failed(&doc->text) ||
        (doc->text.len && fwrite(doc->text.data, 1, doc->text.len, doc->out) != doc->text.len))
        doc->failed = true;
    gs_buf_reset(&doc->text);
}

static void indent(struct doc *doc, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        gs_buf_append(&doc->text, "  ", 2);
}

static void begin_yaml(struct doc *doc, const char *key)
{
    if (!doc->dash) {
        if (doc->depth > 1 || doc->levels[0].any)
            gs_buf_putc(&doc->text, '\n');
        indent(doc, doc->depth - 1);
    }
    if (key)
        gs_buf_printf(&doc->text, "%s:", key);
    else
        gs_buf_putc(&doc->text, '-');
    doc->dash = false;
}

static void new_line(struct doc *doc, uint32_t depth)
{
    if (!doc->out)
        return;
    gs_buf_putc(&doc->text, '\n');
    indent(doc, depth);
}

static void begin_json(struct doc *doc, const char *key)
{
    gs_buf_puts(&doc->text, doc->levels[doc->depth - 1].any ? "," : "");
    new_line(doc, doc->depth);
    if (key)
        gs_buf_printf(&doc->text, "\"%s\": ", key);
}

/* What stands before every value. */
static void begin(struct doc *doc, const char *key)
{
    if (doc->out && doc->text.len > FLUSH_BYTES)
        flush(doc);
    if (doc->depth == 0)
        return;
    if (doc->yaml)
        begin_yaml(doc, key);
    else
        begin_json(doc, key);
    doc->levels[doc->depth - 1].any = true;
}

static void descend(struct doc *doc, const char *key, bool list)
{
    begin(doc, key);
    if (doc->depth == DOC_DEPTH_MAX) {
        doc->failed = true;
        return;
    }
    if (!doc->yaml)
        gs_buf_putc(&doc->text, list ? '[' : '{');
    else if (doc->depth && !key)
        gs_buf_putc(&doc->text, ' ');
    doc->dash = doc->depth && !key && !list;
    doc->levels[doc->depth].list = list;
    doc->levels[doc->depth++].any = false;
}

void doc_object(struct doc *doc, const char *key)
{
    descend(doc, key, false);
}

void doc_list(struct doc *doc, const char *key)
{
    descend(doc, key, true);
}

void doc_end(struct doc *doc)
{
    if (doc->failed)
        return;
    bool list = doc->levels[--doc->depth].list, any = doc->levels[doc->depth].any;
    doc->dash = false;
    if (!doc->yaml && any)
        new_line(doc, doc->depth);
    if (!doc->yaml)
        gs_buf_putc(&doc->text, list ? ']' : '}');
    else if (!any)
        gs_buf_puts(&doc->text, list ? " []" : " {}");
}

void doc_text(struct doc *doc, const char *key, const char *text)
{
    begin(doc, key);
    if (doc->yaml)
        gs_buf_putc(&doc->text, ' ');
    gs_buf_json_text(&doc->text, text); /* a double-quoted YAML scalar as well */
}

void doc_number(struct doc *doc, const char *key, uint64_t number)
{
    begin(doc, key);
    gs_buf_printf(&doc->text, doc->yaml ? " %" PRIu64 : "%" PRIu64, number);
}

void doc_bool(struct doc *doc, const char *key, bool value)
{
    begin(doc, key);
    gs_buf_printf(&doc->text, doc->yaml ? " %s" : "%s", value ? "true" : "false");
}

void doc_gpus(struct doc *doc, const char *key, gs_gpu_mask gpus)
{
    uint32_t idx;
    doc_list(doc, key);
    GS_FOR_EACH_GPU (idx, gpus)
        doc_number(doc, NULL, idx);
    doc_end(doc);
}

void doc_open(struct doc *doc, FILE *out, bool yaml)
{
    *doc = (struct doc){.out = out, .text = GS_BUF(TEXT_MAX), .yaml = yaml};
    doc_object(doc, NULL);
}

int doc_close(struct doc *doc)
{
    doc_end(doc);
    gs_buf_putc(&doc->text, '\n');
    flush(doc);
    gs_buf_release(&doc->text);
    return doc->failed || fflush(doc->out) != 0 ? -1 : 0;
}
