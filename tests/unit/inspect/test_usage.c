/* SPDX-License-Identifier: Apache-2.0 */
/* Who is asked what pods use, how many at once and for how long together, and what is believed. */
#include "gpushare/base/cleanup.h"
#include "inspect/lookup.h"
#include "inspect/usage.h"
#include "rows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { PLUGINS = 100 };

#define REVIEWS "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define PODS    "/api/v1/namespaces/gpushare-system/pods"

/* How a plugin, a list or a review goes. */
enum way {
    ANSWERS,
    REFUSES,
    IS_SILENT,
    SAYS_TOO_MUCH,
    SAYS_NONSENSE,
    IS_CUT_OFF,
    IS_UNKNOWN,
    WANTS_A_LOGIN,
    REDIRECTS
};

static struct world {
    pthread_mutex_t lock;
    uint32_t under_way, most_at_once, pages, lists;
    int64_t longest_ns;
    _Atomic int64_t now_ns; /* silence takes all of the time that it is given */
    enum way review, list, first, others;
    const char *pods;     /* the list; NULL: of PLUGINS, half of them on the first page */
    const char *pages_of; /* what each page says; NULL: of a GPU */
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now(void *ctx)
{
    return world.now_ns;
}

static const struct gs_clock hands = {.monotonic_ns = now, .wall_ns = now};

#define OWNED(kind, name, api, controller)                                                         \
    "\"ownerReferences\":[{\"apiVersion\":\"" api "\",\"kind\":\"" kind "\",\"name\":\"" name      \
    "\",\"controller\":" controller "}]"
#define OWN       OWNED("DaemonSet", "gpushare-device-plugin", "apps/v1", "true")
#define IS(ready) "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready "\"}]}"

static void put_list(const char *query, struct gs_buf *body)
{
    uint32_t from = strstr(query, "continue=more%2F2") ? PLUGINS / 2 : 0;
    gs_buf_printf(body, "{\"metadata\":{\"continue\":\"%s\"},\"items\":[", from ? "" : "more/2");
    for (uint32_t i = from; i < from + PLUGINS / 2; i++)
        gs_buf_printf(body,
                      "%s{\"metadata\":{\"name\":\"p%u\"," OWN
                      "},\"spec\":{\"nodeName\":\"n%u\"}," IS("True") "}",
                      i > from ? "," : "", i, i);
    gs_buf_puts(body, "]}");
}

static int go(enum way way, const struct gs_kube_request *request, int *ret_status,
              struct gs_buf *body, struct gs_error *err)
{
    static const int statuses[] = {
        [REFUSES] = 403, [IS_UNKNOWN] = 404, [WANTS_A_LOGIN] = 401, [REDIRECTS] = 302};
    switch (way) {
    default:
        *ret_status = statuses[way];
        return 0;
    case IS_SILENT:
        world.now_ns += request->timeout_ns;
        return gs_fail(err, GS_ETIMEOUT, "no answer");
    case SAYS_TOO_MUCH:
        while (!gs_buf_failed(body))
            gs_buf_puts(body, "{},");
        return gs_fail(err, GS_ETOOBIG, "the response is too large");
    case SAYS_NONSENSE:
        gs_buf_reset(body);
        gs_buf_puts(body, "\"nonsense\"");
        return 0;
    case IS_CUT_OFF:
        body->len--;
        return 0;
    case ANSWERS:
        break;
    }
    return 0;
}

static int ask_plugin(const struct gs_kube_request *request, int *ret_status, struct gs_buf *body,
                      struct gs_error *err)
{
    pthread_mutex_lock(&world.lock);
    enum way way = world.pages++ ? world.others : world.first;
    world.under_way++;
    if (world.under_way > world.most_at_once)
        world.most_at_once = world.under_way;
    if (request->timeout_ns > world.longest_ns)
        world.longest_ns = request->timeout_ns;
    pthread_mutex_unlock(&world.lock);
    if (!world.pods)
        usleep(1000); /* so that others are under way, too */
    pthread_mutex_lock(&world.lock);
    world.under_way--;
    pthread_mutex_unlock(&world.lock);
    gs_buf_puts(body, world.pages_of ? world.pages_of : "{\"gpus\":[{\"id\":63,\"usedBytes\":7}]}");
    return go(way, request, ret_status, body, err);
}

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    gs_buf_reset(body);
    *ret_status = 200;
    if (strcmp(request->path, REVIEWS) == 0) {
        assert_non_null(strstr(request->body, "\"subresource\":\"proxy\""));
        gs_buf_printf(body, "{\"status\":{\"allowed\":%s}}",
                      world.review == REFUSES ? "false" : "true");
        return world.review == REFUSES ? 0 : go(world.review, request, ret_status, body, err);
    }
    if (strcmp(request->path, PODS) == 0) {
        world.lists++;
        if (world.pods)
            gs_buf_printf(body, "{\"items\":[%s]}", world.pods);
        else
            put_list(request->query, body);
        return go(world.list, request, ret_status, body, err);
    }
    assert_memory_equal(request->path, PODS "/p", strlen(PODS "/p"));
    assert_int_equal(body->max, USAGE_ANSWER_BYTES_MAX);
    return ask_plugin(request, ret_status, body, err);
}

