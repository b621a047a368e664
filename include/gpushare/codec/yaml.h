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
 * keys counts (in manifests it is an error), null is absent. Merge keys (<<) are refused.
 */
struct gs_yaml {
    void *doc;        /* libyaml's */
    const char *name; /* for messages; *borrowed* */
};

/* A value of a document, *borrowed* until its release; at NULL: absent or null. Passed by value. */
struct gs_yaml_node {
    const struct gs_yaml *of;
    const void *at;
};

/* The first document of a text. GS_EINVAL with "FILE:LINE: …" when it is no YAML.
 * Release it only after success. What was read is overwritten: kubeconfigs hold keys. */
int gs_yaml_load(struct gs_yaml *yaml, const char *text, size_t len, const char *name,
                 struct gs_error *err);
void gs_yaml_release(struct gs_yaml *yaml);

/* Every document of a text, until each returns -1. */
int gs_yaml_each(const char *text, size_t len, const char *name,
                 int (*each)(void *ctx, struct gs_yaml *yaml, struct gs_error *err), void *ctx,
                 struct gs_error *err);

struct gs_yaml_node gs_yaml_root(const struct gs_yaml *yaml);

/* gs_fail(GS_EINVAL) with the place of the node in front. Returns -1. */
int gs_yaml_fail(struct gs_yaml_node node, struct gs_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

bool gs_yaml_is_map(struct gs_yaml_node node);
bool gs_yaml_is_list(struct gs_yaml_node node);

/* The value of a key; absent when map is no mapping. */
struct gs_yaml_node gs_yaml_get(struct gs_yaml_node map, const char *key);

/* A scalar's text; NULL when it is none, or has a NUL byte in it. */
const char *gs_yaml_scalar(struct gs_yaml_node node);

/* The i-th item of a list; false past its end, or when it is none. */
bool gs_yaml_item(struct gs_yaml_node list, size_t i, struct gs_yaml_node *ret);

/* The i-th key of a mapping with its value; false past its end, or when it is none. */
bool gs_yaml_pair(struct gs_yaml_node map, size_t i, struct gs_yaml_node *ret_key,
                  struct gs_yaml_node *ret_value);

#endif
