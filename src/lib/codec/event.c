/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/event.h"

#include <stdio.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/rfc3339.h"
#include "json_writer.h"

/* An object's name is cut so that the Event's name, which adds a suffix, has at most 253 bytes. */
enum { NAME_MAX_BYTES = 253, SUFFIX_BYTES = 17 };

const char *gs_event_namespace(const struct gs_event *event)
{
    return event->ns && event->ns[0] ? event->ns : "default";
}

static void write_involved(struct gs_buf *out, const struct gs_event *event)
{
    gs_write_key(out, "involvedObject");
    gs_buf_putc(out, '{');
    gs_write_string(out, "apiVersion", event->api ? event->api : "v1");
    gs_write_string(out, "kind", event->kind);
    gs_write_optional(out, "namespace", event->ns);
    gs_write_string(out, "name", event->name);
    gs_write_optional(out, "uid", event->uid);
    gs_buf_putc(out, '}');
}

void gs_codec_event(struct gs_buf *out, const struct gs_event *event, int64_t now_ns)
{
    char now[GS_RFC3339_BYTES], name[NAME_MAX_BYTES + 1];
    size_t message_len = strlen(event->message);
    gs_rfc3339_format(now_ns, 0, now);
    snprintf(name, sizeof(name), "%.*s.%016" PRIx64, NAME_MAX_BYTES - SUFFIX_BYTES, event->name,
             (uint64_t)now_ns);
    gs_buf_puts(out, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{");
    gs_write_string(out, "name", name);
    gs_write_string(out, "namespace", gs_event_namespace(event));
    gs_buf_putc(out, '}');
    write_involved(out, event);
    gs_write_string(out, "reason", event->reason);
    gs_write_key(out, "message");
    gs_buf_json_string(out, event->message,
                       gs_utf8_cut(event->message, message_len, GS_EVENT_MESSAGE_MAX));
    gs_write_string(out, "type", event->warning ? "Warning" : "Normal");
    gs_write_key(out, "source");
    gs_buf_putc(out, '{');
    gs_write_optional(out, "component", event->component);
    gs_buf_putc(out, '}');
    gs_write_string(out, "firstTimestamp", now);
    gs_write_string(out, "lastTimestamp", now);
    gs_buf_puts(out, ",\"count\":1}");
}
