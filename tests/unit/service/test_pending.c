/* SPDX-License-Identifier: Apache-2.0 */
/* The pass over the pods that wait, in parts between which others change the table. */
#include "../../../src/service/pending.h"

#include "rows.h"

#define NOW ((int64_t)1000000000000)

static struct gs_pending *pending;
static char seen[256]; /* the UIDs that the pass came by, each one letter */

static int setup(void **state)
{
    pending = gs_pending_new();
    assert_non_null(pending);
    return 0;
}

static int teardown(void **state)
{
    gs_pending_free(pending);
    return 0;
}

/* Owns no memory. */
static struct gs_pod pod(const char *uid)
{
    struct gs_pod pod = {0};
    gs_pod_reset(&pod);
    pod.ns = "default";
    pod.name = pod.uid = uid;
    return pod;
}

static void refuse(const char *uid, int64_t at_ns)
{
    struct gs_pod refused = pod(uid);
    gs_pending_refused(pending, &refused, GS_FITS, 1, at_ns);
}

static void show(const char *uid)
{
    struct gs_error err = {0};
    struct gs_pod shown = pod(uid);
    assert_true(gs_pending_put(pending, &shown, &err) >= 0);
}

static bool see(void *ctx, struct gs_waiter *waiter)
{
    const char *end = ctx;
    strncat(seen, waiter->pod->uid, 1);
    return !end || strcmp(waiter->pod->uid, end) != 0;
}

/* The first part of a pass over a, b, c, d looks at two; then `change` happens to pod `uid`. */
static void a_pass_goes_on_after_a_change(void **state)
{
    static const struct {
        const char *row;
        enum { NOTHING, REMOVE, ACCEPT, REFUSE, SHOW } change;
        const char *uid, *seen;
    } rows[] = {
        {"nothing", NOTHING, "", "abcd"},
        {"one that was seen goes", REMOVE, "a", "abcd"},
        {"the last seen goes", REMOVE, "b", "abcd"},
        {"the next one goes", REMOVE, "c", "abd"},
        {"the last one goes", REMOVE, "d", "abc"},
        {"the next one is bound", ACCEPT, "c", "abd"},
        {"the last one is bound", ACCEPT, "d", "abc"},
        {"one that was bound is bound", ACCEPT, "x", "abcd"},
        {"the next one is refused again", REFUSE, "c", "abcd"},
        {"a new one", REFUSE, "e", "abcde"},
        {"the watch shows the next one", SHOW, "c", "abcd"},
        {"the watch shows one that does not wait", SHOW, "e", "abcd"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        assert_int_equal(setup(NULL), 0);
        for (const char *uid = "a\0b\0c\0d\0x\0"; *uid; uid += 2)
            refuse(uid, NOW);
        gs_pending_accepted(pending, "x");
        seen[0] = '\0';
        gs_pending_first_waiter(pending, NOW);
        row_true(r->row, gs_pending_next_waiters(pending, 2, see, NULL));
        switch (r->change) {
        case NOTHING:
            break;
        case REMOVE:
            gs_pending_remove(pending, r->uid);
            break;
        case ACCEPT:
            gs_pending_accepted(pending, r->uid);
            break;
        case REFUSE:
            refuse(r->uid, NOW + 1);
            break;
        case SHOW:
            show(r->uid);
            break;
        }
        row_true(r->row, !gs_pending_next_waiters(pending, 100, see, NULL));
        row_text(r->row, seen, r->seen);
        teardown(NULL);
    }
}

static void a_part_of_a_pass_ends_when_told_to(void **state)
{
    char end[] = "b";
    seen[0] = '\0';
    for (const char *uid = "a\0b\0c\0"; *uid; uid += 2)
        refuse(uid, NOW);
    gs_pending_first_waiter(pending, NOW);
    assert_true(gs_pending_next_waiters(pending, 100, see, end));
    assert_string_equal(seen, "ab");
    assert_false(gs_pending_next_waiters(pending, 100, see, end));
    assert_string_equal(seen, "abc");
}

static void nobody_waits_no_pass(void **state)
{
    show("a");
    gs_pending_first_waiter(pending, NOW);
    assert_false(gs_pending_next_waiters(pending, 100, see, NULL));
}

static void pods_that_the_watch_never_shows_expire(void **state)
{
    refuse("a", NOW);
    refuse("b", NOW);
    refuse("d", NOW);
    refuse("c", NOW + 10);
    show("b");
    gs_pending_accepted(pending, "d"); /* forgotten as well */
    gs_pending_first_waiter(pending, NOW + GS_PENDING_UNSEEN_NS);
    assert_int_equal(gs_pending_count(pending), 4);
    gs_pending_first_waiter(pending, NOW + GS_PENDING_UNSEEN_NS + 1);
    assert_int_equal(gs_pending_count(pending), 2);
    seen[0] = '\0';
    assert_false(gs_pending_next_waiters(pending, 100, see, NULL));
    assert_string_equal(seen, "bc");
}

/* A pod with so long a name: `bytes` at least of memory. */
static void refuse_large(unsigned n, char *name, size_t bytes)
{
    char uid[16];
    snprintf(uid, sizeof(uid), "large-%u", n);
    struct gs_pod refused = pod(uid);
    memset(name, 'x', bytes);
    name[bytes] = '\0';
    refused.name = name;
    gs_pending_refused(pending, &refused, GS_FITS, 1, NOW);
}

static void pods_are_bounded_in_bytes_and_those_that_only_filter_saw_make_room(void **state)
{
    enum { EACH = 1 << 20 };
    static char name[EACH * 8 + 1];
    show("a");
    for (unsigned n = 0; n < 2 * GS_PENDING_BYTES_MAX / EACH; n++) {
        refuse_large(n, name, EACH);
        assert_true(gs_pending_bytes(pending) <= GS_PENDING_BYTES_MAX);
    }
    uint32_t count = gs_pending_count(pending);
    assert_in_range(count, GS_PENDING_BYTES_MAX / EACH / 4, GS_PENDING_BYTES_MAX / EACH);
    refuse_large(1000, name, EACH * 8); /* no API server has such a pod */
    assert_int_equal(gs_pending_count(pending), count);
    show("b");
    struct gs_pod found = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_pending_get(pending, "a", &found, &err), 0);
    assert_int_equal(gs_pending_get(pending, "b", &found, &err), 0);
    assert_int_equal(gs_pending_get(pending, "large-0", &found, &err), -1);
    gs_pod_release(&found);
    for (unsigned n = 0; n < 2 * GS_PENDING_BYTES_MAX / EACH; n++) {
        char uid[16];
        snprintf(uid, sizeof(uid), "large-%u", n);
        gs_pending_remove(pending, uid);
    }
    gs_pending_remove(pending, "a");
    gs_pending_remove(pending, "b");
    assert_int_equal(gs_pending_bytes(pending), 0);
}

