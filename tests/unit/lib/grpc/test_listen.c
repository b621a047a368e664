/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "grpc/server_internal.h"

/* Who may listen where. The servers have no methods: only their sockets matter. */
struct fixture {
    char dir[64];
    char path[96];
    struct gs_loop *loop;
    struct gs_grpc_server *a, *b;
};

static struct gs_grpc_server *new_server(struct fixture *f)
{
    struct gs_grpc_server *server = NULL;
    assert_int_equal(gs_grpc_server_new(f->loop, NULL, 0, NULL, &server, NULL), 0);
    return server;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/gs-listen-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/p.sock", f->dir);
    assert_int_equal(gs_loop_new(gs_clock_system(), &f->loop, NULL), 0);
    f->a = new_server(f);
    f->b = new_server(f);
    *state = f;
    return 0;
}

static void drop(struct gs_grpc_server **server)
{
    if (*server)
        gs_grpc_server_free(*server);
    *server = NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    drop(&f->a);
    drop(&f->b);
    gs_loop_free(f->loop);
    assert_int_equal(rmdir(f->dir), 0); /* nothing was left in it */
    free(f);
    return 0;
}

static void turn(struct fixture *f, int times)
{
    while (times--)
        gs_loop_step(f->loop, 0, NULL);
}

/* Connects and lets the loop accept: who got it? */
static struct gs_grpc_server *who_serves(struct fixture *f)
{
    size_t before = f->a ? f->a->conn_count : 0;
    int fd = peer_dial(f->path);
    assert_true(fd >= 0);
    gs_loop_step(f->loop, 0, NULL);
    bool is_a = f->a && f->a->conn_count > before;
    close(fd);
    turn(f, 3);
    return is_a ? f->a : f->b;
}

static ino_t inode_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_ino : 0;
}

static void expect_refusal(struct gs_grpc_server *server, const char *path, enum gs_code code)
{
    struct gs_error err = {0};
    assert_int_equal(gs_grpc_server_listen(server, path, &err), -1);
    if (err.code != code)
        print_error("%s\n", err.msg);
    assert_int_equal(err.code, code);
}

static void the_socket_is_for_its_owner_only(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    mode_t old = umask(0);
    assert_int_equal(gs_grpc_server_listen(f->a, f->path, NULL), 0);
    umask(old);
    assert_int_equal(lstat(f->path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void a_second_server_is_refused_and_harms_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gs_grpc_server_listen(f->a, f->path, NULL), 0);
    ino_t ino = inode_of(f->path);
    expect_refusal(f->b, f->path, GS_EEXIST);
    assert_int_equal(inode_of(f->path), ino);
    drop(&f->b);
    assert_int_equal(inode_of(f->path), ino);
    assert_ptr_equal(who_serves(f), f->a);
}

static void a_stale_socket_is_removed(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    if (pid == 0) { /* dies without cleaning up */
        gs_grpc_server_listen(f->a, f->path, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(peer_dial(f->path), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(gs_grpc_server_listen(f->b, f->path, NULL), 0);
    assert_ptr_equal(who_serves(f), f->b);
}

static void what_is_not_a_socket_is_kept(void **state)
{
    struct fixture *f = *state;
    int fd = open(f->path, O_CREAT | O_WRONLY, 0600);
    expect_refusal(f->a, f->path, GS_EEXIST);
    assert_int_not_equal(inode_of(f->path), 0);
    close(fd);
    unlink(f->path);
    assert_int_equal(symlink("/nowhere", f->path), 0);
    expect_refusal(f->a, f->path, GS_EEXIST);
    unlink(f->path);
    assert_int_equal(mkdir(f->path, 0700), 0);
    expect_refusal(f->a, f->path, GS_EEXIST);
    rmdir(f->path);
}

static void a_failed_move_leaves_the_old_place(void **state)
{
    struct fixture *f = *state;
    char other[104];
    snprintf(other, sizeof(other), "%s/q.sock", f->dir);
    assert_int_equal(gs_grpc_server_listen(f->a, f->path, NULL), 0);
    assert_int_equal(gs_grpc_server_listen(f->b, other, NULL), 0);
    expect_refusal(f->a, other, GS_EEXIST);
    assert_ptr_equal(who_serves(f), f->a);
    expect_refusal(f->a, "/nonexistent/p.sock", GS_EIO);
    assert_ptr_equal(who_serves(f), f->a);
}

static void a_path_must_fit_into_an_address(void **state)
{
    struct fixture *f = *state;
    char path[160] = "/tmp/";
    memset(path + 5, 'x', 107 - 5);
    assert_int_equal(gs_grpc_server_listen(f->a, path, NULL), 0); /* 107 bytes: the largest */
    path[107] = 'x';
    expect_refusal(f->a, path, GS_EINVAL);
    expect_refusal(f->a, "", GS_EINVAL);
}

static void a_full_house_makes_newcomers_wait(void **state)
{
    struct fixture *f = *state;
    int fds[70];
    assert_int_equal(gs_grpc_server_listen(f->a, f->path, NULL), 0);
    GS_FOR_EACH_ROW (r, fds) {
        *r = peer_dial(f->path);
        assert_true(*r >= 0);
        gs_loop_step(f->loop, 0, NULL);
    }
    turn(f, 100);
    assert_int_equal(f->a->conn_count, 64);
    close(fds[0]);
    turn(f, 100);
    assert_int_equal(f->a->conn_count, 64);
    for (size_t i = 1; i < GS_COUNT_OF(fds); i++)
        close(fds[i]);
    turn(f, 100);
    assert_int_equal(f->a->conn_count, 0);
}

static void a_server_without_descriptors_accepts_once_it_has_some(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gs_grpc_server_listen(f->a, f->path, NULL), 0);
    const int fd = peer_dial(f->path); /* the lowest that was free */
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    turn(f, 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(f->a->conn_count, 0);
    for (int i = 0; i < 300 && !f->a->conn_count; i++)
        gs_loop_step(f->loop, 10 * GS_NS_PER_MS, NULL);
    assert_int_equal(f->a->conn_count, 1);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_socket_is_for_its_owner_only),
        TEST(a_second_server_is_refused_and_harms_nothing),
        TEST(a_stale_socket_is_removed),
        TEST(what_is_not_a_socket_is_kept),
        TEST(a_failed_move_leaves_the_old_place),
        TEST(a_path_must_fit_into_an_address),
        TEST(a_full_house_makes_newcomers_wait),
        TEST(a_server_without_descriptors_accepts_once_it_has_some),
    };
    return GS_RUN(tests);
}
