/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/arena.h"
#include "gpushare/base/cleanup.h"
#include "item_lists.h"

#define SPEC(driver, node, devices)                                                                \
    "{'metadata':{'name':'s'},'spec':{'devices':[" devices "],'driver':'" driver                   \
    "','nodeName':'" node "','pool':{'name':'" node "'}}}"
#define NEW(uuid)                                                                                  \
    "{'name':'gpu-0','attributes':{'type':{'string':'gpu'},'uuid':{'string':'" uuid "'}}}"
#define OLD(uuid)                                                                                  \
    "{'name':'gpu-0','basic':{'capacity':{},'attributes':{'uuid':{'string':'" uuid "'}}}}"
#define LIST(items) "{'kind':'ResourceSliceList','items':[" items "]}"
#define OURS        "gpu.nvidia.com"

static void gpus_of_the_driver_are_read(void **state)
{
    static const struct {
        const char *row, *json, *expected; /* "node=uuid " */
        enum gs_code code;
    } rows[] = {
        {"v1", LIST(SPEC(OURS, "n", NEW("GPU-a"))), "n=GPU-a ", GS_OK},
        {"v1beta1", LIST(SPEC(OURS, "n", OLD("GPU-a"))), "n=GPU-a ", GS_OK},
        {"several",
         LIST(SPEC(OURS, "n", NEW("GPU-a") "," NEW("GPU-b")) "," SPEC(OURS, "m", NEW("GPU-c"))),
         "n=GPU-a n=GPU-b m=GPU-c ", GS_OK},
        {"another driver's between",
         LIST(SPEC("nic.example.com", "n", NEW("NIC-a")) "," SPEC(OURS, "n", NEW("GPU-a"))),
         "n=GPU-a ", GS_OK},
        {"of no node",
         LIST("{'spec':{'driver':'" OURS "','allNodes':true,'devices':[" NEW("GPU-a") "]}}"), "",
         GS_OK},
        {"an instance",
         LIST(SPEC(OURS, "n",
                   "{'name':'m','attributes':{'parentUUID':{'string':'GPU-a'},"
                   "'uuid':{'string':'MIG-a'}}}")),
         "n=GPU-a ", GS_OK},
        {"an empty UUID", LIST(SPEC(OURS, "n", NEW(""))), "", GS_OK},
        {"without a UUID", LIST(SPEC(OURS, "n", "{'name':'x','attributes':{}},{'name':'y'}")), "",
         GS_OK},
        {"nulls", LIST("null,{'spec':null},{'spec':{'driver':null,'nodeName':'n','devices':null}}"),
         "", GS_OK},
        {"no JSON", "{'items':[", NULL, GS_EPROTO},
        {"a number for a driver", LIST("{'spec':{'driver':1}}"), NULL, GS_EPROTO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_buf text = GS_BUF(1024);
        struct gs_sliced_gpu *gpus = NULL;
        uint32_t count = 77;
        struct gs_error err = {0};
        slice_list(json_of(r->json), OURS, &arena, &gpus, &count, &err);
        row_equal(r->row, err.code, r->code);
        if (r->code) {
            row_equal(r->row, count, 77);
            continue;
        }
        for (uint32_t i = 0; i < count; i++)
            gs_buf_printf(&text, "%s=%s ", gpus[i].node, gpus[i].uuid);
        row_text(r->row, text.len ? text.data : "", r->expected);
        gs_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_of_the_driver_are_read),
    };
    return GS_RUN(tests);
}
