/* SPDX-License-Identifier: Apache-2.0 */
/* How many device plugins are asked at once, for how long, and when none is asked any more. */
#include "gpushare/base/clock.h"
#include "inspect/usage.h"
#include "rows.h"

#include <pthread.h>
#include <unistd.h>

enum { PLUGINS = 100 };

static struct world {
    pthread_mutex_t lock;
    uint32_t under_way, most_at_once, pages, lists;
    int64_t longest_ns;
    int denied_status;    /* of every plugin's page; 0: they answer */
    bool silent;          /* every plugin takes all of the time it is given */
    bool list_takes_long; /* the list takes all of it */
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Half of them on the first page. */
static void put_list(const char *query, struct gs_buf *body)
{
    uint32_t from = strstr(query, "continue=more%2F2") ? PLUGINS / 2 : 0;
    gs_buf_printf(body, "{\"metadata\":{\"continue\":\"%s\"},\"items\":[", from ? "" : "more/2");
    for (uint32_t i = from; i < from + PLUGINS / 2; i++)
        gs_buf_printf(body,
                      "%s{\"metadata\":{\"namespace\":\"s\",\"name\":\"p%u\"},\"spec\":{"
                      "\"nodeName\":\"n%u\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
                      "\"status\":\"True\"}]}}",
                      i > from ? "," : "", i, i);
    gs_buf_puts(body, "]}");
}

static void begin(const struct gs_kube_request *request)
{
    pthread_mutex_lock(&world.lock);
    world.pages++;
    world.under_way++;
    if (world.under_way > world.most_at_once)
        world.most_at_once = world.under_way;
    if (request->timeout_ns > world.longest_ns)
        world.longest_ns = request->timeout_ns;
    pthread_mutex_unlock(&world.lock);
}

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    gs_buf_reset(body);
    *ret_status = 200;
    if (strcmp(request->path, "/api/v1/pods") == 0) {
        world.lists++;
        put_list(request->query, body);
        if (world.list_takes_long)
            usleep((useconds_t)(request->timeout_ns / 1000) + 1000);
        return 0;
    }
    begin(request);
    usleep(world.silent ? (useconds_t)(request->timeout_ns / 1000) : 1000);
    pthread_mutex_lock(&world.lock);
    world.under_way--;
    pthread_mutex_unlock(&world.lock);
    if (world.silent)
        return gs_fail(err, GS_ETIMEOUT, "no answer");
    if (world.denied_status)
        *ret_status = world.denied_status;
    gs_buf_puts(body, "{\"v\":1,\"gpus\":[{\"id\":1,\"usedBytes\":7}]}");
    return 0;
}

static const struct {
    const char *row;
    int denied_status;
    bool silent, list_takes_long;
    uint32_t lists, least_pages, most_pages, answered;
    enum gs_code why;
} rows[] = {
    {"all answer", 0, false, false, 2, PLUGINS, PLUGINS, PLUGINS, GS_OK},
    {"none is allowed", 403, false, false, 2, 1, USAGE_AT_ONCE, 0, GS_EDENIED},
    {"none is known", 404, false, false, 2, PLUGINS, PLUGINS, 0, GS_ENOENT},
    {"all are silent", 0, true, false, 2, 1, USAGE_AT_ONCE, 0, GS_ETIMEOUT},
    {"the list takes all the time", 0, false, true, 1, 0, 0, 0, GS_ETIMEOUT},
};

static void so_many_are_asked_at_once_and_for_so_long_together(void **state)
{
    const struct source source = {.ask = ask};
    GS_FOR_EACH_ROW (r, rows) {
        struct usage usage;
        world.under_way = world.most_at_once = world.pages = world.lists = 0;
        world.longest_ns = 0;
        world.denied_status = r->denied_status;
        world.silent = r->silent;
        world.list_takes_long = r->list_takes_long;
        usage_fetch(&source, NULL, &usage);
        row_equal(r->row, world.lists, r->lists);
        row_true(r->row, world.pages >= r->least_pages && world.pages <= r->most_pages);
        row_true(r->row, world.most_at_once <= USAGE_AT_ONCE);
        row_true(r->row, world.longest_ns <= USAGE_TIME_S * GS_NS_PER_S);
        row_equal(r->row, usage.answered, r->answered);
        row_equal(r->row, usage.why.code, r->why);
        const struct usage_node *node = usage_node_find(&usage, "n99");
        row_equal(r->row, node != NULL, r->answered == PLUGINS);
        if (node)
            row_true(r->row, node->known == GS_GPU_BIT(1) && node->used_bytes[1] == 7);
        usage_release(&usage);
    }
}

static void bytes_are_told_in_the_nodes_unit(void **state)
{
    static const struct {
        const char *row;
        uint64_t bytes;
        enum gs_unit unit;
        const char *text;
    } texts[] = {
        {"nothing", 0, GS_UNIT_GIB, "0.0"},
        {"GiB", 3221225472, GS_UNIT_GIB, "3.0"},
        {"MiB", 3221225472, GS_UNIT_MIB, "3072.0"},
        {"no unit known", 1610612736, GS_UNIT_UNKNOWN, "1.5"},
        {"all there is", UINT64_MAX, GS_UNIT_GIB, "17179869184.0"},
    };
    GS_FOR_EACH_ROW (r, texts) {
        char text[USAGE_TEXT_BYTES];
        usage_text(r->bytes, r->unit, text);
        row_text(r->row, text, r->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(so_many_are_asked_at_once_and_for_so_long_together),
        cmocka_unit_test(bytes_are_told_in_the_nodes_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
