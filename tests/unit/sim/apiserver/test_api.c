/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "gpushare/base/clock.h"
#include "sim/apiserver/api.h"

/* ---- a client without a socket ---- */

struct world {
    struct gs_sim_cluster *cluster;
    struct gs_sim_api api;
};

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    *state = world;
    if (!world || gs_sim_cluster_new(&(struct gs_sim_options){0}, &world->cluster, NULL) < 0)
        return -1;
    world->api = (struct gs_sim_api){world->cluster, .bookmark_ns = 10 * GS_NS_PER_MS};
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    gs_sim_cluster_free(world->cluster);
    free(world);
    return 0;
}

/* Looks a name up in "name=value&name=value"; no escapes. */
static const char *query_of(void *ctx, const char *name)
{
    static char values[4][128];
    static unsigned turn;
    const char *at = ctx;
    size_t len = strlen(name);
    while (at && *at) {
        if (strncmp(at, name, len) == 0 && at[len] == '=') {
            char *value = values[turn++ % 4];
            snprintf(value, 128, "%.*s", (int)strcspn(at + len + 1, "&"), at + len + 1);
            return value;
        }
        at = strchr(at, '&');
        at += at != NULL;
    }
    return NULL;
}

/* line: "GET /path?query"; type may be NULL. */
static struct gs_sim_reply ask(struct world *world, const char *line, const char *type,
                               const char *body)
{
    char method[16], path[256];
    const char *space = strchr(line, ' '), *mark = strchr(line, '?');
    struct gs_sim_reply reply = GS_SIM_REPLY;
    snprintf(method, sizeof(method), "%.*s", (int)(space - line), line);
    snprintf(path, sizeof(path), "%.*s",
             (int)(mark ? (size_t)(mark - space - 1) : strlen(space + 1)), space + 1);
    gs_sim_api_handle(&world->api,
                      &(struct gs_sim_request){.method = method,
                                               .path = path,
                                               .query = query_of,
                                               .query_ctx = (void *)(mark ? mark + 1 : NULL),
                                               .content_type = type,
                                               .body = gs_slice_of(body)},
                      &reply);
    return reply;
}

#define test_with_world(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

#define PODS   "/api/v1/namespaces/default/pods"
#define MERGE  "application/merge-patch+json"
#define POD(n) "{\"metadata\":{\"name\":\"" n "\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}"
#define TARGET "\"target\":{\"name\":\"n\"}"

/* ---- statuses ---- */

