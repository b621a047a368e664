/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "gpushare/grpc/loop.h"

/* A clock that stands still until told. */
static int64_t read_clock(void *ctx)
{
    return *(int64_t *)ctx;
}

struct fixture {
    int64_t now_ns;
    struct gs_clock clock;
    struct gs_loop *loop;
    char log[200]; /* one letter per callback */
};

struct letter {
    struct fixture *f;
    char c;
    struct gs_loop_timer timer;
    struct gs_loop_task task;
    struct gs_loop_fd fd;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->now_ns = 1000;
    f->clock = (struct gs_clock){read_clock, read_clock, &f->now_ns};
    *state = f;
    return gs_loop_new(&f->clock, &f->loop, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gs_loop_freep(&f->loop);
    free(f);
    return 0;
}

static void note(void *ctx)
{
    struct letter *letter = ctx;
    size_t len = strlen(letter->f->log);
    assert_true(len + 1 < sizeof(letter->f->log));
    letter->f->log[len] = letter->c;
}

static void note_fd(void *ctx, short revents)
{
    note(ctx);
}

static struct letter make(struct fixture *f, char c)
{
    return (struct letter){.f = f, .c = c};
}

static void bind_fns(struct letter *l)
{
    l->timer.fn = l->task.fn = note;
    l->timer.ctx = l->task.ctx = l->fd.ctx = l;
    l->fd.fn = note_fd;
}

static void step(struct fixture *f)
{
    struct gs_error err = {0};
    assert_int_equal(gs_loop_step(f->loop, 0, &err), 0);
}

static void rearm_for_the_past(void *ctx)
{
    struct letter *l = ctx;
    note(l);
    gs_loop_timer_arm(l->f->loop, &l->timer, INT64_MIN);
}

static void a_timer_that_rearms_itself_does_not_starve_the_rest(void **state)
{
    struct fixture *f = *state;
    struct letter a = make(f, 'a'), b = make(f, 'b');
    bind_fns(&a), bind_fns(&b);
    a.timer.fn = rearm_for_the_past;
    gs_loop_timer_arm(f->loop, &a.timer, 0);
    gs_loop_timer_arm(f->loop, &b.timer, 1000);
    step(f);
    assert_string_equal(f->log, "ab");
    step(f);
    assert_string_equal(f->log, "aba");
    gs_loop_timer_disarm(f->loop, &a.timer);
}

struct pair {
    struct letter *self, *other;
};

static void readable_descriptors_are_told(void **state)
{
    struct fixture *f = *state;
    int fds[2];
    struct letter a = make(f, 'a');
    bind_fns(&a);
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    assert_int_equal(gs_loop_fd_add(f->loop, &a.fd, fds[0], POLLIN, NULL), 0);
    step(f);
    assert_string_equal(f->log, "");
    assert_int_equal(write(fds[1], "x", 1), 1);
    step(f);
    assert_string_equal(f->log, "a");
    gs_loop_fd_events(&a.fd, 0);
    step(f);
    assert_string_equal(f->log, "a");
    gs_loop_fd_events(&a.fd, POLLIN);
    step(f);
    assert_string_equal(f->log, "aa");
    gs_loop_fd_remove(f->loop, &a.fd);
    gs_loop_fd_remove(f->loop, &a.fd); /* harmless */
    step(f);
    assert_string_equal(f->log, "aa");
    close(fds[0]);
    close(fds[1]);
}

static void remove_both(void *ctx, short revents)
{
    struct pair *pair = ctx;
    note(pair->self);
    gs_loop_fd_remove(pair->self->f->loop, &pair->self->fd);
    gs_loop_fd_remove(pair->self->f->loop, &pair->other->fd);
}

static void a_removed_descriptor_is_not_told_in_the_same_round(void **state)
{
    struct fixture *f = *state;
    int fds[2];
    struct letter a = make(f, 'a'), b = make(f, 'b');
    struct pair ab = {&a, &b}, ba = {&b, &a};
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    a.fd = (struct gs_loop_fd){.fn = remove_both, .ctx = &ab};
    b.fd = (struct gs_loop_fd){.fn = remove_both, .ctx = &ba};
    assert_int_equal(gs_loop_fd_add(f->loop, &a.fd, fds[0], POLLIN, NULL), 0);
    assert_int_equal(gs_loop_fd_add(f->loop, &b.fd, fds[0], POLLIN, NULL), 0);
    step(f);
    assert_int_equal(strlen(f->log), 1);
    close(fds[0]);
    close(fds[1]);
}

static void so_many_descriptors_can_be_added_and_no_more(void **state)
{
    struct fixture *f = *state;
    int fds[2];
    struct letter letters[GS_LOOP_FDS_MAX], more = make(f, 'y');
    struct gs_error err = {0};
    assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    GS_FOR_EACH_ROW (r, letters) {
        *r = make(f, 'x');
        bind_fns(r);
        assert_int_equal(gs_loop_fd_add(f->loop, &r->fd, fds[0], POLLIN, NULL), 0);
    }
    assert_int_equal(gs_loop_fd_add(f->loop, &more.fd, fds[0], POLLIN, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
    step(f);
    assert_int_equal(strlen(f->log), GS_COUNT_OF(letters));
    for (size_t i = 0; i < GS_COUNT_OF(letters); i++)
        gs_loop_fd_remove(f->loop, &letters[i].fd);
    assert_int_equal(gs_loop_fd_add(f->loop, &more.fd, fds[0], POLLIN, NULL), 0);
    gs_loop_fd_remove(f->loop, &more.fd);
    close(fds[0]);
    close(fds[1]);
}

static void post_again(void *ctx)
{
    struct letter *l = ctx;
    note(l);
    if (strlen(l->f->log) < 3)
        gs_loop_post(l->f->loop, &l->task);
}

static void freeing_the_loop_runs_what_was_posted(void **state)
{
    struct fixture *f = *state;
    struct letter a = make(f, 'a');
    bind_fns(&a);
    a.task.fn = post_again;
    gs_loop_post(f->loop, &a.task);
    gs_loop_free(f->loop);
    f->loop = NULL;
    assert_string_equal(f->log, "aaa");
}

#define POSTS 2000

struct poster {
    struct gs_loop *loop;
    size_t *count;
    struct gs_loop_task tasks[POSTS];
};

static void count_up(void *ctx)
{
    ++*(size_t *)ctx;
}

static void *post_many(void *ctx)
{
    struct poster *poster = ctx;
    for (size_t i = 0; i < POSTS; i++) {
        poster->tasks[i] = (struct gs_loop_task){.fn = count_up, .ctx = poster->count};
        gs_loop_post(poster->loop, &poster->tasks[i]);
    }
    return NULL;
}

static void threads_post_at_once_and_wake_the_loop(void **state)
{
    struct fixture *f = *state;
    static struct poster posters[2];
    pthread_t threads[2];
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        posters[i].loop = f->loop;
        posters[i].count = &count;
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    for (int round = 0; round < 1000000 && count < 2 * POSTS; round++)
        assert_int_equal(gs_loop_step(f->loop, 10 * GS_NS_PER_S, NULL), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count, 2 * POSTS);
}

static void the_loop_sleeps_until_a_timer_is_due(void **state)
{
    struct fixture *f = *state;
    const struct gs_clock *clock = gs_clock_system();
    struct gs_loop *loop = NULL;
    struct letter a = make(f, 'a');
    bind_fns(&a);
    assert_int_equal(gs_loop_new(clock, &loop, NULL), 0);
    int64_t start_ns = gs_clock_now_ns(clock);
    gs_loop_timer_arm(loop, &a.timer, start_ns + 30 * GS_NS_PER_MS);
    assert_int_equal(gs_loop_step(loop, 10 * GS_NS_PER_S, NULL), 0);
    assert_string_equal(f->log, "a"); /* in one round: the sleep is rounded up */
    assert_true(gs_clock_now_ns(clock) - start_ns >= 30 * GS_NS_PER_MS);
    gs_loop_free(loop);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_timer_that_rearms_itself_does_not_starve_the_rest),
        TEST(readable_descriptors_are_told),
        TEST(a_removed_descriptor_is_not_told_in_the_same_round),
        TEST(so_many_descriptors_can_be_added_and_no_more),
        TEST(freeing_the_loop_runs_what_was_posted),
        TEST(threads_post_at_once_and_wake_the_loop),
        TEST(the_loop_sleeps_until_a_timer_is_due),
    };
    return GS_RUN(tests);
}
