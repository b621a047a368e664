/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/inventory.h"

static int decode(const char *json, struct gs_arena *arena, struct gs_inventory *ret,
                  struct gs_error *err)
{
    _cleanup_free_ char *text = quoted(json);
    return gs_codec_inventory_decode(gs_slice_of(text), arena, ret, err);
}

static void every_field_is_read_and_gpus_are_sorted(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_inventory inventory;
    assert_int_equal(
        decode(
            "{'gpus':[{'idx':63,'mem':0},{'idx':0,'uuid':'GPU-1','mem':79,'memMiB':81559,"
            "'model':'NVIDIA "
            "A100','healthy':false,'numa':3,'minor':0,'schedulable':false,'maxPods':48,'new':[1],"
            "'pci':'0000:3b:00.0','xid':79,'xidBoot':2147483647},"
            "{'idx':7,'mem':2147483647,'numa':-5,'healthy':null,'uuid':null,'model':null}],"
            "'later':{},'unit':'256MiB','v':1}",
            &arena, &inventory, NULL),
        0);
    assert_int_equal(inventory.unit, GS_UNIT_256MIB);
    assert_false(inventory.tells_moved);
    assert_int_equal(inventory.gpu_count, 3);
    const struct gs_gpu *gpu = inventory.gpus;
    assert_int_equal(gpu->idx, 0);
    assert_int_equal(gpu->mem_units, 79);
    assert_int_equal(gpu->mem_mib, 81559);
    assert_int_equal(gpu->numa, 3);
    assert_int_equal(gpu->node, 1); /* /dev/nvidia0 */
    assert_int_equal(gpu->max_pods, 48);
    assert_true(!gpu->healthy && !gpu->schedulable);
    assert_true(gpu->xid == 79 && gpu->xid_boot == INT32_MAX);
    assert_string_equal(gpu->pci, "0000:3b:00.0");
    assert_string_equal(gpu->uuid, "GPU-1");
    assert_string_equal(gpu->model, "NVIDIA A100");
    gpu++;
    assert_int_equal(gpu->idx, 7);
    assert_int_equal(gpu->mem_units, INT32_MAX);
    assert_int_equal(gpu->numa, GS_NUMA_NONE);
    assert_int_equal(gpu->node, 0);
    assert_true(gpu->healthy && gpu->schedulable);
    assert_string_equal(gpu->uuid, "");
    gpu++;
    assert_int_equal(gpu->idx, 63);
    assert_int_equal(gpu->mem_units, 0);
    assert_int_equal(gpu->numa, GS_NUMA_NONE);
}

static void the_record_on_the_host_comes_back(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(4096);
    struct gs_inventory back;
    struct gs_gpu gpu = {.idx = 2, .uuid = "GPU-a", .mem_units = 16};
    const struct gs_inventory record = {.unit = GS_UNIT_MIB,
                                        .gpus = &gpu,
                                        .gpu_count = 1,
                                        .unit_doubted = true,
                                        .rev = INT64_MAX,
                                        .node = "n\"1",
                                        .others = (const char *const[]){"GPU-b", "GPU-c"},
                                        .other_count = 2};
    gs_codec_inventory_encode(&text, &record);
    assert_int_equal(
        gs_codec_inventory_decode((struct gs_slice){text.data, text.len}, &arena, &back, NULL), 0);
    assert_true(back.unit_doubted && back.rev == INT64_MAX && back.other_count == 2);
    assert_string_equal(back.node, "n\"1");
    assert_string_equal(back.others[1], "GPU-c");
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
    assert_int_equal(decode(json, &arena, &inventory, NULL), 0);
    /* 1 + 31 * 2 bytes: whole characters only */
    assert_int_equal(strlen(inventory.gpus[0].model), 63);
    for (size_t i = 0; i < 60; i++) /* also where each is written as an escape */
        memcpy(model + i * 6, "\\u00e9", 7);
    snprintf(json, sizeof(json), "{'v':1,'unit':'GiB','gpus':[{'idx':0,'mem':1,'model':'xx%s'}]}",
             model);
    assert_int_equal(decode(json, &arena, &inventory, NULL), 0);
    assert_int_equal(strlen(inventory.gpus[0].model), 62);
    for (size_t len = 63; len <= 64; len++) {
        memset(uuid, 'u', len);
        uuid[len] = '\0';
        snprintf(json, sizeof(json), "{'v':1,'unit':'GiB','gpus':[{'idx':0,'mem':1,'uuid':'%s'}]}",
                 uuid);
        assert_int_equal(decode(json, &arena, &inventory, NULL), len == 63 ? 0 : -1);
    }
}

