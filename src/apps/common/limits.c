/* SPDX-License-Identifier: Apache-2.0 */
#include "common/limits.h"

#include <sys/prctl.h>
#include <sys/resource.h>

void limits_raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* refused: the server lowers its own limits */
}

void limits_keep_secrets(void)
{
    struct rlimit core;
    prctl(PR_SET_DUMPABLE, 0);
    if (getrlimit(RLIMIT_CORE, &core) < 0)
        return;
    core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &core);
}
