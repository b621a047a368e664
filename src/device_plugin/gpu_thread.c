/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/gpu_thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/backoff.h"
#include "gpushare/base/log.h"

#define LOOK_NS        GS_NS_PER_S /* also how fast the thread stops */
#define FIRST_PAUSE_NS GS_NS_PER_S
#define LAST_PAUSE_NS  (30 * GS_NS_PER_S)
#define HANG_S         30
/* The kubelet starts a container at once that ran so long, and alerts come before. */
#define FAILING_S 600
/* The library of another driver never works: time to write that the GPUs take no new pods. */
#define MISMATCH_S    30
#define READ_EVERY_NS (10 * GS_NS_PER_S)
enum { STOP_MS = 2000, LOOK_MS = 10 };

struct gpu_thread {
    struct plugin *plugin;
    struct gs_gpu_source source;
    struct gs_process_pods *processes; /* NULL: nobody asks what pods use by the driver's account */
    int64_t listed_ns;                 /* when they were last listed */
    bool news_came;                    /* while they were */
    atomic_bool stop, ended;
    atomic_bool let_go;          /* of the driver, until it is taken back */
    _Atomic int64_t answered_ns; /* when the source last came back */
    /* the loop's: */
    struct gs_gpu_set last;   /* that was read */
    bool known;               /* it was, and still is so */
    bool given_up;            /* the source has hung, and has not come back */
    int64_t failing_since_ns; /* the last news were that it cannot be read; 0: it can */
    pthread_t thread;
};

/* What was read, on its way to the loop: the GPUs, or what pods use of them. */
struct news {
    struct gs_loop_task task;
    struct plugin *plugin;
    struct driver_reading *reading; /* NULL: the GPUs */
    struct gs_gpu_set set;
    struct gs_error err; /* code OK: set is valid */
};

static void free_news(struct news *news)
{
    driver_reading_free(news->reading);
    free(news);
}

/* ---- on the loop ---- */

/* False: the old devices stay. */
static bool advertise(struct plugin *plugin, const struct gs_gpu_set *found)
{
    struct gs_error err = {0};
    if (devices_take_gpus(plugin, found, &err) == 0)
        return true;
    gs_log(GS_LOG_ERROR, "cannot advertise the GPUs", GS_STR("error", err.msg));
    if (!plugin->devices.have_gpus)
        plugin_stop(plugin, 1);
    return false;
}

/* Whatever comes to a GPU that its driver does not show would not start. What runs is left alone.
 */
static void lose_sight(struct plugin *plugin, const char *why)
{
    struct gs_gpu_set sick = plugin->devices.found;
    bool news = false;
    plugin->gpu_thread->known = false;
    plugin->devices.found.measured = sick.measured = 0;
    gs_log(GS_LOG_ERROR, "cannot read the GPUs", GS_STR("reason", why));
    pages_set_gpu_error(&plugin->pages, why);
    for (uint32_t i = 0; plugin->devices.have_gpus && i < sick.count; i++) {
        news |= sick.gpus[i].healthy;
        sick.gpus[i].healthy = false;
    }
    if (news && advertise(plugin, &sick))
        plugin->node.due = true;
}

static void tell_pages(struct plugin *plugin)
{
    const char *refused = plugin->devices.set.refused;
    char why[300] = "";
    if (!plugin->devices.have_gpus)
        snprintf(why, sizeof(why), "no GPU to share%s%s", refused[0] ? ": " : "", refused);
    pages_set_gpu_error(&plugin->pages, why);
}

static void end_patience(struct plugin *plugin)
{
    struct gpu_thread *thread = plugin->gpu_thread;
    int64_t silent_ns = plugin_now_ns(plugin) - atomic_load(&thread->answered_ns);
    if (silent_ns < HANG_S * GS_NS_PER_S || thread->given_up)
        return;
    char why[64];
    snprintf(why, sizeof(why), "the NVIDIA driver has not responded for %d s", HANG_S);
    thread->given_up = true;
    lose_sight(plugin, why);
}

/* The NVIDIA runtime puts the driver's library into a container when that starts: one without it,
 * or with that of a driver that was replaced since, never sees the GPUs. */
static void end_if_for_long(struct plugin *plugin, enum gs_code code)
{
    int64_t limit_ns = (code == GS_ECONFLICT ? MISMATCH_S : FAILING_S) * GS_NS_PER_S;
    struct gpu_thread *thread = plugin->gpu_thread;
    int64_t now_ns = plugin_now_ns(plugin);
    if (plugin->settings.gpus.gpu_file)
        return;
    if (!thread->failing_since_ns)
        thread->failing_since_ns = now_ns;
    if (now_ns - thread->failing_since_ns < limit_ns)
        return;
    gs_log(GS_LOG_ERROR, "exiting to restart with the driver that is loaded now",
           GS_INT("failing_s", (now_ns - thread->failing_since_ns) / GS_NS_PER_S));
    plugin_stop(plugin, 1);
}

