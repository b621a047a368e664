/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "grpc/path_watch.h"

struct fixture {
    char dir[64];
    char path[96];
    char side[96];
    struct still_loop still;
    struct gs_loop *loop;
    struct gs_path_watch *watch;
    char log[64]; /* + created, - removed */
    bool free_in_callback;
};

static void note(void *ctx, enum gs_path_event event)
{
    struct fixture *f = ctx;
    f->log[strlen(f->log)] = event == GS_PATH_CREATED ? '+' : '-';
    if (f->free_in_callback) {
        gs_path_watch_free(f->watch);
        f->watch = NULL;
    }
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/gs-watch-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/the.sock", f->dir);
    snprintf(f->side, sizeof(f->side), "%s/other", f->dir);
    f->loop = still_loop_new(&f->still);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->watch)
        gs_path_watch_free(f->watch);
    gs_loop_free(f->loop);
    unlink(f->path);
    unlink(f->side);
    rmdir(f->dir);
    free(f);
    return 0;
}

static void start(struct fixture *f)
{
    assert_int_equal(gs_path_watch_new(f->loop, f->path, note, f, &f->watch, NULL), 0);
}

static void touch(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* Lets the loop see everything; waits until the log is as expected. */
static void expect(struct fixture *f, const char *log)
{
    for (int i = 0; i < 5; i++)
        assert_int_equal(gs_loop_step(f->loop, 0, NULL), 0);
    for (int i = 0; i < 300 && strcmp(f->log, log) != 0; i++) {
        f->still.now_ns += 100 * GS_NS_PER_MS;
        assert_int_equal(gs_loop_step(f->loop, GS_NS_PER_MS, NULL), 0);
    }
    assert_string_equal(f->log, log);
}

static void a_path_that_exists_is_told_once_from_the_loop(void **state)
{
    struct fixture *f = *state;
    touch(f->path);
    start(f);
    assert_string_equal(f->log, "");
    expect(f, "+");
}

static void coming_and_going_is_told(void **state)
{
    struct fixture *f = *state;
    start(f);
    expect(f, "");
    touch(f->path);
    expect(f, "+");
    unlink(f->path);
    expect(f, "+-");
}

static void a_recreated_path_is_told_even_when_unseen_in_between(void **state)
{
    struct fixture *f = *state;
    touch(f->path);
    start(f);
    expect(f, "+");
    unlink(f->path);
    touch(f->path);
    expect(f, "++");
}

static void a_moved_file_counts(void **state)
{
    struct fixture *f = *state;
    start(f);
    expect(f, "");
    touch(f->side);
    expect(f, ""); /* other names do not concern us */
    assert_int_equal(rename(f->side, f->path), 0);
    expect(f, "+");
    assert_int_equal(rename(f->path, f->side), 0);
    expect(f, "+-");
}

static void a_folder_that_comes_later_is_found(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rmdir(f->dir), 0);
    start(f);
    expect(f, "");
    assert_int_equal(mkdir(f->dir, 0700), 0);
    touch(f->path);
    expect(f, "+");
}

static void a_folder_that_is_made_anew_is_watched_again(void **state)
{
    struct fixture *f = *state;
    touch(f->path);
    start(f);
    expect(f, "+");
    unlink(f->path);
    rmdir(f->dir);
    expect(f, "+-");
    assert_int_equal(mkdir(f->dir, 0700), 0);
    touch(f->path);
    expect(f, "+-+");
    unlink(f->path);
    expect(f, "+-+-");
}

static void a_folder_that_is_moved_away_is_not_followed(void **state)
{
    struct fixture *f = *state;
    char away[96];
    touch(f->path);
    start(f);
    expect(f, "+");
    snprintf(away, sizeof(away), "%s.away", f->dir);
    assert_int_equal(rename(f->dir, away), 0);
    expect(f, "+-");
    assert_int_equal(mkdir(f->dir, 0700), 0);
    touch(f->path);
    expect(f, "+-+");
    char old[128];
    snprintf(old, sizeof(old), "%s/the.sock", away);
    unlink(old);
    rmdir(away);
    expect(f, "+-+");
}

static void the_watch_may_be_freed_in_its_callback(void **state)
{
    struct fixture *f = *state;
    touch(f->path);
    f->free_in_callback = true;
    start(f);
    expect(f, "+");
    unlink(f->path);
    expect(f, "+");
    assert_null(f->watch);
}

static void a_path_without_a_name_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const paths[] = {"", "/", "/tmp/"};
    GS_FOR_EACH_ROW (r, paths) {
        struct gs_error err = {0};
        row_equal(*r, gs_path_watch_new(f->loop, *r, note, f, &f->watch, &err), -1);
        row_equal(*r, err.code, GS_EINVAL);
        row_true(*r, f->watch == NULL);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_path_that_exists_is_told_once_from_the_loop),
        TEST(coming_and_going_is_told),
        TEST(a_recreated_path_is_told_even_when_unseen_in_between),
        TEST(a_moved_file_counts),
        TEST(a_folder_that_comes_later_is_found),
        TEST(a_folder_that_is_made_anew_is_watched_again),
        TEST(a_folder_that_is_moved_away_is_not_followed),
        TEST(the_watch_may_be_freed_in_its_callback),
        TEST(a_path_without_a_name_is_refused),
    };
    return GS_RUN(tests);
}