static void every_request_gets_the_status_that_kubernetes_gives(void **state)
{
    static const struct {
        const char *line;
        const char *type;
        const char *body;
        int status;
        const char *words; /* somewhere in the answer */
    } rows[] = {
        {"GET /healthz", NULL, "", 200, "ok"},
        {"GET /readyz", NULL, "", 200, "ok"},
        {"GET /version", NULL, "", 200, "\"gitVersion\""},
        {"GET /", NULL, "", 404, "\"NotFound\""},
        {"GET /api", NULL, "", 200, "\"APIVersions\""},
        {"GET /apis", NULL, "", 200, "coordination.k8s.io/v1"},
        {"GET /apis/coordination.k8s.io", NULL, "", 200, "\"APIGroup\""},
        {"GET /apis/apps", NULL, "", 404, ""},
        {"GET /api/v1", NULL, "", 200, "\"pods/binding\""},
        {"GET /api/v2", NULL, "", 404, ""},
        {"GET /apis/coordination.k8s.io/v1", NULL, "", 200, "\"leases\""},
        {"GET /openapi/v3", NULL, "", 200, "apis/coordination.k8s.io/v1"},
        {"GET /openapi/v3/api/v1", NULL, "", 200, "fieldValidation"},
        {"GET /openapi/v2", NULL, "", 404, ""},
        {"GET " PODS, NULL, "", 200, "\"items\":[]"},
        {"GET /api/v1/pods", NULL, "", 200, "\"PodList\""},
        {"GET " PODS "/p", NULL, "", 404, "pods \\\"p\\\" not found"},
        {"POST " PODS, NULL, POD("p"), 201, "\"kind\":\"Pod\",\"apiVersion\":\"v1\""},
        {"POST " PODS, NULL, POD("p"), 409, "\"AlreadyExists\""},
        {"POST " PODS, NULL, "{", 400, "\"BadRequest\""},
        {"POST " PODS, NULL, "{\"metadata\":{\"name\":\"q\"}}", 422, "\"Invalid\""},
        {"POST " PODS "?dryRun=All", NULL, POD("q"), 400, "dryRun"},
        {"POST /api/v1/pods", NULL, POD("q"), 404, ""},
        {"POST " PODS "/p", NULL, POD("q"), 405, ""},
        {"GET " PODS "/p", NULL, "", 200, "\"phase\":\"Pending\""},
        {"GET " PODS "/p/status", NULL, "", 200, "\"phase\":\"Pending\""},
        {"GET " PODS "/p/log", NULL, "", 404, ""},
        {"GET " PODS "/p/binding", NULL, "", 404, ""},
        {"PATCH " PODS "/p", MERGE, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", 200,
         "\"a\":\"b\""},
        {"PATCH " PODS "/p", "application/json-patch+json", "[]", 415, ""},
        {"PATCH " PODS "/p", "application/apply-patch+yaml", "{}", 415, ""},
        {"PATCH " PODS "/p", NULL, "{}", 415, ""},
        {"PATCH " PODS "/none", MERGE, "{}", 404, ""},
        {"PATCH " PODS, MERGE, "{}", 405, ""},
        {"PATCH " PODS "/p", MERGE, "{\"metadata\":{\"resourceVersion\":\"1\"}}", 409,
         "\"Conflict\""},
        {"PATCH " PODS "/p/status", MERGE, "{\"status\":{\"phase\":\"Running\"}}", 200,
         "\"Running\""},
        {"PUT " PODS, NULL, POD("p"), 405, ""},
        {"PUT " PODS "/p", NULL, POD("p"), 200, ""},
        {"PUT " PODS "/none", NULL, POD("none"), 404, ""},
        {"POST " PODS "/p/binding", NULL, "{" TARGET "}", 201, "\"Success\""},
        {"POST " PODS "/p/binding", NULL, "{" TARGET "}", 409, "already assigned"},
        {"GET /api/v1/nodes/n/binding", NULL, "", 404, ""},
        {"GET /api/v1/namespaces/default", NULL, "", 404, ""},
        {"GET /api/v1/namespaces/default/nodes", NULL, "", 404, ""},
        {"GET /api/v1/widgets", NULL, "", 404, ""},
        {"GET " PODS "?limit=x", NULL, "", 400, "limit"},
        {"GET " PODS "?fieldSelector=bad", NULL, "", 400, "field selector"},
        {"GET " PODS "?resourceVersion=999999", NULL, "", 504, "Too large resource version"},
        {"GET " PODS "?continue=99.1", NULL, "", 410, "\"Expired\""},
        {"GET " PODS "?watch=1&resourceVersion=x", NULL, "", 400, ""},
        {"GET " PODS "?watch=1&sendInitialEvents=true", NULL, "", 422, ""},
        {"DELETE " PODS "/p", NULL, "{\"preconditions\":{\"uid\":\"x\"}}", 409, ""},
        {"DELETE " PODS "/p", NULL, "", 200, "\"kind\":\"Pod\""},
        {"DELETE " PODS "/p", NULL, "", 404, ""},
        {"DELETE " PODS, NULL, "", 405, ""},
        {"POST /apis/coordination.k8s.io/v1/namespaces/x/leases", NULL,
         "{\"metadata\":{\"name\":\"l\"}}", 201, "coordination.k8s.io/v1"},
        {"DELETE /apis/coordination.k8s.io/v1/namespaces/x/leases/l", NULL, "", 200,
         "\"kind\":\"Lease\""},
        {"OPTIONS " PODS, NULL, "", 405, ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_sim_reply reply = ask(*state, r->line, r->type, r->body);
        row_equal(r->line, reply.status, r->status);
        if (!strstr(reply.body.data, r->words))
            row_text(r->line, reply.body.data, r->words);
        if (reply.status >= 400 && !strstr(reply.body.data, "\"kind\":\"Status\""))
            row_text(r->line, reply.body.data, "a Status");
        gs_sim_reply_release(&reply);
    }
}

/* ---- watches ---- */

static void a_quiet_watch_gets_bookmarks_and_ends_at_its_time(void **state)
{
    struct world *world = *state; /* a bookmark every 10 ms */
    _cleanup_(gs_buf_release) struct gs_buf lines = GS_BUF(1 << 20);
    char expected[64];
    int64_t begin = gs_clock_now_ns(gs_clock_system());
    struct gs_sim_reply reply =
        ask(world, "GET " PODS "?watch=1&allowWatchBookmarks=true&timeoutSeconds=1", NULL, "");
    uint64_t version = add_pod(world->cluster, "a", "");
    snprintf(expected, sizeof(expected), "\"resourceVersion\":\"%llu\"",
             (unsigned long long)version);
    assert_int_equal(gs_sim_stream_next(reply.stream, GS_NS_PER_S, &lines), 0);
    assert_non_null(strstr(lines.data, "\"ADDED\""));
    assert_int_equal(gs_sim_stream_next(reply.stream, GS_NS_PER_S, &lines), 0);
    assert_non_null(strstr(lines.data, "\"BOOKMARK\""));
    assert_non_null(strstr(lines.data, expected));
    while (gs_sim_stream_next(reply.stream, GS_NS_PER_S, &lines) == 0)
        ;
    assert_non_null(strstr(lines.data, "\"BOOKMARK\"")); /* the last word, as the real one's */
    assert_false(gs_sim_stream_cut(reply.stream));
    int64_t took = gs_clock_now_ns(gs_clock_system()) - begin;
    assert_true(took >= GS_NS_PER_S);
    gs_sim_reply_release(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_world(every_request_gets_the_status_that_kubernetes_gives),
        test_with_world(a_quiet_watch_gets_bookmarks_and_ends_at_its_time),
    };
    return GS_RUN(tests);
}
