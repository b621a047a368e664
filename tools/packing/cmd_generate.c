/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "commands.h"
#include "common/options.h"
#include "generate.h"
#include "trace_files.h"

/* gpushare-packing generate: a synthetic trace for replay. */

enum { FILE_BYTES_MAX = 512 << 20 };

struct generate_settings {
    const char *out;
    struct gs_generate_spec spec;
};

static void read_settings(struct generate_settings *set, int argc, char **argv)
{
    *set = (struct generate_settings){.spec = {.nodes = 1213, .load_pct = 98, .seed = 1}};
    const struct gs_option table[] = {
        OPT_STRING("out", &set->out, "DIR", "where nodes.csv and pods.csv are written"),
        OPT_U32("node-count", &set->spec.nodes, "NUMBER", "nodes (default 1213)"),
        OPT_U32("load", &set->spec.load_pct, "PERCENT",
                "GPUs that all pods together ask for, of all there are (default 98)"),
        OPT_FLAG("timed", &set->spec.timed, "say how long each pod runs, for replay --timed"),
        OPT_U64("seed", &set->spec.seed, "NUMBER", "of all that is drawn (default 1)"),
    };
    const struct gs_command command = {
        .name = "gpushare-packing generate",
        .doc = "Writes a synthetic cluster and its pods in the shape of Alibaba's openb trace, "
               "for gpushare-packing replay.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

static int write_file(const char *dir, const char *name, const struct gs_buf *text,
                      struct gs_error *err)
{
    char path[4096];
    if (gs_buf_failed(text))
        return gs_fail(err, (enum gs_code)gs_buf_failed(text), "%s is too large", name);
    int len = snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (len < 0 || (size_t)len >= sizeof(path))
        return gs_fail(err, GS_EINVAL, "the directory's name is too long");
    return trace_files_write(path, (struct gs_slice){text->data, text->len}, err);
}

static int write_trace(const struct generate_settings *set, const struct gs_trace *trace,
                       struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf nodes = GS_BUF(FILE_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf pods = GS_BUF(FILE_BYTES_MAX);
    gs_trace_write_nodes(&nodes, trace->nodes, trace->node_count);
    gs_trace_write_pods(&pods, trace->pods, trace->stays, trace->pod_count);
    if (mkdir(set->out, 0777) < 0 && errno != EEXIST)
        return gs_fail_errno(err, GS_EIO, errno, "%.160s", set->out);
    if (write_file(set->out, "nodes.csv", &nodes, err) < 0)
        return -1;
    return write_file(set->out, "pods.csv", &pods, err);
}

int cmd_generate(int argc, char **argv)
{
    struct generate_settings set;
    struct gs_trace trace = {0};
    struct gs_error err = {0};
    read_settings(&set, argc, argv);
    if (!set.out) {
        fputs("gpushare-packing generate: a directory is needed (see --help)\n", stderr);
        return 2;
    }
    int result = gs_generate(&set.spec, &trace, &err);
    if (result == 0)
        result = write_trace(&set, &trace, &err);
    if (result == 0)
        printf("%s: %" PRIu32 " nodes, %" PRIu32 " pods\n", set.out, trace.node_count,
               trace.pod_count);
    gs_trace_release(&trace);
    if (result == 0)
        return 0;
    fprintf(stderr, "gpushare-packing generate: %s\n", err.msg);
    return err.code == GS_EINVAL ? 2 : 1;
}
