/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/event.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/rfc3339.h"
#include "put.h"

/* Object names are at most 253 bytes, so that the Event's own keeps room for its suffix. */
enum { NAME_MAX_BYTES = 253, SUFFIX_BYTES = 17 };

const char *gs_event_namespace(const struct gs_event *event)
{
    return event->ns && event->ns[0] ? event->ns : "default";
}

static void put_involved(struct gs_buf *out, const struct gs_event *event)
{
    gs_put_key(out, "involvedObject");
    gs_buf_putc(out, '{');
    gs_put_string(out, "apiVersion", event->api ? event->api : "v1");
    gs_put_string(out, "kind", event->kind);
    gs_put_optional(out, "namespace", event->ns);
    gs_put_string(out, "name", event->name);
    gs_put_optional(out, "uid", event->uid);
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
    gs_put_string(out, "name", name);
    gs_put_string(out, "namespace", gs_event_namespace(event));
    gs_buf_putc(out, '}');
    put_involved(out, event);
    gs_put_string(out, "reason", event->reason);
    gs_put_key(out, "message");
    gs_buf_json_string(out, event->message,
                       gs_utf8_cut(event->message, message_len, GS_EVENT_MESSAGE_MAX));
    gs_put_string(out, "type", event->warning ? "Warning" : "Normal");
    gs_put_key(out, "source");
    gs_buf_putc(out, '{');
    gs_put_optional(out, "component", event->component);
    gs_buf_putc(out, '}');
    gs_put_string(out, "firstTimestamp", now);
    gs_put_string(out, "lastTimestamp", now);
    gs_buf_puts(out, ",\"count\":1}");
}
