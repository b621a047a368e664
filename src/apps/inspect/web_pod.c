/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/web.h"

/* Pods and nodes that somebody looks at: what others said of them stands in no row, and is asked
 * for. */

bool web_asks(const struct web_query *query)
{
    return query->view == WEB_POD || query->view == WEB_NODE;
}

static bool is_of(const struct web_pod *pod, const struct web_query *query)
{
    return strcmp(pod->ns, query->view == WEB_POD ? query->ns : "") == 0 &&
           strcmp(pod->name, query->name) == 0;
}

struct web_pod *web_pods_find(struct web_pods *pods, const struct web_query *query)
{
    for (size_t i = 0; i < WEB_PODS_MAX; i++) {
        if (is_of(&pods->all[i], query))
            return &pods->all[i];
    }
    return NULL;
}

char *web_pod_text(struct web_pods *pods, const struct view *view, const struct web_query *query)
{
    char *text = NULL;
    size_t len;
    struct web_pod *pod = web_pods_find(pods, query);
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
