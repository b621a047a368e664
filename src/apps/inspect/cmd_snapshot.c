/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "gpushare/model/names.h"
#include "inspect/common.h"
#include "inspect/lookup.h"
#include "inspect/snapshot_file.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare snapshot FILE: the cluster as a file that gpushare-sim serve --load
 * plays. */

/* ---- what is kept ---- */

/*
 * Of a node or a pod only what placing looks at. What is kept is named here, member by member; all
 * else stays behind: environment, arguments, images, volumes, addresses, other labels and
 * annotations.
 */

enum sort { A_NODE, A_NAMESPACE, A_POD, A_CONTAINER };

struct copy_name {
    char *key; /* sort and name */
    char word[32];
    UT_hash_handle hh;
};

struct copy {
    const struct gs_names *names;
    bool hash_names;
    struct copy_name *known; /* names that have their number */
    uint32_t count[4];
};

static void copy_release(struct copy *copy)
{
    struct copy_name *name, *next;
    HASH_ITER (hh, copy->known, name, next) {
        HASH_DEL(copy->known, name);
        free(name->key);
        free(name);
    }
}

/* The name as it is, or the number that stands for it: the same wherever it is named. A number
 * tells nothing of a name, where a hash of it could be looked up. NULL: out of memory. */
static const char *name_of(struct copy *copy, enum sort sort, const char *name)
{
    static const char *const words[] = {"node", "ns", "pod", "c"};
    struct copy_name *known;
    char *key;
    if (!copy->hash_names || !name[0])
        return name;
    if (asprintf(&key, "%d%s", sort, name) < 0)
        return NULL;
    HASH_FIND_STR(copy->known, key, known);
    if (known) {
        free(key);
        return known->word;
    }
    known = calloc(1, sizeof(*known));
    if (!known) {
        free(key);
        return NULL;
    }
    known->key = key;
    snprintf(known->word, sizeof(known->word), "%s-%" PRIu32, words[sort], ++copy->count[sort]);
    HASH_ADD_KEYPTR(hh, copy->known, known->key, strlen(known->key), known);
    return known->word;
}

/* ---- members ---- */

/* Copies members of those names, as far as they are there; the list ends with NULL. */
static bool keep(json_t *to, const json_t *from, const char *const *names)
{
    for (; *names; names++) {
        const json_t *member = json_object_get(from, *names);
        if (member && json_object_set_new(to, *names, json_deep_copy(member)) < 0)
            return false;
    }
    return true;
}

/* to.name = {those members of from.name}. */
static bool keep_in(json_t *to, const json_t *from, const char *name, const char *const *names)
{
    const json_t *member = json_object_get(from, name);
    if (!json_is_object(member))
        return true;
    json_t *made = json_object();
    if (!made || !keep(made, member, names)) {
        json_decref(made);
        return false;
    }
    return json_object_set_new(to, name, made) == 0;
}

static bool put_name(struct copy *copy, json_t *to, const char *member, enum sort sort,
                     const json_t *from)
{
    const char *name = lookup_text(from, member, NULL);
    const char *word = name_of(copy, sort, name);
    return word && (!word[0] || json_object_set_new(to, member, json_string(word)) == 0);
}

static json_t *object_of(const char *kind)
{
    return json_pack("{s:s,s:s,s:{},s:{},s:{}}", "apiVersion", "v1", "kind", kind, "metadata",
                     "spec", "status");
}

/* ---- a node ---- */

static bool fill_node(struct copy *copy, json_t *to, const json_t *node)
{
    const struct gs_names *names = copy->names;
    const json_t *meta = json_object_get(node, "metadata");
    const json_t *status = json_object_get(node, "status");
    json_t *to_meta = json_object_get(to, "metadata"), *to_status = json_object_get(to, "status");
    const char *const labels[] = {GS_NODE_LABEL, names->driver_upgrade, names->enforced, NULL};
    const char *const annotations[] = {names->inventory, names->moved, names->cordon, NULL};
    const char *const spec[] = {"unschedulable", NULL};
    const char *const amounts[] = {"cpu",
                                   "memory",
                                   "pods",
                                   names->gpu_mem,
                                   names->gpu_count,
                                   names->gpu_cores,
                                   "nvidia.com/gpu",
                                   "nvidia.com/gpu.shared",
                                   NULL};
    const char *const condition[] = {"type", "status", NULL};
    json_t *conditions = json_array();
    const json_t *ready = lookup_condition(status, "Ready");
    if (!conditions || json_object_set_new(to_status, "conditions", conditions) < 0)
        return false;
    if (ready) {
        json_t *one = json_object();
        if (!one || json_array_append_new(conditions, one) < 0 || !keep(one, ready, condition))
            return false;
    }
    return put_name(copy, to_meta, "name", A_NODE, meta) &&
           keep_in(to_meta, meta, "labels", labels) &&
           keep_in(to_meta, meta, "annotations", annotations) &&
           keep(json_object_get(to, "spec"), json_object_get(node, "spec"), spec) &&
           keep_in(to_status, status, "capacity", amounts) &&
           keep_in(to_status, status, "allocatable", amounts);
}

/* *caller decrefs*; NULL: out of memory. */
static json_t *copy_node(struct copy *copy, const json_t *node)
{
    json_t *to = object_of("Node");
    if (to && fill_node(copy, to, node))
        return to;
    json_decref(to);
    return NULL;
}

