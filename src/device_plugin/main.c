/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/api.h"
#include "common/process.h"
#include "device_plugin/advertise.h"
#include "device_plugin/gpu_thread.h"
#include "device_plugin/kubelet_calls.h"
#include "device_plugin/plugin.h"
#include "device_plugin/pod_watch.h"
#include "gpushare/base/log.h"
#include "gpushare/http/server.h"

/* Of a page of several pods; a larger one is asked for in parts, so that it costs no more. */
enum { PAGE_BYTES_MAX = 4 << 20, PAGE_LIMIT = 25 };

/* What only the start and the end know. */
struct ends {
    struct plugin *plugin;
    struct gs_http_server *http;
    struct gs_loop_fd signals;
    int signal_fd;
};

static int print_inventory(const struct settings *settings, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(256 << 10);
    struct gs_gpu_source source;
    struct gs_gpu_set set;
    if (gs_gpus_open(&settings->gpus, &source, err) < 0)
        return -1;
    int result = source.ops->read(source.ctx, &set, err);
    source.ops->close(source.ctx);
    if (result < 0)
        return -1;
    set.reserved_mib = settings_reserved_mib(settings);
    advertise_divide(&set, settings->unit);
    advertise_print(&set, settings->unit, &text);
    if (gs_buf_failed(&text))
        return gs_fail_nomem(err);
    fputs(text.data, stdout);
    return advertise_check(&set, settings->unit, err);
}

/* The original's name for the original's domain: "aliyun.com" → "aliyungpushare.sock". */
static void name_endpoint(struct plugin *plugin)
{
    const char *domain = plugin->names.domain;
    snprintf(plugin->endpoint, sizeof(plugin->endpoint), "%.*sgpushare.sock",
             (int)strcspn(domain, "."), domain);
}

/* Takes the socket at once: a second copy of this program ends here, and harms nothing. */
static int take_socket(struct plugin *plugin, struct gs_error *err)
{
    char path[512];
    name_endpoint(plugin);
    snprintf(path, sizeof(path), "%.400s/%s", plugin->settings.device_plugin_dir, plugin->endpoint);
    return gs_dp_listen(plugin->dp, path, err);
}

static int build(struct plugin *plugin, struct gs_error *err)
{
    const struct gs_allocator_config config = {.names = &plugin->names,
                                               .node = plugin->settings.node_name,
                                               .clock = gs_clock_system(),
                                               .mps = plugin->settings.mps_root != NULL};
    plugin->alloc = gs_allocator_new(&config);
    if (!plugin->alloc)
        return gs_fail_nomem(err);
    if (gs_loop_new(gs_clock_system(), &plugin->loop, err) < 0)
        return -1;
    plugin_start(plugin);
    if (enforce_start(plugin, err) < 0)
        return -1;
    if (gs_dp_new(plugin->loop, &kubelet_calls_ops, plugin, &plugin->dp, err) < 0)
        return -1;
    return take_socket(plugin, err);
}

static int start_threads(struct plugin *plugin, struct ends *ends, struct gs_error *err)
{
    struct gs_gpu_source source;
    pages_init(&plugin->pages, plugin->client);
    if (plugin->settings.http_listen &&
        pages_serve(&plugin->pages, plugin->settings.http_listen, &ends->http, err) < 0)
        return -1;
    if (plugin->settings.http_listen && plugin->settings.pod_usage)
        gs_log(GS_LOG_WARN,
               "--pod-usage=on: every client that reaches this port can read the memory use of "
               "each pod",
               GS_STR("listen", plugin->settings.http_listen));
    if (pod_watch_start(plugin, err) < 0 || slice_watch_start(plugin, err) < 0 ||
        gs_gpus_open(&plugin->settings.gpus, &source, err) < 0)
        return -1;
    return gpu_thread_start(plugin, &source, err);
}

