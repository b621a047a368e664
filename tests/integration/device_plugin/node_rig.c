/* SPDX-License-Identifier: Apache-2.0 */
#include "node_rig.h"

#include "device_plugin/container_env.h"
#include "device_plugin/gpu_thread.h"
#include "device_plugin/kubelet_calls.h"
#include "device_plugin/pod_watch.h"
#include "gpushare/base/array.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/node.h"

/* The edges that --wrap names have no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define STEP_NS (50 * GS_NS_PER_MS)

struct plugin plugin;
static struct node *here; /* the edges have no context of their own */

/* ---- the API server ---- */

static int away(bool is_away, struct gs_error *err)
{
    return is_away ? gs_fail(err, GS_EIO, "the API server is away") : 0;
}

static void put_key(struct gs_buf *out, const char *key, const char *value, bool *first)
{
    if (!value[0])
        return;
    gs_buf_printf(out, "%s\"%s\":", *first ? "" : ",", key);
    gs_buf_json_string(out, value, strlen(value));
    *first = false;
}

static int get_node(void *ctx, const char *name, struct gs_node *ret, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(1 << 20);
    bool first = true;
    here->node_tries++;
    if (here->node_error != GS_OK)
        return gs_fail(err, here->node_error, "no node");
    if (away(here->node_away, err) < 0)
        return -1;
    gs_buf_puts(&text, "{\"metadata\":{\"name\":\"n1\",\"labels\":{");
    put_key(&text, plugin.names.enforced, here->label, &first);
    put_key(&text, plugin.names.mps, here->mps ? "true" : "", &first);
    put_key(&text, plugin.names.driver_upgrade, here->upgrading ? "true" : "", &first);
    gs_buf_puts(&text, "},\"annotations\":{");
    first = true;
    put_key(&text, plugin.names.inventory, here->inventory, &first);
    put_key(&text, plugin.names.moved, here->moved, &first);
    put_key(&text, plugin.names.cordon, here->cordon ? here->cordon : "", &first);
    gs_buf_printf(&text,
                  "}},\"status\":{\"nodeInfo\":{\"kubeletVersion\":\"%s\"},"
                  "\"capacity\":{\"%s\":\"%u\",\"%s\":\"%u\"%s}}}",
                  here->kubelet ? here->kubelet : "", plugin.names.gpu_count, here->counts[0],
                  plugin.names.gpu_cores, here->counts[1], here->others ? here->others : "");
    return gs_codec_node(&plugin.names, (struct gs_slice){text.data, text.len}, ret, err);
}

static int patch_node(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    if (away(here->node_away, err) < 0)
        return -1;
    for (size_t i = 0; i < patch->annotation_count; i++) {
        const struct gs_kv *kv = &patch->annotations[i];
        if (strcmp(kv->key, plugin.names.inventory) == 0)
            snprintf(here->inventory, sizeof(here->inventory), "%s", kv->value);
        else
            snprintf(here->moved, sizeof(here->moved), "%s", kv->value);
    }
    if (patch->label_count)
        snprintf(here->label, sizeof(here->label), "%s",
                 patch->labels[0].value ? patch->labels[0].value : "");
    here->node_patches++;
    return 0;
}

static int patch_node_status(void *ctx, const struct gs_node_status_patch *patch,
                             struct gs_error *err)
{
    if (away(here->node_away, err) < 0)
        return -1;
    for (size_t i = 0; i < patch->capacity_count; i++)
        here->counts[i] = (uint32_t)strtoul(patch->capacity[i].value, NULL, 10);
    return 0;
}

static int patch_pod(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    here->pod_patches++;
    assert_string_equal(patch->uid, patch->name); /* so another of its name is not written to */
    if (here->refused != GS_OK)
        return gs_fail(err, here->refused, "refused");
    return away(here->pods_away, err);
}

