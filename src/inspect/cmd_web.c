/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "common/process.h"
#include "gpushare/http/server.h"
#include "inspect/common.h"
#include "inspect/terminal.h"
#include "inspect/web.h"

/* kubectl inspect gpushare web: a live page on loopback, until SIGINT or SIGTERM. */

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
                   "address of the page, loopback only (default 127.0.0.1:0, any free port)"),
        OPT_FLAG(
            "no-token", &set->no_token,
            "serve without a token in the URL, for a pod that users reach by kubectl port-forward"),
        SYSTEM_NAMESPACE_OPTION(&set->common),
        NAMESPACE_OPTION(
            &set->common,
            "namespace to show if the user may not list all pods (default: the context's)"),
        COMMON_OPTIONS(&set->common),
    };
    common_parse(argc, argv, NULL,
                 "Serves a live, read-only page of nodes, GPUs and pods, with your kubeconfig and "
                 "permissions. Prints its URL, which contains a token: any user of this machine "
                 "who has it can view the page.",
                 table, sizeof(table) / sizeof(table[0]));
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

/* A user who may not list nodes, or the pods of all, gets a page of the pods that he may. */
static int start_watcher(struct web *web, const struct fetch *fetch, struct gs_error *err)
{
    struct gs_error why = {0};
    char note[OWN_NOTE_BYTES];
    if (watcher_start(&web->watcher, fetch, err) == 0)
        return 0;
    if (err->code != GS_EDENIED)
        return -1;
    _cleanup_free_ char *table = own_table(fetch, web->common->ns, false, note, &why);
    if (!table)
        return -1;
    web->own_only = true;
    gs_error_clear(err);
    return 0;
}

/* Without this thread nothing is known of what pods use, and of a server that hangs. */
static void follow_until_stopped(struct web *web)
{
    pthread_t thread;
    const bool follows = !web->own_only && pthread_create(&thread, NULL, web_follow, web) == 0;
    process_wait_for_stop();
    web->stopping = true;
    if (follows)
        pthread_join(thread, NULL);
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
        follow_until_stopped(web);
    gs_http_server_stop(server, GS_NS_PER_S);
    gs_http_server_free(server);
    return 0;
}

int cmd_web(const struct app *app, int argc, char **argv)
{
    struct settings set = {.common = COMMON_DEFAULTS, .listen = "127.0.0.1:0"};
    struct web web = {.own_only = false};
    struct gs_error err = {0};
    read_options(&set, argc, argv);
    if (!gs_http_is_loopback(set.listen)) {
        fprintf(stderr, "%s: --listen must be a loopback address, such as 127.0.0.1:8080\n",
                argv[0]);
        return 2;
    }
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* large answers go back to the system when they are sent */
#endif
    const struct fetch fetch = {.common = &set.common};
    int result = common_connect(&set.common, app, &err);
    if (result == 0) {
        web.common = &set.common;
        web.version = (uint64_t)common_now_s(&set.common) << 20; /* above that of a run before */
        result = start_watcher(&web, &fetch, &err);
        if (result == 0)
            result = serve(&set, &web, &err);
        watcher_stop(&web.watcher);
    }
    web_close(&web);
    return common_end(&set.common, result, &err);
}
