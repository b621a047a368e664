/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/ids_in_use.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/array.h"

enum { ID_BYTES_MAX = 63 }; /* api.proto, message Device */

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int ids_in_use_add(struct ids_in_use *in_use, const char *id)
{
    const size_t len = strlen(id);
    if (len == 0 || len > ID_BYTES_MAX) {
        in_use->unlistable++;
        return 0;
    }
    const char *copy = gs_arena_strndup(&in_use->arena, id, len);
    if (!copy || !gs_array_reach(&in_use->ids, &in_use->room, in_use->count, sizeof(copy)))
        return -1;
    in_use->ids[in_use->count++] = copy;
    return 0;
}

void ids_in_use_replace(struct ids_in_use *in_use, struct ids_in_use *next)
{
    uint32_t kept = 0;
    if (next->count)
        qsort((void *)next->ids, next->count, sizeof(*next->ids), compare);
    for (uint32_t i = 0; i < next->count; i++) {
        if (!kept || strcmp(next->ids[kept - 1], next->ids[i]) != 0)
            next->ids[kept++] = next->ids[i];
    }
    next->count = kept;
    ids_in_use_release(in_use);
    *in_use = *next;
    *next = (struct ids_in_use){0};
}

void ids_in_use_release(struct ids_in_use *in_use)
{
    gs_arena_release(&in_use->arena);
    free((void *)in_use->ids);
    *in_use = (struct ids_in_use){0};
}

bool ids_in_use_has(const struct ids_in_use *in_use, const char *id)
{
    return in_use->count &&
           bsearch(&id, (void *)in_use->ids, in_use->count, sizeof(*in_use->ids), compare);
}