/* ---- a pod ---- */

static bool keep_resources(json_t *to, const json_t *from, const struct gs_names *names)
{
    const char *const amounts[] = {"cpu", "memory", names->gpu_mem, names->gpu_cores, NULL};
    const json_t *resources = json_object_get(from, "resources");
    if (!resources)
        return true;
    json_t *made = json_object();
    return made && json_object_set_new(to, "resources", made) == 0 &&
           keep_in(made, resources, "limits", amounts) &&
           keep_in(made, resources, "requests", amounts);
}

static bool keep_containers(struct copy *copy, json_t *to, const json_t *from, const char *member)
{
    const char *const names[] = {"restartPolicy", NULL};
    const json_t *list = json_object_get(from, member);
    size_t i;
    json_t *container;
    if (!list)
        return true;
    json_t *made = json_array();
    if (!made || json_object_set_new(to, member, made) < 0)
        return false;
    json_array_foreach(list, i, container)
    {
        json_t *one = json_object();
        if (!one || json_array_append_new(made, one) < 0 ||
            !put_name(copy, one, "name", A_CONTAINER, container) || !keep(one, container, names) ||
            !keep_resources(one, container, copy->names))
            return false;
    }
    return true;
}

static bool fill_pod(struct copy *copy, json_t *to, const json_t *pod)
{
    const struct gs_names *names = copy->names;
    const json_t *meta = json_object_get(pod, "metadata"), *spec = json_object_get(pod, "spec");
    const json_t *status = json_object_get(pod, "status");
    json_t *to_meta = json_object_get(to, "metadata"), *to_spec = json_object_get(to, "spec");
    json_t *to_status = json_object_get(to, "status");
    const char *const meta_names[] = {"uid", "creationTimestamp", "deletionTimestamp", NULL};
    const char *const labels[] = {names->gpu_count, NULL};
    const char *const annotations[] = {names->idx,        names->assigned,   names->assume_time,
                                       names->gpu_count,  names->placement,  names->model,
                                       names->model_deny, names->uuid,       names->uuid_deny,
                                       names->enforce,    GS_ALLOCATION_KEY, NULL};
    const char *const spec_names[] = {"schedulerName", "priority", NULL};
    const char *const overhead[] = {"cpu", "memory", NULL};
    const char *const phase[] = {"phase", NULL};
    return put_name(copy, to_meta, "name", A_POD, meta) &&
           put_name(copy, to_meta, "namespace", A_NAMESPACE, meta) &&
           keep(to_meta, meta, meta_names) && keep_in(to_meta, meta, "labels", labels) &&
           keep_in(to_meta, meta, "annotations", annotations) && keep(to_spec, spec, spec_names) &&
           put_name(copy, to_spec, "nodeName", A_NODE, spec) &&
           keep_in(to_spec, spec, "overhead", overhead) && keep_resources(to_spec, spec, names) &&
           keep_containers(copy, to_spec, spec, "initContainers") &&
           keep_containers(copy, to_spec, spec, "containers") && keep(to_status, status, phase) &&
           put_name(copy, to_status, "nominatedNodeName", A_NODE, status);
}

static json_t *copy_pod(struct copy *copy, const json_t *pod)
{
    json_t *to = object_of("Pod");
    if (to && fill_pod(copy, to, pod))
        return to;
    json_decref(to);
    return NULL;
}

/* ---- the command ---- */

enum { PATH_BYTES = 4096 };

struct job {
    struct common common;
    const char *path; /* "-" is standard output; of a comparison the newer file, or NULL */
    const char *old;  /* --diff */
    enum format format;
    struct copy copy;
    FILE *out;
    char partial[PATH_BYTES];
    uint64_t nodes, pods;
};

static void read_options(struct job *job, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FLAG("hash-names", &job->copy.hash_names,
                 "numbers instead of the names of nodes, namespaces, pods and containers"),
        OPT_STRING("diff", &job->old, "OLD",
                   "what changed from this file to FILE, or, without one, to the cluster now"),
        OPT_FORMAT(&job->format),
        COMMON_OPTIONS(&job->common, "has no effect: all pods count"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "Writes to FILE what placing pods looks at: nodes with their GPUs, pods with what "
               "they ask for and where they are; no environment, arguments, images or addresses. "
               "gpushare-sim serve --load=FILE plays it. - is standard output.",
        .operands = "[FILE]",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .max_operands = 1,
        .quiet = true,
    };
    const int first = gs_options_parse(&command, argc, argv);
    job->path = first < argc ? argv[first] : NULL;
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
    job->copy.names = &job->common.names;
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
    if (!job.path && !job.old)
        return complain_usage(argv[0], "a FILE is needed, such as cluster.json; or --diff OLD");
    int result = common_connect(&job.common, app, &err);
    if (result == 0)
        result = job.old ? snapshot_compare(&job.common, job.old, job.path, job.format, &err)
                         : write_all(&job, &err);
    if (result == 0 && !job.old)
        fprintf(stderr, "%" PRIu64 " nodes and %" PRIu64 " pods\n", job.nodes, job.pods);
    copy_release(&job.copy);
    source_close(&job.common.source);
    return result == 0 ? 0 : complain(&err);
}
