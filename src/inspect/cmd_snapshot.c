/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/common.h"
#include "inspect/lookup.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare snapshot FILE: nodes and pods as a v1.List that --from-file and
 * gpushare-sim serve --load read. */

enum { PATH_BYTES = 4096 };

struct job {
    struct common common;
    const char *path; /* "-" is standard output */
    json_t *fields;   /* by kind, what is kept */
    const char *kind; /* of the list being read */
    uint64_t nodes, written;
    FILE *out;
    char partial[PATH_BYTES];
};

/* ---- what is kept ---- */

/* Fields that this project reads, of both kinds of objects; anything else may hold a secret.
 * Environment, arguments, images, volumes, messages of containers, other annotations and labels of
 * pods are left out. JSON in other quotes, with the names of the domain. */
static const char kept[] =
    "{'Node': {"
    " 'metadata': {'name': 1, 'labels': 1, 'annotations': {'%s': 1, '%s': 1, '%s': 1}},"
    " 'spec': {'unschedulable': 1, 'taints': 1},"
    " 'status': {'capacity': 1, 'allocatable': 1, 'addresses': 1,"
    "  'conditions': {'type': 1, 'status': 1}}},"
    "'Pod': {"
    " 'metadata': {'name': 1, 'namespace': 1, 'uid': 1, 'creationTimestamp': 1,"
    "  'deletionTimestamp': 1, 'ownerReferences': 1,"
    "  'labels': {'pod-template-hash': 1, 'scheduling.x-k8s.io/pod-group': 1,"
    "   'pod-group.scheduling.sigs.k8s.io': 1, '%s': 1},"
    "  'annotations': {'%s': 1, '%s': 1, '%s': 1, '%s': 1, '%s': 1, '%s': 1, '%s': 1, '%s': 1,"
    "   '%s': 1, '%s': 1, '%s': 1, '" GS_ALLOCATION_KEY "': 1, '" GS_MIRROR_KEY "': 1}},"
    " 'spec': {'nodeName': 1, 'schedulerName': 1, 'schedulingGroup': 1, 'schedulingGates': 1,"
    "  'priority': 1, 'preemptionPolicy': 1, 'overhead': 1, 'resources': 1, 'nodeSelector': 1,"
    "  'tolerations': 1, 'affinity': {'nodeAffinity': 1},"
    "  'initContainers': {'name': 1, 'restartPolicy': 1, 'resources': 1},"
    "  'containers': {'name': 1, 'resources': 1}},"
    " 'status': {'phase': 1, 'reason': 1, 'message': 1, 'nominatedNodeName': 1, 'qosClass': 1,"
    "  'conditions': {'type': 1, 'status': 1, 'reason': 1, 'message': 1},"
    "  'initContainerStatuses': {'name': 1, 'state': {'waiting': {'reason': 1}}},"
    "  'containerStatuses': {'name': 1, 'state': {'waiting': {'reason': 1}}}}}}";

static json_t *read_fields(const struct gs_names *names)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(1 << 16);
    gs_buf_printf(&text, kept, names->inventory, names->moved, names->cordon, names->gpu_count,
                  names->idx, names->assigned, names->assume_time, names->offer, names->gpu_count,
                  names->placement, names->model, names->model_deny, names->uuid, names->uuid_deny,
                  names->enforce);
    for (char *at = text.data; at && *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return lookup_parse(&text);
}

/* What the fields name of a value, of each element where it is an array. NULL: out of memory. */
static json_t *copy(json_t *from, json_t *fields)
{
    json_t *member, *field;
    const char *key;
    size_t i;
    if (!json_is_object(fields))
        return json_incref(from);
    json_t *to = json_is_array(from) ? json_array() : json_object();
    json_array_foreach(from, i, member)
    {
        if (json_array_append_new(to, copy(member, fields)) < 0)
            goto fail;
    }
    json_object_foreach(fields, key, field)
    {
        member = json_object_get(from, key);
        if (member && json_object_set_new(to, key, copy(member, field)) < 0)
            goto fail;
    }
    return to;
fail:
    json_decref(to);
    return NULL;
}

