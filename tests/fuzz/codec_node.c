/* SPDX-License-Identifier: Apache-2.0 */
/* A node decodes to something whole, or is left empty with an error. */
#include "fuzz.h"
#include "gpushare/codec/node.h"

FUZZ_TEXT(text)
{
    struct gs_names names;
    struct gs_node node = {0};
    struct gs_error err = {0};
    FUZZ_CHECK(gs_names_init(&names, "aliyun.com", NULL) == 0);
    int result = gs_codec_node(&names, text, &node, &err);
    FUZZ_CHECK((result == 0) == (err.code == GS_OK));
    FUZZ_CHECK(node.name && node.uid && node.resource_version && node.address);
    FUZZ_CHECK(node.inventory_error && node.gpu_count <= GS_GPUS_MAX);
    FUZZ_CHECK((node.gpus == NULL) == (node.gpu_count == 0));
    FUZZ_CHECK(!node.inventory || !node.inventory_error[0]);
    FUZZ_CHECK(result == 0 || (!node.name[0] && node.gpu_count == 0));
    FUZZ_CHECK(node.moved_error && (node.moved == NULL) == (node.moved_count == 0));
    FUZZ_CHECK(!node.moved_count || !node.moved_error[0]);
    FUZZ_CHECK(result == 0 || !node.moved_count);
    for (uint32_t i = 0; i < node.gpu_count; i++) {
        FUZZ_CHECK(node.gpus[i].idx < GS_GPUS_MAX);
        FUZZ_CHECK(i == 0 || node.gpus[i].idx > node.gpus[i - 1].idx);
        FUZZ_CHECK(memchr(node.gpus[i].uuid, 0, GS_UUID_BYTES));
        FUZZ_CHECK(memchr(node.gpus[i].model, 0, GS_MODEL_BYTES));
    }
    gs_node_release(&node);
}
