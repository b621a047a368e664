/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/kubectl_proxy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "inspect/lookup.h"

#define FOLDER_PREFIX "kubectl-inspect-gpushare."
#define SOCKET_NAME   "api"

#define READY "Starting to serve"

enum { EXIT_NO_KUBECTL = 127, FLAGS_MAX = 12 + 2 * AS_GROUPS_MAX, VIEW_MAX = 16 << 20 };

/* ---- the folder ---- */

/* One whose lock is free belongs to no process any more. */
static void remove_if_left(int parent, const char *name)
{
    struct stat info;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        (void)unlinkat(fd, SOCKET_NAME, 0);
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    }
    close(fd);
}

static void remove_left_folders(const char *parent)
{
    DIR *dir = opendir(parent);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, FOLDER_PREFIX, sizeof(FOLDER_PREFIX) - 1) == 0)
            remove_if_left(dirfd(dir), entry->d_name);
    if (dir)
        closedir(dir);
}

/* False: not there, or another start took it for one that was left before the lock was on it. */
static bool make_folder_in(struct kubectl_proxy *proxy, const char *parent)
{
    struct stat opened, named;
    if (!parent || strlen(parent) > sizeof(proxy->folder) - sizeof(FOLDER_PREFIX "XXXXXX/"))
        return false;
    snprintf(proxy->folder, sizeof(proxy->folder), "%s/" FOLDER_PREFIX "XXXXXX", parent);
    if (mkdtemp(proxy->folder)) {
        proxy->folder_fd = open(proxy->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (proxy->folder_fd >= 0 && flock(proxy->folder_fd, LOCK_EX) == 0 &&
            fstat(proxy->folder_fd, &opened) == 0 && stat(proxy->folder, &named) == 0 &&
            opened.st_ino == named.st_ino) {
            snprintf(proxy->socket, sizeof(proxy->socket), "%s/" SOCKET_NAME, proxy->folder);
            return true;
        }
        if (proxy->folder_fd >= 0)
            close(proxy->folder_fd);
    }
    proxy->folder[0] = '\0';
    return false;
}

static int make_folder(struct kubectl_proxy *proxy, struct gs_error *err)
{
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
        if (parents[i])
            remove_left_folders(parents[i]);
        if (make_folder_in(proxy, parents[i]))
            return 0;
    }
    return gs_fail(err, GS_EINVAL,
                   "cannot create a directory for a socket in $XDG_RUNTIME_DIR, $TMPDIR or /tmp");
}

/* ---- the program ---- */

struct child {
    pid_t pid;
    int out, errors; /* what it writes */
};

/* Flags that kubectl gets as the user gave them. */
static void add_flags(const struct connection *connection, const char **words)
{
    const char *const given[] = {
        "--kubeconfig", connection->kubeconfig, "--context", connection->context,
        "--cluster",    connection->cluster,    "--user",    connection->user,
        "--as",         connection->as,         "--as-uid",  connection->as_uid,
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i += 2) {
        if (!given[i + 1])
            continue;
        words[count++] = given[i];
        words[count++] = given[i + 1];
    }
    for (size_t i = 0; i < connection->as_groups->count; i++) {
        words[count++] = "--as-group";
        words[count++] = connection->as_groups->names[i];
    }
}

/* In the child. Terminal and process group are inherited: a credential plugin may ask. */
static void run_kubectl(char *const *words, const int *out, const int *errors, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setenv("KUBERC", "off", 1); /* its defaults for `proxy` are not those for `get` */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
        dup2(out[1], STDOUT_FILENO) < 0 || dup2(errors[1], STDERR_FILENO) < 0)
        _exit(1);
    execvp(words[0], words);
    _exit(EXIT_NO_KUBECTL);
}

/* A pipe, or for a user at a terminal a terminal: kubectl before 1.22 lets a credential plugin ask
 * only where its output is one. */
static int open_output(bool asks, int fds[2])
{
    if (asks && openpty(&fds[0], &fds[1], NULL, NULL, NULL) == 0)
        return fcntl(fds[0], F_SETFD, FD_CLOEXEC) | fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    return pipe2(fds, O_CLOEXEC);
}

static const char *kubectl_name(void)
{
    const char *name = getenv("KUBECTL");
    return name && name[0] ? name : "kubectl";
}

static int start_kubectl(const char *const *command, const struct connection *connection, bool asks,
                         struct child *ret, struct gs_error *err)
{
    const char *words[FLAGS_MAX + 8] = {kubectl_name()};
    int fds[] = {-1, -1, -1, -1}, *const out = fds, *const errors = fds + 2;
    size_t count = 1;
    const pid_t parent = getpid();
    while (*command)
        words[count++] = *command++;
    add_flags(connection, words + count);
    *ret = (struct child){.pid = -1};
    if (open_output(asks, out) == 0 && pipe2(errors, O_CLOEXEC) == 0)
        ret->pid = fork();
    if (ret->pid == 0)
        run_kubectl((char *const *)(uintptr_t)words, out, errors, parent);
    const int why = errno;
    for (int i = 0; i < 4; i++) { /* the parent reads */
        if (fds[i] >= 0 && (ret->pid < 0 || i % 2))
            close(fds[i]);
    }
    ret->out = out[0];
    ret->errors = errors[0];
    return ret->pid < 0 ? gs_fail_errno(err, GS_EIO, why, "cannot start kubectl") : 0;
}

