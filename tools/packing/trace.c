/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <inttypes.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/model/gpu.h"

/* --- cells --- */

enum { COLUMNS_MAX = 64 };
enum { ABSENT = -1 };

/* A column that is wanted and where the header has it. */
struct column {
    const char *name;
    bool optional;
    int at;
};

struct csv {
    struct gs_slice rest;
    unsigned line; /* of what was read last, from 1 */
    struct gs_slice cells[COLUMNS_MAX];
    int cell_count;
};

/* The next line that is not empty, without its end; false at the end of the text. */
static bool next_line(struct gs_slice *rest, unsigned *line, struct gs_slice *ret)
{
    while (rest->len) {
        const char *end = memchr(rest->at, '\n', rest->len);
        size_t len = end ? (size_t)(end - rest->at) : rest->len;
        struct gs_slice found = {rest->at, len};
        size_t step = end ? len + 1 : len;
        *rest = (struct gs_slice){rest->at + step, rest->len - step};
        ++*line;
        if (found.len && found.at[found.len - 1] == '\r')
            found.len--;
        if (found.len) {
            *ret = found;
            return true;
        }
    }
    return false;
}

/* 1: a row, 0: the end, -1: broken. */
static int next_row(struct csv *csv, struct gs_error *err)
{
    struct gs_slice line;
    if (!next_line(&csv->rest, &csv->line, &line))
        return 0;
    csv->cell_count = 0;
    for (;;) {
        if (csv->cell_count == COLUMNS_MAX)
            return gs_fail(err, GS_EPROTO, "line %u has more than %d cells", csv->line,
                           COLUMNS_MAX);
        const char *comma = memchr(line.at, ',', line.len);
        size_t len = comma ? (size_t)(comma - line.at) : line.len;
        if (len && line.at[0] == '"')
            return gs_fail(err, GS_EPROTO, "line %u has a quoted cell", csv->line);
        csv->cells[csv->cell_count++] = (struct gs_slice){line.at, len};
        if (!comma)
            return 1;
        line = (struct gs_slice){comma + 1, line.len - len - 1};
    }
}

static int read_header(struct csv *csv, struct column *columns, int count, struct gs_error *err)
{
    int found = next_row(csv, err);
    if (found < 0)
        return -1;
    if (!found)
        return gs_fail(err, GS_EPROTO, "empty: not even a header line");
    for (int c = 0; c < count; c++) {
        columns[c].at = ABSENT;
        for (int i = 0; i < csv->cell_count; i++) {
            if (gs_slice_eq(csv->cells[i], gs_slice_of(columns[c].name)))
                columns[c].at = i;
        }
        if (columns[c].at == ABSENT && !columns[c].optional)
            return gs_fail(err, GS_EPROTO, "line %u: the header names no column %s", csv->line,
                           columns[c].name);
    }
    return 0;
}

static struct gs_slice cell(const struct csv *csv, const struct column *column)
{
    if (column->at == ABSENT || column->at >= csv->cell_count)
        return (struct gs_slice){"", 0};
    return csv->cells[column->at];
}

static bool only_digits(struct gs_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    }
    return true;
}

/* "12" or "12.0": the fraction is dropped. */
static int read_number(const struct csv *csv, const struct column *column, uint64_t max,
                       uint64_t *ret, struct gs_error *err)
{
    struct gs_slice text = cell(csv, column);
    const char *dot = text.len ? memchr(text.at, '.', text.len) : NULL;
    size_t whole = dot ? (size_t)(dot - text.at) : text.len;
    struct gs_slice fraction = {text.at + whole + 1, dot ? text.len - whole - 1 : 0};
    uint64_t value;
    if (!gs_parse_u64(text.at, whole, &value) || !only_digits(fraction) || value > max)
        return gs_fail(err, GS_EPROTO, "line %u: %s is no number from 0 to %" PRIu64, csv->line,
                       column->name, max);
    *ret = value;
    return 0;
}

