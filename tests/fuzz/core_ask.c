/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's four lists against a node's GPUs. The input is texts with NULs between: the lists, then
 * model and UUID by turns, one pair a GPU.
 *
 * Whatever they say: a match says what the texts say, and the work has a bound that is linear in
 * what the author wrote (up to the ceiling, for each model once), and has nothing to do with how
 * many GPUs there are.
 */
#include "compared.h"
#include "fuzz.h"
#include "gpushare/core/placement.h"

enum { LISTS = 4, GPUS = 16, COPIES = 4 };

/* Cut out of the input; with a NUL of its own. */
static char *take(const uint8_t **data, size_t *size)
{
    const uint8_t *end = *size ? memchr(*data, 0, *size) : NULL;
    size_t len = end ? (size_t)(end - *data) : *size;
    char *text = malloc(len + 1);
    FUZZ_CHECK(text);
    if (len)
        memcpy(text, *data, len);
    text[len] = '\0';
    *data += len + (end != NULL);
    *size -= len + (end != NULL);
    return text;
}

static uint32_t read_gpus(const uint8_t *data, size_t size, struct gs_gpu *gpus)
{
    uint32_t count = 0;
    for (; size && count < GPUS; count++) {
        char *model = take(&data, &size), *uuid = take(&data, &size);
        gpus[count] =
            (struct gs_gpu){.idx = count, .mem_units = 8, .healthy = true, .schedulable = true};
        memcpy(gpus[count].model, model, strnlen(model, GS_MODEL_BYTES - 1));
        memcpy(gpus[count].uuid, uuid, strnlen(uuid, GS_UUID_BYTES - 1));
        free(model);
        free(uuid);
    }
    return count;
}

static void check(struct gs_ledger *ledger, const struct gs_pod *pod, size_t bytes, uint32_t gpus)
{
    struct gs_ask ask;
    struct gs_match match;
    gs_ask_of_pod(&ask, pod);
    const struct gs_node_view *first = gs_ledger_view_at(ledger, 0);
    gs_gpu_mask by_text = gs_ask_allowed(&ask, first);
    compared = 0;
    gs_ask_match(&ask, ledger, &match);
    FUZZ_CHECK(!ask.match || bytes <= (size_t)LISTS * GS_LIST_BYTES_MAX);
    FUZZ_CHECK(compared <= bytes * GS_MODEL_BYTES * gs_ledger_model_count(ledger));
    compared = 0;
    for (uint32_t i = 0; i < COPIES; i++) {
        gs_gpu_mask allowed = gs_ask_allowed(&ask, gs_ledger_view_at(ledger, i));
        FUZZ_CHECK(!ask.match || allowed == by_text);
    }
    /* what is left: UUIDs whose hash is on a list, and GPUs without a model */
    if (ask.match)
        FUZZ_CHECK(compared <= (unsigned long)COPIES * gpus * LISTS * GS_LIST_ENTRIES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[COPIES] = {"n0", "n1", "n2", "n3"};
    struct gs_container container = {.kind = GS_CONTAINER_MAIN, .gpu_units = 1};
    struct gs_gpu gpus[GPUS];
    struct gs_pod pod = {0};
    size_t bytes = 0;
    char *lists[LISTS];
    for (int i = 0; i < LISTS; i++) {
        lists[i] = take(&data, &size);
        bytes += strlen(lists[i]);
    }
    gs_pod_reset(&pod);
    pod.containers = &container;
    pod.container_count = 1;
    pod.gpu_model = lists[0];
    pod.gpu_model_deny = lists[1];
    pod.gpu_uuid = lists[2];
    pod.gpu_uuid_deny = lists[3];
    struct gs_ledger *ledger = gs_ledger_new();
    FUZZ_CHECK(ledger);
    struct gs_node node = {.gpus = gpus, .gpu_count = read_gpus(data, size, gpus)};
    for (int i = 0; i < COPIES; i++) {
        node.name = names[i];
        FUZZ_CHECK(gs_ledger_set_node(ledger, &node, NULL) == 0);
    }
    check(ledger, &pod, bytes, node.gpu_count);
    gs_ledger_free(ledger);
    for (int i = 0; i < LISTS; i++)
        free(lists[i]);
    gs_pod_release(&pod);
    return 0;
}
