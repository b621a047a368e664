/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/invariant.h"
#include "gpushare/base/metric.h"
#include "gpushare/base/num.h"
#include "gpushare/base/slice.h"

static time_t start_s;

__attribute__((constructor)) static void note_start(void)
{
    start_s = time(NULL);
}

/* The first words of /proc/self/statm (proc(5)); 0 where there is none. */
static void read_pages(uint64_t *ret_size, uint64_t *ret_resident)
{
    char text[256];
    FILE *file = fopen("/proc/self/statm", "re");
    struct gs_slice rest = {text, file ? fread(text, 1, sizeof(text), file) : 0};
    const struct gs_slice size = gs_slice_cut(&rest, ' '), resident = gs_slice_cut(&rest, ' ');
    *ret_size = *ret_resident = 0;
    gs_parse_u64(size.at, size.len, ret_size);
    gs_parse_u64(resident.at, resident.len, ret_resident);
    if (file)
        fclose(file);
}

/* Itself, "." and ".." are not counted. */
static uint64_t open_fds(void)
{
    uint64_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count > 3 ? count - 3 : 0;
}

static uint64_t max_fds(void)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}

void metrics_process(struct gs_buf *out)
{
    uint64_t size, resident, page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct timespec cpu = {0};
    read_pages(&size, &resident);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    gs_metric_family(out, "gpushare_build_info", "gauge",
                     "Constant 1, with the program's version as a label.");
    gs_metric_sample(out, "gpushare_build_info", "version", GS_VERSION, 1);
    gs_metric_counter(out, "gpushare_invariant_violations_total",
                      "Internal invariant violations. Each one is a bug; the reservation "
                      "that caused it was rejected.",
                      gs_invariants_broken());
    gs_metric_seconds(out, "process_cpu_seconds_total", "counter",
                      "Total user and system CPU time spent in seconds.",
                      (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    gs_metric_seconds(out, "process_start_time_seconds", "gauge",
                      "Start time of the process since unix epoch in seconds.", (double)start_s);
    gs_metric_gauge(out, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
                    size * page_bytes);
    gs_metric_gauge(out, "process_resident_memory_bytes", "Resident memory size in bytes.",
                    resident * page_bytes);
    gs_metric_gauge(out, "process_open_fds", "Number of open file descriptors.", open_fds());
    gs_metric_gauge(out, "process_max_fds", "Maximum number of open file descriptors.", max_fds());
}

/* The API client's counters as metrics, for both programs that have a client. */

static void print_watches(const struct gs_kube_stats *kube, struct gs_buf *out)
{
    gs_metric_summary(out, "gpushare_watch_list_duration_seconds",
                      "Duration of the list requests that watches start from.", kube->lists,
                      kube->list_ns);
    gs_metric_counter(out, "gpushare_watch_relists_total",
                      "List requests after the first one of a watch.", kube->relists);
    gs_metric_counter(out, "gpushare_watch_starts_total",
                      "Watch requests that the API server answered.", kube->watch_starts);
    gs_metric_counter(out, "gpushare_watch_interruptions_total",
                      "Watches that were interrupted: errors, closed connections and stalls.",
                      kube->watch_cuts);
    gs_metric_counter(out, "gpushare_watch_expired_total",
                      "Watches whose resourceVersion was too old (410 Gone).", kube->watch_expired);
    const char *name = "gpushare_watch_events_total";
    gs_metric_family(out, name, "counter", "Watch events, by type.");
    gs_metric_sample(out, name, "type", "added", kube->events_added);
    gs_metric_sample(out, name, "type", "modified", kube->events_modified);
    gs_metric_sample(out, name, "type", "deleted", kube->events_deleted);
    gs_metric_sample(out, name, "type", "bookmark", kube->events_bookmark);
    gs_metric_counter(out, "gpushare_watch_invalid_objects_total",
                      "Objects from the API server that were ignored: invalid, or too large.",
                      kube->broken_objects);
}

void metrics_kube(struct gs_kube_client *client, struct gs_buf *out)
{
    struct gs_kube_stats kube;
    gs_kube_client_stats(client, &kube);
    gs_metric_counter(out, "gpushare_api_requests_total",
                      "Requests that the API server answered, watches included.", kube.requests);
    gs_metric_counter(out, "gpushare_api_failures_total",
                      "Requests without a complete answer from the API server, such as timeouts.",
                      kube.failed);
    gs_metric_counter(out, "gpushare_api_retries_total", "Retries of requests to the API server.",
                      kube.retries);
    gs_metric_counter(out, "gpushare_api_throttled_total",
                      "Requests that the API server throttled (429 Too Many Requests).",
                      kube.throttled);
    gs_metric_counter(out, "gpushare_api_unauthorized_total",
                      "Requests whose credentials the API server rejected (401 Unauthorized).",
                      kube.unauthorized);
    gs_metric_counter(out, "gpushare_api_oversized_total",
                      "Responses and watch events dropped because of their size.", kube.oversized);
    gs_metric_counter(out, "gpushare_api_received_bytes_total",
                      "Response bodies received from the API server.", kube.bytes_received);
    print_watches(&kube, out);
}
