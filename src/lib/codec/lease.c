/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/lease.h"

#include "gpushare/codec/rfc3339.h"
#include "json_writer.h"
#include "reader.h"

static void write_time(struct gs_buf *out, const char *key, int64_t wall_ns)
{
    char text[GS_RFC3339_BYTES];
    if (wall_ns)
        gs_write_string(out, key, gs_rfc3339_format(wall_ns, 6, text));
}

void gs_codec_lease_encode(struct gs_buf *out, const struct gs_lease *lease)
{
    gs_buf_puts(out, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                     "\"metadata\":{");
    gs_write_string(out, "name", lease->name);
    gs_write_string(out, "namespace", lease->ns);
    gs_write_optional(out, "resourceVersion", lease->resource_version);
    gs_buf_puts(out, "},\"spec\":{");
    gs_write_optional(out, "holderIdentity", lease->holder);
    if (lease->duration_s > 0)
        gs_write_number(out, "leaseDurationSeconds", lease->duration_s);
    write_time(out, "acquireTime", lease->acquire_ns);
    write_time(out, "renewTime", lease->renew_ns);
    gs_write_number(out, "leaseTransitions", lease->transitions);
    gs_buf_puts(out, "}}");
}

static void read_time(struct gs_reader *reader, void *to)
{
    struct gs_scan_text text;
    if (!gs_read_text(reader, &text) || !gs_text_time(text, to))
        gs_scan_refuse(&reader->scan, "", "is not a time");
}

#define MEMBER(key, field) GS_MEMBER(struct gs_lease, key, field)
#define TIME(key, field)   GS_CALL_AT(struct gs_lease, key, field, read_time)

static const struct gs_member lease_members[] = {
    GS_OBJECT("metadata", GS_MEMBERS(MEMBER("resourceVersion", resource_version))),
    GS_OBJECT("spec", GS_MEMBERS(MEMBER("holderIdentity", holder),
                                 MEMBER("leaseDurationSeconds", duration_s),
                                 MEMBER("leaseTransitions", transitions),
                                 TIME("acquireTime", acquire_ns), TIME("renewTime", renew_ns))),
    {0},
};

int gs_codec_lease_decode(struct gs_slice json, struct gs_lease *lease, struct gs_error *err)
{
    struct gs_reader reader = {0};
    struct gs_lease read = {.ns = lease->ns, .name = lease->name};
    if (gs_read_document(&reader, json, "lease", lease_members, &read, err) < 0)
        return -1;
    *lease = read;
    return 0;
}
