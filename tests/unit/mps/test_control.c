/* SPDX-License-Identifier: Apache-2.0 */
#include "remove_tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpushare/base/clock.h"
#include "mps/control.h"

static int64_t time_ns, step_ns; /* by which each look at the clock moves it */
static char folder[] = "/tmp/gpushare-mps.XXXXXX";
static struct control control = {.driver_root = "/"};
static struct control_daemon daemon_of = {.control = &control,
                                          .visible = "CUDA_VISIBLE_DEVICES=GPU-1"};

static int64_t now_ns(void *ctx)
{
    return time_ns += step_ns;
}

const struct gs_clock *__wrap_gs_clock_system(void);

const struct gs_clock *__wrap_gs_clock_system(void)
{
    static const struct gs_clock clock = {.monotonic_ns = now_ns, .wall_ns = now_ns};
    return &clock;
}

static int setup(void **state)
{
    strcpy(strrchr(folder, '.'), ".XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(control.program, sizeof(control.program), "%s/tool", folder);
    snprintf(daemon_of.log, sizeof(daemon_of.log), "CUDA_MPS_LOG_DIRECTORY=%s", folder);
    step_ns = 0;
    alarm(30); /* what waits for ever */
    return 0;
}

static int teardown(void **state)
{
    alarm(0);
    remove_tree(folder);
    return 0;
}

static void write_tool(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/bash\n%s\n", text);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
}

static void a_daemon_answers_for_all_its_servers(void **state)
{
    static const struct {
        const char *row, *servers, *about; /* what the tool does when it is asked for $q */
        enum gs_code code;
        uint32_t clients;
        bool fault;
    } rows[] = {
        {"no server", "true", "exit 1", GS_OK},
        {"clients of two", "echo 11; echo 12", "echo ACTIVE; echo 7; echo 8", GS_OK, 4},
        {"the first has failed", "echo 11; echo 12", "case $q in *11) echo FAULT;; esac", GS_OK, 0,
         true},
        {"words", "echo Cannot connect", "true", GS_EIO},
        {"words behind a number", "echo 11; echo no", "true", GS_EIO},
        {"it fails", "echo 11; exit 3", "true", GS_EIO},
        {"it fails for one server", "echo 11", "exit 3", GS_EIO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char tool[256];
        struct control_answer answer = {.clients = 77};
        struct gs_error err = {0};
        snprintf(tool, sizeof(tool), "read q\ncase $q in\n*server_list) %s;;\n*) %s;;\nesac",
                 r->servers, r->about);
        write_tool(control.program, tool);
        row_equal(r->row, control_ask(&daemon_of, &answer, &err), r->code == GS_OK ? 0 : -1);
        row_equal(r->row, err.code, r->code);
        row_equal(r->row, answer.clients, r->code == GS_OK ? r->clients : 77);
        row_equal(r->row, answer.fault, r->fault);
    }
}

/* Its server has the other end of a pipe. */
static void a_daemon_that_is_stopped_ends_with_its_servers(void **state)
{
    static const struct {
        const char *row, *tool;
        bool blocked; /* SIGTERM, as in threads of ours */
        int64_t step_ns;
    } rows[] = {
        {"it ends", "echo up >&9; sleep 60", false, 0},
        {"signals are blocked where it is started", "echo up >&9; sleep 60", true, 0},
        {"it ignores SIGTERM", "trap '' TERM; echo up >&9; sleep 60", false, GS_NS_PER_S},
        {"a server ignores it", "(trap '' TERM; echo up >&9; exec sleep 60)& wait", false, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        sigset_t blocked, before;
        pid_t pid = 0;
        int ends[2];
        char text[8] = "";
        assert_int_equal(pipe(ends), 0);
        struct pollfd gone = {ends[0], POLLIN, 0};
        assert_true(dup2(ends[1], 9) == 9 && close(ends[1]) == 0);
        write_tool(control.program, r->tool);
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGTERM);
        sigprocmask(r->blocked ? SIG_BLOCK : SIG_UNBLOCK, &blocked, &before);
        row_equal(r->row, control_start(&daemon_of, &pid, &err), 0);
        sigprocmask(SIG_SETMASK, &before, NULL);
        close(9);
        row_equal(r->row, read(ends[0], text, sizeof(text)), 3);
        step_ns = r->step_ns;
        control_stop(pid);
        row_equal(r->row, poll(&gone, 1, 20000), 1);
        row_equal(r->row, read(ends[0], text, sizeof(text)), 0);
        close(ends[0]);
    }
}

/* Each is looked at until it is as it should be: who ends does so in its own time. */
static void a_daemon_serves_as_long_as_a_server_lives(void **state)
{
    static const struct {
        const char *row, *tool;
        bool serves;
    } rows[] = {
        {"it is alone", "echo up >&9; exec sleep 20", false},
        {"a child", "sleep 20& echo up >&9; wait", true},
        {"a child with a group of its own", "setsid tail --pid=$$ -f /dev/null& echo up >&9; wait",
         true},
        {"a child of a child that has ended", "(sleep 20&); echo up >&9; exec sleep 20", true},
        {"one that has a strange name",
         "ln -s /bin/sleep \"$0) Z 1 1\"; \"$0) Z 1 1\" 20& echo up >&9; wait", true},
        {"one that has ended, and nobody waits for it", "sleep 1& echo up >&9; exec sleep 20",
         false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        pid_t pid = 0;
        int ends[2];
        char text[8] = "";
        assert_int_equal(pipe(ends), 0);
        assert_true(dup2(ends[1], 9) == 9 && close(ends[1]) == 0);
        write_tool(control.program, r->tool);
        row_equal(r->row, control_start(&daemon_of, &pid, NULL), 0);
        close(9);
        row_equal(r->row, read(ends[0], text, sizeof(text)), 3);
        for (int i = 0; i < 100 && control_serves(pid) != r->serves; i++)
            poll(NULL, 0, 100);
        row_equal(r->row, control_serves(pid), r->serves);
        control_stop(pid);
        close(ends[0]);
    }
}

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 ? -1 : st.st_size;
}

static void logs_are_emptied_by_what_they_take_of_the_disk(void **state)
{
    static const struct {
        const char *row;
        bool written; /* or a hole */
        const char *link;
        bool emptied;
    } rows[] = {
        {"full", true, NULL, true},
        {"a hole", false, NULL, false},
        {"another's file, by a link", true, "link.log", false},
    };
    static char megabyte[1 << 20];
    const off_t size = CONTROL_LOG_BYTES_MAX + (off_t)sizeof(megabyte);
    GS_FOR_EACH_ROW (r, rows) {
        char path[64], link[64];
        snprintf(path, sizeof(path), "%s%s", folder, r->link ? ".other" : "/control.log");
        FILE *file = fopen(path, "we");
        for (off_t at = 0; r->written && at < size; at += (off_t)sizeof(megabyte))
            assert_int_equal(fwrite(megabyte, sizeof(megabyte), 1, file), 1);
        fclose(file);
        row_equal(r->row, truncate(path, size), 0);
        snprintf(link, sizeof(link), "%s/%s", folder, r->link ? r->link : "none");
        row_equal(r->row, r->link ? symlink(path, link) : 0, 0);
        control_bound_logs(&daemon_of);
        row_equal(r->row, size_of(path), r->emptied ? 0 : size);
        unlink(path);
    }
}

/* It lacks a shell in its root: nothing is heard of what it knows. */
static void a_tool_is_found_and_asked_what_it_knows(void **state)
{
    struct control found;
    struct gs_error err = {0};
    char path[64];
    assert_int_equal(control_find(folder, &found, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    snprintf(path, sizeof(path), "%s/sbin", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/nvidia-cuda-mps-control");
    write_tool(path, "echo -multiuser-server");
    assert_int_equal(control_find(folder, &found, NULL), 0);
    assert_string_equal(found.program, "/sbin/nvidia-cuda-mps-control");
    assert_string_equal(found.driver_root, folder);
    assert_false(found.multiuser);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(a_daemon_answers_for_all_its_servers),
        in_folder(a_daemon_that_is_stopped_ends_with_its_servers),
        in_folder(a_daemon_serves_as_long_as_a_server_lives),
        in_folder(logs_are_emptied_by_what_they_take_of_the_disk),
        in_folder(a_tool_is_found_and_asked_what_it_knows),
    };
    return GS_RUN(tests);
}