static void on_signal(void *ctx, short revents)
{
    struct ends *ends = ctx;
    struct signalfd_siginfo info;
    if (read(ends->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    gs_log(GS_LOG_INFO, "stopping");
    if (info.ssi_signo == SIGTERM)
        shutdown_begin(ends->plugin);
    else
        plugin_stop(ends->plugin, 0);
}

/* Signals come to the loop like everything else. */
static int watch_signals(struct plugin *plugin, struct ends *ends, struct gs_error *err)
{
    const sigset_t set = process_stop_signals();
    ends->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (ends->signal_fd < 0)
        return gs_fail(err, GS_EIO, "cannot create a signalfd");
    ends->signals = (struct gs_loop_fd){.fn = on_signal, .ctx = ends};
    return gs_loop_fd_add(plugin->loop, &ends->signals, ends->signal_fd, POLLIN, err);
}

/* No API server is waited for. Threads first: what they still bring is taken by the loop's last
 * round. */
static void tear_down(struct plugin *plugin, struct ends *ends)
{
    plugin->round.stopping = true;
    if (plugin->client)
        gs_kube_client_cancel(plugin->client);
    gs_http_server_free(ends->http);
    pages_release(&plugin->pages);
    pod_watch_stop(plugin);
    worker_stop(&plugin->writes.writer);
    worker_stop(&plugin->calls.lister);
    slice_watch_stop(plugin);
    gpu_thread_stop(plugin);
    if (plugin->loop) {
        gs_loop_step(plugin->loop, 0, NULL);
        kubelet_calls_free(plugin);
        plugin_release(plugin);
        gs_loop_fd_remove(plugin->loop, &ends->signals);
        if (plugin->link)
            gs_kubelet_link_free(plugin->link);
        if (plugin->dp)
            gs_dp_free(plugin->dp);
        gs_loop_free(plugin->loop);
    }
    slice_watch_free(plugin->ownership.watch);
    gs_allocator_free(plugin->alloc);
    gs_kube_client_free(plugin->client);
    if (ends->signal_fd >= 0)
        close(ends->signal_fd);
}

static int start(struct plugin *plugin, struct ends *ends, struct gs_error *err)
{
    const struct settings *settings = &plugin->settings;
    plugin->kube = gs_kube_client_port(plugin->client);
    record_open(&plugin->devices.record, settings->device_plugin_dir, settings->domain,
                settings->node_name);
    if (mps_choose(plugin, err) < 0 || build(plugin, err) < 0 ||
        watch_signals(plugin, ends, err) < 0)
        return -1;
    return start_threads(plugin, ends, err);
}

static int serve(struct plugin *plugin, struct gs_error *err)
{
    struct ends ends = {.plugin = plugin, .signal_fd = -1};
    const struct gs_kube_options options = {.program = "device-plugin",
                                            .names = &plugin->names,
                                            .page_max_bytes = PAGE_BYTES_MAX,
                                            .page_limit = PAGE_LIMIT};
    int result = api_connect(plugin->settings.kubeconfig, &options, &plugin->client, err);
    if (result == 0)
        result = start(plugin, &ends, err);
    if (result == 0) {
        gs_log(GS_LOG_INFO, "serving", GS_STR("version", GS_VERSION),
               GS_STR("node", plugin->settings.node_name),
               GS_STR("unit", gs_unit_name(plugin->settings.unit)));
        result = plugin_run(plugin, err);
    }
    tear_down(plugin, &ends);
    return result;
}

/* One heap for all threads, which gives free memory back. */
static void keep_one_heap(void)
{
    mallopt(M_ARENA_MAX, 1); /* threads with little to do must not keep a heap each */
    mallopt(M_TRIM_THRESHOLD, 64 << 10);
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
}

int main(int argc, char **argv)
{
    static struct plugin plugin;
    struct gs_error err = {0};
    process_keep_secrets();
    keep_one_heap();
    settings_read(&plugin.settings, argc, argv);
    if (gs_names_init(&plugin.names, plugin.settings.domain, &err) < 0) {
        gs_log(GS_LOG_ERROR, "invalid options", GS_STR("error", err.msg));
        return 2;
    }
    process_block_signals();
    int result = plugin.settings.print_inventory ? print_inventory(&plugin.settings, &err)
                                                 : serve(&plugin, &err);
    if (result < 0)
        gs_log(GS_LOG_ERROR, "exiting after an error", GS_STR("error", err.msg));
    return result < 0 ? 1 : plugin.round.result;
}
