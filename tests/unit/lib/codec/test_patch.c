/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/patch.h"

static const struct gs_kv two[] = {{"a/b", "1"}, {"c", "\"x\""}};
static const struct gs_kv removal[] = {{"a", NULL}, {"b", ""}};

static void a_binding_carries_uid_and_annotations(void **state)
{
    struct gs_buf out = GS_BUF(4096);
    struct gs_binding binding = {
        .ns = "d", .name = "p", .uid = "u", .node = "n", .annotations = two, .annotation_count = 2};
    gs_codec_binding(&out, &binding);
    row_json("annotations", &out,
             "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'p','namespace':'d',"
             "'uid':'u','annotations':{'a/b':'1','c':'\\'x\\''}},"
             "'target':{'apiVersion':'v1','kind':'Node','name':'n'}}");
    binding.annotation_count = 0;
    binding.uid = NULL;
    gs_codec_binding(&out, &binding);
    row_json("plain", &out,
             "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'p','namespace':'d'},"
             "'target':{'apiVersion':'v1','kind':'Node','name':'n'}}");
}

static void a_metadata_patch_has_what_it_is_given(void **state)
{
    static const struct {
        const char *row;
        struct gs_meta_patch patch;
        const char *json;
    } rows[] = {
        {"nothing", {.name = "p"}, "{'metadata':{}}"},
        {"empty preconditions", {.uid = "", .resource_version = ""}, "{'metadata':{}}"},
        {"all",
         {.uid = "u",
          .resource_version = "7",
          .annotations = two,
          .annotation_count = 2,
          .labels = two,
          .label_count = 1},
         "{'metadata':{'uid':'u','resourceVersion':'7','labels':{'a/b':'1'},"
         "'annotations':{'a/b':'1','c':'\\'x\\''}}}"},
        {"removal",
         {.annotations = removal, .annotation_count = 2},
         "{'metadata':{'annotations':{'a':null,'b':''}}}"},
        {"a nomination",
         {.annotations = two, .annotation_count = 1, .nominated_node = "n"},
         "{'metadata':{'annotations':{'a/b':'1'}},'status':{'nominatedNodeName':'n'}}"},
        {"no nomination any more",
         {.nominated_node = ""},
         "{'metadata':{},'status':{'nominatedNodeName':null}}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_buf out = GS_BUF(4096);
        gs_codec_meta_patch(&out, &r->patch);
        row_json(r->row, &out, r->json);
    }
}

static void a_node_status_patch_sets_both_resources(void **state)
{
    static const struct {
        const char *row;
        struct gs_node_status_patch patch;
        const char *json;
    } rows[] = {
        {"nothing", {.node = "n"}, "{'status':{}}"},
        {"capacity",
         {.capacity = two, .capacity_count = 1},
         "{'status':{'capacity':{'a/b':'1'},'allocatable':{'a/b':'1'}}}"},
        {"removal",
         {.capacity = removal, .capacity_count = 1},
         "{'status':{'capacity':{'a':null},'allocatable':{'a':null}}}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_buf out = GS_BUF(4096);
        gs_codec_node_status_patch(&out, &r->patch);
        row_json(r->row, &out, r->json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_binding_carries_uid_and_annotations),
        cmocka_unit_test(a_metadata_patch_has_what_it_is_given),
        cmocka_unit_test(a_node_status_patch_sets_both_resources),
    };
    return GS_RUN(tests);
}