static int create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    here->event_tries++;
    if (here->refused != GS_OK)
        return gs_fail(err, here->refused, "refused");
    if (away(here->node_away, err) < 0)
        return -1;
    if (here->event_count < NODE_EVENT_TEXTS)
        snprintf(here->events[here->event_count++], sizeof(here->events[0]),
                 "%s %s %s/%s %s %s %s: %s", event->api ? event->api : "v1", event->kind,
                 event->ns ? event->ns : "", event->name, event->uid, event->reason,
                 event->warning ? "Warning" : "Normal", event->message);
    return 0;
}

static void describe_pod(const struct node_pod *pod, struct gs_container containers[2],
                         struct gs_pod *ret)
{
    containers[0] = (struct gs_container){.kind = GS_CONTAINER_MAIN, .gpu_units = pod->units};
    containers[1] = (struct gs_container){.kind = GS_CONTAINER_MAIN, .gpu_units = pod->beside};
    gs_pod_reset(ret);
    ret->uid = ret->name = pod->name;
    ret->ns = "ns";
    ret->node_name = "n1";
    ret->phase = pod->running ? GS_PHASE_RUNNING : GS_PHASE_PENDING;
    ret->qos = GS_QOS_BEST_EFFORT;
    ret->containers = containers;
    ret->container_count = pod->beside ? 2 : 1;
    ret->enforce_required = pod->required;
    if (pod->owned) {
        ret->owner_api = "apps/v1";
        ret->owner_kind = "ReplicaSet";
        ret->owner_name = ret->owner_uid = "web";
    }
    ret->recorded = pod->record ? GS_RECORDED_VALID : GS_RECORDED_NONE;
    ret->recorded_gpus = pod->record;
    ret->count_kind = pod->count ? GS_COUNT_VALID : GS_COUNT_ABSENT;
    ret->gpu_count = pod->count;
    ret->created_s = 1;
}

static int list_pods(void *ctx, const char *name, int64_t timeout_ns,
                     int (*each)(void *each_ctx, const struct gs_pod *pod), void *each_ctx,
                     struct gs_error *err)
{
    if (away(here->pods_away, err) < 0)
        return -1;
    for (uint32_t i = 0; i < here->pod_count; i++) {
        struct gs_container containers[2];
        struct gs_pod pod = {0};
        describe_pod(&here->pods[i], containers, &pod);
        if (here->pods[i].bound && each(each_ctx, &pod) < 0)
            return -1;
    }
    return 0;
}

static const struct gs_kube_ops ops = {.get_node = get_node,
                                       .patch_node = patch_node,
                                       .patch_node_status = patch_node_status,
                                       .patch_pod = patch_pod,
                                       .create_event = create_event,
                                       .list_pods = list_pods};

int __wrap_gs_kube_request(struct gs_kube_client *client, const struct gs_kube_request *request,
                           int *ret_status, struct gs_buf *body, struct gs_error *err)
{
    here->slice_requests++;
    if (here->refused == GS_EDENIED)
        return gs_fail(err, here->refused, "refused");
    if (away(here->slices_away, err) < 0)
        return -1;
    *ret_status = 200;
    gs_buf_reset(body);
    gs_buf_printf(body,
                  "{\"kind\":\"ResourceSliceList\",\"apiVersion\":\"resource.k8s.io/v1\","
                  "\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[%s]}",
                  here->slices);
    return 0;
}

/* The watch: a whole list. */
void node_list_pods(struct node *node)
{
    struct gs_error err = {0};
    if (node->pods_away || node->unwatched || !node->runs)
        return;
    gs_allocator_list_begin(plugin.alloc);
    for (uint32_t i = 0; i < node->pod_count; i++) {
        struct gs_container containers[2];
        struct gs_pod pod = {0};
        describe_pod(&node->pods[i], containers, &pod);
        if (node->pods[i].bound && gs_allocator_pod(plugin.alloc, &pod, &err) < 0)
            fail_msg("%s", err.msg);
    }
    gs_allocator_list_end(plugin.alloc);
    plugin.pods_listed = plugin.pods_changed = true;
}

