/* SPDX-License-Identifier: Apache-2.0 */
#include "remove_tree.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mps/pipes.h"

#define OTHERS 1 /* no process of ours leads that group */

static char root[] = "/tmp/gpushare-pipe.XXXXXX";
static struct pipes pipes;

static int setup(void **state)
{
    strcpy(strrchr(root, '.'), ".XXXXXX");
    assert_non_null(mkdtemp(root));
    pipes = (struct pipes){0};
    return pipes_make(&pipes, root, "GPU-1", NULL);
}

static int teardown(void **state)
{
    remove_tree(root);
    return 0;
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
    assert_int_equal(mode_of(pipes.folder), 0755);
    assert_int_equal(mode_of(pipes.kept), 0700);
}

static void what_an_earlier_daemon_left_is_thrown_out(void **state)
{
    static const char *const left[] = {"control_lock", "control", "other"};
    GS_FOR_EACH_ROW (name, left)
        close(listen_at(in_pipe(*name)));
    pipes_clear(&pipes);
    GS_FOR_EACH_ROW (name, left)
        row_equal(*name, access(in_pipe(*name), F_OK), -1);
    assert_int_equal(access(pipes.folder, F_OK), 0);
}

static void only_a_socket_of_the_daemon_is_its_own(void **state)
{
    struct gs_error err = {0};
    for (int starts = 0; starts < 2; starts++) {
        int privileged = listen_at(in_pipe("control_privileged")); /* no client's */
        assert_int_equal(pipes_find(&pipes, getpgrp(), &err), -1);
        int fd = listen_at(in_pipe("control"));
        assert_int_equal(pipes_find(&pipes, OTHERS, &err), -1);
        assert_int_equal(pipes_find(&pipes, getpgrp(), &err), 0);
        close(fd);
        close(privileged);
        pipes_clear(&pipes);
    }
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(its_folders_are_for_clients_of_all_users),
        in_folder(what_an_earlier_daemon_left_is_thrown_out),
        in_folder(only_a_socket_of_the_daemon_is_its_own),
    };
    return GS_RUN(tests);
}
