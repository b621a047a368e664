/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/lease.h"

/* Names are the reader's; what is written has no fraction of a microsecond. */
static void leases_are_read_and_written(void **state)
{
#define LEASE(version, spec)                                                                       \
    "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':'l',"                \
    "'namespace':'d'" version "},'spec':{" spec "}}"
    static const struct {
        const char *row, *json, *again;
    } rows[] = {
        {"held",
         "{'kind':'Lease','metadata':{'name':'x','resourceVersion':'41'},'spec':{"
         "'holderIdentity':'pod-1','leaseDurationSeconds':15,'leaseTransitions':2,"
         "'acquireTime':'1970-01-01T00:00:01.000001999Z','renewTime':'1970-01-01T00:00:02Z'}}",
         LEASE(",'resourceVersion':'41'",
               "'holderIdentity':'pod-1','leaseDurationSeconds':15,'acquireTime':"
               "'1970-01-01T00:00:01.000001Z','renewTime':'1970-01-01T00:00:02.000000Z',"
               "'leaseTransitions':2")},
        {"free", "{'metadata':{'resourceVersion':'1'},'spec':{'holderIdentity':''}}",
         LEASE(",'resourceVersion':'1'", "'leaseTransitions':0")},
        {"nulls",
         "{'metadata':null,'spec':{'holderIdentity':null,'leaseDurationSeconds':null,"
         "'leaseTransitions':null,'acquireTime':null,'renewTime':null}}",
         LEASE("", "'leaseTransitions':0")},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_lease lease = {.ns = "d", .name = "l", .holder = "old", .renew_ns = 5};
        struct gs_buf out = GS_BUF(4096);
        row_equal(r->row, gs_codec_lease_decode(json_of(r->json), &lease, NULL), 0);
        gs_codec_lease_encode(&out, &lease);
        row_json(r->row, &out, r->again);
    }
}

static void what_is_no_lease_is_refused_and_changes_nothing(void **state)
{
    char long_holder[400], long_version[200];
    snprintf(long_holder, sizeof(long_holder), "{'spec':{'holderIdentity':'%0256d'}}", 0);
    snprintf(long_version, sizeof(long_version), "{'metadata':{'resourceVersion':'%064d'}}", 0);
    const struct {
        const char *row;
        const char *json;
        enum gs_code code;
    } rows[] = {
        {"holder is a number", "{'spec':{'holderIdentity':1}}", GS_EPROTO},
        {"duration does not fit", "{'spec':{'leaseDurationSeconds':2147483648}}", GS_EPROTO},
        {"time is none", "{'spec':{'renewTime':'now'}}", GS_EPROTO},
        {"time is very long",
         "{'spec':{'renewTime':'1970-01-01T00:00:02.0000000000000000000000000000000000000Z'}}",
         GS_EPROTO},
        {"holder is too long", long_holder, GS_ETOOBIG},
        {"version is too long", long_version, GS_ETOOBIG},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_lease lease = {.holder = "old", .renew_ns = 5};
        struct gs_error err = {0};
        row_equal(r->row, gs_codec_lease_decode(json_of(r->json), &lease, &err), -1);
        row_equal(r->row, err.code, r->code);
        row_text(r->row, lease.holder, "old");
        row_equal(r->row, lease.renew_ns, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_are_read_and_written),
        cmocka_unit_test(what_is_no_lease_is_refused_and_changes_nothing),
    };
    return GS_RUN(tests);
}