/* ---- the kubelet ---- */

int __wrap_gs_kubelet_link_new(struct gs_loop *loop, struct gs_dp *dp,
                               const struct gs_kubelet_link_options *options,
                               struct gs_kubelet_link **ret, struct gs_error *err)
{
    *ret = (struct gs_kubelet_link *)here;
    here->linked = true;
    options->event(options->ctx, GS_KUBELET_LINK_REGISTERED, NULL);
    return 0;
}

size_t __wrap_gs_dp_streams(const struct gs_dp *dp)
{
    return here->linked;
}

int __wrap_gs_dp_set_devices(struct gs_dp *dp, const char *const *ids, size_t count,
                             struct gs_error *err)
{
    if (here->lists_fail)
        return gs_fail_nomem(err);
    assert_in_range(count, 0, GS_COUNT_OF(here->devices));
    for (size_t i = 0; i < count; i++)
        snprintf(here->devices[i], sizeof(here->devices[0]), "%s", ids[i]);
    here->device_count = count;
    return 0;
}

void __wrap_gs_dp_allocate_reply(struct gs_dp_call *call, const struct gs_dp_container *containers,
                                 size_t count)
{
    struct node_pod *pod = (struct node_pod *)call;
    size_t at = 0;
    for (size_t i = 0; i < containers[0].env_count; i++)
        at += (size_t)snprintf(pod->env + at, sizeof(pod->env) - at, "%s=%s\n",
                               containers[0].envs[i].key, containers[0].envs[i].value);
    pod->answered = true;
}

bool __real_checkpoint_observe(struct plugin *unused, bool at_allocate, bool with_ids);
bool __wrap_checkpoint_observe(struct plugin *unused, bool at_allocate, bool with_ids)
{
    here->readings += !at_allocate && !with_ids;
    return __real_checkpoint_observe(unused, at_allocate, with_ids);
}

void __wrap_gs_dp_pre_start_reply(struct gs_dp_call *call)
{
    ((struct node_pod *)call)->answered = here->starts = true;
    here->start_wakes = plugin.round.wake_ns <= here->now_ns + NODE_SOON_NS;
}

void __wrap_gs_dp_call_fail(struct gs_dp_call *call, const struct gs_error *why)
{
    struct node_pod *pod = (struct node_pod *)call;
    snprintf(pod->why, sizeof(pod->why), "%s", why->msg);
    pod->answered = true;
}

/* protobuf by hand: field 1 of the answer is a map entry (api.proto). */
static void put_env(struct gs_buf *out, const char *line, size_t len)
{
    size_t key = (size_t)(strchr(line, '=') - line), value = len - key - 1;
    assert_true(key + value + 4 < 128);
    gs_buf_printf(out, "%c%c%c%c%.*s%c%c%.*s", 0x0a, (int)(key + value + 4), 0x0a, (int)key,
                  (int)key, line, 0x12, (int)value, (int)value, line + key + 1);
}

static void put_base64(struct gs_buf *out, const char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t count = len - i < 3 ? len - i : 3;
        uint32_t group = 0;
        for (size_t byte = 0; byte < 3; byte++)
            group = group << 8 | (byte < count ? (uint8_t)bytes[i + byte] : 0);
        for (size_t digit = 0; digit < 4; digit++)
            gs_buf_putc(out, digit <= count ? digits[group >> (18 - 6 * digit) & 63] : '=');
    }
}

