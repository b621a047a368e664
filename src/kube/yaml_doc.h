/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_YAML_DOC_H
#define GPUSHARE_KUBE_YAML_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "gpushare/base/error.h"

/*
 * One YAML document (or JSON, which is YAML) with the file it came from, so that every complaint
 * can say "FILE:LINE". Values are read as Go's YAML reader gives them to kubectl: the last of two
 * equal keys counts, null is absent. Private to this folder.
 */
struct gs_yaml {
    yaml_document_t doc;
    char *name; /* for messages */
    char *dir;  /* what relative paths are relative to */
};

/* GS_EINVAL with "FILE:LINE: …" when it is no YAML. Release it only after success. */
int gs_yaml_load(struct gs_yaml *yaml, const char *text, size_t len, const char *name,
                 const char *dir, struct gs_error *err);
void gs_yaml_release(struct gs_yaml *yaml);

/* NULL for an empty document. Nodes are *borrowed* until release. */
const yaml_node_t *gs_yaml_root(struct gs_yaml *yaml);

/* gs_fail(GS_EINVAL) with the place of the node in front. Returns -1. */
int gs_yaml_fail(const struct gs_yaml *yaml, const yaml_node_t *node, struct gs_error *err,
                 const char *fmt, ...) __attribute__((format(printf, 4, 5), cold));

/* The value of a key; NULL when it is absent or null, or map is NULL. Fails when map is no
 * mapping. */
int gs_yaml_get(struct gs_yaml *yaml, const yaml_node_t *map, const char *key,
                const yaml_node_t **ret, struct gs_error *err);

/* A copy (*caller frees*) of a scalar, NULL when absent. Fails on other kinds and on NUL bytes. */
int gs_yaml_string(struct gs_yaml *yaml, const yaml_node_t *map, const char *key, char **ret,
                   struct gs_error *err);

/* true or false; absent is false. */
int gs_yaml_bool(struct gs_yaml *yaml, const yaml_node_t *map, const char *key, bool *ret,
                 struct gs_error *err);

/* The i-th item of a sequence; NULL past its end, or when seq is NULL. */
const yaml_node_t *gs_yaml_item(struct gs_yaml *yaml, const yaml_node_t *seq, size_t i);

/* key's value, which must be a sequence; NULL when absent. */
int gs_yaml_sequence(struct gs_yaml *yaml, const yaml_node_t *map, const char *key,
                     const yaml_node_t **ret, struct gs_error *err);

/* text against the folder of the file: *caller frees*; NULL when out of memory. */
char *gs_yaml_path(const struct gs_yaml *yaml, const char *path);

/* The node as JSON text; *caller frees*. Fails on more than 32 levels or 10,000 values. */
int gs_yaml_to_json(struct gs_yaml *yaml, const yaml_node_t *node, char **ret,
                    struct gs_error *err);

#endif
