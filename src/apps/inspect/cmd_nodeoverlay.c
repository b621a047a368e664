/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/model/node.h"
#include "inspect/doc.h"
#include "inspect/fetch.h"
#include "inspect/terminal.h"

/*
 * kubectl inspect gpushare nodeoverlay: what Karpenter has to be told of instance types, so that it
 * brings a node for a pod that asks for GPU memory. One NodeOverlay (karpenter.sh/v1alpha1,
 * kubernetes-sigs/karpenter pkg/apis/v1alpha1/nodeoverlay.go) for each type.
 */

#define TYPE_LABEL "node.kubernetes.io/instance-type"

enum { VALUE_MAX = 63 }; /* bytes of a label's value */

struct type {
    char value[VALUE_MAX + 1]; /* of the label */
    char name[VALUE_MAX + 16]; /* of the overlay */
    uint64_t units;            /* of a node of it */
    uint32_t gpus, cores_pct, largest_units;
    uint32_t nodes; /* that stand; 0: told by hand */
    bool differ;    /* and do not say the same */
};

struct run {
    struct common common;
    const char *by_hand;  /* --type */
    const char *selector; /* -l */
    struct type *types;
    uint32_t count;
    uint32_t unnamed; /* nodes with GPU memory without a type */
    enum gs_unit unit;
    bool units_differ;
};

/* ---- types ---- */

/* A label's value that is not empty (apimachinery, pkg/util/validation, IsValidLabelValue). */
static bool is_value(struct gs_slice text)
{
    if (!text.len || text.len > VALUE_MAX || !isalnum((unsigned char)text.at[0]) ||
        !isalnum((unsigned char)text.at[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!isalnum((unsigned char)text.at[i]) && !strchr("-_.", text.at[i]))
            return false;
    }
    return true;
}

/* As names of objects are: small letters, and no dot beside anything but letters and digits. */
static void name_of(struct type *type)
{
    size_t at = (size_t)snprintf(type->name, sizeof(type->name), "gpushare-");
    for (const char *c = type->value; *c; c++) {
        bool dot = *c == '.' && isalnum((unsigned char)c[-1]) && isalnum((unsigned char)c[1]);
        type->name[at++] = (char)(isalnum((unsigned char)*c) ? tolower(*c) : dot ? '.' : '-');
    }
    type->name[at] = '\0';
}

/* A node more of that type. Of nodes that differ the one with the least counts: what is not on each
 * of them must not bring one. */
static int add(struct run *run, const struct type *seen, struct gs_error *err)
{
    for (uint32_t i = 0; i < run->count; i++) {
        struct type *known = &run->types[i];
        if (strcmp(known->value, seen->value) != 0)
            continue;
        const uint32_t nodes = known->nodes + seen->nodes;
        const bool differ = known->differ || known->units != seen->units ||
                            known->gpus != seen->gpus || known->cores_pct != seen->cores_pct ||
                            known->largest_units != seen->largest_units;
        if (seen->units < known->units)
            *known = *seen;
        known->nodes = nodes;
        known->differ = differ;
        return 0;
    }
    struct type *more = reallocarray(run->types, run->count + 1, sizeof(*more));
    if (!more)
        return gs_fail_nomem(err);
    run->types = more;
    more[run->count++] = *seen;
    return 0;
}

/* NAME=COUNTxUNITS */
static int add_by_hand(struct run *run, struct gs_slice text, struct gs_error *err)
{
    const char *equals = memchr(text.at, '=', text.len), *end = text.at + text.len;
    const char *times = equals ? memchr(equals, 'x', (size_t)(end - equals)) : NULL;
    struct gs_slice value = {text.at, equals ? (size_t)(equals - text.at) : 0};
    struct type type = {0};
    if (!times || !is_value(value) ||
        !gs_parse_u32(equals + 1, (size_t)(times - equals - 1), &type.gpus) || !type.gpus ||
        type.gpus > GS_GPUS_MAX ||
        !gs_parse_u32(times + 1, (size_t)(end - times - 1), &type.largest_units) ||
        !type.largest_units || type.largest_units > INT32_MAX)
        return gs_fail(err, GS_EINVAL,
                       "--type: \"%.*s\" is not NAME=COUNTxUNITS, such as p4d.24xlarge=8x39: the "
                       "units that each of its GPUs has",
                       text.len > 90 ? 90 : (int)text.len, text.at);
    memcpy(type.value, value.at, value.len);
    type.units = (uint64_t)type.gpus * type.largest_units;
    type.cores_pct = type.gpus * GS_CORES_PCT;
    return add(run, &type, err);
}

static int add_all_by_hand(struct run *run, struct gs_error *err)
{
    for (const char *at = run->by_hand; *at;) {
        size_t len = strcspn(at, ",");
        if (add_by_hand(run, (struct gs_slice){at, len}, err) < 0)
            return -1;
        at += len + (at[len] == ',');
    }
    return 0;
}

/* ---- nodes that stand ---- */

static int on_begin(void *ctx, enum gs_kind kind)
{
    struct run *run = ctx;
    run->count = run->unnamed = 0;
    run->unit = GS_UNIT_UNKNOWN;
    run->units_differ = false;
    return 0;
}

/* Sick and cordoned GPUs count: the next node has none. */
static int on_node(void *ctx, const struct gs_node *node)
{
    struct run *run = ctx;
    struct gs_error ignored = {0};
    const char *label = gs_node_label(&node->rules, TYPE_LABEL);
    struct gs_slice value = gs_slice_of(label ? label : "");
    struct type type = {.gpus = node->gpu_count, .cores_pct = node->capacity_cores_pct, .nodes = 1};
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        type.units += node->gpus[i].mem_units;
        if (node->gpus[i].mem_units > type.largest_units)
            type.largest_units = node->gpus[i].mem_units;
    }
    if (!type.units)
        return 0;
    run->units_differ |= run->unit && node->unit && node->unit != run->unit;
    run->unit = run->unit ? run->unit : node->unit;
    if (!is_value(value)) {
        run->unnamed++;
        return 0;
    }
    memcpy(type.value, value.at, value.len);
    return add(run, &type, &ignored);
}

