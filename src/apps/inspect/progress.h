/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_PROGRESS_H
#define GPUSHARE_APPS_INSPECT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* "1500 of 50000 pods" on a terminal's standard error, from the second second on, a few times a
 * second; wiped out at the end. */
struct progress {
    bool on;
    int64_t begun_ns, told_ns;
};

void progress_begin(struct progress *progress, bool on);
/* total 0: not known. */
void progress_tell(struct progress *progress, uint64_t done, uint64_t total, const char *what);
void progress_end(const struct progress *progress);

#endif