static void what_is_no_inventory_is_refused_with_a_reason(void **state)
{
#define IN(gpus) "{'v':1,'unit':'GiB','gpus':[" gpus "]}"
    static const struct {
        const char *row;
        const char *json;
        const char *why; /* up to the byte number */
    } rows[] = {
        {"empty", "", "JSON: unexpected end of input"},
        {"list", "[]", "inventory is not an object"},
        {"nothing in it", "{}", "v is not 1"},
        {"later version", "{'v':2,'unit':'GiB','gpus':[]}", "v is not 1"},
        {"version as text", "{'v':'1','unit':'GiB','gpus':[]}", "v is not a number"},
        {"no unit", "{'v':1,'gpus':[]}", "unit is missing"},
        {"unknown unit", "{'v':1,'unit':'GB','gpus':[]}",
         "unit is not one of MiB, 64MiB, 256MiB, GiB"},
        {"no GPUs", "{'v':1,'unit':'GiB'}", "gpus is missing"},
        {"GPUs null", "{'v':1,'unit':'GiB','gpus':null}", "gpus is missing"},
        {"GPU is no object", IN("1"), "gpus[] is not an object"},
        {"no index", IN("{'mem':1}"), "gpus.idx is missing"},
        {"no size", IN("{'idx':1}"), "gpus.mem is missing"},
        {"index too large", IN("{'idx':64,'mem':1}"), "gpus.idx is above 63"},
        {"index twice", IN("{'idx':1,'mem':1},{'idx':1,'mem':1}"), "gpus.idx is duplicated"},
        {"UUID twice", IN("{'idx':1,'mem':1,'uuid':'a'},{'idx':2,'mem':1,'uuid':'a'}"),
         "gpus.uuid is duplicated"},
        {"size too large", IN("{'idx':1,'mem':2147483648}"), "gpus.mem is not an integer in range"},
        {"half a size", IN("{'idx':1,'mem':0.5}"), "gpus.mem is not an integer in range"},
        {"NUMA node too large", IN("{'idx':1,'mem':1,'numa':32768}"),
         "gpus.numa is not a NUMA node"},
        {"minor number negative", IN("{'idx':1,'mem':1,'minor':-1}"), "gpus.minor is negative"},
        {"minor number too large", IN("{'idx':1,'mem':1,'minor':65535}"),
         "gpus.minor is not a minor number"},
        {"rev negative", "{'v':1,'unit':'GiB','gpus':[],'rev':-1}", "rev is negative"},
        {"rev too large", "{'v':1,'unit':'GiB','gpus':[],'rev':9223372036854775808}",
         "rev is not an integer in range"},
        {"node is no text", "{'v':1,'unit':'GiB','gpus':[],'node':7}", "node is not a string"},
        {"others is no list", "{'v':1,'unit':'GiB','gpus':[],'otherDriverGPUs':'GPU-a'}",
         "otherDriverGPUs is not an array"},
        {"others holds null", "{'v':1,'unit':'GiB','gpus':[],'otherDriverGPUs':[null]}",
         "otherDriverGPUs contains an invalid entry"},
        {"cut", "{'v':1,'unit':'GiB','gpus':[{'idx':1,'mem':1}", "JSON: unexpected end of input"},
        {"more", IN("") "x", "JSON: unexpected data after the value"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_inventory inventory = {.gpu_count = 77};
        struct gs_error err = {0};
        row_equal(r->row, decode(r->json, &arena, &inventory, &err), -1);
        row_refused(r->row, &err, r->why);
        row_equal(r->row, inventory.gpu_count, 77);
    }
}

static void a_long_pci_address_is_refused(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_inventory inventory = {0};
    struct gs_error err = {0};
    assert_int_equal(
        decode(IN("{'idx':1,'mem':1,'pci':'00000000000000000000'}"), &arena, &inventory, &err), -1);
    assert_string_equal(err.msg, "gpus.pci is too long");
}

static void an_inventory_is_written_as_the_contract_shows(void **state)
{
    struct gs_gpu gpus[] = {
        {.idx = 0,
         .uuid = "GPU-1",
         .mem_units = 79,
         .mem_mib = 81559,
         .model = "NVIDIA \"A100\"",
         .healthy = true,
         .numa = 0,
         .pci = "0000:3b:00.0",
         .xid = 79,
         .xid_boot = 5,
         .schedulable = true,
         .enforced = GS_ENFORCED_DMEM},
        {.idx = 5, .mem_units = 7, .numa = GS_NUMA_NONE},
        {.idx = 6,
         .mem_units = 7,
         .numa = GS_NUMA_NONE,
         .max_pods = 48,
         .enforced = GS_ENFORCED_SHARED},
    };
    struct gs_inventory inventory = {.unit = GS_UNIT_GIB, .gpus = gpus, .gpu_count = 3};
    struct gs_buf out = GS_BUF(4096);
    gs_codec_inventory_encode(&out, &inventory);
    row_json("three", &out,
             "{'v':1,'unit':'GiB','gpus':[{'idx':0,'uuid':'GPU-1','mem':79,'memMiB':81559,"
             "'model':'NVIDIA "
             "\\'A100\\'','pci':'0000:3b:00.0','healthy':true,'xid':79,'xidBoot':5,'numa':0,"
             "'schedulable':true,'enforced':'dmem'},"
             "{'idx':5,'mem':7,'healthy':false,'schedulable':false},"
             "{'idx':6,'mem':7,'healthy':false,'schedulable':false,'enforced':'none',"
             "'enforcedReason':'shared',"
             "'maxPods':48}]}");
    inventory.gpu_count = 0;
    inventory.unit = GS_UNIT_64MIB;
    gs_codec_inventory_encode(&out, &inventory);
    row_json("none", &out, "{'v':1,'unit':'64MiB','gpus':[]}");
    inventory.tells_moved = true;
    gs_codec_inventory_encode(&out, &inventory);
    row_json("speaks gpu-reassigned", &out,
             "{'v':1,'unit':'64MiB','gpus':[],'reassignments':true}");
}

static void what_is_said_of_limits_is_read(void **state)
{
    static const struct {
        const char *row, *words;
        enum gs_enforced enforced;
    } rows[] = {
        {"nothing", "", GS_ENFORCED_UNKNOWN},
        {"held", ",'enforced':'dmem'", GS_ENFORCED_DMEM},
        {"not, and why", ",'enforced':'none','enforcedReason':'no-addr\\u0065ss'",
         GS_ENFORCED_NO_ADDRESS},
        {"the reason first",
         ",'enforcedReason':'shared',"
         "'enforced':'none'",
         GS_ENFORCED_SHARED},
        {"null", ",'enforced':null,'enforcedReason':null", GS_ENFORCED_UNKNOWN},
        {"a later reason", ",'enforced':'none','enforcedReason':'?'", GS_ENFORCED_OTHER},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_inventory inventory = {0};
        char json[512];
        snprintf(json, sizeof(json), "{'v':1,'unit':'GiB','gpus':[{'idx':0,'mem':1%s}]}", r->words);
        row_equal(r->row, decode(json, &arena, &inventory, NULL), 0);
        row_equal(r->row, inventory.gpus[0].enforced, r->enforced);
    }
}

static void a_plugin_says_that_it_speaks_of_moved_pods(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        bool tells;
    } rows[] = {
        {"not said", "{'v':1,'unit':'GiB','gpus':[]}", false},
        {"said", "{'v':1,'unit':'GiB','gpus':[],'reassignments':true}", true},
        {"denied", "{'reassignments':false,'v':1,'unit':'GiB','gpus':[]}", false},
        {"null", "{'reassignments':null,'v':1,'unit':'GiB','gpus':[]}", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_inventory inventory;
        row_equal(r->row, decode(r->json, &arena, &inventory, NULL), 0);
        row_equal(r->row, inventory.tells_moved, r->tells);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read_and_gpus_are_sorted),
        cmocka_unit_test(the_record_on_the_host_comes_back),
        cmocka_unit_test(long_models_are_cut_and_long_uuids_refused),
        cmocka_unit_test(what_is_no_inventory_is_refused_with_a_reason),
        cmocka_unit_test(a_long_pci_address_is_refused),
        cmocka_unit_test(an_inventory_is_written_as_the_contract_shows),
        cmocka_unit_test(a_plugin_says_that_it_speaks_of_moved_pods),
        cmocka_unit_test(what_is_said_of_limits_is_read),
    };
    return GS_RUN(tests);
}
