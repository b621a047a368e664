/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "watch_texts.h"

/* One fault of a watch at a time: what is told, where it resumes, what is counted. */

enum { LONGEST = 66 << 10 };

static const struct gs_watch_spec pods = {.kind = GS_KIND_POD};

/* Rules of the first watch; what must be seen then. */
static const struct fault_row {
    const char *row;
    struct fake_rule fault; /* of the watch from version 5 */
    const char *lost;       /* what the sink is told, NULL: nothing */
    const char *resumes;    /* in the next request of a watch */
    size_t lists;           /* in the end; then what is counted */
    uint64_t cuts, stalls, expired, broken, oversized;
} faults[] = {
    {"cut in mid-line",
     {.stream = ADDED("b", "6") "{\"type\":\"ADDED\",\"obj", .end = FAKE_CUT},
     "lost: ",
     "resourceVersion=6&",
     1,
     1},
    {"ended in mid-line",
     {.stream = ADDED("b", "6") "{\"type\":\"ADDED\",\"obj"},
     NULL,
     "resourceVersion=6&",
     1},
    {"a line in three pieces",
     {.stream = "{\"type\":\"ADDED\",|\"object\":" POD("b", "6") "|}\n" BOOKMARK("7")},
     NULL,
     "resourceVersion=7&",
     1},
    {"silence after the head",
     {.stream = "", .end = FAKE_STALL},
     "lost: nothing received",
     "resourceVersion=5&",
     1,
     1,
     1},
    {"silence after an event",
     {.stream = ADDED("b", "6"), .end = FAKE_STALL},
     "lost: nothing received",
     "resourceVersion=6&",
     1,
     1,
     1},
    {"ended at once with nothing told",
     {.stream = ""},
     "lost: the watch ended immediately",
     "resourceVersion=5&",
     1,
     1},
    {"410 in the head",
     {.status = 410, .body = "{\"kind\":\"Status\",\"message\":\"too old\"}"},
     "lost: too old",
     "resourceVersion=50&",
     2,
     0,
     0,
     1},
    {"410 as an event",
     {.stream = ADDED("b", "6") ERROR("410"), .end = FAKE_KEEP},
     "lost: the watch ended: told so",
     "resourceVersion=50&",
     2,
     0,
     0,
     1},
    {"another error as an event",
     {.stream = ERROR("500")},
     "lost: the watch ended: told so",
     "resourceVersion=5&",
     1,
     1},
    {"500 in the head",
     {.status = 500},
     "lost: the API server returned HTTP 500",
     "resourceVersion=5&",
     1,
     1},
    {"a version that this server does not have yet",
     {.status = 500, .body = "{\"kind\":\"Status\",\"message\":\"Too large resource version: 5\"}"},
     "lost: Too large",
     "resourceVersion=5&",
     1,
     1},
    {"429 in the head",
     {.status = 429, .headers = "Retry-After: 600\r\n"},
     "lost: the API server returned HTTP 429",
     "resourceVersion=5&",
     1,
     1},
    {"no answer: curl itself asks again on a new connection",
     {.status = -1, .end = FAKE_CUT},
     NULL,
     "resourceVersion=5&",
     1},
    {"a line that is no JSON",
     {.stream = "nonsense\n" ADDED("b", "6")},
     "lost: ",
     "resourceVersion=50&",
     2,
     1,
     0,
     0,
     1},
    {"an object that cannot be read is passed over",
     {.stream = "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"resourceVersion\":\"6\"},"
                "\"spec\":[]}}\n" ADDED("b", "7")},
     NULL,
     "resourceVersion=7&",
     1,
     0,
     0,
     0,
     1},
    {"a deleted object that cannot be read",
     {.stream = "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"6\"},"
                "\"spec\":[]}}\n"},
     "lost: ",
     "resourceVersion=50&",
     2,
     1,
     0,
     0,
     1},
    {"an event without a version",
     {.stream = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n"},
     "lost: ",
     "resourceVersion=50&",
     2,
     1,
     0,
     0,
     1},
    {"a version that goes back",
     {.stream = ADDED("b", "9") ADDED("c", "3")},
     "lost: the watch returned an older resourceVersion: 9, then 3",
     "resourceVersion=50&",
     2,
     1},
    {"a line above the ceiling",
     {.stream = ADDED("b", "6"), .end = FAKE_KEEP}, /* made long by the test */
     "lost: a watch event is longer than 65536 bytes",
     "resourceVersion=50&",
     2,
     1,
     0,
     0,
     0,
     1},
};

static void every_fault_is_survived(void **state)
{
    char *longest = calloc(1, LONGEST);
    assert_non_null(longest);
    memset(longest, 'y', LONGEST - 1);
    GS_FOR_EACH_ROW (r, faults) {
        struct fake_rule rules[] = {
            {.match = IS_LIST, .times = 1, .body = LIST("5", "", POD("a", "1"))},
            {.match = IS_LIST, .body = LIST("50", "", POD("z", "1"))},
            r->fault,
            {.match = IS_WATCH, .stream = ADDED("y", "60"), .end = FAKE_STALL},
        };
        rules[2].match = IS_WATCH;
        rules[2].times = 1;
        if (r->oversized)
            rules[2].stream = longest;
        struct fixture f = {.stall_ns = r->stalls ? 500 * GS_NS_PER_MS : 0};
        fixture_start(&f, rules, GS_COUNT_OF(rules));
        struct watch_recorder *recorder = recorder_start(f.kube, &pods);
        row_true(r->row, recorder_wait(recorder, NULL, "end"));
        if (r->lost)
            row_true(r->row, recorder_wait(recorder, NULL, r->lost));
        row_true(r->row, fake_api_wait(f.api, IS_WATCH, 2));
        row_true(r->row, strstr(fake_api_request(f.api, IS_WATCH, 1), r->resumes) != NULL);
        row_equal(r->row, recorder_count(recorder, "lost") > 0, r->lost != NULL);
        row_equal(r->row, recorder_count(recorder, "begin"), r->lists);
        row_true(r->row, recorder_wait(recorder, NULL, "pod d/y"));
        struct gs_kube_stats stats = fixture_stats(&f);
        row_equal(r->row, stats.watch_cuts, r->cuts);
        row_equal(r->row, stats.watch_expired, r->expired);
        row_equal(r->row, stats.broken_objects, r->broken);
        row_equal(r->row, stats.last_broken[0] != '\0', r->broken > 0);
        row_equal(r->row, stats.oversized, r->oversized);
        row_equal(r->row, stats.relists, r->lists - 1);
        assert_int_equal(recorder_stop(recorder), 0);
        fixture_stop(&f);
    }
    free(longest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_is_survived),
    };
    return GS_RUN(tests);
}
