/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that cannot limit say why. */
#include "checks.h"

#include <sys/stat.h>

void check_host_without(enum gs_enforced expected)
{
    static const char *const addresses[] = {"00000000:41:00.0"};
    struct gs_limiter *limiter = NULL;
    struct gs_region gpu;
    const struct gs_limiter_options options = {.mount = MOUNT};
    const struct gs_limit limit = {REGION_0, GIB};
    struct gs_limit_result result;
    gs_limiter_new(&options, &limiter, NULL);
    enum gs_enforced host = gs_limiter_look(limiter, addresses, 1, &gpu);
    check(host == expected, "the host: %s", gs_enforced_reason(host));
    check(gpu.state == GS_ENFORCED_ABSENT, "its GPU has no region");
    if (expected == GS_ENFORCED_NO_CONTROLLER) {
        mkdir(MOUNT "/kubepods", 0755);
        mkdir(MOUNT "/kubepods/poda", 0755);
        check(gs_limiter_hold(limiter, "a", &limit, 1, &result) == GS_LIMIT_NO_FILES,
              "a limit on it: %s", gs_limit_outcome_reason(result.outcome));
        folder_remove(MOUNT "/kubepods");
    }
    gs_limiter_free(limiter);
}
