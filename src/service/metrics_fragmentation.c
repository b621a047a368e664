/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's sums only: a series per node would cost more than it tells; the CLI shows nodes. */
#include "gpushare/core/fragmentation.h"
#include "service_internal.h"

static void gauge(struct gs_buf *out, const char *name, const char *help, uint64_t value)
{
    gs_buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %llu\n", name, help, name, name,
                  (unsigned long long)value);
}

void gs_service_metrics_fragmentation(const struct gs_store *store, struct gs_buf *out)
{
    struct gs_fragmentation all;
    gs_fragmentation_of_ledger(store->policies, store->ledger, &all);
    gauge(out, "gpushare_free_units", "GPU memory that is free on usable GPUs, in the nodes' unit.",
          all.free_units);
    gauge(out, "gpushare_largest_placeable_units",
          "Free memory of the GPU that has most: no larger pod fits on one GPU.",
          all.largest_units);
    /* 0 would say that all of it is of use, when nobody knows. */
    if (all.known)
        gauge(out, "gpushare_stranded_units",
              "Free GPU memory that more pods such as those seen so far would leave unused; absent "
              "until enough pods were seen.",
              all.stranded_units);
}
