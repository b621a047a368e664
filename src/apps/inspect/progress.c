/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpushare/base/clock.h"
#include "inspect/complain.h"

#define QUIET_NS      GS_NS_PER_S
#define TELL_EVERY_NS (200 * GS_NS_PER_MS)

void progress_begin(struct progress *progress, bool on)
{
    *progress = (struct progress){.on = on, .begun_ns = gs_clock_now_ns(gs_clock_system())};
}

void progress_tell(struct progress *progress, uint64_t done, uint64_t total, const char *what)
{
    int64_t now_ns = gs_clock_now_ns(gs_clock_system());
    if (!progress->on || now_ns - progress->begun_ns < QUIET_NS ||
        now_ns - progress->told_ns < TELL_EVERY_NS)
        return;
    progress->told_ns = now_ns;
    fprintf(stderr, "\r" PROGRAM ": %" PRIu64, done);
    if (total)
        fprintf(stderr, " of %" PRIu64, total);
    fprintf(stderr, " %s\033[K", what);
}

void progress_end(const struct progress *progress)
{
    if (progress->told_ns)
        fputs("\r\033[K", stderr);
}
