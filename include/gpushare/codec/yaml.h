/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * YAML documents (or JSON, which is YAML) as values of jansson. More than 64 levels, or many times
 * more values than bytes through aliases, are GS_ETOOBIG; tags (!) are refused. Every complaint
 * about the text begins with "FILE:LINE: ".
 */
struct json_t;

/* Takes one document, *borrowed*, and the line where it begins; an error in *err ends the
 * reading. */
typedef void gs_yaml_take(void *ctx, struct json_t *root, size_t line, struct gs_error *err);

/*
 * Every document of a text.
 * typed: numbers and booleans are such, merge keys (<<) are merged, and the same key twice is an
 * error. Otherwise every value but null is a string, merge keys are refused, and the last of two
 * equal keys counts, as in kubectl.
 */
int gs_yaml_each(struct gs_slice text, const char *name, bool typed, gs_yaml_take *each, void *ctx,
                 struct gs_error *err);

/* The first document, not typed; null where there is none. NULL: *err says why. */
struct json_t *gs_yaml_load(struct gs_slice text, const char *name, struct gs_error *err);

/* Overwrites the strings, too: kubeconfigs hold keys. NULL is fine. */
void gs_yaml_free(struct json_t *root);
