/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "common/options.h"
#include "common/process.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/sim/manifest.h"
#include "sim/commands.h"
#include "sim/rest.h"
#include "sim/scheduler.h"

/* gpushare-sim schedule: creates pods from files, then plays kube-scheduler until every pod is
 * bound or refused and nothing happens any more. */

static void read_settings(struct sched_settings *set, int argc, char **argv, int *ret_operands)
{
    *set = (struct sched_settings){.domain = "aliyun.com",
                                   .scheduler_name = "default-scheduler",
                                   .seed = 1,
                                   .settle_ns = 300 * GS_NS_PER_MS,
                                   .backoff_ns = GS_NS_PER_S};
    const struct gs_option table[] = {
        OPT_STRING("api", &set->api, "URL", "of the API server"),
        OPT_STRING("kubeconfig", &set->kubeconfig, "FILE", "instead of --api"),
        OPT_STRING("extender", &set->extender, "URL",
                   "of gpushare-extender, without a path; absent: none is asked"),
        OPT_STRING("pods", &set->pods, "FILE[,FILE]", "pods to create first; - is stdin"),
        OPT_FLAG("follow", &set->follow, "keep running until SIGTERM"),
        OPT_DURATION("settle", &set->settle_ns, "TIME",
                     "end when nothing happened for so long (300ms)"),
        OPT_DURATION("backoff", &set->backoff_ns, "TIME",
                     "before a pod's second try, doubled up to 10s (1s)"),
        OPT_STRING("scheduler-name", &set->scheduler_name, "NAME",
                   "whose pods to schedule (default-scheduler)"),
        OPT_STRING("domain", &set->domain, "DOMAIN", "of the GPU resources"),
        OPT_U64("seed", &set->seed, "NUMBER", "of the choice between equal nodes"),
    };
    const struct gs_command command = {
        .name = "gpushare-sim schedule",
        .doc = "kube-scheduler's loop over HTTP: filter, prioritize and bind for pods that wait.",
        .operands = "[FILE...]",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .max_operands = -1,
    };
    *ret_operands = gs_options_parse(&command, argc, argv);
}

/* ---- the pods ---- */

static int create_pod(void *ctx, enum gs_sim_kind kind, struct gs_slice json, struct gs_error *err)
{
    struct sched *sched = ctx;
    char path[400];
    if (kind != GS_SIM_PODS)
        return gs_fail(err, GS_EINVAL, "only pods can be scheduled");
    json_auto_t *pod = json_loadb(json.at, json.len, 0, NULL);
    const char *ns = rest_text(rest_member(pod, "metadata", NULL), "namespace");
    snprintf(path, sizeof(path), "/api/v1/namespaces/%.253s/pods", ns[0] ? ns : "default");
    return rest_call(sched->api, "POST", path, NULL, pod, NULL, err);
}

/* ---- the loop ---- */

static void *wait_for_signal(void *ctx)
{
    struct sched *sched = ctx;
    process_wait_for_stop();
    pthread_mutex_lock(&sched->lock);
    sched->stopping = true;
    pthread_cond_broadcast(&sched->changed);
    pthread_mutex_unlock(&sched->lock);
    return NULL;
}

static void run(struct sched *sched)
{
    struct sched_pod pod;
    while (sched_next(sched, &pod)) {
        sched_cycle(sched, &pod);
        sched_pod_release(&pod);
    }
}

static uint32_t count_waiting(struct sched *sched)
{
    uint32_t waiting = 0;
    pthread_mutex_lock(&sched->lock);
    for (uint32_t i = 0; i < sched->pod_count; i++)
        waiting += sched->pods[i].uid && sched->pods[i].waiting;
    pthread_mutex_unlock(&sched->lock);
    return waiting;
}

static int prepare(struct sched *sched, struct gs_error *err)
{
    gs_clock_cond_init(&sched->changed);
    pthread_mutex_init(&sched->lock, NULL);
    sched->random = sched->set.seed;
    if (!sched->set.api == !sched->set.kubeconfig)
        return gs_fail(err, GS_EINVAL, "one of --api and --kubeconfig is needed");
    if (gs_names_init(&sched->names, sched->set.domain, err) < 0 ||
        rest_connect(sched->set.api, sched->set.kubeconfig, &sched->names, &sched->api, err) < 0)
        return -1;
    return sched->set.extender
               ? rest_connect(sched->set.extender, NULL, &sched->names, &sched->extender, err)
               : 0;
}

static void tear_down(struct sched *sched)
{
    sched_state_stop(sched);
    sched_nodes_release(sched);
    gs_kube_client_free(sched->extender);
    gs_kube_client_free(sched->api);
    pthread_cond_destroy(&sched->changed);
    pthread_mutex_destroy(&sched->lock);
}

/* Returns 0 when the loop ended as it should. */
static int schedule(struct sched *sched, struct gs_error *err)
{
    pthread_t signals;
    int64_t begin = gs_clock_now_ns(gs_clock_system());
    if (pthread_create(&signals, NULL, wait_for_signal, sched) != 0)
        return gs_fail(err, GS_ENOMEM, "no thread for signals");
    run(sched);
    pthread_kill(signals, SIGTERM); /* it waits for one */
    pthread_join(signals, NULL);
    double seconds = (double)(gs_clock_now_ns(gs_clock_system()) - begin) / (double)GS_NS_PER_S;
    printf("%llu pods bound, %u waiting, %llu errors, in %.2f s\n",
           (unsigned long long)sched->bound, count_waiting(sched),
           (unsigned long long)sched->errors, seconds);
    return 0;
}

int cmd_schedule(int argc, char **argv)
{
    struct sched sched = {0};
    struct gs_error err = {0};
    int first;
    read_settings(&sched.set, argc, argv, &first);
    process_block_signals();
    int rc = prepare(&sched, &err);
    /* The watches first: they show the new pods in the order of their creation. */
    if (rc == 0)
        rc = sched_state_start(&sched, &err);
    if (rc == 0)
        rc = sched_wait_loaded(&sched, &err);
    if (rc == 0)
        rc = gs_sim_manifest_read_listed("--pods", sched.set.pods, create_pod, &sched, &err);
    for (int i = first; rc == 0 && i < argc; i++)
        rc = gs_sim_manifest_read(argv[i], create_pod, &sched, &err);
    if (rc == 0)
        rc = schedule(&sched, &err);
    if (rc < 0)
        gs_log(GS_LOG_ERROR, "schedule failed", GS_STR("why", err.msg));
    tear_down(&sched);
    return rc == 0 ? 0 : err.code == GS_EINVAL ? 2 : 1;
}
