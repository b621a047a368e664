/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_PROMISED_H
#define GPUSHARE_APPS_INSPECT_PROMISED_H

#include "inspect/common.h"
#include "inspect/doc.h"

/* The places that the extender keeps at this moment for members of pod groups, until their binds
 * (docs/pods.md). They stand in no object of the API: the extender that leads is asked. */
struct promised_group {
    char name[512];   /* NAMESPACE/NAME */
    uint32_t pods;    /* its members with a place */
    uint64_t units;   /* of all their GPUs */
    uint64_t left_ms; /* at most, of the one that lasts longest */
};
enum { PROMISED_GROUPS_MAX = 16 };

struct promised {
    struct promised_group groups[PROMISED_GROUPS_MAX];
    uint32_t count;
    uint32_t left_out;  /* pods of further groups */
    char own_node[256]; /* of the pod that was asked about; "": it is promised none */
    gs_gpu_mask own_gpus;
    uint64_t own_left_ms;
};

/* Nothing where it cannot be asked: without the right to (pods/proxy of the installation), or an
 * extender that is away or older. */
void promised_fetch(const struct common *common, const char *uid, struct promised *ret);

void promised_print(const struct promised *promised, const char *unit, FILE *out);
void promised_document(struct doc *doc, const struct promised *promised);

#endif