static void put_entry(struct gs_buf *out, const struct node_pod *pod, bool first)
{
    struct gs_buf answer = GS_BUF(2048);
    for (const char *line = pod->env; *line; line = strchr(line, '\n') + 1)
        put_env(&answer, line, strcspn(line, "\n"));
    gs_buf_printf(out,
                  "%s{\"PodUID\":\"%s\",\"ContainerName\":\"c\",\"ResourceName\":\"%s\","
                  "\"DeviceIDs\":{\"-1\":[",
                  first ? "" : ",", pod->name, plugin.names.gpu_mem);
    for (uint32_t n = 0; n < pod->units; n++)
        gs_buf_printf(out, "%s\"%s\"", n ? "," : "", pod->ids[n]);
    gs_buf_puts(out, "]},\"AllocResp\":\"");
    put_base64(out, answer.data ? answer.data : "", answer.len);
    gs_buf_puts(out, "\"}");
    gs_buf_release(&answer);
}

void node_write_checkpoint(const struct node *node)
{
    struct gs_buf text = GS_BUF(1 << 20);
    char path[128];
    bool first = true;
    gs_buf_puts(&text, "{\"Data\":{\"PodDeviceEntries\":[");
    for (uint32_t i = 0; i < node->pod_count; i++) {
        if (!node->pods[i].admitted || !node->pods[i].env[0])
            continue;
        put_entry(&text, &node->pods[i], first);
        first = false;
    }
    gs_buf_puts(&text, "],\"RegisteredDevices\":{}},\"Checksum\":1}");
    snprintf(path, sizeof(path), "%s/kubelet_internal_checkpoint", node->dir);
    put_text(path, text.data);
    gs_buf_release(&text);
}

/* ---- the plugin ---- */

void __wrap_gpu_thread_round(struct plugin *unused)
{
}

static void worker_done(void *ctx)
{
    struct worker *worker = ctx;
    worker->loop = NULL;
    worker->job.done(worker->job.ctx);
}

void __wrap_worker_submit(struct worker *worker, struct gs_loop *loop, const struct worker_job *job)
{
    assert_null(worker->loop); /* the last job is done */
    *worker =
        (struct worker){.job = *job, .loop = loop, .task = {.fn = worker_done, .ctx = worker}};
    job->work(job->ctx);
    gs_loop_post(loop, &worker->task);
}

static int64_t now(void *ctx)
{
    return here->now_ns;
}

static void take_gpus(struct node *node)
{
    struct gs_error err = {0};
    if (devices_take_gpus(&plugin, &node->gpus, &err) < 0)
        fail_msg("%s", err.msg);
    if (!plugin.devices.have_gpus)
        plugin.devices.since_ns = node->now_ns;
    plugin.devices.have_gpus = node->gpus.count > 0;
    plugin.node.due = plugin.devices.log_due = true;
}

void node_set_gpus(struct node *node, const struct gs_gpu *gpus, uint32_t count)
{
    node->gpus = (struct gs_gpu_set){.count = count};
    if (count)
        memcpy(node->gpus.gpus, gpus, count * sizeof(*gpus));
    if (node->runs)
        take_gpus(node);
}

int __real_gs_limiter_new(const struct gs_limiter_options *options, struct gs_limiter **ret,
                          struct gs_error *err);
int __wrap_gs_limiter_new(const struct gs_limiter_options *options, struct gs_limiter **ret,
                          struct gs_error *err)
{
    struct gs_limiter_options ours = *options;
    ours.host = &here->tree.host;
    ours.driver = fake_limits_port(&here->driver);
    return __real_gs_limiter_new(&ours, ret, err);
}

bool node_start(struct node *node)
{
    here = node;
    node->clock = (struct gs_clock){.monotonic_ns = now, .wall_ns = now, .ctx = node};
    node->settings.device_plugin_dir = node->dir;
    node->settings.cgroup_root = node->tree.mount;
    plugin = (struct plugin){.settings = node->settings, .kube = {&ops, node}};
    assert_int_equal(gs_names_init(&plugin.names, "aliyun.com", NULL), 0);
    record_open(&plugin.devices.record, plugin.settings.device_plugin_dir, plugin.settings.domain,
                plugin.settings.node_name);
    if (mps_choose(&plugin, NULL) < 0) {
        devices_release(&plugin.devices);
        return false;
    }
    const struct gs_allocator_config config = {
        .names = &plugin.names, .node = "n1", .clock = &node->clock};
    plugin.alloc = gs_allocator_new(&config);
    assert_int_equal(gs_loop_new(&node->clock, &plugin.loop, NULL), 0);
    plugin_start(&plugin);
    assert_int_equal(enforce_start(&plugin, NULL), 0);
    assert_int_equal(slice_watch_start(&plugin, NULL), 0);
    pages_init(&plugin.pages, NULL);
    node->runs = true;
    take_gpus(node);
    node_list_pods(node);
    node_run(node, 1);
    return true;
}

