/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "client_private.h"

/* No sleep is longer than this without a look at the flag, whoever forgets to wake us. */
enum { LOOK_MS = 1000 };

int gs_runner_open(struct gs_kube_client *client, const atomic_bool *stop, struct gs_runner *runner,
                   struct gs_error *err)
{
    CURLM *multi = curl_multi_init();
    struct gs_connection *connection = multi ? gs_connection_new(client) : NULL;
    if (!connection) {
        curl_multi_cleanup(multi);
        return gs_fail_nomem(err);
    }
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L);
    *runner = (struct gs_runner){.multi = multi, .stop = stop, .connection = connection};
    pthread_mutex_lock(&client->lock);
    runner->next = client->runners;
    client->runners = runner;
    pthread_mutex_unlock(&client->lock);
    return 0;
}

void gs_runner_close(struct gs_kube_client *client, struct gs_runner *runner)
{
    pthread_mutex_lock(&client->lock);
    struct gs_runner **link = &client->runners;
    while (*link != runner)
        link = &(*link)->next;
    *link = runner->next;
    pthread_mutex_unlock(&client->lock);
    gs_connection_free(runner->connection);
    curl_multi_cleanup(runner->multi);
}

void gs_runner_sleep(const struct gs_runner *runner, int64_t ns)
{
    const struct gs_clock *clock = gs_clock_system();
    int64_t until_ns = gs_clock_now_ns(clock) + ns;
    for (int64_t left = ns;
         left > 0 && !gs_runner_stopped(runner) && !gs_runner_list_wanted(runner);
         left = until_ns - gs_clock_now_ns(clock)) {
        int64_t ms = left / GS_NS_PER_MS + 1;
        curl_multi_poll(runner->multi, NULL, 0, ms > LOOK_MS ? LOOK_MS : (int)ms, NULL);
    }
}
