/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/invariant.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"

static atomic_bool survives;
static atomic_uint_fast64_t broken;

bool gs_invariant_broken(const char *words, const char *file, int line)
{
    char at[256];
    snprintf(at, sizeof(at), "%s:%d", file, line);
    atomic_fetch_add(&broken, 1);
    gs_log(GS_LOG_ERROR, "invariant violated", GS_STR("invariant", words), GS_STR("at", at));
    if (!atomic_load(&survives))
        abort();
    return false;
}

void gs_invariants_survive(void)
{
#ifdef GS_FATAL_INVARIANTS
    return;
#endif
    const char *wish = getenv("GPUSHARE_INVARIANTS");
    atomic_store(&survives, !wish || strcmp(wish, "fatal") != 0);
}

uint64_t gs_invariants_broken(void)
{
    return atomic_load(&broken);
}