void node_kill(struct node *node)
{
    kubelet_calls_free(&plugin);
    gs_loop_step(plugin.loop, 0, NULL);
    plugin_release(&plugin);
    pages_release(&plugin.pages);
    gs_allocator_free(plugin.alloc);
    gs_loop_free(plugin.loop);
    slice_watch_free(plugin.ownership.watch);
    node->runs = node->linked = false;
}

void node_run(struct node *node, int seconds)
{
    for (int64_t end_ns = node->now_ns + seconds * GS_NS_PER_S; node->now_ns < end_ns;
         node->now_ns += STEP_NS) {
        plugin_round(&plugin);
        gs_loop_step(plugin.loop, 0, NULL);
    }
    plugin_round(&plugin);
}

/* ---- pods ---- */

struct node_pod *node_bind(struct node *node, const char *name, uint32_t units, gs_gpu_mask gpus,
                           uint32_t count)
{
    assert_in_range(node->pod_count, 0, NODE_PODS - 1);
    struct node_pod *pod = &node->pods[node->pod_count++];
    *pod = (struct node_pod){.units = units, .count = count, .record = gpus, .bound = true};
    snprintf(pod->name, sizeof(pod->name), "%s", name);
    node_list_pods(node);
    return pod;
}

static void finish_call(struct node *node, const struct node_pod *pod)
{
    for (int i = 0; i < 40 && !pod->answered; i++)
        node_run(node, 1);
    assert_true(pod->answered);
}

static bool is_in_use(const struct node *node, const char *id)
{
    for (uint32_t i = 0; i < node->pod_count; i++) {
        const struct node_pod *pod = &node->pods[i];
        for (uint32_t n = 0; pod->admitted && n < pod->units; n++) {
            if (strcmp(pod->ids[n], id) == 0)
                return true;
        }
    }
    return false;
}

/* One whose ids a kubelet that forgot them can give to this one. */
static const struct node_pod *of_its_size(const struct node *node, const struct node_pod *pod)
{
    for (uint32_t i = 0; i < node->pod_count; i++) {
        const struct node_pod *other = &node->pods[i];
        if (other != pod && other->admitted && other->units == pod->units)
            return other;
    }
    return NULL;
}

/* NULL: all are given. */
static const char *free_id(struct node *node)
{
    for (size_t tries = 0; tries < node->device_count; tries++) {
        const char *id = node->devices[node->next_id++ % node->device_count];
        if (!is_in_use(node, id))
            return id;
    }
    return NULL;
}

uint32_t node_free_ids(const struct node *node)
{
    uint32_t count = 0;
    for (size_t i = 0; i < node->device_count; i++)
        count += !is_in_use(node, node->devices[i]);
    return count;
}

const char *node_folder(const struct node_pod *pod)
{
    static char folder[64];
    snprintf(folder, sizeof(folder), "/kubepods/besteffort/pod%s", pod->name);
    return folder;
}

void node_ask(struct node *node, struct node_pod *pod)
{
    assert_in_range(pod->units, 1, node_free_ids(node));
    const struct node_pod *twin = node->twice ? of_its_size(node, pod) : NULL;
    for (uint32_t i = 0; i < pod->units; i++) {
        const char *id = twin ? twin->ids[i] : free_id(node);
        snprintf(pod->ids[i], sizeof(pod->ids[0]), "%s", id);
        pod->asked[i] = pod->ids[i];
    }
    pod->admitted = true;
    if (!pod->late)
        tree_mkdirs(&node->tree, node_folder(pod), true);
    pod->wanted = (struct gs_dp_ids){pod->asked, pod->units};
    pod->answered = false;
    kubelet_calls_ops.allocate(&plugin, (struct gs_dp_call *)pod, &pod->wanted, 1);
}

