/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/common.h"
#include "inspect/copy.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare snapshot FILE: the cluster as a file that gpushare-sim serve --load
 * plays. */

enum { PATH_BYTES = 4096 };

struct job {
    struct common common;
    const char *path; /* "-" is standard output */
    bool hash_names;
    struct copy copy;
    FILE *out;
    char partial[PATH_BYTES];
    uint64_t nodes, pods;
};

static void read_options(struct job *job, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FLAG("hash-names", &job->hash_names,
                 "numbers instead of the names of nodes, namespaces, pods and containers"),
        COMMON_OPTIONS(&job->common, "has no effect: all pods count"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "Writes to FILE what placing pods looks at: nodes with their GPUs, pods with what "
               "they ask for and where they are; no environment, arguments, images or addresses. "
               "gpushare-sim serve --load=FILE plays it. - is standard output.",
        .operands = "FILE",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .min_operands = 1,
        .max_operands = 1,
        .quiet = true,
    };
    job->path = argv[gs_options_parse(&command, argc, argv)];
}

/* Readable to its owner only, and whole or not there at all. */
static int open_file(struct job *job, struct gs_error *err)
{
    if (strcmp(job->path, "-") == 0) {
        job->out = stdout;
        return 0;
    }
    if (snprintf(job->partial, sizeof(job->partial), "%s.partial", job->path) >= PATH_BYTES)
        return gs_fail(err, GS_EINVAL, "the file's name is too long");
    unlink(job->partial); /* what is left of an earlier one may be readable to all */
    int fd = open(job->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    job->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    return job->out ? 0 : gs_fail_errno(err, GS_EINVAL, errno, "%.200s", job->partial);
}

static int close_file(struct job *job, int result, struct gs_error *err)
{
    if (!job->out)
        return result;
    if (job->out == stdout) {
        if (result == 0 && fflush(stdout) != 0)
            return fail_output(err);
        return result;
    }
    if (fclose(job->out) != 0 && result == 0)
        result = gs_fail_errno(err, GS_EINVAL, errno, "%.200s", job->partial);
    if (result == 0 && rename(job->partial, job->path) < 0)
        result = gs_fail_errno(err, GS_EINVAL, errno, "%.200s", job->path);
    if (result < 0)
        unlink(job->partial);
    return result;
}

static int write_item(struct job *job, json_t *item, bool node, struct gs_error *err)
{
    json_auto_t *kept = node ? copy_node(&job->copy, item) : copy_pod(&job->copy, item);
    if (!kept)
        return gs_fail_nomem(err);
    if (job->nodes + job->pods)
        fputs(",\n", job->out);
    node ? job->nodes++ : job->pods++;
    return json_dumpf(kept, job->out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0 ? fail_output(err) : 0;
}

static int take_node(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    json_auto_t *item = lookup_item(scan, err);
    return item ? write_item(ctx, item, true, err) : -!scan->failed;
}

static int take_pod(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    json_auto_t *item = lookup_item(scan, err);
    return item ? write_item(ctx, item, false, err) : -!scan->failed;
}

static int write_all(struct job *job, struct gs_error *err)
{
    copy_init(&job->copy, &job->common.names, job->hash_names);
    if (open_file(job, err) < 0)
        return -1;
    fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n", job->out);
    const struct gs_pages nodes = {.path = "/api/v1/nodes", .item = take_node, .ctx = job};
    const struct gs_pages pods = {.path = "/api/v1/pods", .item = take_pod, .ctx = job};
    int result = source_list(&job->common.source, nodes, err);
    if (result == 0)
        result = source_list(&job->common.source, pods, err);
    if (result == 0 && fputs("\n]}\n", job->out) < 0)
        result = fail_output(err);
    return close_file(job, result, err);
}

int cmd_snapshot(const struct app *app, int argc, char **argv)
{
    struct job job = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    read_options(&job, argc, argv);
    int result = common_connect(&job.common, app, &err);
    if (result == 0)
        result = write_all(&job, &err);
    if (result == 0)
        fprintf(stderr, "%" PRIu64 " nodes and %" PRIu64 " pods\n", job.nodes, job.pods);
    copy_release(&job.copy);
    source_close(&job.common.source);
    return result == 0 ? 0 : complain(&err);
}