static void fetch(struct usage *ret)
{
    static const struct source source = {.ask = ask};
    const struct usage_query query = {.source = &source,
                                      .clock = &hands,
                                      .system_ns = "gpushare-system",
                                      .timeout_ns = USAGE_TIME_NS};
    world.under_way = world.most_at_once = world.pages = world.lists = 0;
    world.longest_ns = 0;
    world.now_ns = 1;
    usage_fetch(&query, ret);
}

static const struct {
    const char *row;
    enum way review, list, first, others;
    uint32_t lists, pages, answered;
    enum gs_code why;
} rows[] = {
    {"all answer", ANSWERS, ANSWERS, ANSWERS, ANSWERS, 2, PLUGINS, PLUGINS},
    {"it is not allowed: nobody is asked", REFUSES, .why = GS_EDENIED},
    {"the token has expired: nobody is asked", WANTS_A_LOGIN, .why = GS_EAUTH},
    {"no such review", IS_UNKNOWN, ANSWERS, ANSWERS, ANSWERS, 2, PLUGINS, PLUGINS},
    {"one refuses", ANSWERS, ANSWERS, REFUSES, ANSWERS, 2, PLUGINS, PLUGINS - 1, GS_EDENIED},
    {"one wants a login", ANSWERS, ANSWERS, WANTS_A_LOGIN, ANSWERS, 2, PLUGINS, PLUGINS - 1,
     GS_EAUTH},
    {"one redirects", ANSWERS, ANSWERS, REDIRECTS, ANSWERS, 2, PLUGINS, PLUGINS - 1, GS_EPROTO},
    {"one is silent", ANSWERS, ANSWERS, IS_SILENT, ANSWERS, 2, PLUGINS, PLUGINS - 1, GS_ETIMEOUT},
    {"one says too much", ANSWERS, ANSWERS, SAYS_TOO_MUCH, ANSWERS, 2, PLUGINS, PLUGINS - 1,
     GS_ETOOBIG},
    {"one says nonsense", ANSWERS, ANSWERS, SAYS_NONSENSE, ANSWERS, 2, PLUGINS, PLUGINS - 1,
     GS_EPROTO},
    {"one is cut off", ANSWERS, ANSWERS, IS_CUT_OFF, ANSWERS, 2, PLUGINS, PLUGINS - 1, GS_EPROTO},
    {"all refuse", ANSWERS, ANSWERS, REFUSES, REFUSES, 2, PLUGINS, 0, GS_EDENIED},
    {"none is known", ANSWERS, ANSWERS, IS_UNKNOWN, IS_UNKNOWN, 2, PLUGINS, 0, GS_ENOENT},
    {"all are silent", ANSWERS, ANSWERS, IS_SILENT, IS_SILENT, 2, 3, 0, GS_ETIMEOUT},
    {"pods may not be listed", ANSWERS, REFUSES, ANSWERS, ANSWERS, 1, 0, 0, GS_EDENIED},
    {"the list is silent", ANSWERS, IS_SILENT, ANSWERS, ANSWERS, 1, 0, 0, GS_ETIMEOUT},
};

static void so_many_are_asked_at_once_and_for_so_long_together(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        const uint32_t most = r->others == IS_SILENT ? 2 + USAGE_AT_ONCE : r->pages;
        struct usage usage;
        world.review = r->review;
        world.list = r->list;
        world.first = r->first;
        world.others = r->others;
        fetch(&usage);
        row_equal(r->row, world.lists, r->lists);
        row_true(r->row, world.pages >= r->pages && world.pages <= most);
        row_true(r->row, world.most_at_once <= USAGE_AT_ONCE);
        row_true(r->row, world.longest_ns <= USAGE_NODE_NS);
        row_equal(r->row, usage.answered, r->answered);
        row_equal(r->row, usage.why.code, r->why);
        const struct usage_node *node = usage_node_find(&usage, "n99");
        row_equal(r->row, node != NULL, r->answered >= PLUGINS - 1);
        if (node)
            row_true(r->row, node->known == GS_GPU_BIT(63) && node->used_bytes[63] == 7);
        usage_release(&usage);
    }
    world.review = world.list = world.first = world.others = ANSWERS;
}

