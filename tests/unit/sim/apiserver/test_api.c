/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "sim_upset.h"

#include "gpushare/base/clock.h"
#include "sim/apiserver/api.h"

/* ---- a client without a socket ---- */

struct world {
    struct gs_sim_cluster *cluster;
    struct gs_sim_api *api;
};

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    *state = world;
    if (!world || gs_sim_cluster_new(&(struct gs_sim_options){0}, &world->cluster, NULL) < 0)
        return -1;
    return gs_sim_api_new(world->cluster,
                          &(struct gs_sim_api_options){.bookmark_ns = 10 * GS_NS_PER_MS},
                          &world->api, NULL);
}

static int close_world(void **state)
{
    struct world *world = *state;
    gs_sim_api_free(world->api);
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
    gs_sim_api_handle(world->api,
                      &(struct gs_sim_request){.method = method,
                                               .path = path,
                                               .query = query_of,
                                               .query_ctx = (void *)(mark ? mark + 1 : NULL),
                                               .content_type = type,
                                               .body = gs_slice_of(body)},
                      &reply);
    return reply;
}

static json_t *tree_of_reply(struct gs_sim_reply *reply)
{
    json_t *tree = json_loadb(reply->body.data, reply->body.len, 0, NULL);
    if (!tree)
        fail_msg("no JSON: %s", reply->body.data);
    gs_sim_reply_release(reply);
    return tree;
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
        {"GET /readyz/ping", NULL, "", 200, "ok"},
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

static void a_token_is_asked_for_when_there_is_one(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *row;
        const char *path;
        const char *header;
        int status;
    } rows[] = {
        {"none", "/api/v1/pods", NULL, 401},
        {"another", "/api/v1/pods", "Bearer wrong", 401},
        {"longer", "/api/v1/pods", "Bearer secretly", 401},
        {"another scheme", "/api/v1/pods", "Basic secret", 401},
        {"the right one", "/api/v1/pods", "Bearer secret", 200},
        {"health needs none", "/healthz", NULL, 200},
    };
    struct gs_sim_api *api;
    struct gs_sim_api_options options = {.token = "secret"};
    assert_int_equal(gs_sim_api_new(world->cluster, &options, &api, NULL), 0);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_sim_reply reply = GS_SIM_REPLY;
        struct gs_sim_request request = {
            .method = "GET", .path = r->path, .query = query_of, .authorization = r->header};
        gs_sim_api_handle(api, &request, &reply);
        row_equal(r->row, reply.status, r->status);
        gs_sim_reply_release(&reply);
    }
    gs_sim_api_free(api);
}

/* ---- forms ---- */

static void a_list_goes_by_pages(void **state)
{
    struct world *world = *state;
    add_pod(world->cluster, "a", "");
    add_pod(world->cluster, "b", "");
    add_pod(world->cluster, "c", "");
    struct gs_sim_reply reply = ask(world, "GET " PODS "?limit=2", NULL, "");
    json_auto_t *first = tree_of_reply(&reply);
    json_t *meta = json_object_get(first, "metadata");
    assert_int_equal(json_array_size(json_object_get(first, "items")), 2);
    assert_int_equal(json_integer_value(json_object_get(meta, "remainingItemCount")), 1);
    char line[128];
    snprintf(line, sizeof(line), "GET " PODS "?limit=2&continue=%s",
             json_string_value(json_object_get(meta, "continue")));
    reply = ask(world, line, NULL, "");
    json_auto_t *second = tree_of_reply(&reply);
    assert_int_equal(json_array_size(json_object_get(second, "items")), 1);
    assert_null(json_object_get(json_object_get(second, "metadata"), "continue"));
    assert_null(json_object_get(json_array_get(json_object_get(second, "items"), 0), "kind"));
}

/* ---- watches ---- */

static void a_watch_is_lines_of_json(void **state)
{
    struct world *world = *state;
    char line[128];
    _cleanup_(gs_buf_release) struct gs_buf lines = GS_BUF(1 << 20);
    snprintf(line, sizeof(line), "GET " PODS "?watch=true&resourceVersion=%llu",
             (unsigned long long)add_pod(world->cluster, "a", ""));
    struct gs_sim_reply reply = ask(world, line, NULL, "");
    assert_int_equal(reply.status, 200);
    assert_non_null(reply.stream);
    add_pod(world->cluster, "b", "");
    assert_int_equal(gs_sim_stream_next(reply.stream, 0, &lines), 0);
    static const char begin[] = "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",";
    assert_memory_equal(lines.data, begin, sizeof(begin) - 1);
    assert_ptr_equal(strchr(lines.data, '\n'), lines.data + lines.len - 1);
    assert_int_equal(gs_sim_stream_next(reply.stream, 0, &lines), 0);
    assert_int_equal(lines.len, 0); /* no bookmarks unless they are asked for */
    gs_sim_cluster_cut_watches(world->cluster);
    assert_int_equal(gs_sim_stream_next(reply.stream, 0, &lines), -1);
    assert_true(gs_sim_stream_cut(reply.stream));
    gs_sim_reply_release(&reply);
}

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

static void a_watch_from_the_forgotten_past_says_so_in_the_stream(void **state)
{
    struct world *world = *state;
    _cleanup_(gs_buf_release) struct gs_buf lines = GS_BUF(1 << 20);
    add_pod(world->cluster, "a", "");
    gs_sim_cluster_compact(world->cluster);
    struct gs_sim_reply reply = ask(world, "GET " PODS "?watch=1&resourceVersion=2", NULL, "");
    assert_int_equal(reply.status, 200);
    assert_int_equal(gs_sim_stream_next(reply.stream, 0, &lines), -1);
    assert_non_null(strstr(lines.data, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\""));
    assert_non_null(strstr(lines.data, "410"));
    gs_sim_reply_release(&reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_world(every_request_gets_the_status_that_kubernetes_gives),
        test_with_world(a_token_is_asked_for_when_there_is_one),
        test_with_world(a_list_goes_by_pages),
        test_with_world(a_watch_is_lines_of_json),
        test_with_world(a_quiet_watch_gets_bookmarks_and_ends_at_its_time),
        test_with_world(a_watch_from_the_forgotten_past_says_so_in_the_stream),
    };
    return GS_RUN(tests);
}
