/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/lease.h"

#include <inttypes.h>

#include "gpushare/codec/rfc3339.h"
#include "put.h"
#include "reader.h"

static void put_time(struct gs_buf *out, const char *key, int64_t wall_ns)
{
    char text[GS_RFC3339_BYTES];
    if (wall_ns)
        gs_put_string(out, key, gs_rfc3339_format(wall_ns, 6, text));
}

void gs_codec_lease_encode(struct gs_buf *out, const struct gs_lease *lease)
{
    gs_buf_puts(out, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
                     "\"metadata\":{");
    gs_put_string(out, "name", lease->name);
    gs_put_string(out, "namespace", lease->ns);
    gs_put_optional(out, "resourceVersion", lease->resource_version);
    gs_buf_puts(out, "},\"spec\":{");
    gs_put_optional(out, "holderIdentity", lease->holder);
    if (lease->duration_s > 0) {
        gs_put_key(out, "leaseDurationSeconds");
        gs_buf_printf(out, "%" PRId32, lease->duration_s);
    }
    put_time(out, "acquireTime", lease->acquire_ns);
    put_time(out, "renewTime", lease->renew_ns);
    gs_put_key(out, "leaseTransitions");
    gs_buf_printf(out, "%" PRId32 "}}", lease->transitions);
}

static void read_copy(struct gs_reader *reader, const char *what, char *to, size_t size)
{
    struct gs_scan_text text;
    if (gs_read_text(reader, what, &text) && !gs_scan_text_copy(text, to, size))
        gs_reader_stop(reader, GS_ETOOBIG, what, "is too long");
}

static void read_time(struct gs_reader *reader, const char *what, int64_t *ret_ns)
{
    struct gs_scan_text text;
    char time[GS_RFC3339_BYTES];
    if (gs_read_text(reader, what, &text) && !(gs_scan_text_copy(text, time, sizeof(time)) &&
                                               gs_rfc3339_parse(gs_slice_of(time), ret_ns)))
        gs_scan_refuse(&reader->scan, what, "is not a time");
}

static void read_metadata(struct gs_reader *reader, struct gs_lease *lease)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "resourceVersion"))
            read_copy(reader, "metadata.resourceVersion", lease->resource_version,
                      sizeof(lease->resource_version));
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_spec(struct gs_reader *reader, struct gs_lease *lease)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "holderIdentity"))
            read_copy(reader, "spec.holderIdentity", lease->holder, sizeof(lease->holder));
        else if (gs_scan_text_is(key, "leaseDurationSeconds"))
            gs_read_i32(reader, "spec.leaseDurationSeconds", &lease->duration_s);
        else if (gs_scan_text_is(key, "leaseTransitions"))
            gs_read_i32(reader, "spec.leaseTransitions", &lease->transitions);
        else if (gs_scan_text_is(key, "acquireTime"))
            read_time(reader, "spec.acquireTime", &lease->acquire_ns);
        else if (gs_scan_text_is(key, "renewTime"))
            read_time(reader, "spec.renewTime", &lease->renew_ns);
        else
            gs_scan_skip(&reader->scan);
    }
}

int gs_codec_lease_decode(struct gs_slice json, struct gs_lease *lease, struct gs_error *err)
{
    struct gs_reader reader = {0};
    struct gs_lease read = {.ns = lease->ns, .name = lease->name};
    struct gs_scan_text key;
    gs_scan_init(&reader.scan, json);
    gs_scan_object(&reader.scan, "lease");
    while (gs_scan_key(&reader.scan, &key)) {
        if (gs_scan_text_is(key, "metadata"))
            read_metadata(&reader, &read);
        else if (gs_scan_text_is(key, "spec"))
            read_spec(&reader, &read);
        else
            gs_scan_skip(&reader.scan);
    }
    if (gs_reader_finish(&reader, err) < 0)
        return -1;
    *lease = read;
    return 0;
}
