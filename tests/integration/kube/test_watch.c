/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdatomic.h>

#include "watch_texts.h"

/* Lists and watches against a server that misbehaves. */

static const struct gs_watch_spec pods = {.kind = GS_KIND_POD};
static const struct fake_rule quiet = {.match = IS_WATCH, .stream = "", .end = FAKE_STALL};

/* Begins with the rules, then a quiet watch for ever. */
static struct watch_recorder *start_refusing(struct fixture *f, const struct fake_rule *rules,
                                             size_t count, int refuse)
{
    struct fake_rule all[16];
    assert_true(count < GS_COUNT_OF(all));
    memcpy(all, rules, count * sizeof(*rules));
    all[count] = quiet;
    fixture_start(f, all, count + 1);
    return recorder_start_refusing(f->kube, &pods, refuse);
}

static struct watch_recorder *start(struct fixture *f, const struct fake_rule *rules, size_t count)
{
    return start_refusing(f, rules, count, 0);
}

static struct gs_kube_stats stop(struct fixture *f, struct watch_recorder *recorder)
{
    assert_int_equal(recorder_stop(recorder), 0);
    struct gs_kube_stats stats = fixture_stats(f);
    fixture_stop(f);
    return stats;
}

/* In this order, whatever comes between. */
static void expect_lines(struct watch_recorder *recorder, const char *const *lines)
{
    size_t at = 0;
    for (; *lines; lines++)
        row_true(*lines, recorder_wait(recorder, &at, *lines));
}

static void the_requests_are_what_api_servers_expect(void **state)
{
    static const struct fake_rule rules[] = {{.match = IS_LIST, .body = LIST("5", "", "")}};
    struct fixture f = {0};
    struct watch_recorder *recorder = start(&f, rules, 1);
    assert_true(recorder_wait(recorder, NULL, "live"));
    assert_non_null(strstr(fake_api_request(f.api, IS_LIST, 0), "GET /api/v1/pods?limit=100 HTTP"));
    const char *watch = fake_api_request(f.api, IS_WATCH, 0);
    assert_non_null(strstr(watch, "allowWatchBookmarks=true"));
    assert_non_null(strstr(watch, "resourceVersion=5&"));
    const char *timeout = strstr(watch, "timeoutSeconds=");
    assert_non_null(timeout);
    int seconds = 0;
    for (const char *digit = timeout + strlen("timeoutSeconds="); *digit >= '0' && *digit <= '9';)
        seconds = seconds * 10 + (*digit++ - '0');
    assert_in_range(seconds, 300, 600);
    assert_int_equal(fake_api_connections(f.api), 1); /* list and watch share one */
    stop(&f, recorder);
}

static void selectors_are_encoded(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "GET /api/v1/pods?limit=", .body = LIST("5", "", "")},
        {.match = "GET /api/v1/nodes?limit=", .body = LIST("6", "", "")},
        {.match = "GET", .stream = "", .end = FAKE_STALL}};
    struct fixture f = {0};
    fixture_start(&f, rules, 3);
    struct watch_recorder *on_node =
        recorder_start(f.kube, &(struct gs_watch_spec){.kind = GS_KIND_POD, .node = "n-1.x"});
    struct watch_recorder *node =
        recorder_start(f.kube, &(struct gs_watch_spec){.kind = GS_KIND_NODE, .node = "n&1"});
    assert_true(recorder_wait(on_node, NULL, "live"));
    assert_true(recorder_wait(node, NULL, "live"));
    assert_non_null(
        strstr(fake_api_request(f.api, "GET /api/v1/pods?limit", 0),
               "&fieldSelector=spec.nodeName%3Dn-1.x%2Cstatus.phase%21%3DSucceeded%2Cstatus."
               "phase%21%3DFailed "));
    assert_non_null(
        strstr(fake_api_request(f.api, "GET /api/v1/pods?watch", 0),
               "&fieldSelector=spec.nodeName%3Dn-1.x%2Cstatus.phase%21%3DSucceeded%2Cstatus."
               "phase%21%3DFailed "));
    assert_non_null(strstr(fake_api_request(f.api, "GET /api/v1/nodes?watch", 0),
                           "&fieldSelector=metadata.name%3Dn%261 "));
    assert_int_equal(recorder_stop(on_node), 0);
    assert_int_equal(recorder_stop(node), 0);
    fixture_stop(&f);
}

