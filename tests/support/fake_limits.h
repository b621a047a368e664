/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rows.h"

#include <errno.h>

#include "gpushare/base/array.h"
#include "gpushare/port/memory_limits.h"

/* A driver's limits as those of 615 without the kernel's controller: the nearest counts, none is
 * "not supported", and a new one may not be below what is in use. */
struct fake_limits {
    int set_error, get_error; /* of every call; 0: none */
    bool forgets;             /* what is set is not there */
    const char *unable;       /* a GPU that has none */
    uint64_t used;            /* of every cgroup */
    uint64_t grows;           /* by this with each reading */
    const char *odd;          /* a cgroup that cannot be read, and how */
    int odd_error;
    int sets;
    struct fake_limit {
        char gpu[16], cgroup[512];
        uint64_t bytes, used; /* used: beside that of all */
    } all[512];
    size_t count;
};

static inline struct fake_limit *fake_limit_of(struct fake_limits *limits, const char *gpu,
                                               const char *cgroup)
{
    GS_EACH_OF (one, limits->all, limits->count) {
        if (strcmp(one->gpu, gpu) == 0 && strcmp(one->cgroup, cgroup) == 0)
            return one;
    }
    return NULL;
}

static inline int fake_limits_set(void *ctx, const char *gpu, const char *cgroup, uint64_t bytes)
{
    struct fake_limits *limits = ctx;
    struct fake_limit *one = fake_limit_of(limits, gpu, cgroup);
    limits->sets++;
    if (limits->set_error || limits->forgets)
        return limits->set_error;
    if (limits->unable && strcmp(gpu, limits->unable) == 0)
        return EOPNOTSUPP;
    if (bytes < limits->used)
        return EINVAL;
    if (!one) {
        assert_true(limits->count < GS_COUNT_OF(limits->all));
        one = &limits->all[limits->count++];
        snprintf(one->gpu, sizeof(one->gpu), "%s", gpu);
        snprintf(one->cgroup, sizeof(one->cgroup), "%s", cgroup);
    }
    one->bytes = bytes;
    return 0;
}

static inline int fake_limits_get(void *ctx, const char *gpu, const char *cgroup,
                                  uint64_t *ret_bytes, uint64_t *ret_used)
{
    struct fake_limits *limits = ctx;
    char path[512];
    snprintf(path, sizeof(path), "%s", cgroup);
    if (limits->get_error)
        return limits->get_error;
    if (limits->odd && strcmp(limits->odd, cgroup) == 0)
        return limits->odd_error;
    limits->used += limits->grows;
    for (; path[0]; *strrchr(path, '/') = '\0') {
        const struct fake_limit *one = fake_limit_of(limits, gpu, path);
        if (!one)
            continue;
        *ret_bytes = one->bytes;
        *ret_used = limits->used + one->used;
        return 0;
    }
    return EOPNOTSUPP;
}

static inline struct gs_memory_limits fake_limits_port(struct fake_limits *limits)
{
    return (struct gs_memory_limits){limits, fake_limits_set, fake_limits_get};
}