bool node_admit(struct node *node, struct node_pod *pod)
{
    node_ask(node, pod);
    finish_call(node, pod);
    pod->failed = !pod->env[0];
    pod->admitted = !pod->failed;
    node_write_checkpoint(node);
    return !pod->failed;
}

bool node_starts(struct node *node, struct node_pod *pod)
{
    const char *ids[NODE_IDS];
    for (uint32_t i = 0; i < pod->units; i++)
        ids[i] = pod->ids[i];
    const struct gs_dp_ids wanted = {ids, pod->units};
    pod->answered = node->starts = false;
    for (uint32_t i = 0; i <= node->more_starts; i++)
        kubelet_calls_ops.pre_start(&plugin, (struct gs_dp_call *)pod, &wanted);
    finish_call(node, pod);
    return node->starts;
}

void node_end(struct node *node, struct node_pod *pod)
{
    tree_rmdir(&node->tree, node_folder(pod));
    pod->bound = pod->admitted = false;
    if (!node->lazy)
        node_write_checkpoint(node);
    node_list_pods(node);
}

/* ---- what came of it ---- */

uint64_t node_limit(struct node *node, const struct node_pod *pod, const char *region)
{
    const char *line = strstr(tree_get(&node->tree, node_folder(pod), "dmem.max"), region);
    assert_non_null(line);
    line += strlen(region) + 1;
    return strncmp(line, "max", 3) == 0 ? UINT64_MAX : strtoull(line, NULL, 10);
}

const char *node_env(const struct node_pod *pod, const char *name)
{
    static char value[256];
    size_t len = strlen(name);
    for (const char *line = pod->env; *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, name, len) != 0 || line[len] != '=')
            continue;
        snprintf(value, sizeof(value), "%.*s", (int)(strcspn(line, "\n") - len - 1),
                 line + len + 1);
        return value;
    }
    return "";
}

void node_make(struct node *node)
{
    const struct gs_gpu cards[] = {
        {.idx = 0,
         .uuid = "GPU-a",
         .mem_mib = 16384,
         .pci = "0000:41:00.0",
         .healthy = true,
         .schedulable = true,
         .numa = GS_NUMA_NONE},
        {.idx = 1,
         .uuid = "GPU-b",
         .mem_mib = 16384,
         .pci = "0000:c1:00.0",
         .healthy = true,
         .schedulable = true,
         .numa = GS_NUMA_NONE},
    };
    *node = (struct node){.dir = "/tmp/gs-node-XXXXXX", .now_ns = 1000 * GS_NS_PER_S};
    here = node;
    gs_log_init(getenv("NODE_LOG") ? GS_LOG_DEBUG : GS_LOG_ERROR, GS_LOG_TEXT);
    assert_non_null(mkdtemp(node->dir));
    node->settings = (struct settings){.node_name = "n1",
                                       .domain = "aliyun.com",
                                       .unit = GS_UNIT_GIB,
                                       .device_lists = DEVICE_LIST_ENVVAR,
                                       .nvidia_dev_root = "/nonexistent",
                                       .enforce = GS_ENFORCE_PREFERRED,
                                       .enforce_by = ENFORCE_BY_DMEM,
                                       .gpus.nvml_library = "/nowhere"};
    tree_make(&node->tree);
    tree_mkdirs(&node->tree, "/kubepods/besteffort/other", true);
    node_set_gpus(node, cards, 2);
}

void node_free(struct node *node)
{
    if (node->runs)
        node_kill(node);
    tree_rmdir(&node->tree, "");
    remove_tree(node->dir);
}