#define PAGE(token) .match = IS_LIST, .contains = "continue=" token

static const struct list_row {
    const char *row;
    struct fake_rule rules[5]; /* before a quiet watch */
    const char *lines[8];
    size_t requests; /* for pages */
    size_t lists;    /* that got to their end, each followed by a watch; the last is of version 9 */
    size_t lost;
    int refuse; /* so many objects */
    uint64_t broken;
} list_rows[] = {
    {"two pages",
     {{PAGE("t%2B1%3D"), .body = LIST("9", "", POD("c", "3"))},
      {.match = IS_LIST, .body = LIST("9", "t+1=", POD("a", "1") "," POD("b", "2"))}},
     {"begin", "pod d/a", "pod d/b", "pod d/c", "end", "live"},
     2,
     1},
    {"a server that tells the token last is listed in turn",
     {{PAGE("2"), .body = LIST("9", "", POD("b", "2"))},
      {.match = IS_LIST,
       .body = "{\"items\":[" POD("a", "1") "],\"metadata\":{\"resourceVersion\":\"9\","
                                            "\"continue\":\"2\"}}"}},
     {"begin", "pod d/a", "pod d/b", "end"},
     2,
     1},
    {"no memory with a page on its way",
     {{PAGE("2"), .body = LIST("9", "", POD("b", "2"))},
      {.match = IS_LIST, .body = LIST("9", "2", POD("a", "1"))}},
     {"begin", "lost: ", "begin", "pod d/a", "pod d/b", "end"},
     4,
     1,
     .lost = 1,
     .refuse = 1},
    {"no memory for an event: what it missed is listed",
     {{.match = IS_LIST, .times = 1, .body = LIST("5", "", "")},
      {.match = IS_LIST, .body = LIST("9", "", POD("b", "6"))},
      {.match = IS_WATCH, .times = 1, .stream = ADDED("b", "6"), .end = FAKE_KEEP},
      {.match = IS_WATCH, .times = 1, .stream = ADDED("c", "10"), .end = FAKE_CUT}},
     {"pod d/b", "lost: out of memory", "begin", "pod d/b", "end", "lost: ", "live"},
     2,
     2,
     .lost = 2,
     .refuse = 1},
    {"a token lost between pages is no failure",
     {{PAGE(""), .times = 1, .status = 410},
      {PAGE(""), .body = LIST("9", "", POD("c", "3"))},
      {.match = IS_LIST, .body = LIST("9", "tok", POD("a", "1"))}},
     {"begin", "pod d/a", "begin", "pod d/a", "pod d/c", "end"},
     4,
     1},
    {"failures are told, and it is tried again",
     {{.match = IS_LIST,
       .times = 2,
       .status = 403,
       .body = "{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}"},
      {.match = IS_LIST, .times = 1, .body = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items"},
      {.match = IS_LIST, .times = 1, .body = "{\"metadata\":{},\"items\":[]}"},
      {.match = IS_LIST, .body = LIST("9", "", POD("a", "1"))}},
     {"lost: pods is forbidden", "lost: pods is forbidden",
      "lost: ", "lost: the list has no resourceVersion", "begin", "end", "live"},
     5,
     1,
     .lost = 4},
    {"broken items are passed over",
     {{.match = IS_LIST, .body = LIST("9", "", POD("a", "1") ",{\"spec\":7},[]," POD("b", "2"))}},
     {"begin", "pod d/a", "pod d/b", "end"},
     1,
     1,
     .broken = 2},
};

static void lists_are_read_page_by_page(void **state)
{
    GS_FOR_EACH_ROW (r, list_rows) {
        struct fixture f = {0};
        size_t rules = 0;
        while (r->rules[rules].match)
            rules++;
        print_message("  %s\n", r->row);
        struct watch_recorder *recorder = start_refusing(&f, r->rules, rules, r->refuse);
        expect_lines(recorder, r->lines);
        row_true(r->row, fake_api_wait(f.api, IS_WATCH, r->lists));
        const char *watch = fake_api_request(f.api, IS_WATCH, r->lists - 1);
        row_true(r->row, strstr(watch, "resourceVersion=9&") != NULL);
        row_equal(r->row, fake_api_count(f.api, IS_LIST), r->requests);
        row_equal(r->row, recorder_count(recorder, "end"), r->lists);
        row_equal(r->row, recorder_count(recorder, "lost"), r->lost);
        struct gs_kube_stats stats = stop(&f, recorder);
        row_equal(r->row, stats.broken_objects, r->broken);
        row_equal(r->row, stats.lists, r->lists);
        row_equal(r->row, stats.relists, r->lists - 1);
    }
}

/* A sink that takes in the first pod only when the second page has been asked for. */
struct slow_sink {
    struct fake_api *api;
    atomic_bool stop;
    bool asked_ahead;
    char names[64];
};

static int slow_begin(void *ctx, enum gs_kind kind)
{
    return 0;
}

static int slow_end(void *ctx, enum gs_kind kind)
{
    struct slow_sink *slow = ctx;
    atomic_store(&slow->stop, true);
    return 0;
}

static int slow_pod(void *ctx, const struct gs_pod *pod)
{
    struct slow_sink *slow = ctx;
    if (slow->names[0] == '\0')
        slow->asked_ahead = fake_api_wait(slow->api, IS_LIST, 2);
    strncat(slow->names, pod->name, sizeof(slow->names) - strlen(slow->names) - 1);
    return 0;
}

static void slow_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
}

