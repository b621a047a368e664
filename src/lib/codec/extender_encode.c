/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/extender.h"

#include "json_writer.h"

/* kube-scheduler has used Error as a format string: a percent sign would garble it. */
static void write_error_text(struct gs_buf *out, const char *error)
{
    struct gs_buf plain = GS_BUF(strlen(error));
    for (; *error; error++) {
        if (*error != '%')
            gs_buf_putc(&plain, *error);
    }
    if (gs_buf_failed(&plain))
        out->failed = gs_buf_failed(&plain);
    gs_buf_json_string(out, plain.data ? plain.data : "", plain.len);
    gs_buf_release(&plain);
}

static char *append_bytes(char *to, const void *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return to + len;
}

static bool plain_names(const struct gs_filter_args *args)
{
    return args->has_names ? args->names_plain : args->node_names_plain;
}

/* The request's own bytes from candidate `from` to candidate `to`, both included, with the commas
 * between them. */
static void write_run(struct gs_buf *out, const struct gs_filter_args *args, uint32_t from,
                      uint32_t to)
{
    const struct gs_slice *items = args->has_names ? args->names : args->nodes;
    const char *begin = items[from].at, *end = items[to].at + items[to].len;
    if (args->has_names) { /* include the quotes */
        begin--;
        end++;
    }
    gs_buf_append(out, begin, (size_t)(end - begin));
}

/* Candidates that are kept are mostly adjacent, so they are copied in runs. Names with escapes were
 * decoded into other memory, and are written one by one. */
static void write_kept(struct gs_buf *out, const struct gs_filter_args *args,
                       const uint8_t *reasons)
{
    uint32_t count = gs_filter_args_count(args);
    bool single = args->has_names && !args->names_plain;
    gs_buf_putc(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (reasons[i] != GS_FITS)
            continue;
        uint32_t from = i;
        while (!single && i + 1 < count && reasons[i + 1] == GS_FITS)
            i++;
        gs_write_comma(out);
        if (single)
            gs_buf_json_string(out, args->names[i].at, args->names[i].len);
        else
            write_run(out, args, from, i);
    }
    gs_buf_putc(out, ']');
}

/* Reserves memory once per entry, because a buffer call for each part would cost more than the
 * copying. A reason's text has nothing that JSON escapes. */
static void write_reason(struct gs_buf *out, struct gs_slice name, bool plain, struct gs_slice text)
{
    static const char head[] = ",\"", colon[] = "\":\"";
    if (!plain) {
        gs_buf_putc(out, ',');
        gs_buf_json_string(out, name.at, name.len);
        gs_buf_puts(out, ":\"");
        gs_buf_append(out, text.at, text.len);
        gs_buf_putc(out, '"');
        return;
    }
    char *begin = gs_buf_reserve(out, sizeof(head) + name.len + sizeof(colon) + text.len);
    if (!begin)
        return;
    char *to = append_bytes(begin, head, sizeof(head) - 1);
    to = append_bytes(to, name.at, name.len);
    to = append_bytes(to, colon, sizeof(colon) - 1);
    to = append_bytes(to, text.at, text.len);
    *to++ = '"';
    gs_buf_advance(out, (size_t)(to - begin));
}

/* Every entry from `begin` on starts with a comma. The first comma is overwritten with the opening
 * bracket. */
static void open_entries(struct gs_buf *out, size_t begin, char bracket)
{
    if (!gs_buf_failed(out) && out->len > begin)
        out->data[begin] = bracket;
    else
        gs_buf_putc(out, bracket);
}

enum failed { RESOLVABLE = 1, UNRESOLVABLE = 2 };

static void write_failed(struct gs_buf *out, const struct gs_filter_args *args,
                         const uint8_t *reasons, const struct gs_slice *texts, unsigned which)
{
    uint32_t count = gs_filter_args_count(args);
    bool plain = plain_names(args);
    size_t begin = out->len;
    for (uint32_t i = 0; i < count; i++) {
        if (reasons[i] == GS_FITS || reasons[i] == GS_VERDICT_LEFT_OUT)
            continue;
        enum gs_reason reason = (enum gs_reason)reasons[i];
        if (!(which & (gs_reason_unresolvable(reason) ? UNRESOLVABLE : RESOLVABLE)))
            continue;
        write_reason(out, gs_filter_args_name(args, i), plain, texts[reason]);
    }
    open_entries(out, begin, '{');
    gs_buf_putc(out, '}');
}

