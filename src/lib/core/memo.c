/* SPDX-License-Identifier: Apache-2.0 */
#include "memo.h"

#include <stdlib.h>

int gs_memo_init(struct gs_memo *memo, unsigned bits)
{
    size_t count = (size_t)1 << bits;
    memo->entries = calloc(count, sizeof(*memo->entries));
    memo->mask = count - 1;
    return memo->entries ? 0 : -1;
}

void gs_memo_release(struct gs_memo *memo)
{
    free(memo->entries);
    *memo = (struct gs_memo){0};
}