static bool same_set(const struct gs_gpu_set *a, const struct gs_gpu_set *b)
{
    bool same = a->count == b->count && a->vendor == b->vendor &&
                strcmp(a->refused, b->refused) == 0 && a->deaf == b->deaf && a->fresh == b->fresh;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = gs_gpu_same(&a->gpus[i], &b->gpus[i]) && a->gpus[i].node == b->gpus[i].node &&
               a->gpus[i].schedulable == b->gpus[i].schedulable;
    return same;
}

static void take_set(struct plugin *plugin, const struct gs_gpu_set *set)
{
    struct gpu_thread *thread = plugin->gpu_thread;
    const bool same = thread->known && same_set(set, &thread->last);
    thread->last = *set;
    thread->known = true;
    if (!same && advertise(plugin, set)) {
        if (!plugin->devices.have_gpus)
            plugin->devices.since_ns = plugin_now_ns(plugin);
        plugin->devices.have_gpus = set->count > 0;
        plugin->node.due = plugin->devices.log_due = true;
        tell_pages(plugin);
    }
    plugin->devices.found.measured = set->measured;
    memcpy(plugin->devices.found.used_bytes, set->used_bytes, sizeof(set->used_bytes));
}

static void take_news(struct plugin *plugin, const struct news *news)
{
    struct gpu_thread *thread = plugin->gpu_thread;
    thread->given_up = false;
    if (news->err.code == GS_OK)
        thread->failing_since_ns = 0;
    if (plugin->node.upgrading)
        return;
    if (news->err.code == GS_OK) {
        take_set(plugin, &news->set);
        return;
    }
    lose_sight(plugin, news->err.msg);
    end_if_for_long(plugin, news->err.code);
}

/* Lets go of the driver while it is replaced, and takes it back. */
static void follow_upgrade(struct plugin *plugin)
{
    struct gpu_thread *thread = plugin->gpu_thread;
    bool let_go = plugin->node.upgrading;
    if (atomic_exchange(&thread->let_go, let_go) == let_go)
        return;
    thread->failing_since_ns = 0;
    thread->known = false;
    plugin->devices.found.measured = 0;
    if (let_go)
        pages_set_gpu_error(&plugin->pages, "the driver is released for its upgrade");
}

void gpu_thread_round(struct plugin *plugin)
{
    follow_upgrade(plugin);
    end_patience(plugin);
}

static void on_news(void *ctx)
{
    struct news *news = ctx;
    struct plugin *plugin = news->plugin;
    if (plugin->gpu_thread && news->reading) { /* else the program ends */
        driver_usage_take(&plugin->driver_usage, gs_steal(&news->reading), &plugin->devices.set);
        plugin->round.usage_due = true;
    } else if (plugin->gpu_thread) {
        take_news(plugin, news);
    }
    free_news(news);
}

/* ---- on the thread ---- */

static struct news *new_news(const struct gpu_thread *thread)
{
    struct news *news = calloc(1, sizeof(*news));
    if (news) /* else the next reading tells */
        *news = (struct news){.task = {.fn = on_news, .ctx = news}, .plugin = thread->plugin};
    return news;
}

/* The source came back, with whatever answer. */
static void note_answer(struct gpu_thread *thread)
{
    atomic_store(&thread->answered_ns, plugin_now_ns(thread->plugin));
}

/* Of the loop's clock, which is looked at ten times a second. */
static void pause_ns(struct gpu_thread *thread, int64_t ns)
{
    const struct timespec tenth = {0, 100 * GS_NS_PER_MS};
    const struct gs_loop *loop = thread->plugin->loop;
    int64_t until_ns = gs_loop_now_ns(loop) + ns;
    while (gs_loop_now_ns(loop) < until_ns && !atomic_load(&thread->stop)) {
        nanosleep(&tenth, NULL);
        note_answer(thread);
    }
}

static bool is_wanted(struct gpu_thread *thread)
{
    return !atomic_load(&thread->stop) && !atomic_load(&thread->let_go);
}

/* News about the GPUs do not wait for long lists. */
static int64_t next_list(void *ctx)
{
    struct gpu_thread *thread = ctx;
    int64_t now_ns = plugin_now_ns(thread->plugin);
    /* three calls follow, each of which may take as long as any */
    atomic_store(&thread->answered_ns, now_ns + 2 * HANG_S * GS_NS_PER_S);
    thread->news_came |= thread->source.ops->wait(thread->source.ctx, 0, NULL) != 0;
    bool over = thread->news_came && now_ns - thread->listed_ns >= LOOK_NS;
    return over || !is_wanted(thread) ? 0 : now_ns;
}

/* As rarely as the GPUs are read when nothing happens to them. False: there may be news. */
static bool list_processes(struct gpu_thread *thread, const struct gs_gpu_set *set)
{
    int64_t now_ns = plugin_now_ns(thread->plugin);
    if (!thread->processes || (thread->listed_ns && now_ns - thread->listed_ns < READ_EVERY_NS))
        return true;
    thread->listed_ns = now_ns;
    thread->news_came = false;
    struct news *news = new_news(thread);
    if (!news)
        return true;
    news->reading = driver_usage_read(&thread->source, set, thread->processes, next_list, thread);
    note_answer(thread);
    if (news->reading)
        gs_loop_post(thread->plugin->loop, &news->task);
    else
        free_news(news);
    return !thread->news_came;
}

