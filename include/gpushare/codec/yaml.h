/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_YAML_H
#define GPUSHARE_CODEC_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "gpushare/base/error.h"

/*
 * YAML documents (or JSON, which is YAML), each with the file it came from, so that every complaint
 * can say "FILE:LINE": kubeconfigs, options, kube-scheduler's configuration, manifests
 * (manifest.h). Values are read as Go's YAML reader gives them to kubectl: the last of two equal
 * keys counts, null is absent.
 */
struct gs_yaml {
    void *doc;  /* libyaml's */
    char *name; /* for messages */
    char *dir;  /* what relative paths are relative to; NULL: of no file */
};

/* A value of a document, *borrowed* until its release. */
struct gs_yaml_node;

/* The first document of a text; dir may be NULL. GS_EINVAL with "FILE:LINE: …" when it is no YAML.
 * Release it only after success. What was read is overwritten: kubeconfigs hold keys. */
int gs_yaml_load(struct gs_yaml *yaml, const char *text, size_t len, const char *name,
                 const char *dir, struct gs_error *err);
void gs_yaml_release(struct gs_yaml *yaml);

/* Every document of a text, until each returns -1. */
int gs_yaml_each(const char *text, size_t len, const char *name,
                 int (*each)(void *ctx, struct gs_yaml *yaml, struct gs_error *err), void *ctx,
                 struct gs_error *err);

/* NULL for an empty document. */
const struct gs_yaml_node *gs_yaml_root(const struct gs_yaml *yaml);

/* gs_fail(GS_EINVAL) with the place of the node in front. Returns -1. */
int gs_yaml_fail(const struct gs_yaml *yaml, const struct gs_yaml_node *node, struct gs_error *err,
                 const char *fmt, ...) __attribute__((format(printf, 4, 5), cold));

/* The value of a key; NULL when it is absent or null, or map is NULL. Fails when map is no
 * mapping. */
int gs_yaml_get(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                const struct gs_yaml_node **ret, struct gs_error *err);

/* The same for who takes things as they are: NULL when map is no mapping; of a text "" when there
 * is none. */
const struct gs_yaml_node *gs_yaml_member(const struct gs_yaml *yaml,
                                          const struct gs_yaml_node *map, const char *key);
const char *gs_yaml_text(const struct gs_yaml *yaml, const struct gs_yaml_node *map,
                         const char *key);

/* A scalar's text; NULL when it is none, or has a NUL byte in it. */
const char *gs_yaml_scalar(const struct gs_yaml_node *node);

/* A copy (*caller frees*) of a scalar, NULL when absent. Fails on other kinds and on NUL bytes. */
int gs_yaml_string(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                   char **ret, struct gs_error *err);

/* true or false; absent is false. */
int gs_yaml_bool(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                 bool *ret, struct gs_error *err);

bool gs_yaml_is_map(const struct gs_yaml_node *node);
bool gs_yaml_is_list(const struct gs_yaml_node *node);

/* The i-th item of a list; NULL past its end, or when it is none. */
const struct gs_yaml_node *gs_yaml_item(const struct gs_yaml *yaml, const struct gs_yaml_node *list,
                                        size_t i);

/* The i-th key of a mapping with its value; false past its end, or when it is none. */
bool gs_yaml_pair(const struct gs_yaml *yaml, const struct gs_yaml_node *map, size_t i,
                  const struct gs_yaml_node **ret_key, const struct gs_yaml_node **ret_value);

/* key's value, which must be a list; NULL when absent. */
int gs_yaml_sequence(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                     const struct gs_yaml_node **ret, struct gs_error *err);

/* text against the folder of the file: *caller frees*; NULL when out of memory. */
char *gs_yaml_path(const struct gs_yaml *yaml, const char *path);

/* The node as JSON text; *caller frees*. Fails on more than 32 levels or 10,000 values. */
int gs_yaml_to_json(const struct gs_yaml *yaml, const struct gs_yaml_node *node, char **ret,
                    struct gs_error *err);

#endif
