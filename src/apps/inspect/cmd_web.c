/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/process.h"
#include "gpushare/http/server.h"
#include "inspect/common.h"
#include "inspect/terminal.h"
#include "inspect/web.h"

/* kubectl inspect gpushare web: a live page on loopback, until SIGINT or SIGTERM. */

#define TICK_NS  (200 * GS_NS_PER_MS)
#define PUSH_NS  GS_NS_PER_S
#define ALIVE_NS (5 * GS_NS_PER_S)

enum { CONNECTIONS_MAX = 128, WORKERS = 4 };

struct settings {
    struct common common;
    const char *listen;
    bool no_token;
};

static void read_options(struct settings *set, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_STRING("listen", &set->listen, "ADDR:PORT",
                   "where to serve, of this machine only (127.0.0.1:0, any free port)"),
        OPT_FLAG("no-token", &set->no_token,
                 "an address without a token: where a pod serves, and the right to forward its "
                 "port is the login"),
        SYSTEM_NAMESPACE_OPTION(&set->common),
        COMMON_OPTIONS(&set->common, "whose pods are shown to a user who may not list all (the "
                                     "context's); else the page has a filter"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "A live page of nodes, GPUs, pods and who waits, with your own kubeconfig and "
               "rights. Prints its address; whoever has that may look, nobody can change "
               "anything.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .quiet = true,
    };
    gs_options_parse(&command, argc, argv);
}

static int make_token(const struct settings *set, struct web *web, struct gs_error *err)
{
    unsigned char random[(WEB_TOKEN_BYTES - 1) / 2];
    if (set->no_token)
        return 0;
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return gs_fail_errno(err, GS_EIO, errno, "random bytes");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(web->token + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static int start_server(const struct settings *set, struct web *web, struct gs_http_server **ret,
                        struct gs_error *err)
{
    struct gs_http_config config = gs_http_health_config(CONNECTIONS_MAX);
    config.max_connections_per_address = 0; /* there is one */
    config.workers = WORKERS;               /* who asks about a pod */
    config.response_timeout_ns = 30 * GS_NS_PER_S;
    config.max_response_bytes = WEB_BYTES_MAX;
    config.max_buffered_bytes = (size_t)64 << 20;
    config.listen = set->listen;
    config.routes = web_routes;
    config.route_count = WEB_ROUTES;
    config.ctx = web;
    return gs_http_server_start(&config, ret, err);
}

/* Waits; true when SIGINT or SIGTERM came. */
static bool stopped(void)
{
    const struct timespec time = {0, TICK_NS};
    const sigset_t set = process_stop_signals();
    return sigtimedwait(&set, NULL, &time) > 0;
}

/* Something changed, or a page that was asked for has taken it in before the streams were told. */
static bool has_news(struct web *web, uint64_t *version)
{
    pthread_mutex_lock(&web->watcher.lock);
    bool news = web->watcher.changed || *version != web->version;
    *version = web->version + web->watcher.changed; /* as it is after the next refresh */
    pthread_mutex_unlock(&web->watcher.lock);
    return news;
}

static void push_until_stopped(struct web *web)
{
    int64_t pushed_ns = 0, alive_ns = 0;
    uint64_t version = 0;
    bool news = false;
    while (!stopped()) {
        int64_t now_ns = gs_clock_now_ns(gs_clock_system());
        bool tick = now_ns - alive_ns >= ALIVE_NS;
        news |= has_news(web, &version);
        if (!tick && (!news || now_ns - pushed_ns < PUSH_NS))
            continue;
        web_push(web, tick);
        pushed_ns = now_ns;
        alive_ns = tick ? now_ns : alive_ns;
        news = false;
    }
}

/* A user who may not list nodes, or everybody's pods, gets a page of the pods that he may. */
static int start_watcher(struct web *web, const struct fetch *fetch, struct gs_error *err)
{
    struct own own;
    struct gs_error why = {0};
    if (watcher_start(&web->watcher, fetch, err) == 0)
        return 0;
    if (err->code != GS_EDENIED)
        return -1;
    web->own_only = own_fetch(&web->own, &own, &why) == 0;
    own_release(&own);
    if (web->own_only)
        gs_error_clear(err);
    return web->own_only ? 0 : -1;
}

/* Without these threads nothing is known of what pods use, and of a server that hangs. */
static void push_and_follow(struct web *web)
{
    static void *(*const runs[])(void *) = {web_follow, web_pulse};
    pthread_t threads[sizeof(runs) / sizeof(runs[0])];
    size_t started = 0;
    while (!web->own_only && started < sizeof(runs) / sizeof(runs[0]) &&
           pthread_create(&threads[started], NULL, runs[started], web) == 0)
        started++;
    push_until_stopped(web);
    web->stopping = true;
    while (started)
        pthread_join(threads[--started], NULL);
}

static int serve(const struct settings *set, struct web *web, struct gs_error *err)
{
    struct gs_http_server *server = NULL;
    if (make_token(set, web, err) < 0 || start_server(set, web, &server, err) < 0)
        return -1;
    const char *colon = strrchr(set->listen, ':');
    printf("http://%.*s:%u/%s%s\n", (int)(colon - set->listen), set->listen,
           gs_http_server_port(server), web->token, web->token[0] ? "/" : "");
    if (fflush(stdout) == 0)
        push_and_follow(web);
    gs_http_server_stop(server, GS_NS_PER_S);
    gs_http_server_free(server);
    return 0;
}

int cmd_web(const struct app *app, int argc, char **argv)
{
    struct settings set = {.common = COMMON_DEFAULTS, .listen = "127.0.0.1:0"};
    struct web web = {.parts = WEB_PARTS, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct gs_error err = {0};
    read_options(&set, argc, argv);
    if (!gs_http_is_loopback(set.listen)) {
        fprintf(stderr, "%s: --listen is an address of this machine only, such as 127.0.0.1:8080\n",
                argv[0]);
        return 2;
    }
    const struct fetch fetch = {.common = &set.common, .keeps_since = true};
    int result = common_connect(&set.common, app, &err);
    if (result == 0) {
        web.own = (struct own_query){.common = &set.common, .ns = set.common.ns};
        result = start_watcher(&web, &fetch, &err);
        if (result == 0)
            result = serve(&set, &web, &err);
        watcher_stop(&web.watcher);
    }
    web_close(&web);
    source_close(&set.common.source);
    return result == 0 ? 0 : complain(&err);
}
