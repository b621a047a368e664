/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <ftw.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mps/pipes.h"

#define OTHERS 1 /* no process of ours leads that group */

static char root[] = "/tmp/gpushare-pipe.XXXXXX";
static struct pipes pipes;

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    return remove(path);
}

static int setup(void **state)
{
    strcpy(strrchr(root, '.'), ".XXXXXX");
    assert_non_null(mkdtemp(root));
    pipes = (struct pipes){0};
    return pipes_make(&pipes, root, "GPU-1", NULL);
}

static int teardown(void **state)
{
    pipes_release(&pipes);
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *in_pipe(const char *name)
{
    static char path[MPS_PATH_BYTES + 32];
    snprintf(path, sizeof(path), "%s/%s", pipes.folder, name);
    return path;
}

static int listen_at(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 07777;
}

static void its_folders_are_for_clients_of_all_users(void **state)
{
    char shm[64];
    snprintf(shm, sizeof(shm), "%s/shm", root);
    assert_int_equal(mode_of(shm), 01777); /* nobody removes what is another's */
    assert_int_equal(mode_of(pipes.folder), 0755);
    assert_int_equal(mode_of(pipes.kept), 0700);
}

static void what_an_earlier_daemon_left_is_thrown_out(void **state)
{
    static const char *const left[] = {"control_lock", "control", "other"};
    GS_FOR_EACH_ROW (name, left)
        assert_int_equal(mkdir(in_pipe(*name), 0700), 0);
    pipes_clear(&pipes);
    GS_FOR_EACH_ROW (name, left)
        row_equal(*name, access(in_pipe(*name), F_OK), -1);
    assert_int_equal(access(pipes.folder, F_OK), 0);
}

static void only_a_socket_of_the_daemon_is_its_own(void **state)
{
    struct gs_error err = {0};
    assert_int_equal(pipes_guard(&pipes, getpgrp(), &err), -1); /* there is none yet */
    int fd = listen_at(in_pipe("control"));
    assert_int_equal(pipes_guard(&pipes, OTHERS, &err), -1);
    assert_int_equal(pipes_guard(&pipes, getpgrp(), &err), 0);
    close(fd);
}

static void what_a_client_does_to_the_socket_is_undone(void **state)
{
    static const struct {
        const char *row, *made; /* in its place */
        bool removed, locked;
    } rows[] = {
        {"nothing", NULL, false, false},     {"removed", NULL, true, false},
        {"a folder", "folder", true, false}, {"a link", "link", true, false},
        {"a liar", "socket", true, false},   {"nobody gets in", NULL, false, true},
    };
    struct gs_error err = {0};
    struct stat own, found;
    int fd = listen_at(in_pipe("control")), liar = -1;
    const mode_t mode = mode_of(in_pipe("control"));
    assert_int_equal(pipes_guard(&pipes, getpgrp(), &err), 0);
    assert_int_equal(lstat(in_pipe("control"), &own), 0);
    GS_FOR_EACH_ROW (r, rows) {
        if (r->removed)
            row_equal(r->row, unlink(in_pipe("control")), 0);
        if (r->locked) {
            row_equal(r->row, chmod(in_pipe("control"), 0), 0);
            row_equal(r->row, chmod(pipes.folder, 0), 0);
        }
        if (r->made && strcmp(r->made, "folder") == 0)
            row_equal(r->row, mkdir(in_pipe("control"), 0700), 0);
        else if (r->made && strcmp(r->made, "link") == 0)
            row_equal(r->row, symlink("/dev/null", in_pipe("control")), 0);
        else if (r->made)
            liar = listen_at(in_pipe("control"));
        row_equal(r->row, pipes_guard(&pipes, getpgrp(), &err), 0);
        row_equal(r->row, lstat(in_pipe("control"), &found), 0);
        row_equal(r->row, found.st_ino, own.st_ino);
        row_equal(r->row, mode_of(in_pipe("control")), mode);
        row_equal(r->row, mode_of(pipes.folder), 0755);
    }
    close(liar);
    close(fd);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(its_folders_are_for_clients_of_all_users),
        in_folder(what_an_earlier_daemon_left_is_thrown_out),
        in_folder(only_a_socket_of_the_daemon_is_its_own),
        in_folder(what_a_client_does_to_the_socket_is_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
