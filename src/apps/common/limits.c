/* SPDX-License-Identifier: Apache-2.0 */
#include "common/limits.h"

#include <sys/resource.h>

void limits_raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* refused: the server lowers its own limits */
}