static int load(struct run *run, const struct app *app, struct gs_error *err)
{
    const struct gs_watch_sink sink = {.ctx = run, .list_begin = on_begin, .node = on_node};
    const struct fetch fetch = {.common = &run->common, .selector = run->selector};
    if (common_connect(&run->common, app, err) < 0 || fetch_nodes(&fetch, &sink, err) < 0)
        return -1;
    if (!run->count)
        return gs_fail(err, GS_ENOENT,
                       "no node has both GPU memory and the label " TYPE_LABEL
                       "; name types with --type p4d.24xlarge=8x39");
    return 0;
}

/* ---- what is printed ---- */

static void tell(const struct run *run, const struct type *type)
{
    const char *unit = run->unit && !run->units_differ ? gs_unit_name(run->unit) : "units";
    puts("---");
    if (type->differ)
        printf("# %" PRIu32 " nodes of it differ; as the least of them says\n", type->nodes);
    else if (type->nodes > 1)
        printf("# as its %" PRIu32 " nodes say\n", type->nodes);
    else if (type->nodes)
        puts("# as its one node says");
    if (type->gpus > 1)
        printf("# Karpenter counts the sum, %" PRIu64 ". One GPU has at most %" PRIu32
               " %s: a pod that asks for more of one, or\n"
               "# that finds free memory only in pieces, can bring a node and still waits.\n",
               type->units, type->largest_units, unit);
}

static int print_type(const struct run *run, const struct type *type)
{
    const struct gs_names *names = &run->common.names;
    struct doc doc;
    tell(run, type);
    doc_open(&doc, stdout, true);
    doc_text(&doc, "apiVersion", "karpenter.sh/v1alpha1");
    doc_text(&doc, "kind", "NodeOverlay");
    doc_object(&doc, "metadata");
    doc_text(&doc, "name", type->name);
    doc_end(&doc);
    doc_object(&doc, "spec");
    doc_list(&doc, "requirements");
    doc_object(&doc, NULL);
    doc_text(&doc, "key", TYPE_LABEL);
    doc_text(&doc, "operator", "In");
    doc_list(&doc, "values");
    doc_text(&doc, NULL, type->value);
    doc_end(&doc);
    doc_end(&doc);
    doc_end(&doc);
    doc_object(&doc, "capacity");
    doc_number(&doc, names->gpu_mem, type->units);
    doc_number(&doc, names->gpu_count, type->gpus);
    if (type->cores_pct)
        doc_number(&doc, names->gpu_cores, type->cores_pct);
    doc_end(&doc);
    doc_end(&doc);
    return doc_close(&doc);
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct type *)a)->name, ((const struct type *)b)->name);
}

static int print_all(struct run *run, struct gs_error *err)
{
    for (uint32_t i = 0; i < run->count; i++)
        name_of(&run->types[i]);
    qsort(run->types, run->count, sizeof(*run->types), by_name);
    for (uint32_t i = 1; i < run->count; i++) {
        if (strcmp(run->types[i].name, run->types[i - 1].name) == 0)
            return gs_fail(err, GS_EINVAL, "the overlays of %s and %s would have one name",
                           run->types[i - 1].value, run->types[i].value);
    }
    puts("# For Karpenter with the feature gate NodeOverlay. It passes over pods that have a\n"
         "# nominatedNodeName: those that others are evicted for, or that are offered a node.");
    if (run->units_differ)
        puts("# The nodes count in different units: give all device plugins one --memory-unit.");
    if (run->unnamed)
        printf("# %" PRIu32 " node%s with GPU memory without the label " TYPE_LABEL "\n",
               run->unnamed, run->unnamed == 1 ? "" : "s");
    for (uint32_t i = 0; i < run->count; i++) {
        if (print_type(run, &run->types[i]) < 0)
            return fail_output(err);
    }
    return 0;
}

static void read_options(struct run *run, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_STRING("type", &run->by_hand, "NAME=COUNTxUNITS[,...]",
                   "these instance types, each with so many GPUs of so many units, and no cluster "
                   "is asked"),
        OPT_STRING("selector", &run->selector, "SELECTOR", "label selector of nodes", .key = 'l'),
        COMMON_OPTIONS(&run->common, "has no effect"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "Prints a Karpenter NodeOverlay for each instance type (label " TYPE_LABEL
               ") of the nodes with GPU memory, for kubectl apply -f -.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .quiet = true,
    };
    gs_options_parse(&command, argc, argv);
}

int cmd_nodeoverlay(const struct app *app, int argc, char **argv)
{
    struct run run = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    int result;
    read_options(&run, argc, argv);
    if (run.by_hand && (gs_names_init(&run.common.names, run.common.domain, &err) < 0 ||
                        add_all_by_hand(&run, &err) < 0))
        result = complain_usage(argv[0], err.msg);
    else if ((!run.by_hand && load(&run, app, &err) < 0) || print_all(&run, &err) < 0)
        result = complain(&err);
    else
        result = 0;
    free(run.types);
    source_close(&run.common.source);
    return result;
}