static void a_page_is_on_its_way_while_the_one_before_is_read(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST, .contains = "continue=2", .body = LIST("9", "3", POD("c", "3"))},
        {.match = IS_LIST, .contains = "continue=3", .body = LIST("9", "", POD("d", "4"))},
        {.match = IS_LIST, .body = LIST("9", "2", POD("a", "1") "," POD("b", "2"))}};
    struct fixture f = {0};
    fixture_start(&f, rules, 3);
    struct slow_sink slow = {.api = f.api};
    const struct gs_watch_sink sink = {.ctx = &slow,
                                       .list_begin = slow_begin,
                                       .list_end = slow_end,
                                       .pod = slow_pod,
                                       .live = slow_live};
    assert_int_equal(f.kube.ops->watch(f.kube.ctx, &pods, &sink, &slow.stop, NULL), 0);
    assert_true(slow.asked_ahead);
    assert_string_equal(slow.names, "abcd");
    /* the third page is asked for when it is known what the first one weighed */
    assert_non_null(strstr(fake_api_request(f.api, IS_LIST, 1), "?limit=100&continue=2 "));
    assert_non_null(strstr(fake_api_request(f.api, IS_LIST, 2), "?limit=800&continue=3 "));
    assert_int_equal(fake_api_count(f.api, IS_LIST), 3);
    assert_int_equal(fake_api_connections(f.api), 1);
    fixture_stop(&f);
}

static void events_and_bookmarks_move_on(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST, .body = LIST("5", "", POD("a", "1"))},
        {.match = IS_WATCH,
         .contains = "resourceVersion=5&",
         .stream = ADDED("b", "6") DELETED("a", "7") "|" BOOKMARK("42")},
    };
    struct fixture f = {0};
    struct watch_recorder *recorder = start(&f, rules, 2);
    expect_lines(recorder, (const char *[]){"live", "pod d/b", "pod gone d/a", NULL});
    assert_true(fake_api_wait(f.api, IS_WATCH, 2));
    assert_non_null(strstr(fake_api_request(f.api, IS_WATCH, 1), "resourceVersion=42&"));
    assert_int_equal(recorder_count(recorder, "lost"), 0); /* it ended at its time */
    assert_int_equal(recorder_count(recorder, "begin"), 1);
    struct gs_kube_stats stats = stop(&f, recorder);
    assert_int_equal(stats.events_added, 1);
    assert_int_equal(stats.events_deleted, 1);
    assert_int_equal(stats.events_bookmark, 1);
    assert_in_range(stats.watch_starts, 1, 2); /* the second may be on its way */
    assert_int_equal(stats.watch_cuts, 0);
}

static void a_server_that_only_fails_is_listed_from_anew_in_the_end(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST, .body = LIST("5", "", "")},
        {.match = IS_WATCH, .times = 5, .status = 504}, /* the fifth is the first again */
    };
    struct fixture f = {0};
    struct watch_recorder *recorder = start(&f, rules, 2);
    assert_true(fake_api_wait(f.api, IS_LIST, 2));
    assert_in_range(fake_api_count(f.api, IS_WATCH), 4, 5); /* the fifth follows the list */
    assert_true(recorder_wait(recorder, NULL, "live"));
    assert_int_equal(fake_api_count(f.api, IS_LIST), 2);
    stop(&f, recorder);
}

