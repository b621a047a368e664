/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/inventory.h"

#define IN(gpus)     "{'v':1,'unit':'GiB','gpus':[" gpus "]}"
#define WITH(fields) "{'v':1,'unit':'64MiB','gpus':[]" fields "}"
#define ONE(fields)  IN("{'idx':0,'mem':1" fields "}")
#define AGAIN(limit) ONE(",'healthy':true,'schedulable':true" limit)

/* As the contract shows them; NULL: it is written as it was read. */
static void inventories_are_read_and_written(void **state)
{
    static const struct {
        const char *row, *json, *again;
    } rows[] = {
        {"every field, in another order",
         "{'gpus':[{'idx':63,'mem':0},{'idx':0,'uuid':'GPU-1','mem':79,'memMiB':81559,'model':"
         "'NVIDIA A100','healthy':false,'numa':3,'minor':0,'schedulable':false,'maxPods':48,"
         "'new':[1],'pci':'0000:3b:00.0','xid':79,'xidBoot':2147483647},{'idx':7,'mem':2147483647,"
         "'numa':-5,'healthy':null,'uuid':null,'model':null}],'later':{},'unit':'256MiB','v':1}",
         "{'v':1,'unit':'256MiB','gpus':[{'idx':0,'uuid':'GPU-1','mem':79,'memMiB':81559,'model':"
         "'NVIDIA A100','pci':'0000:3b:00.0','healthy':false,'xid':79,'xidBoot':2147483647,"
         "'numa':3,'schedulable':false,'maxPods':48},{'idx':7,'mem':2147483647,'healthy':true,"
         "'schedulable':true},{'idx':63,'mem':0,'healthy':true,'schedulable':true}]}"},
        {"all that the host's record has",
         WITH(",'reassignments':true,'unitConflict':true,'rev':9223372036854775807,"
              "'node':'n\\'1','mps':true,'otherDriverGPUs':['GPU-b','GPU-c']"),
         NULL},
        {"reassignments denied", WITH(",'reassignments':false"), WITH("")},
        {"a limit", ONE(",'enforced':'dmem'"), AGAIN(",'enforced':'dmem'")},
        {"no limit, the reason first",
         ONE(",'enforcedReason':'no-addr\\u0065ss','enforced':'none'"),
         AGAIN(",'enforced':'none','enforcedReason':'no-address'")},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_buf out = GS_BUF(4096);
        struct gs_inventory inventory;
        row_equal(r->row, gs_codec_inventory_decode(json_of(r->json), &arena, &inventory, NULL), 0);
        row_equal(r->row, inventory.gpu_count ? inventory.gpus[0].node : 0,
                  strstr(r->json, "'minor':0") != NULL); /* /dev/nvidia0 is 1 */
        gs_codec_inventory_encode(&out, &inventory);
        row_json(r->row, &out, r->again ? r->again : r->json);
    }
}

static void long_models_are_cut_and_long_uuids_refused(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_inventory inventory;
    char json[512], model[400] = "", uuid[65];
    for (int i = 0; i < 40; i++)
        strncat(model, "\xC3\xA9", 3);
    snprintf(json, sizeof(json), "{'v':1,'unit':'GiB','gpus':[{'idx':0,'mem':1,'model':'x%s'}]}",
             model);
    assert_int_equal(gs_codec_inventory_decode(json_of(json), &arena, &inventory, NULL), 0);
    /* 1 + 31 * 2 bytes: whole characters only */
    assert_int_equal(strlen(inventory.gpus[0].model), 63);
    for (size_t i = 0; i < 60; i++) /* also where each is written as an escape */
        memcpy(model + i * 6, "\\u00e9", 7);
    snprintf(json, sizeof(json), "{'v':1,'unit':'GiB','gpus':[{'idx':0,'mem':1,'model':'xx%s'}]}",
             model);
    assert_int_equal(gs_codec_inventory_decode(json_of(json), &arena, &inventory, NULL), 0);
    assert_int_equal(strlen(inventory.gpus[0].model), 62);
    for (size_t len = 63; len <= 64; len++) {
        memset(uuid, 'u', len);
        uuid[len] = '\0';
        snprintf(json, sizeof(json), "{'v':1,'unit':'GiB','gpus':[{'idx':0,'mem':1,'uuid':'%s'}]}",
                 uuid);
        assert_int_equal(gs_codec_inventory_decode(json_of(json), &arena, &inventory, NULL),
                         len == 63 ? 0 : -1);
    }
}

static void what_is_no_inventory_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        const char *why; /* up to the byte number */
    } rows[] = {
        {"nothing in it", "{}", "v is not 1"},
        {"version as text", "{'v':'1','unit':'GiB','gpus':[]}", "v is not a number"},
        {"no unit", "{'v':1,'gpus':[]}", "unit is missing"},
        {"unknown unit", "{'v':1,'unit':'GB','gpus':[]}",
         "unit is not one of MiB, 64MiB, 256MiB, GiB"},
        {"no GPUs", "{'v':1,'unit':'GiB'}", "gpus is missing"},
        {"GPUs null", "{'v':1,'unit':'GiB','gpus':null}", "gpus is missing"},
        {"no index", IN("{'mem':1}"), "gpus.idx is missing"},
        {"no size", IN("{'idx':1}"), "gpus.mem is missing"},
        {"index too large", IN("{'idx':64,'mem':1}"), "gpus.idx is above 63"},
        {"index twice", IN("{'idx':1,'mem':1},{'idx':1,'mem':1}"), "gpus.idx is duplicated"},
        {"UUID twice",
         IN("{'idx':1,'mem':1},{'idx':2,'mem':1,'uuid':'a'},{'idx':3,'mem':1,'uuid':'b'},{'idx':4,"
            "'mem':1,'uuid':'a'}"),
         "gpus.uuid is duplicated"},
        {"size too large", IN("{'idx':1,'mem':2147483648}"), "gpus.mem is not an integer in range"},
        {"NUMA node too large", IN("{'idx':1,'mem':1,'numa':32768}"),
         "gpus.numa is not a NUMA node"},
        {"minor number negative", IN("{'idx':1,'mem':1,'minor':-1}"), "gpus.minor is negative"},
        {"minor number too large", IN("{'idx':1,'mem':1,'minor':65535}"),
         "gpus.minor is not a minor number"},
        {"rev negative", "{'v':1,'unit':'GiB','gpus':[],'rev':-1}", "rev is negative"},
        {"others holds null", "{'v':1,'unit':'GiB','gpus':[],'otherDriverGPUs':[null]}",
         "otherDriverGPUs contains an invalid entry"},
        {"more", IN("") "x", "JSON: unexpected data after the value"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_inventory inventory = {.gpu_count = 77};
        struct gs_error err = {0};
        row_equal(r->row, gs_codec_inventory_decode(json_of(r->json), &arena, &inventory, &err),
                  -1);
        row_refused(r->row, &err, r->why);
        row_equal(r->row, inventory.gpu_count, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inventories_are_read_and_written),
        cmocka_unit_test(long_models_are_cut_and_long_uuids_refused),
        cmocka_unit_test(what_is_no_inventory_is_refused_with_a_reason),
    };
    return GS_RUN(tests);
}