#define POD(name, meta, node, ready)                                                               \
    "{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app.kubernetes.io/name\":"                 \
    "\"gpushare-device-plugin\"}" meta "},\"spec\":{\"nodeName\":\"" node "\"}," IS(ready) "}"

static void only_pods_of_the_own_daemonset_are_asked(void **state)
{
    static const struct {
        const char *row, *pods;
        uint32_t asked;
    } owners[] = {
        {"the plugin's", POD("p1", "," OWN, "n1", "True"), 1},
        {"a label alone", POD("p1", "", "n1", "True"), 0},
        {"of a ReplicaSet",
         POD("p1", "," OWNED("ReplicaSet", "gpushare-device-plugin", "apps/v1", "true"), "n1",
             "True"),
         0},
        {"of another DaemonSet",
         POD("p1", "," OWNED("DaemonSet", "dcgm-exporter", "apps/v1", "true"), "n1", "True"), 0},
        {"of another API's DaemonSet",
         POD("p1", "," OWNED("DaemonSet", "gpushare-device-plugin", "apps.example/v1", "true"),
             "n1", "True"),
         0},
        {"of an owner that does not control it",
         POD("p1", "," OWNED("DaemonSet", "gpushare-device-plugin", "apps/v1", "false"), "n1",
             "True"),
         0},
        {"not ready", POD("p1", "," OWN, "n1", "False"), 0},
        {"without a node", POD("p1", "," OWN, "", "True"), 0},
        {"two of a node", POD("p1", "," OWN, "n1", "True") "," POD("p2", "," OWN, "n1", "True"), 1},
    };
    GS_FOR_EACH_ROW (r, owners) {
        struct usage usage;
        world.pods = r->pods;
        fetch(&usage);
        row_equal(r->row, usage.asked, r->asked);
        row_equal(r->row, world.pages, r->asked);
        row_equal(r->row, usage.answered, r->asked);
        usage_release(&usage);
    }
    world.pods = NULL;
}

/* Both nodes name the same pod, one of them far too many. */
static void a_node_speaks_of_itself_only(void **state)
{
    _cleanup_(gs_buf_release) struct gs_buf page = GS_BUF(USAGE_ANSWER_BYTES_MAX);
    struct usage usage;
    gs_buf_puts(&page, "{\"pods\":[{\"uid\":\"u\",\"namespace\":\"s\",\"name\":\"u\",\"gpus\":[{"
                       "\"id\":0,\"usedBytes\":5,\"peakBytes\":6}]}");
    for (uint32_t i = 1; i < 2 * USAGE_PODS_MAX; i++)
        gs_buf_printf(&page, ",{\"uid\":\"%u\",\"namespace\":\"s\",\"name\":\"p\"}", i);
    gs_buf_puts(&page, "]}");
    assert_false(gs_buf_failed(&page));
    world.pods = POD("p1", "," OWN, "a", "True") "," POD("p2", "," OWN, "b", "True");
    world.pages_of = page.data;
    fetch(&usage);
    assert_int_equal(usage.answered, 2);
    const struct usage_pod *one = usage_pod_find(&usage, "a", "u");
    const struct usage_pod *other = usage_pod_find(&usage, "b", "u");
    assert_true(one && other && one != other);
    assert_string_equal(one->node, "a");
    assert_string_equal(other->node, "b");
    assert_null(usage_pod_find(&usage, "c", "u"));
    assert_int_equal(HASH_COUNT(usage.pods), 2 * USAGE_PODS_MAX);
    usage_release(&usage);
    world.pods = world.pages_of = NULL;
}

/* Nobody checks what a pod's author writes into a value. */
static void a_nul_in_one_object_costs_no_list(void **state)
{
    static const struct source source = {.ask = ask};
    struct gs_error err = {0};
    world.pods = "{\"metadata\":{\"name\":\"a\\u0000b\\\\u0000\"}}";
    json_auto_t *list = lookup_json(&source, PODS, "", &err);
    const json_t *pod = json_array_get(json_object_get(list, "items"), 0);
    assert_string_equal(lookup_text(pod, "metadata", "name", NULL), "a\uFFFDb\\u0000");
    world.pods = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(so_many_are_asked_at_once_and_for_so_long_together),
        cmocka_unit_test(only_pods_of_the_own_daemonset_are_asked),
        cmocka_unit_test(a_node_speaks_of_itself_only),
        cmocka_unit_test(a_nul_in_one_object_costs_no_list),
    };
    return GS_RUN(tests);
}
