/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpushare/base/buf.h"
#include "gpushare/model/gpu.h"

/*
 * Writes one document as JSON or as the same YAML. Members of an object have a key, entries of a
 * list have NULL. Memory: one buffer that goes to the file now and then.
 *
 *   struct doc doc;
 *   doc_open(&doc, stdout, yaml);
 *   doc_list(&doc, "nodes");
 *   doc_object(&doc, NULL);
 *   doc_text(&doc, "name", "n1");
 *   doc_end(&doc);
 *   doc_end(&doc);
 *   doc_close(&doc);            -1: memory, or the file cannot be written
 *
 * Without a file it is JSON in doc.text alone, without white space, as long as that may become: set
 * {.text = GS_BUF(n)} and let an object be open.
 */
enum { DOC_DEPTH_MAX = 16 };

struct doc {
    FILE *out;
    struct gs_buf text;
    bool yaml;
    bool failed;
    bool dash; /* an entry has begun: its first member stands behind the dash */
    uint32_t depth;
    struct {
        bool list;
        bool any; /* something stands in it */
    } levels[DOC_DEPTH_MAX];
};

void doc_open(struct doc *doc, FILE *out, bool yaml);
int doc_close(struct doc *doc);

void doc_object(struct doc *doc, const char *key);
void doc_list(struct doc *doc, const char *key);
void doc_end(struct doc *doc); /* of the innermost object or list */

void doc_text(struct doc *doc, const char *key, const char *text);
void doc_number(struct doc *doc, const char *key, uint64_t number);
void doc_bool(struct doc *doc, const char *key, bool value);
void doc_gpus(struct doc *doc, const char *key, gs_gpu_mask gpus); /* their indices */