/* Waits a second, then kills it. Returns its status. */
static int end_process(pid_t pid, bool asked)
{
    const struct timespec pause = {.tv_nsec = 5 * GS_NS_PER_MS};
    int status = 0;
    if (asked)
        (void)kill(pid, SIGTERM);
    for (int i = 0; i < 200 && waitpid(pid, &status, WNOHANG) == 0; i++)
        nanosleep(&pause, NULL);
    if (waitpid(pid, &status, WNOHANG) == 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
    }
    return status;
}

/* Reads both outputs until they end (0), or until `ready` begins standard output (1). What a user
 * at a terminal is asked before is shown. -1: not in time, or too much. */
static int read_child(const struct child *child, const char *ready, int64_t until_ns,
                      struct gs_buf *out, struct gs_buf *errors, struct gs_error *err)
{
    struct pollfd fds[] = {{.fd = child->out, .events = POLLIN},
                           {.fd = child->errors, .events = POLLIN}};
    struct gs_buf *const to[] = {out, errors};
    const bool asks = ready && isatty(STDIN_FILENO);
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        const int64_t left_ns = until_ns - gs_clock_now_ns(gs_clock_system());
        if (!asks && left_ns <= 0)
            return gs_fail(err, GS_ETIMEOUT, "kubectl: timed out while starting");
        if (poll(fds, 2, asks ? -1 : (int)(left_ns / GS_NS_PER_MS) + 1) < 0)
            continue;
        for (int i = 0; i < 2; i++) {
            char more[4096];
            const ssize_t count = fds[i].revents ? read(fds[i].fd, more, sizeof(more)) : -1;
            if (count > 0)
                gs_buf_append(to[i], more, (size_t)count);
            else if (fds[i].revents)
                fds[i].fd = -1;
        }
        if (gs_buf_failed(out) || gs_buf_failed(errors))
            return gs_fail(err, GS_EINVAL, "kubectl: too much output");
        if (ready && out->len >= strlen(ready) && strncmp(out->data, ready, strlen(ready)) == 0)
            return 1;
        if (asks && out->len && strncmp(out->data, ready, out->len) != 0) {
            (void)!write(STDERR_FILENO, out->data, out->len);
            gs_buf_reset(out);
        }
    }
    return 0;
}

/* kubectl's last words, without its "error: ". */
static int fail_ended(int status, struct gs_buf *errors, struct gs_error *err)
{
    gs_buf_putc(errors, '\0');
    const char *words = errors->data && !gs_buf_failed(errors) ? errors->data : "";
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_KUBECTL && !words[0])
        return gs_fail(err, GS_ENOENT,
                       "%s not found: install it, set $KUBECTL, or read a file with --from-file",
                       kubectl_name());
    words += strncmp(words, "error: ", 7) == 0 ? 7 : 0;
    words = words[0] ? words : "it exited without a message";
    return gs_fail(err, GS_EINVAL, "kubectl: %.*s", (int)strcspn(words, "\n"), words);
}

/* Runs it to its end, or until it is ready: it is open then. */
static int await_kubectl(const struct child *child, const char *ready, int64_t until_ns,
                         struct gs_buf *out, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf errors = GS_BUF(VIEW_MAX);
    int result = read_child(child, ready, until_ns, out, &errors, err);
    if (result > 0)
        return 0;
    close(child->out);
    close(child->errors);
    const int status = end_process(child->pid, result < 0);
    if (result == 0 && (ready || status != 0))
        result = fail_ended(status, &errors, err);
    return result;
}

/* ---- what the kubeconfig says ---- */

/* The item of the list with that name: its own part. */
static const json_t *find_entry(const json_t *view, const char *list, const char *part,
                                const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(view, list), i, item)
    {
        if (strcmp(lookup_text(item, "name", NULL), name) == 0)
            return json_object_get(item, part);
    }
    return NULL;
}

/* Which cluster and user kubectl will use: --minify does not look at --cluster and --user. What
 * does not exist is reported by the proxy. */
