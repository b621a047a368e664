/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/fetch.h"

/*
 * What an account sees that may not list nodes, or only the pods of one namespace: these pods, with
 * their requests and GPUs. There are no sums: what is free depends on the rest of the cluster.
 */
enum { OWN_NOTE_BYTES = 512 };

/* Pods of a namespace (NULL: of all if that is allowed, else of the context's) on fetch->node, or
 * pending ones alone. *caller frees*. note: one sentence that says what is shown. NULL: GS_EDENIED,
 * and the other codes of port/kube.h. */
char *own_table(const struct fetch *fetch, const char *ns, bool pending, char note[OWN_NOTE_BYTES],
                struct gs_error *err);

/* The table on standard output and the note on standard error, in place of a GS_EDENIED; any other
 * error stays. */
int own_print(const struct fetch *fetch, const char *ns, bool pending, struct gs_error *err);
