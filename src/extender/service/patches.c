/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

#define PATCH_NS (2 * GS_NS_PER_S)
#define SLOW_NS  (500 * GS_NS_PER_MS)
#define TICK_NS  (100 * GS_NS_PER_MS)

enum { SLOW_THREADS = GS_PATCH_THREADS * 3 / 4 };

struct gs_patch_job {
    struct gs_patch_job *prev, *next;
    gs_patch_fn *write;
    struct gs_patch_lane *lane;
    char uid[];
};

void gs_patches_release(struct gs_patches *patches)
{
    struct gs_patch_job *job, *next;
    DL_FOREACH_SAFE (patches->queue, job, next)
        free(job);
    pthread_mutex_destroy(&patches->lock);
}

void gs_patches_add(struct gs_patches *patches, enum gs_patch kind, uint32_t share, const char *uid,
                    gs_patch_fn *write)
{
    struct gs_patch_job *job = malloc(sizeof(*job) + strlen(uid) + 1);
    if (!job)
        return;
    job->write = write;
    job->lane = &patches->lanes[kind][share];
    memcpy(job->uid, uid, strlen(uid) + 1);
    pthread_mutex_lock(&patches->lock);
    job->lane->jobs++;
    DL_APPEND(patches->queue, job);
    pthread_mutex_unlock(&patches->lock);
}

/* The oldest whose turn it is, slow ones last and not in all threads; NULL: there is none. */
static struct gs_patch_job *take_job(struct gs_patches *patches)
{
    struct gs_patch_job *at, *job = NULL;
    DL_FOREACH (patches->queue, at) {
        const struct gs_patch_lane *lane = at->lane;
        const bool may = lane->slow ? !job && patches->slow < SLOW_THREADS : true;
        if (!lane->under_way && may)
            job = at;
        if (job && !job->lane->slow)
            break;
    }
    if (job) {
        patches->slow += job->lane->slow;
        DL_DELETE(patches->queue, job);
        job->lane->under_way = true;
    }
    return job;
}

void gs_patches_tick(struct gs_service *service)
{
    struct gs_patches *patches = &service->patches;
    const int64_t until_ns = gs_service_now(service) + TICK_NS;
    struct gs_patch_job *job;
    pthread_mutex_lock(&patches->lock);
    while (gs_service_now(service) < until_ns && (job = take_job(patches))) {
        pthread_mutex_unlock(&patches->lock);
        const int64_t begun_ns = gs_service_now(service);
        job->write(service, job->uid);
        pthread_mutex_lock(&patches->lock);
        patches->slow -= job->lane->slow;
        job->lane->slow = gs_service_now(service) - begun_ns > SLOW_NS;
        job->lane->under_way = false;
        job->lane->jobs--;
        free(job);
    }
    pthread_mutex_unlock(&patches->lock);
}

int gs_patch_pod(struct gs_service *service, const struct gs_pod *pod, const char *version,
                 const struct gs_kv *annotations, size_t count, const char *nominated,
                 struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    struct gs_meta_patch patch = {.ns = pod->ns,
                                  .name = pod->name,
                                  .uid = pod->uid,
                                  .resource_version = version,
                                  .annotations = annotations,
                                  .annotation_count = count,
                                  .nominated_node = nominated,
                                  .deadline_ns = gs_service_now(service) + PATCH_NS};
    if (gs_service_refuses(service))
        return gs_fail(err, GS_ECANCELED, "another replica is the leader");
    if (service->config.election &&
        gs_election_until_ns(service->config.election) < patch.deadline_ns)
        patch.deadline_ns = gs_election_until_ns(service->config.election);
    return kube->ops->patch_pod(kube->ctx, &patch, err);
}