void gs_codec_filter_result(struct gs_buf *out, const struct gs_filter_args *args,
                            const uint8_t *reasons, bool told_once)
{
    struct gs_slice texts[GS_REASONS];
    for (int i = 0; i < GS_REASONS; i++)
        texts[i] = gs_slice_of(gs_reason_text((enum gs_reason)i));
    gs_buf_puts(out, args->has_names ? "{\"Nodes\":null,\"NodeNames\":"
                                     : "{\"Nodes\":{\"metadata\":{},\"items\":");
    write_kept(out, args, reasons);
    gs_buf_puts(out,
                args->has_names ? ",\"FailedNodes\":" : "},\"NodeNames\":null,\"FailedNodes\":");
    write_failed(out, args, reasons, texts, told_once ? RESOLVABLE : RESOLVABLE | UNRESOLVABLE);
    gs_buf_puts(out, ",\"FailedAndUnresolvableNodes\":");
    write_failed(out, args, reasons, texts, UNRESOLVABLE);
    gs_buf_puts(out, ",\"Error\":\"\"}");
}

void gs_codec_filter_error(struct gs_buf *out, const char *error)
{
    gs_buf_puts(out, "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
                     "\"FailedAndUnresolvableNodes\":null,\"Error\":");
    write_error_text(out, error);
    gs_buf_putc(out, '}');
}

static char *write_priority(char *to, struct gs_slice name, uint8_t score)
{
    static const char head[] = ",{\"Host\":\"", tail[] = "\",\"Score\":";
    to = append_bytes(to, head, sizeof(head) - 1);
    to = append_bytes(to, name.at, name.len);
    to = append_bytes(to, tail, sizeof(tail) - 1);
    if (score >= 10)
        *to++ = (char)('0' + score / 10);
    *to++ = (char)('0' + score % 10);
    *to++ = '}';
    return to;
}

/* Names without escapes. Reserves memory once for all entries. */
static void write_plain_priorities(struct gs_buf *out, const struct gs_slice *names,
                                   const uint8_t *scores, uint32_t count)
{
    size_t room = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (scores[i] != GS_SCORE_UNTOLD)
            room += names[i].len + sizeof(",{\"Host\":\"\",\"Score\":99}");
    }
    char *begin = gs_buf_reserve(out, room);
    char *to = begin;
    for (uint32_t i = 0; begin && i < count; i++) {
        if (scores[i] != GS_SCORE_UNTOLD)
            to = write_priority(to, names[i], scores[i]);
    }
    if (begin)
        gs_buf_advance(out, (size_t)(to - begin));
}

static void write_escaped_priorities(struct gs_buf *out, const struct gs_slice *names,
                                     const uint8_t *scores, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (scores[i] == GS_SCORE_UNTOLD)
            continue;
        gs_buf_puts(out, ",{\"Host\":");
        gs_buf_json_string(out, names[i].at, names[i].len);
        gs_buf_printf(out, ",\"Score\":%u}", scores[i]);
    }
}

void gs_codec_host_priorities(struct gs_buf *out, const struct gs_filter_args *args,
                              const uint8_t *scores)
{
    size_t begin = out->len;
    (plain_names(args) ? write_plain_priorities : write_escaped_priorities)(
        out, gs_filter_args_names(args), scores, gs_filter_args_count(args));
    open_entries(out, begin, '[');
    gs_buf_putc(out, ']');
}

void gs_codec_binding_result(struct gs_buf *out, const char *error)
{
    gs_buf_puts(out, "{\"Error\":");
    write_error_text(out, error);
    gs_buf_putc(out, '}');
}

static void write_victims(struct gs_buf *out, const struct gs_victims *victims)
{
    gs_write_key(out, victims->node);
    gs_buf_puts(out, "{\"Pods\":[");
    for (uint32_t i = 0; i < victims->pod_count; i++) {
        gs_write_comma(out);
        gs_buf_putc(out, '{');
        gs_write_string(out, "UID", victims->pods[i].uid);
        gs_buf_putc(out, '}');
    }
    gs_buf_printf(out, "],\"NumPDBViolations\":%" PRId64 "}", victims->pdb_violations);
}

void gs_codec_preemption_result(struct gs_buf *out, const struct gs_victims *nodes,
                                uint32_t node_count)
{
    gs_buf_puts(out, "{\"NodeNameToMetaVictims\":{");
    for (uint32_t i = 0; i < node_count; i++)
        write_victims(out, &nodes[i]);
    gs_buf_puts(out, "}}");
}
