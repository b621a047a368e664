/* SPDX-License-Identifier: Apache-2.0 */
#include "mps/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/base/num.h"

#define ANSWER_NS (2 * GS_NS_PER_S)
#define STOP_NS   (5 * GS_NS_PER_S)
enum { OUTPUT_BYTES = 8192, POLL_MS = 20 };

static char *const no_args[] = {NULL};

/* ---- a child ---- */

/* What a child gets; -1: /dev/null for input, our own for output. */
struct streams {
    int in, out;
};

/* In the child, where other threads' locks may be held: system calls only. */
static void become(const struct control *control, char *const argv[], char *const envp[],
                   struct streams streams)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int in = streams.in >= 0 ? streams.in : open("/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 ||
        (streams.out >= 0 && dup2(streams.out, STDOUT_FILENO) < 0))
        _exit(127);
    if (strcmp(control->driver_root, "/") != 0 &&
        (chroot(control->driver_root) < 0 || chdir("/") < 0))
        _exit(126);
    execve(control->program, argv, envp);
    _exit(127);
}

static pid_t spawn(const struct control *control, char *const args[],
                   const struct control_daemon *daemon, struct streams streams)
{
    static char path[] = "PATH=/usr/bin:/usr/sbin:/bin:/sbin:/opt/bin";
    char *argv[8] = {(char *)control->program};
    char *envp[] = {path, daemon ? (char *)daemon->visible : NULL,
                    daemon ? (char *)daemon->pipe : NULL, daemon ? (char *)daemon->log : NULL,
                    NULL};
    for (size_t i = 0; args[i] && i + 2 < sizeof(argv) / sizeof(argv[0]); i++)
        argv[i + 1] = args[i];
    pid_t pid = fork();
    if (pid == 0)
        become(control, argv, envp, streams);
    return pid;
}

/* A server is a child of the daemon's, or of its group. Of /proc/PID/stat (proc(5)) "7 (name) S 1 9
 * …", where a name may hold anything, these are the last two; who has ended (Z, X) has no clients.
 */
static bool is_server(const char *name, pid_t daemon)
{
    char path[32], text[512];
    uint32_t pid, parent, group;
    if (!gs_parse_u32(name, strlen(name), &pid) || (pid_t)pid == daemon)
        return false;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    const char *at = strrchr(text, ')');
    if (!at || strlen(at) < sizeof(") S 1 9") - 1 || strchr("ZX", at[2]))
        return false;
    const char *word = at + 4;
    size_t len = strcspn(word, " ");
    return (gs_parse_u32(word, len, &parent) && (pid_t)parent == daemon) ||
           (word[len] && gs_parse_u32(word + len + 1, strcspn(word + len + 1, " "), &group) &&
            (pid_t)group == daemon);
}

bool control_serves(pid_t daemon)
{
    DIR *processes = opendir("/proc");
    bool serves = !processes;
    for (struct dirent *entry; !serves && (entry = readdir(processes));)
        serves = is_server(entry->d_name, daemon);
    if (processes)
        closedir(processes);
    return serves;
}

bool control_ended(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) != 0;
}

static void end(pid_t pid, int number)
{
    kill(-pid, number);
    kill(pid, number); /* it may not have its group yet */
}