static const char *copy_cell(struct gs_arena *arena, const struct csv *csv,
                             const struct column *column)
{
    struct gs_slice text = cell(csv, column);
    return gs_arena_strndup(arena, text.at, text.len);
}

/* Lines bound the number of rows: one allocation is enough. */
static size_t count_lines(struct gs_slice text)
{
    size_t lines = 1;
    for (const char *at = text.at, *end = text.at + text.len;
         (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        lines++;
    return lines;
}

/* --- nodes and pods --- */

enum { NODE_NAME, NODE_CPU, NODE_MEMORY, NODE_GPUS, NODE_MODEL, NODE_COLUMNS };
enum {
    POD_NAME,
    POD_CPU,
    POD_MEMORY,
    POD_GPUS,
    POD_MILLI,
    POD_SPEC,
    POD_CREATED,
    POD_SCHEDULED,
    POD_DELETED,
    POD_COLUMNS
};

#define CPU_MAX    ((uint64_t)INT32_MAX)
#define MEMORY_MAX ((uint64_t)1 << 40)
/* Seconds since 1970 fit. */
#define TIME_MAX ((uint64_t)1 << 40)

static int read_node(struct gs_arena *arena, const struct csv *csv, const struct column *columns,
                     struct gs_trace_node *ret, struct gs_error *err)
{
    uint64_t cpu, memory, gpus;
    if (read_number(csv, &columns[NODE_CPU], CPU_MAX, &cpu, err) < 0 ||
        read_number(csv, &columns[NODE_MEMORY], MEMORY_MAX, &memory, err) < 0 ||
        read_number(csv, &columns[NODE_GPUS], GS_GPUS_MAX, &gpus, err) < 0)
        return -1;
    *ret = (struct gs_trace_node){
        .name = copy_cell(arena, csv, &columns[NODE_NAME]),
        .cpu_milli = (int64_t)cpu,
        .memory_mib = (int64_t)memory,
        .gpus = (uint32_t)gpus,
        .model = copy_cell(arena, csv, &columns[NODE_MODEL]),
    };
    return ret->name && ret->model ? 0 : gs_fail_nomem(err);
}

int gs_trace_read_nodes(struct gs_trace *trace, struct gs_slice csv_text, struct gs_error *err)
{
    struct column columns[NODE_COLUMNS] = {
        [NODE_NAME] = {.name = "sn"},           [NODE_CPU] = {.name = "cpu_milli"},
        [NODE_MEMORY] = {.name = "memory_mib"}, [NODE_GPUS] = {.name = "gpu"},
        [NODE_MODEL] = {.name = "model"},
    };
    struct csv csv = {.rest = csv_text};
    if (read_header(&csv, columns, NODE_COLUMNS, err) < 0)
        return -1;
    struct gs_trace_node *nodes =
        gs_arena_calloc(&trace->arena, count_lines(csv_text), sizeof(*nodes));
    if (!nodes)
        return gs_fail_nomem(err);
    uint32_t count = 0;
    for (int more; (more = next_row(&csv, err)) != 0; count++) {
        if (more < 0)
            return -1;
        if (count == GS_TRACE_NODES_MAX)
            return gs_fail(err, GS_ETOOBIG, "more than %d nodes", GS_TRACE_NODES_MAX);
        if (read_node(&trace->arena, &csv, columns, &nodes[count], err) < 0)
            return -1;
    }
    if (!count)
        return gs_fail(err, GS_EPROTO, "no node after the header");
    trace->nodes = nodes;
    trace->node_count = count;
    return 0;
}

static int read_pod(struct gs_arena *arena, const struct csv *csv, const struct column *columns,
                    struct gs_trace_pod *ret, struct gs_error *err)
{
    uint64_t cpu, memory, gpus, milli;
    if (read_number(csv, &columns[POD_CPU], CPU_MAX, &cpu, err) < 0 ||
        read_number(csv, &columns[POD_MEMORY], MEMORY_MAX, &memory, err) < 0 ||
        read_number(csv, &columns[POD_GPUS], GS_GPUS_MAX, &gpus, err) < 0 ||
        read_number(csv, &columns[POD_MILLI], UINT32_MAX, &milli, err) < 0)
        return -1;
    if (gpus == 1 && !milli)
        return gs_fail(err, GS_EPROTO, "line %u: a GPU is asked for, but nothing of it", csv->line);
    if (gpus > 1 || milli > GS_TRACE_CARD_MILLI)
        milli = GS_TRACE_CARD_MILLI;
    *ret = (struct gs_trace_pod){
        .name = copy_cell(arena, csv, &columns[POD_NAME]),
        .cpu_milli = (int64_t)cpu,
        .memory_mib = (int64_t)memory,
        .gpus = (uint32_t)gpus,
        .gpu_milli = gpus ? (uint32_t)milli : 0,
        .models = gpus ? copy_cell(arena, csv, &columns[POD_SPEC]) : "",
    };
    return ret->name && ret->models ? 0 : gs_fail_nomem(err);
}

/* An empty cell, or no such column: *ret stays. */
static int read_optional(const struct csv *csv, const struct column *column, uint64_t max,
                         uint64_t *ret, struct gs_error *err)
{
    return cell(csv, column).len ? read_number(csv, column, max, ret, err) : 0;
}

static int read_stay(const struct csv *csv, const struct column *columns, int64_t *ret_lasts_s,
                     struct gs_error *err)
{
    const struct column *start = &columns[POD_SCHEDULED];
    uint64_t begun = TIME_MAX, ended = 0;
    start = start->at == ABSENT ? &columns[POD_CREATED] : start;
    if (read_optional(csv, start, TIME_MAX, &begun, err) < 0 ||
        read_optional(csv, &columns[POD_DELETED], TIME_MAX, &ended, err) < 0)
        return -1;
    if (ended >= begun)
        *ret_lasts_s = ended > begun ? (int64_t)(ended - begun) : 1;
    return 0;
}

int gs_trace_read_pods(struct gs_trace *trace, struct gs_slice csv_text, struct gs_error *err)
{
    struct column columns[POD_COLUMNS] = {
        [POD_NAME] = {.name = "name"},
        [POD_CPU] = {.name = "cpu_milli"},
        [POD_MEMORY] = {.name = "memory_mib"},
        [POD_GPUS] = {.name = "num_gpu"},
        [POD_MILLI] = {.name = "gpu_milli"},
        [POD_SPEC] = {.name = "gpu_spec", .optional = true},
        [POD_CREATED] = {.name = "creation_time", .optional = true},
        [POD_SCHEDULED] = {.name = "scheduled_time", .optional = true},
        [POD_DELETED] = {.name = "deletion_time", .optional = true},
    };
    struct csv csv = {.rest = csv_text};
    if (read_header(&csv, columns, POD_COLUMNS, err) < 0)
        return -1;
    size_t lines = count_lines(csv_text);
    struct gs_trace_pod *pods = gs_arena_calloc(&trace->arena, lines, sizeof(*pods));
    int64_t *lasts_s = gs_arena_calloc(&trace->arena, lines, sizeof(*lasts_s));
    if (!pods || !lasts_s)
        return gs_fail_nomem(err);
    uint32_t count = 0;
    for (int more; (more = next_row(&csv, err)) != 0; count++) {
        if (more < 0)
            return -1;
        if (count == GS_TRACE_PODS_MAX)
            return gs_fail(err, GS_ETOOBIG, "more than %d pods", GS_TRACE_PODS_MAX);
        if (read_pod(&trace->arena, &csv, columns, &pods[count], err) < 0 ||
            read_stay(&csv, columns, &lasts_s[count], err) < 0)
            return -1;
    }
    if (!count)
        return gs_fail(err, GS_EPROTO, "no pod after the header");
    trace->pods = pods;
    trace->lasts_s = lasts_s;
    trace->pod_count = count;
    return 0;
}

void gs_trace_release(struct gs_trace *trace)
{
    gs_arena_release(&trace->arena);
    *trace = (struct gs_trace){0};
}
