/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of two device plugins, NUL between them: each is read as its own node's, and no word
 * acts on a terminal. */
#include "fuzz.h"
#include "gpushare/base/utf8.h"
#include "inspect/usage_page.h"

static void check_calm(const char *text)
{
    char *copy = strdup(text);
    gs_utf8_calm(copy);
    FUZZ_CHECK(strcmp(copy, text) == 0);
    free(copy);
}

static void check_pod(const struct usage *usage, const struct usage_pod *pod)
{
    FUZZ_CHECK(usage_pod_find(usage, pod->node, pod->uid) == pod);
    const char *const words[] = {pod->ns, pod->name, pod->uid, pod->owner, pod->reason};
    for (size_t i = 0; i < 5; i++)
        check_calm(words[i]);
    for (uint32_t i = 0; i < pod->gpu_count; i++)
        FUZZ_CHECK(pod->gpus[i].idx < GS_GPUS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct usage usage = {0};
    struct usage_node nodes[] = {{.name = "a"}, {.name = "b"}};
    if (!size)
        return 0;
    const char *text = (const char *)data, *end = memchr(text, 0, size);
    const size_t len = end ? (size_t)(end - text) : size;
    const struct gs_slice pages[] = {{text, len}, {text + len + !!end, size - len - !!end}};
    for (size_t i = 0; i < 2; i++) {
        if (usage_page_check(pages[i], NULL) == 0)
            usage_page_read(&usage, &nodes[i], pages[i]);
    }
    for (const struct usage_pod *pod = usage.pods; pod; pod = pod->hh.next) {
        FUZZ_CHECK(pod->node == nodes[0].name || pod->node == nodes[1].name);
        check_pod(&usage, pod);
    }
    usage_release(&usage);
    return 0;
}