void control_stop(pid_t pid)
{
    const int64_t until_ns = gs_clock_now_ns(gs_clock_system()) + STOP_NS;
    end(pid, SIGTERM);
    while (!control_ended(pid)) {
        if (gs_clock_now_ns(gs_clock_system()) >= until_ns) {
            end(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            break;
        }
        poll(NULL, 0, POLL_MS);
    }
    kill(-pid, SIGKILL); /* servers that stayed behind */
}

/* ---- a question ---- */

/* What the tool prints until it ends. */
struct output {
    char text[OUTPUT_BYTES];
    size_t len;
};

static int fail_slow(struct gs_error *err)
{
    return gs_fail(err, GS_ETIMEOUT, "the MPS daemon did not respond within 2 s");
}

static int read_all(int fd, int64_t until_ns, struct output *out, struct gs_error *err)
{
    for (;;) {
        int64_t left_ns = until_ns - gs_clock_now_ns(gs_clock_system());
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (left_ns <= 0 || poll(&wait, 1, (int)(left_ns / GS_NS_PER_MS) + 1) == 0)
            return fail_slow(err);
        ssize_t got = read(fd, out->text + out->len, sizeof(out->text) - 1 - out->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || out->len + (size_t)got >= sizeof(out->text) - 1)
            return gs_fail(err, GS_EIO, "the MPS daemon's answer is too long");
        if (got == 0)
            return 0;
        out->len += (size_t)got;
        out->text[out->len] = '\0';
    }
}

static int reap(pid_t pid, int64_t until_ns, struct gs_error *err)
{
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
        if (gs_clock_now_ns(gs_clock_system()) >= until_ns) {
            end(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return fail_slow(err);
        }
        poll(NULL, 0, POLL_MS / 4);
    }
    if (got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return gs_fail(err, GS_EIO, "nvidia-cuda-mps-control failed (status 0x%x)", (unsigned)status);
}

/* Runs the tool with this input; its output in *out. */
static int converse(const struct control *control, char *const args[],
                    const struct control_daemon *daemon, const char *input, struct output *out,
                    struct gs_error *err)
{
    int in[2], from[2];
    const int64_t until_ns = gs_clock_now_ns(gs_clock_system()) + ANSWER_NS;
    *out = (struct output){.len = 0};
    if (pipe2(in, O_CLOEXEC) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot create a pipe");
    _cleanup_close_ int write_fd = in[1];
    if (pipe2(from, O_CLOEXEC) < 0) {
        close(in[0]);
        return gs_fail_errno(err, GS_EIO, errno, "cannot create a pipe");
    }
    _cleanup_close_ int read_fd = from[0];
    pid_t pid = spawn(control, args, daemon, (struct streams){in[0], from[1]});
    close(in[0]);
    close(from[1]);
    if (pid < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot start nvidia-cuda-mps-control");
    bool whole = write(write_fd, input, strlen(input)) == (ssize_t)strlen(input);
    close(write_fd);
    write_fd = -1;
    int result = whole ? read_all(read_fd, until_ns, out, err)
                       : gs_fail(err, GS_EIO, "nvidia-cuda-mps-control does not accept commands");
    if (result < 0)
        end(pid, SIGKILL);
    struct gs_error reaped = {0};
    if (reap(pid, until_ns, &reaped) < 0 && result == 0)
        result = gs_fail(err, reaped.code, "%s", reaped.msg);
    return result;
}

/* The next number of a list of them, one a line. False at its end; *ret_odd: a line that is none.
 */
static bool next_number(const char **at, uint32_t *ret, bool *ret_odd)
{
    *at += strspn(*at, " \t\r\n");
    size_t len = strcspn(*at, "\r\n");
    const char *word = *at;
    *at += len;
    if (!len)
        return false;
    *ret_odd = !gs_parse_u32(word, len, ret);
    return true;
}

/* Of one server: its state in words, and its clients' process ids. */
static int ask_server(const struct control_daemon *daemon, uint32_t server,
                      struct control_answer *answer, struct gs_error *err)
{
    char input[96];
    struct output out;
    bool odd;
    uint32_t pid;
    snprintf(input, sizeof(input), "get_server_status %u\nget_client_list %u\n", server, server);
    if (converse(daemon->control, no_args, daemon, input, &out, err) < 0)
        return -1;
    for (const char *at = out.text; next_number(&at, &pid, &odd);)
        answer->clients += !odd;
    answer->fault |= strstr(out.text, "FAULT") != NULL;
    return 0;
}

int control_ask(const struct control_daemon *daemon, struct control_answer *ret,
                struct gs_error *err)
{
    struct control_answer answer = {0};
    struct output out;
    bool odd;
    uint32_t server;
    if (converse(daemon->control, no_args, daemon, "get_server_list\n", &out, err) < 0)
        return -1;
    for (const char *at = out.text; next_number(&at, &server, &odd);) {
        if (odd)
            return gs_fail(err, GS_EIO, "unexpected answer of the MPS daemon: %.80s", out.text);
        if (ask_server(daemon, server, &answer, err) < 0)
            return -1;
    }
    *ret = answer;
    return 0;
}

/* Who does not append goes on behind a hole, so it is the blocks that count. */
static void bound(int folder, const char *name)
{
    struct stat st;
    _cleanup_close_ int fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (int64_t)st.st_blocks * 512 > CONTROL_LOG_BYTES_MAX)
        gs_log(GS_LOG_INFO, "log of the MPS daemon truncated", GS_STR("file", name),
               GS_INT("failed", ftruncate(fd, 0) < 0));
}

void control_bound_logs(const struct control_daemon *daemon)
{
    DIR *folder = opendir(strchr(daemon->log, '=') + 1);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        bound(dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
}

void control_quit(const struct control_daemon *daemon)
{
    struct output out;
    struct gs_error err = {0};
    converse(daemon->control, no_args, daemon, "quit\n", &out, &err);
}

/* ---- the daemon ---- */

int control_start(const struct control_daemon *daemon, pid_t *ret, struct gs_error *err)
{
    static char foreground[] = "-f", multiuser[] = "-multiuser-server";
    char *const args[] = {foreground, daemon->control->multiuser ? multiuser : NULL, NULL};
    pid_t pid = spawn(daemon->control, args, daemon, (struct streams){-1, -1});
    if (pid < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot start nvidia-cuda-mps-control");
    setpgid(pid, pid); /* whoever is first */
    *ret = pid;
    return 0;
}

/* ---- the program ---- */

static bool find_in(const char *root, struct control *ret)
{
    static const char *const folders[] = {"/usr/bin", "/usr/sbin", "/bin", "/sbin", "/opt/bin"};
    char path[MPS_PATH_BYTES];
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(ret->program, sizeof(ret->program), "%s/nvidia-cuda-mps-control", folders[i]);
        int len =
            snprintf(path, sizeof(path), "%s%s", strcmp(root, "/") == 0 ? "" : root, ret->program);
        if (len < (int)sizeof(path) && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

int control_find(const char *driver_root, struct control *ret, struct gs_error *err)
{
    static char help[] = "-h";
    char *const args[] = {help, NULL};
    const char *const roots[] = {driver_root ? driver_root : "/driver-root",
                                 driver_root ? NULL : "/"};
    struct control control = {0};
    struct output out;
    struct gs_error ignored = {0};
    for (size_t i = 0; i < 2 && roots[i] && !control.driver_root; i++) {
        if (find_in(roots[i], &control))
            control.driver_root = roots[i];
    }
    if (!control.driver_root)
        return gs_fail(err, GS_ENOENT,
                       "no nvidia-cuda-mps-control in %.80s: mount the driver's root there, or run "
                       "the container with the nvidia runtime",
                       driver_root ? driver_root : "/driver-root or /");
    converse(&control, args, NULL, "", &out, &ignored); /* it may end with any status */
    control.multiuser = strstr(out.text, "-multiuser-server") != NULL;
    *ret = control;
    return 0;
}