static int read_view(struct kubectl_proxy *proxy, const struct connection *connection,
                     int64_t until_ns, struct gs_error *err)
{
    static const char *const command[] = {"config", "view", "--output=json", NULL};
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(VIEW_MAX);
    struct child child;
    if (start_kubectl(command, connection, false, &child, err) < 0 ||
        await_kubectl(&child, NULL, until_ns, &text, err) < 0)
        return -1;
    json_auto_t *view = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
    if (!view)
        return gs_fail(err, GS_EINVAL, "kubectl: the output of config view is not JSON");
    const char *name = connection->context;
    const json_t *context = find_entry(view, "contexts", "context",
                                       name ? name : lookup_text(view, "current-context", NULL));
    name = connection->cluster ? connection->cluster : lookup_text(context, "cluster", NULL);
    const char *server = lookup_text(find_entry(view, "clusters", "cluster", name), "server", NULL);
    name = connection->user ? connection->user : lookup_text(context, "user", NULL);
    const json_t *user = find_entry(view, "users", "user", name);
    const char *authority = strstr(server, "://");
    const char *path = authority ? strchr(authority + 3, '/') : NULL;
    proxy->asks_user = json_object_get(user, "exec") && isatty(STDIN_FILENO);
    snprintf(proxy->server, sizeof(proxy->server), "%s", server);
    snprintf(proxy->ns, sizeof(proxy->ns), "%s", lookup_text(context, "namespace", NULL));
    if (path && strlen(path) >= sizeof(proxy->prefix))
        return gs_fail(err, GS_EINVAL, "the API server's address is too long");
    snprintf(proxy->prefix, sizeof(proxy->prefix), "%s", path && path[1] ? path : "");
    return 0;
}

/* ---- while it runs ---- */

/* kubectl logs each request that failed ("E1128 … proxy_server.go:147] …") and answers with the
 * same words, which are printed once. All else, such as a plugin's question, goes to the terminal.
 * Stopped before kubectl is ended; where both got the user's ^C, this process ends by itself. */
static void *follow_kubectl(void *arg)
{
    const struct kubectl_proxy *proxy = arg;
    struct pollfd fds[] = {{.fd = proxy->errors, .events = POLLIN}, {.fd = proxy->stop[0]}};
    char text[4096];
    for (ssize_t count = 1; count > 0;) {
        (void)poll(fds, 2, -1);
        if (fds[1].revents && !fds[0].revents)
            return NULL;
        count = read(proxy->errors, text, sizeof(text) - 1);
        text[count > 0 ? count : 0] = '\0';
        for (char *line = text, *end; *line; line = end) {
            end = strchrnul(line, '\n');
            end += *end != '\0';
            if (!memmem(line, (size_t)(end - line), "proxy_server.go:", 16))
                (void)!write(STDERR_FILENO, line, (size_t)(end - line));
        }
    }
    if (poll(fds + 1, 1, 1000) > 0)
        return NULL;
    fputs(PROGRAM ": kubectl: it has exited\n", stderr);
    _exit(1);
}

/* Who listens on the socket, by the kernel. */
static pid_t find_listener(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
    if (fd >= 0)
        close(fd);
    return peer.pid;
}

int kubectl_proxy_start(struct kubectl_proxy *proxy, const struct connection *connection,
                        struct gs_error *err)
{
    const int64_t until_ns = gs_clock_now_ns(gs_clock_system()) + connection->timeout_ns;
    char option[sizeof(proxy->socket) + 16];
    const char *const command[] = {"proxy", option, NULL};
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(VIEW_MAX);
    struct child child;
    *proxy = (struct kubectl_proxy){0};
    if (make_folder(proxy, err) < 0)
        return -1;
    snprintf(option, sizeof(option), "--unix-socket=%s", proxy->socket);
    if (start_kubectl(command, connection, isatty(STDIN_FILENO), &child, err) < 0)
        return -1;
    if (read_view(proxy, connection, until_ns, err) < 0) {
        close(child.out);
        close(child.errors);
        (void)end_process(child.pid, true);
        return -1;
    }
    if (await_kubectl(&child, READY, until_ns, &out, err) < 0)
        return -1;
    proxy->pid = child.pid;
    proxy->errors = child.errors;
    close(child.out);
    proxy->followed = pipe2(proxy->stop, O_CLOEXEC) == 0 &&
                      pthread_create(&proxy->thread, NULL, follow_kubectl, proxy) == 0;
    return 0;
}

void kubectl_proxy_stop(struct kubectl_proxy *proxy)
{
    if (proxy->followed) {
        close(proxy->stop[1]);
        pthread_join(proxy->thread, NULL);
        close(proxy->stop[0]);
    }
    if (proxy->pid > 0) {
        /* another process where kubectl is a script that started it */
        const pid_t listener = find_listener(proxy->socket);
        if (listener > 0 && listener != proxy->pid)
            kill(listener, SIGTERM);
        (void)end_process(proxy->pid, true);
        close(proxy->errors);
    }
    if (proxy->folder[0]) {
        (void)unlink(proxy->socket);
        (void)rmdir(proxy->folder);
        close(proxy->folder_fd);
    }
    *proxy = (struct kubectl_proxy){0};
}
