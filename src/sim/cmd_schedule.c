/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/options.h"
#include "common/process.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "sim/commands.h"
#include "sim/rest.h"
#include "sim/scheduler.h"

/* gpushare-sim schedule: creates pods from files, then plays kube-scheduler until every pod is
 * bound or refused and nothing happens any more. */

static void read_settings(struct sched_settings *set, int argc, char **argv)
{
    *set = (struct sched_settings){.api = DEFAULT_API,
                                   .domain = "aliyun.com",
                                   .scheduler_name = "default-scheduler",
                                   .seed = 1,
                                   .settle_ns = 300 * GS_NS_PER_MS,
                                   .backoff_ns = GS_NS_PER_S};
    const struct gs_option table[] = {
        OPT_STRING("api", &set->api, "URL", "URL of the API server (default " DEFAULT_API ")"),
        OPT_STRING("extender", &set->extender, "URL",
                   "URL of gpushare-extender, without a path (default: no extender is called)"),
        OPT_STRING("pods", &set->pods, "FILE[,FILE]", "pods to create first; - is standard input"),
        OPT_FLAG("follow", &set->follow, "keep running until SIGTERM"),
        OPT_DURATION("settle", &set->settle_ns, "TIME",
                     "exit after this time without a change (default 300ms)"),
        OPT_DURATION("backoff", &set->backoff_ns, "TIME",
                     "delay before a pod is retried (default 1s)"),
        OPT_STRING("scheduler-name", &set->scheduler_name, "NAME",
                   "schedule pods of this scheduler (default default-scheduler)"),
        OPT_STRING("domain", &set->domain, "DOMAIN",
                   "domain of the GPU resources (default aliyun.com)"),
        OPT_U32("seed", &set->seed, "NUMBER", "seed of the choice between equal nodes"),
    };
    const struct gs_command command = {
        .name = "gpushare-sim schedule",
        .doc =
            "Runs kube-scheduler's loop over HTTP: filter, prioritize and bind for pending pods.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

/* ---- the pods ---- */

static int create_pod(void *ctx, const char *version, const char *kind, struct gs_slice json,
                      struct gs_error *err)
{
    struct sched *sched = ctx;
    char path[400];
    if (strcmp(version, "v1") != 0 || strcmp(kind, "Pod") != 0)
        return gs_fail(err, GS_EINVAL, "only pods can be scheduled");
    json_auto_t *pod = json_loadb(json.at, json.len, 0, NULL);
    const char *ns = gs_sim_tree_str(gs_sim_tree_object(pod, "metadata"), "namespace");
    snprintf(path, sizeof(path), "/api/v1/namespaces/%.253s/pods", ns[0] ? ns : "default");
    return rest_call(sched->api, "POST", path, NULL, pod, NULL, err);
}

/* ---- the loop ---- */

/* Waits at most so long; true: a signal asks for the end. */
static bool wait_for_stop(int64_t ns)
{
    sigset_t set = process_stop_signals();
    const struct timespec time = {.tv_sec = ns / GS_NS_PER_S, .tv_nsec = ns % GS_NS_PER_S};
    return sigtimedwait(&set, NULL, &time) > 0;
}

/* The version of the newest write; "" when it cannot be asked. */
static void read_version(struct sched *sched, char ret[32])
{
    json_auto_t *list = NULL;
    rest_call(sched->api, "GET", "/api/v1/pods?limit=1", NULL, NULL, &list, NULL);
    snprintf(ret, 32, "%s",
             gs_sim_tree_str(gs_sim_tree_object(list, "metadata"), "resourceVersion"));
}

/* Passes, as long as something happens; when following, until a signal. */
static int run(struct sched *sched, struct gs_error *err)
{
    for (;;) {
        char before[32], now[32];
        size_t tries = 0;
        int64_t again_ns = 0;
        bool idle;
        read_version(sched, before);
        int rc = sched_pass(sched, &tries, &again_ns, err);
        if (rc < 0 && !sched->set.follow)
            return -1;
        if (rc < 0)
            gs_log(GS_LOG_WARN, "the API server does not respond", GS_STR("error", err->msg));
        do {
            if (wait_for_stop(tries ? GS_NS_PER_MS : sched->set.settle_ns))
                return 0;
            read_version(sched, now);
            idle = !tries && strcmp(before, now) == 0;
        } while (sched->set.follow && idle && again_ns > gs_clock_now_ns(gs_clock_system()));
        if (!sched->set.follow && idle && again_ns == INT64_MAX)
            return 0;
    }
}

static int prepare(struct sched *sched, struct gs_error *err)
{
    sched->random = sched->set.seed;
    if (gs_names_init(&sched->names, sched->set.domain, err) < 0 ||
        rest_connect(sched->set.api, &sched->names, &sched->api, err) < 0)
        return -1;
    return sched->set.extender
               ? rest_connect(sched->set.extender, &sched->names, &sched->extender, err)
               : 0;
}

int cmd_schedule(int argc, char **argv)
{
    struct sched sched = {0};
    struct gs_error err = {0};
    read_settings(&sched.set, argc, argv);
    process_block_signals();
    int rc = prepare(&sched, &err);
    if (rc == 0)
        rc = rest_read_listed(sched.set.pods, create_pod, &sched, &err);
    const int64_t begin_ns = gs_clock_now_ns(gs_clock_system());
    if (rc == 0)
        rc = run(&sched, &err);
    if (rc == 0)
        printf("%llu pods bound, %zu pending, %llu errors, in %.2f s\n",
               (unsigned long long)sched.bound, sched.waiting, (unsigned long long)sched.errors,
               (double)(gs_clock_now_ns(gs_clock_system()) - begin_ns) / (double)GS_NS_PER_S);
    else
        gs_log(GS_LOG_ERROR, "schedule failed", GS_STR("error", err.msg));
    sched_release(&sched);
    gs_kube_client_free(sched.extender);
    gs_kube_client_free(sched.api);
    return rc == 0 ? 0 : err.code == GS_EINVAL ? 2 : 1;
}