static int write_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct job *job = ctx;
    json_auto_t *item = lookup_item(scan, SOURCE_BODY_MAX, err);
    if (!item)
        return -!scan->failed;
    json_auto_t *to = copy(item, json_object_get(job->fields, job->kind));
    if (json_object_set_new(to, "apiVersion", json_string("v1")) < 0 ||
        json_object_set_new(to, "kind", json_string(job->kind)) < 0)
        return gs_fail_nomem(err);
    fputs(job->written++ ? ",\n" : "", job->out);
    return json_dumpf(to, job->out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0 ? fail_output(err) : 0;
}

/* ---- the file ---- */

/* Readable to its owner only, and whole or not there at all. */
static int open_file(struct job *job, struct gs_error *err)
{
    struct stat info;
    job->out = stdout;
    if (strcmp(job->path, "-") == 0)
        return 0;
    if (stat(job->path, &info) == 0 && !S_ISREG(info.st_mode)) /* rename() would replace it */
        return gs_fail(err, GS_EINVAL, "%.200s is not a regular file; use - for standard output",
                       job->path);
    if (snprintf(job->partial, sizeof(job->partial), "%s.XXXXXX", job->path) >= PATH_BYTES)
        return gs_fail(err, GS_EINVAL, "the file name is too long");
    int fd = mkostemp(job->partial, O_CLOEXEC);
    job->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    return job->out ? 0 : gs_fail_errno(err, GS_EINVAL, errno, "%.200s", job->path);
}

static int close_file(struct job *job, int result, struct gs_error *err)
{
    if (job->out == stdout)
        return result == 0 && fflush(stdout) != 0 ? fail_output(err) : result;
    if (fclose(job->out) != 0 && result == 0)
        result = gs_fail_errno(err, GS_EINVAL, errno, "%.200s", job->partial);
    if (result == 0 && rename(job->partial, job->path) < 0)
        result = gs_fail_errno(err, GS_EINVAL, errno, "%.200s", job->path);
    if (result < 0)
        unlink(job->partial);
    return result;
}

static int write_all(struct job *job, struct gs_error *err)
{
    struct gs_pages pages = {.path = "/api/v1/nodes", .item = write_item, .ctx = job};
    job->kind = "Node";
    job->fields = read_fields(&job->common.names);
    if (!job->fields)
        return gs_fail_nomem(err);
    if (open_file(job, err) < 0)
        return -1;
    fputs("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n", job->out);
    int result = source_list(&job->common.source, pages, err);
    job->nodes = job->written;
    job->kind = "Pod";
    pages.path = "/api/v1/pods";
    if (result == 0)
        result = source_list(&job->common.source, pages, err);
    if (result == 0 && fputs("\n]}\n", job->out) < 0)
        result = fail_output(err);
    return close_file(job, result, err);
}

int cmd_snapshot(const struct app *app, int argc, char **argv)
{
    struct job job = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    const struct gs_option table[] = {COMMON_OPTIONS(&job.common)};
    job.path = common_parse(argc, argv, "FILE",
                            "Writes nodes and pods to FILE, with the fields that this program "
                            "reads, such as names, resources and nodes' labels; without "
                            "environment, arguments and images. --from-file of every command "
                            "and gpushare-sim serve --load read the file. - is standard output.",
                            table, sizeof(table) / sizeof(table[0]));
    int result = common_connect(&job.common, app, &err);
    if (result == 0)
        result = write_all(&job, &err);
    if (result == 0)
        fprintf(stderr, "%" PRIu64 " nodes and %" PRIu64 " pods\n", job.nodes,
                job.written - job.nodes);
    json_decref(job.fields);
    return common_end(&job.common, result, &err);
}