static void attempts_are_spread_out_while_nothing_works(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST, .body = LIST("5", "", "")},
        {.match = IS_WATCH, .status = 429, .headers = "Retry-After: 0\r\n"}};
    struct fixture f = {0};
    fixture_start(&f, rules, 2);
    struct watch_recorder *recorder = recorder_start(f.kube, &pods);
    assert_true(fake_api_wait(f.api, IS_WATCH, 1));
    sleep_ms(2000);
    /* 50..100 ms, then 20, 40, 80, 160, each up to doubled, then 200 ms: a dozen in two seconds,
     * and twice that if the waits did not grow */
    assert_in_range(fake_api_count(f.api, IS_WATCH), 4, 16);
    stop(&f, recorder);
}

/* Nothing happens in the cluster, and something on the way cuts connections that say nothing. */
static void a_quiet_watch_that_is_cut_again_and_again_comes_back_at_once(void **state)
{
    static const struct fake_rule rules[] = {{.match = IS_LIST, .body = LIST("5", "", "")}};
    struct fixture f = {.clock = &sleepless, .backoff_ns = 30 * GS_NS_PER_S};
    struct watch_recorder *recorder = start(&f, rules, 1);
    size_t at = 0;
    assert_true(recorder_wait(recorder, &at, "live"));
    for (int i = 0; i < 3; i++) {
        slept_ns += 61 * GS_NS_PER_S;
        assert_true(recorder_wait(recorder, &at, "lost: nothing received"));
        assert_true(recorder_wait(recorder, &at, "live"));
    }
    assert_int_equal(stop(&f, recorder).watch_cuts, 3);
}

#define LONG_NS (600 * GS_NS_PER_S)

/* Whatever cuts it again and again: none of these is a failure in a row. */
static void a_watch_that_told_something_comes_back_at_once(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST, .body = LIST("5", "", "")},
        {.match = IS_WATCH, .times = 4, .stream = ADDED("b", "6"), .end = FAKE_CUT}};
    struct fixture f = {.backoff_ns = LONG_NS};
    struct watch_recorder *recorder = start(&f, rules, 2);
    assert_true(fake_api_wait(f.api, IS_WATCH, 5));
    assert_int_equal(fake_api_count(f.api, IS_LIST), 1); /* the same version is no step back */
    stop(&f, recorder);
}

/* Told to, in the middle of a list, too, it lists, and has lost nothing but the list that fails. A
 * wake by itself says nothing. */
static void a_watch_that_is_told_to_lists_again(void **state)
{
    const struct fake_rule rules[] = {
        {.match = IS_LIST, .times = 1, .stream = "{\"items\":[", .end = FAKE_STALL},
        {.match = IS_LIST, .times = 1, .body = LIST("5", "", POD("a", "1"))},
        {.match = IS_LIST, .times = 1, .body = "{\"metadata\":{},\"items"},
        {.match = IS_LIST, .body = LIST("5", "", POD("a", "1"))},
        quiet};
    atomic_bool list_wanted = false;
    const struct gs_watch_spec spec = {.kind = GS_KIND_POD, .list_wanted = &list_wanted};
    struct fixture f = {0};
    size_t at = 0;
    fixture_start(&f, rules, 5);
    struct watch_recorder *recorder = recorder_start(f.kube, &spec);
    for (size_t lists = 0; lists <= 3; lists++) {
        assert_true(recorder_wait(recorder, &at, "begin"));
        assert_true(!lists || recorder_wait(recorder, &at, "pod d/a"));
        assert_true(fake_api_wait(f.api, IS_WATCH, lists));
        assert_false(atomic_load(&list_wanted));
        f.kube.ops->wake(f.kube.ctx);
        sleep_ms(50);
        assert_int_equal(fake_api_count(f.api, IS_LIST), 1 + lists + (lists > 1));
        assert_int_equal(fake_api_count(f.api, IS_WATCH), lists);
        atomic_store(&list_wanted, true);
        f.kube.ops->wake(f.kube.ctx);
    }
    assert_true(recorder_wait(recorder, &at, "end"));
    assert_int_equal(recorder_count(recorder, "lost: "), 1);
    stop(&f, recorder);
}