static void a_pod_that_grows_is_counted_anew(void **state)
{
    static char name[(1 << 20) + 1];
    struct gs_error err = {0};
    struct gs_pod grown = pod("a");
    show("a");
    size_t before = gs_pending_bytes(pending);
    memset(name, 'x', sizeof(name) - 1);
    grown.name = name;
    assert_int_equal(gs_pending_put(pending, &grown, &err), 0);
    assert_true(gs_pending_bytes(pending) > 1 << 20);
    show("a");
    assert_int_equal(gs_pending_bytes(pending), before);
}

static void shown_pods_take_the_places_of_those_that_only_filter_saw(void **state)
{
    char uid[16];
    for (unsigned n = 0; n < GS_PENDING_MAX; n++) {
        snprintf(uid, sizeof(uid), "f%u", n);
        refuse(uid, NOW);
    }
    show("a");
    assert_int_equal(gs_pending_count(pending), GS_PENDING_MAX);
    assert_false(gs_pending_remove(pending, "f0"));
    assert_true(gs_pending_remove(pending, "f1"));
    assert_true(gs_pending_remove(pending, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_goes_on_after_a_change),
        cmocka_unit_test_setup_teardown(a_part_of_a_pass_ends_when_told_to, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_no_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_that_the_watch_never_shows_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(
            pods_are_bounded_in_bytes_and_those_that_only_filter_saw_make_room, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pod_that_grows_is_counted_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(shown_pods_take_the_places_of_those_that_only_filter_saw,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
