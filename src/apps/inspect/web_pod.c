/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/web.h"

/* Pods that somebody looks at: what others said of them stands in no row, and is asked for. */

#define AGAIN_NS (3 * GS_NS_PER_S)

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

static bool is_of(const struct web_pod *pod, const struct web_query *query)
{
    return strcmp(pod->ns, query->ns) == 0 && strcmp(pod->name, query->name) == 0;
}

static struct web_pod *find(struct web_pods *pods, const struct web_query *query)
{
    for (size_t i = 0; i < WEB_PODS_MAX; i++) {
        if (is_of(&pods->all[i], query))
            return &pods->all[i];
    }
    return NULL;
}

static struct web_pod *oldest(struct web_pods *pods)
{
    struct web_pod *oldest = &pods->all[0];
    for (size_t i = 1; i < WEB_PODS_MAX; i++) {
        if (pods->all[i].asked_ns < oldest->asked_ns)
            oldest = &pods->all[i];
    }
    return oldest;
}

static bool says_other(const struct web_pod *a, const struct web_pod *b)
{
    return a->why.state != b->why.state || strcmp(a->why.said, b->why.said) != 0 ||
           strcmp(a->why.trouble, b->why.trouble) != 0 || strcmp(a->failed, b->failed) != 0;
}

/* Pods with GPU memory alone are asked about: the page shows no others. */
static bool is_due(struct web *web, const struct web_query *query)
{
    struct gs_error ignored = {0};
    pthread_mutex_lock(&web->watcher.lock);
    const struct web_pod *known = find(&web->pods, query);
    const bool due = web_refresh(web, &ignored) == 0 &&
                     web_has_pod(&web->state.view, query->ns, query->name) &&
                     (!known || now_ns() - known->asked_ns > AGAIN_NS);
    pthread_mutex_unlock(&web->watcher.lock);
    return due;
}

void web_pod_ask(struct web *web, const struct web_query *query)
{
    struct web_pod pod = {.why.common = web->own.common};
    struct gs_error err = {0};
    if (!is_due(web, query))
        return;
    snprintf(pod.ns, sizeof(pod.ns), "%s", query->ns);
    snprintf(pod.name, sizeof(pod.name), "%s", query->name);
    if (why_list(&pod.why, pod.ns, pod.name, &err) < 0)
        snprintf(pod.failed, sizeof(pod.failed), "%s", err.msg);
    else if (pod.why.state == WHY_WAITING)
        promised_fetch(web->own.common, pod.why.pod.uid, &pod.why.promised);
    pod.asked_ns = now_ns();
    pthread_mutex_lock(&web->watcher.lock);
    struct web_pod *known = find(&web->pods, query);
    struct web_pod *to = known ? known : oldest(&web->pods);
    web->watcher.changed |= known && says_other(known, &pod);
    why_release(&to->why);
    *to = pod;
    pthread_mutex_unlock(&web->watcher.lock);
}

char *web_pod_text(struct web_pods *pods, const struct view *view, const struct web_query *query)
{
    char *text = NULL;
    size_t len;
    struct web_pod *pod = find(pods, query);
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    if (pod && !pod->failed[0]) {
        why_find(&pod->why, view->snapshot, view->usage);
        why_tell(&pod->why, out);
    } else {
        fprintf(out, "The API server could not be asked about it%s%s\n", pod ? ": " : "",
                pod ? pod->failed : "");
    }
    fclose(out);
    return text;
}

void web_pods_release(struct web_pods *pods)
{
    for (size_t i = 0; i < WEB_PODS_MAX; i++)
        why_release(&pods->all[i].why);
}
