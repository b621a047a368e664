/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/fetch.h"
#include "inspect/nodes.h"
#include "inspect/pods.h"
#include "inspect/view.h"

/* The tables. */
enum show_what { SHOW_NODES, SHOW_MAP, SHOW_WAITS, SHOW_PODS };

struct show {
    struct fetch fetch;
    struct view_options view;
    enum show_what what;
    struct output output;
    struct pods_options pods;
    bool details; /* of nodes */
    bool all;     /* of SHOW_WAITS: a row for each pod */
};

/* Connects, prints, closes: the exit code of the command. */
int show_run(const struct app *app, struct show *show, struct common *common);

/* Prints what the snapshot holds. */
int show_once(const struct show *show, struct snapshot *snapshot, struct gs_error *err);

/* One printer per format, all onto standard output. -1 when out of memory. */

/* The original's summary, where the terminal is wide enough and the output names no columns. */
int print_summary(const struct view *view, const struct output *output,
                  const struct terminal *terminal);

/* Below a table: as wide as it is, or as the least. */
void print_dashes(const char *text, size_t least);

/* The original's -d. */
int print_details(const struct view *view);

/* Every GPU a bar, every pod a letter. */
int print_map(const struct view *view, const struct terminal *terminal);

/* How many pods wait, and where to read on; nothing when none does. */
void view_put_waits(const struct view *view);

/* JSON, or the same as YAML. */
int print_document(const struct view *view, const struct output *output);
/* A node, in a list that is open, with these GPUs and their pods; output NULL: all of it. */
void document_node(struct doc *doc, const struct view *view, const struct view_node *node,
                   gs_gpu_mask gpus, const struct output *output);
/* Namespaces, most used first. */
void document_namespaces(struct doc *doc, const char *key, const struct view *view, size_t most);
/* The sums of a view, and what would fit. */
void document_cluster(struct doc *doc, const char *key, const struct view *view);
