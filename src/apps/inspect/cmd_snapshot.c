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

enum { PAGE_LIMIT = 500, PATH_BYTES = 4096 };

struct job {
    struct common common;
    const char *path; /* "-" is standard output */
    bool hash_names;
    struct source source;
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

static int write_page(struct job *job, bool node, char **next, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(64 << 10);
    gs_buf_printf(&query, "limit=%d", PAGE_LIMIT);
    if (*next) {
        gs_buf_puts(&query, "&continue=");
        source_escape(&query, *next);
    }
    free(*next);
    *next = NULL;
    if (gs_buf_failed(&query))
        return gs_fail_nomem(err);
    json_auto_t *list =
        lookup_json(&job->source, node ? "/api/v1/nodes" : "/api/v1/pods", query.data, err);
    size_t i;
    json_t *item;
    if (!list)
        return -1;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        if (write_item(job, item, node, err) < 0)
            return -1;
    }
    const char *token = lookup_text(list, "metadata", "continue", NULL);
    if (token[0] && !(*next = strdup(token)))
        return gs_fail_nomem(err);
    return 0;
}

static int write_kind(struct job *job, bool node, struct gs_error *err)
{
    char *next = NULL;
    int result;
    do
        result = write_page(job, node, &next, err);
    while (result == 0 && next);
    free(next);
    return result;
}

static int write_all(struct job *job, struct gs_error *err)
{
    copy_init(&job->copy, &job->common.names, job->hash_names);
    if (open_file(job, err) < 0)
        return -1;
    fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n", job->out);
    int result = write_kind(job, true, err);
    if (result == 0)
        result = write_kind(job, false, err);
    if (result == 0 && fputs("\n]}\n", job->out) < 0)
        result = fail_output(err);
    return close_file(job, result, err);
}

int cmd_snapshot(const struct app *app, int argc, char **argv)
{
    struct job job = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    read_options(&job, argc, argv);
    int result = common_connect(&job.common, app, &job.source, &err);
    if (result == 0)
        result = write_all(&job, &err);
    if (result == 0)
        fprintf(stderr, "%" PRIu64 " nodes and %" PRIu64 " pods\n", job.nodes, job.pods);
    copy_release(&job.copy);
    source_close(&job.source);
    return result == 0 ? 0 : complain(&err);
}