/* Until there may be news; a storm of them is read once a second. False: the source is broken. */
static bool wait_for_news(struct gpu_thread *thread)
{
    const struct gs_loop *loop = thread->plugin->loop;
    int64_t read_ns = gs_loop_now_ns(loop);
    int64_t pace_ns = READ_EVERY_NS;
    while (is_wanted(thread) && gs_loop_now_ns(loop) - read_ns < pace_ns) {
        struct gs_error err = {0};
        int result = thread->source.ops->wait(thread->source.ctx, LOOK_NS, &err);
        note_answer(thread);
        if (result < 0) { /* reading tells whether the GPUs are well */
            gs_log(GS_LOG_WARN, "waiting for GPU events failed", GS_STR("error", err.msg));
            return false;
        }
        if (result == 0)
            continue;
        pace_ns = LOOK_NS;
        nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL);
    }
    return true;
}

/* False: the driver is not to be touched. */
static bool hold_on(struct gpu_thread *thread)
{
    if (!atomic_load(&thread->let_go))
        return true;
    gs_log(GS_LOG_INFO, "driver released");
    if (thread->source.ops->release)
        thread->source.ops->release(thread->source.ctx);
    while (atomic_load(&thread->let_go) && !atomic_load(&thread->stop))
        pause_ns(thread, GS_NS_PER_S);
    return false;
}

/* Reads, and brings it to the loop. */
static int read_set(struct gpu_thread *thread, struct gs_gpu_set *ret)
{
    struct gs_error err = {0};
    int result = thread->source.ops->read(thread->source.ctx, ret, &err);
    note_answer(thread);
    struct news *news = new_news(thread);
    if (!news)
        return result;
    news->err = err;
    if (result == 0)
        news->set = *ret;
    gs_loop_post(thread->plugin->loop, &news->task);
    return result;
}

static void *run(void *arg)
{
    struct gpu_thread *thread = arg;
    struct gs_gpu_set set;
    uint32_t failures = 0;
    while (!atomic_load(&thread->stop)) {
        if (!hold_on(thread))
            continue;
        if (read_set(thread, &set) < 0) {
            pause_ns(thread, gs_pause_ns(failures++, FIRST_PAUSE_NS, LAST_PAUSE_NS));
            continue;
        }
        if (!list_processes(thread, &set))
            continue;
        if (wait_for_news(thread))
            failures = 0;
        else
            pause_ns(thread, gs_pause_ns(failures, FIRST_PAUSE_NS, LAST_PAUSE_NS));
    }
    atomic_store(&thread->ended, true);
    return NULL;
}

static void free_thread(struct gpu_thread *thread)
{
    thread->source.ops->close(thread->source.ctx);
    if (thread->processes)
        gs_process_pods_free(thread->processes);
    free(thread);
}

/* Whether pods' processes are looked for. Process 1 is one that has a PID namespace of its own, in
 * which the driver lists none: what pods use is unknown then, not 0. */
static bool lists_processes(const struct plugin *plugin, const struct gs_gpu_source *source)
{
    if (plugin->settings.pod_usage_from == POD_USAGE_DMEM)
        return false;
    bool own_pids = getpid() == 1;
    if (!source->ops->processes)
        gs_log(GS_LOG_WARN, "--pod-usage-from: simulated GPUs have no driver that lists processes");
    else if (own_pids)
        gs_log(GS_LOG_WARN, "--pod-usage-from: set hostPID: true for this pod, otherwise the "
                            "driver's processes cannot be matched to pods");
    return source->ops->processes && !own_pids;
}

int gpu_thread_start(struct plugin *plugin, const struct gs_gpu_source *source,
                     struct gs_error *err)
{
    struct gpu_thread *thread = calloc(1, sizeof(*thread));
    if (!thread) {
        source->ops->close(source->ctx);
        return gs_fail_nomem(err);
    }
    thread->plugin = plugin;
    thread->source = *source;
    note_answer(thread);
    if (lists_processes(plugin, source)) {
        thread->processes = gs_process_pods_new("/proc");
        if (!thread->processes) {
            free_thread(thread);
            return gs_fail_nomem(err);
        }
    }
    int error = pthread_create(&thread->thread, NULL, run, thread);
    if (error) {
        free_thread(thread);
        return gs_fail_errno(err, GS_ENOMEM, error, "thread");
    }
    plugin->gpu_thread = thread;
    return 0;
}

void gpu_thread_stop(struct plugin *plugin)
{
    struct gpu_thread *thread = gs_steal(&plugin->gpu_thread);
    if (!thread)
        return;
    atomic_store(&thread->stop, true);
    for (int ms = 0; !atomic_load(&thread->ended) && ms < STOP_MS; ms += LOOK_MS)
        nanosleep(&(const struct timespec){.tv_nsec = LOOK_MS * GS_NS_PER_MS}, NULL);
    if (!atomic_load(&thread->ended)) {
        gs_log(GS_LOG_WARN, "the driver does not return: exiting without it");
        _exit(plugin->round.result);
    }
    pthread_join(thread->thread, NULL);
    free_thread(thread);
}
