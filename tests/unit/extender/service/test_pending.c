/* SPDX-License-Identifier: Apache-2.0 */
/* The pass over the pods that wait, in parts between which others change the table. */
#include "extender/service/pending.h"

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

static struct gs_pending_stats stats_now(void)
{
    struct gs_pending_stats stats;
    gs_pending_stats(pending, NOW, &stats);
    return stats;
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
    strncat(seen, waiter->pod.uid, 1);
    return !end || strcmp(waiter->pod.uid, end) != 0;
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
        row_true(r->row, gs_pending_next_waiters(pending, see, (char[]){"b"}));
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
        row_true(r->row, !gs_pending_next_waiters(pending, see, NULL));
        row_text(r->row, seen, r->seen);
        teardown(NULL);
    }
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
    assert_int_equal(stats_now().count, 4);
    gs_pending_first_waiter(pending, NOW + GS_PENDING_UNSEEN_NS + 1);
    assert_int_equal(stats_now().count, 2);
    seen[0] = '\0';
    assert_false(gs_pending_next_waiters(pending, see, NULL));
    assert_string_equal(seen, "bc");
}

enum { EACH = 1 << 20 };

/* NAMESPACE-N with so long a name: `bytes` at least of memory. Borrowed until the next one. */
static struct gs_pod large(const char *ns, unsigned n, size_t bytes)
{
    static char uid[32], name[EACH * 8 + 1];
    snprintf(uid, sizeof(uid), "%s-%u", ns, n);
    struct gs_pod large = pod(uid);
    memset(name, 'x', bytes);
    name[bytes] = '\0';
    large.ns = ns;
    large.name = name;
    return large;
}

static void refuse_pod(struct gs_pod refused)
{
    gs_pending_refused(pending, &refused, GS_FITS, 1, NOW);
}

static void pods_are_bounded_in_bytes_and_those_that_only_filter_saw_make_room(void **state)
{
    show("a");
    for (unsigned n = 0; n < 2 * GS_PENDING_BYTES_MAX / EACH; n++) {
        refuse_pod(large("large", n, EACH));
        assert_true(stats_now().bytes <= GS_PENDING_BYTES_MAX);
    }
    uint32_t count = stats_now().count;
    assert_in_range(count, GS_PENDING_BYTES_MAX / EACH / 4, GS_PENDING_BYTES_MAX / EACH);
    refuse_pod(large("large", 1000, EACH * 8)); /* no API server has such a pod */
    assert_int_equal(stats_now().count, count);
    show("b");
    struct gs_pod found = {0};
    assert_true(gs_pending_get(pending, "a", &found));
    assert_true(gs_pending_get(pending, "b", &found));
    assert_false(gs_pending_get(pending, "large-0", &found));
    gs_pod_release(&found);
    for (unsigned n = 0; n < 2 * GS_PENDING_BYTES_MAX / EACH; n++) {
        gs_pending_remove(pending, large("large", n, 1).uid);
    }
    gs_pending_remove(pending, "a");
    gs_pending_remove(pending, "b");
    assert_int_equal(stats_now().bytes, 0);
}

static bool put_large(const char *ns, unsigned n)
{
    struct gs_error err = {0};
    const struct gs_pod one = large(ns, n, EACH);
    struct gs_pod found = {0};
    gs_pending_put(pending, &one, &err);
    bool kept = gs_pending_get(pending, one.uid, &found);
    gs_pod_release(&found);
    return kept;
}

/* Two namespaces come with what there is before a third does: the larger one's go, the oldest
 * without a reservation first, until all have as much. Filter had told of the third's first pod as
 * the larger one's. */
static void in_a_full_table_the_largest_namespace_makes_room(void **state)
{
    char less[] = "less", third[] = "new";
    unsigned all = 0, count = 1;
    while (gs_share_of(less) == gs_share_of("most"))
        less[0]++;
    while (gs_share_of(third) == gs_share_of("most") || gs_share_of(third) == gs_share_of(less))
        third[0]++;
    struct gs_pod told = large(third, 0, 1);
    told.ns = "most";
    refuse_pod(told);
    for (; stats_now().bytes + 4 * EACH <= GS_PENDING_BYTES_MAX; all++)
        put_large(all % 4 ? "most" : less, all);
    struct gs_waiter *reserved = gs_pending_lock(pending, "most-1");
    reserved->freed = strdup("n1");
    gs_pending_unlock(pending, reserved);
    assert_true(put_large(third, 0));
    assert_false(put_large("most", all));
    while (put_large(third, count))
        count++;
    assert_in_range(count, all * 3 / 8 - 1, all * 3 / 8 + 1);
    assert_int_equal(stats_now().dropped, count + 2);
    assert_true(gs_pending_remove(pending, "most-1"));
    assert_false(gs_pending_remove(pending, "most-2"));
    assert_true(gs_pending_remove(pending, large(less, 0, 1).uid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_goes_on_after_a_change),
        cmocka_unit_test_setup_teardown(pods_that_the_watch_never_shows_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(
            pods_are_bounded_in_bytes_and_those_that_only_filter_saw_make_room, setup, teardown),
        cmocka_unit_test_setup_teardown(in_a_full_table_the_largest_namespace_makes_room, setup,
                                        teardown),
    };
    return GS_RUN(tests);
}