/* It has as long as any other request until it answers. */
static void a_promise_to_answer_is_no_answer(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST, .body = LIST("5", "", "")},
        {.match = IS_WATCH, .times = 1, .status = 100, .stream = "", .end = FAKE_STALL}};
    struct fixture f = {.patience_ns = GS_NS_PER_S / 4};
    struct watch_recorder *recorder = start(&f, rules, 2);
    assert_true(recorder_wait(recorder, NULL, "lost: nothing received"));
    stop(&f, recorder);
}

static void a_stop_interrupts_whatever_is_going_on(void **state)
{
    static const struct {
        const char *row;
        struct fake_rule list, watch;
        size_t lists, watches;
        struct fake_rule ahead; /* of pages with a token */
    } rows[] = {
        {"a list without an answer", {.status = -1, .end = FAKE_STALL}, {0}, 1, 0},
        {"a list in its middle", {.stream = "{\"items\":[", .end = FAKE_STALL}, {0}, 1, 0},
        {"a page that is fetched ahead",
         {.body = LIST("5", "2", "")},
         {0},
         2,
         0,
         {.status = -1, .end = FAKE_STALL}},
        {"a pause after failures", {.status = 403}, {0}, 1, 0},
        {"a list's own retries", {.status = 429, .headers = "Retry-After: 600\r\n"}, {0}, 1, 0},
        {"a watch without an answer",
         {.body = LIST("5", "", "")},
         {.status = -1, .end = FAKE_STALL},
         1,
         1},
        {"a quiet watch", {.body = LIST("5", "", "")}, {.stream = "", .end = FAKE_STALL}, 1, 1},
        {"a watch that is told to wait",
         {.body = LIST("5", "", "")},
         {.status = 429, .headers = "Retry-After: 600\r\n"},
         1,
         1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fake_rule rules[] = {r->ahead, r->list, r->watch};
        rules[0].match = rules[1].match = IS_LIST;
        rules[0].contains = "continue=";
        rules[2].match = IS_WATCH;
        /* whatever is not interrupted outlives this test's time by far */
        struct fixture f = {.patience_ns = LONG_NS,
                            .stall_ns = LONG_NS,
                            .backoff_ns = LONG_NS,
                            .retry_after_max_ns = LONG_NS};
        fixture_start(&f, rules, 3);
        struct watch_recorder *recorder = recorder_start(f.kube, &pods);
        row_true(r->row, fake_api_wait(f.api, IS_LIST, r->lists));
        row_true(r->row, fake_api_wait(f.api, IS_WATCH, r->watches));
        if (r->watch.status == 429) /* longer than it waits by itself, at first */
            sleep_ms(200);
        row_equal(r->row, recorder_stop(recorder), 0);
        row_equal(r->row, fake_api_count(f.api, IS_WATCH), r->watches);
        fixture_stop(&f);
    }
}

static int count_pods(void *ctx, const struct gs_pod *pod)
{
    ++*(unsigned *)ctx;
    return 0;
}

static void a_plain_list_is_of_one_node_and_passes_over_what_is_broken(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST,
         .contains =
             "&fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%"
             "21%3DFailed ",
         .body = LIST("9", "", POD("a", "1") ",{\"spec\":7}," POD("b", "2"))}};
    struct fixture f = {0};
    unsigned seen = 0;
    fixture_start(&f, rules, 1);
    assert_int_equal(
        f.kube.ops->list_pods(f.kube.ctx, "n1", 60 * GS_NS_PER_S, count_pods, &seen, NULL), 0);
    assert_int_equal(seen, 2);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_requests_are_what_api_servers_expect),
        cmocka_unit_test(selectors_are_encoded),
        cmocka_unit_test(lists_are_read_page_by_page),
        cmocka_unit_test(a_page_is_on_its_way_while_the_one_before_is_read),
        cmocka_unit_test(events_and_bookmarks_move_on),
        cmocka_unit_test(a_server_that_only_fails_is_listed_from_anew_in_the_end),
        cmocka_unit_test(attempts_are_spread_out_while_nothing_works),
        cmocka_unit_test(a_quiet_watch_that_is_cut_again_and_again_comes_back_at_once),
        cmocka_unit_test(a_watch_that_told_something_comes_back_at_once),
        cmocka_unit_test(a_watch_that_is_told_to_lists_again),
        cmocka_unit_test(a_promise_to_answer_is_no_answer),
        cmocka_unit_test(a_stop_interrupts_whatever_is_going_on),
        cmocka_unit_test(a_plain_list_is_of_one_node_and_passes_over_what_is_broken),
    };
    return GS_RUN(tests);
}
