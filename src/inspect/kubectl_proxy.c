/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/kubectl_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "inspect/lookup.h"

#define READY "Starting to serve"

enum { FOLDER_BYTES = 72, FLAGS_MAX = 12 + 2 * AS_GROUPS_MAX, VIEW_MAX = 16 << 20 };

static int make_folder(char to[FOLDER_BYTES], struct gs_error *err)
{
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
        if (parents[i] &&
            snprintf(to, FOLDER_BYTES, "%s/kubectl-inspect-gpushare.XXXXXX", parents[i]) <
                FOLDER_BYTES &&
            mkdtemp(to))
            return 0;
    }
    return gs_fail(err, GS_EINVAL,
                   "cannot create a directory for a socket in $XDG_RUNTIME_DIR, $TMPDIR or /tmp");
}

/* ---- the program ---- */

struct child {
    pid_t pid;
    int output;
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
static void run_kubectl(char *const *words, int output, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGINT, SIG_DFL);
    setenv("KUBERC", "off", 1); /* its defaults for `proxy` are not those for `get` */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
        dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
        _exit(1);
    execvp(words[0], words);
    dprintf(STDOUT_FILENO,
            "%s not found: install it, set $KUBECTL, or read a file with --from-file\n", words[0]);
    _exit(1);
}

/* What fails here ends this program, and what it has opened. */
static int start_kubectl(const char *const *command, const struct connection *connection,
                         struct child *ret, struct gs_error *err)
{
    const char *name = getenv("KUBECTL");
    const char *words[FLAGS_MAX + 8] = {name && name[0] ? name : "kubectl"};
    const pid_t parent = getpid();
    size_t count = 1;
    int fds[2];
    while (*command)
        words[count++] = *command++;
    add_flags(connection, words + count);
    /* before 1.22 it lets a credential plugin ask only where its output is a terminal */
    const int made =
        isatty(STDIN_FILENO) ? openpty(&fds[0], &fds[1], NULL, NULL, NULL) : pipe2(fds, O_CLOEXEC);
    if (made < 0 || (ret->pid = fork()) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot start kubectl");
    if (ret->pid == 0)
        run_kubectl((char *const *)(uintptr_t)words, fds[1], parent);
    close(fds[1]);
    ret->output = fds[0];
    return 0;
}

static void end_kubectl(const struct child *child)
{
    close(child->output);
    (void)kill(child->pid, SIGKILL);
    (void)waitpid(child->pid, NULL, 0);
}

static bool has_line(const struct gs_buf *text, const char *begin)
{
    const char *at = text->len ? memmem(text->data, text->len, begin, strlen(begin)) : NULL;
    return at && memchr(at, '\n', (size_t)(text->data + text->len - at));
}

/* Reads its output to the end (0), or to the line `ready` (1). What a user at a terminal is asked
 * before, in a line that does not end, is shown. -1: not in time, or too much. */
static int read_kubectl(const struct child *child, const char *ready, int64_t until_ns,
                        struct gs_buf *out, struct gs_error *err)
{
    struct pollfd output = {.fd = child->output, .events = POLLIN};
    const bool asks = ready && isatty(STDIN_FILENO);
    char more[4096];
    while (!gs_buf_failed(out)) {
        const int64_t left_ns = until_ns - gs_clock_now_ns(gs_clock_system());
        if (!asks && left_ns <= 0)
            return gs_fail(err, GS_ETIMEOUT, "kubectl: timed out while starting");
        if (poll(&output, 1, asks ? -1 : (int)(left_ns / GS_NS_PER_MS) + 1) <= 0)
            continue;
        const ssize_t count = read(output.fd, more, sizeof(more));
        if (count <= 0)
            return 0;
        gs_buf_append(out, more, (size_t)count);
        if (ready && has_line(out, ready))
            return 1;
        if (asks && more[count - 1] != '\n' && !memmem(more, (size_t)count, ready, strlen(ready))) {
            (void)!write(STDERR_FILENO, more, (size_t)count);
            gs_buf_reset(out);
        }
    }
    return gs_fail(err, GS_EINVAL, "kubectl: too much output");
}

/* Until it serves; else it has ended. */
static int await_proxy(const struct child *child, int64_t until_ns, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(1 << 16);
    const int result = read_kubectl(child, READY, until_ns, &out, err);
    if (result > 0)
        return 0;
    end_kubectl(child);
    if (result < 0)
        return -1;
    gs_buf_putc(&out, '\0');
    const char *words = out.data && out.data[0] ? out.data : "it exited without a message";
    const char *error = strstr(words, "error: ");
    words = error ? error + strlen("error: ") : words;
    return gs_fail(err, GS_EINVAL, "kubectl: %.*s", (int)strcspn(words, "\r\n"), words);
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
static void read_view(struct kubectl_proxy *proxy, const struct connection *connection,
                      const json_t *view)
{
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
    snprintf(proxy->prefix, sizeof(proxy->prefix), "%s", path && path[1] ? path : "");
}

static int ask_view(struct kubectl_proxy *proxy, const struct connection *connection,
                    int64_t until_ns, struct gs_error *err)
{
    static const char *const command[] = {"config", "view", "--output=json", NULL};
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(VIEW_MAX);
    struct child child;
    if (start_kubectl(command, connection, &child, err) < 0)
        return -1;
    const int result = read_kubectl(&child, NULL, until_ns, &text, err);
    end_kubectl(&child);
    json_auto_t *view = json_loadb(text.data ? text.data : "", text.len, 0, NULL);
    read_view(proxy, connection, view);
    return result;
}

/* ---- while it runs ---- */

/* kubectl logs each request that failed ("E1128 … proxy_server.go:147] …") and answers with the
 * same words, which are printed once. All else, such as a plugin's question, goes to the terminal.
 * Stopped before kubectl is ended; where both got the user's ^C, this process ends by itself. */
static void *follow_kubectl(void *arg)
{
    const struct kubectl_proxy *proxy = arg;
    struct pollfd fds[] = {{.fd = proxy->output, .events = POLLIN}, {.fd = proxy->stop[0]}};
    char text[4096];
    for (ssize_t count = 1; count > 0;) {
        (void)poll(fds, 2, -1);
        if (fds[1].revents && !fds[0].revents)
            return NULL;
        count = read(proxy->output, text, sizeof(text) - 1);
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

/* Who listens on the socket, by the kernel: another process where kubectl is a script. */
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

static int start_proxy(struct kubectl_proxy *proxy, const struct connection *connection,
                       const char *option, struct gs_error *err)
{
    const int64_t until_ns = gs_clock_now_ns(gs_clock_system()) + connection->timeout_ns;
    const char *const command[] = {"proxy", option, NULL};
    struct gs_error reported = {0}; /* by the proxy, too */
    struct child child;
    if (start_kubectl(command, connection, &child, err) < 0)
        return -1;
    ask_view(proxy, connection, until_ns, &reported);
    if (await_proxy(&child, until_ns, err) < 0)
        return -1;
    proxy->pid = child.pid;
    proxy->output = child.output;
    proxy->followed = pipe2(proxy->stop, O_CLOEXEC) == 0 &&
                      pthread_create(&proxy->thread, NULL, follow_kubectl, proxy) == 0;
    return 0;
}

int kubectl_proxy_start(struct kubectl_proxy *proxy, const struct connection *connection,
                        struct gs_error *err)
{
    char folder[FOLDER_BYTES], option[FOLDER_BYTES + 32];
    *proxy = (struct kubectl_proxy){0};
    if (make_folder(folder, err) < 0)
        return -1;
    snprintf(option, sizeof(option), "--unix-socket=%s/api", folder);
    const char *path = strchr(option, '/');
    sigset_t ends, before; /* not before the folder is gone */
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, &before);
    const sighandler_t on_interrupt = signal(SIGINT, SIG_IGN); /* which ends kubectl */
    const int result = start_proxy(proxy, connection, option, err);
    (void)signal(SIGINT, on_interrupt);
    if (result == 0)
        proxy->socket_fd = open(path, O_PATH | O_CLOEXEC);
    snprintf(proxy->socket, sizeof(proxy->socket), "/proc/self/fd/%d", proxy->socket_fd);
    (void)unlink(path);
    (void)rmdir(folder);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}

void kubectl_proxy_stop(struct kubectl_proxy *proxy)
{
    if (proxy->followed) {
        close(proxy->stop[1]);
        pthread_join(proxy->thread, NULL);
        close(proxy->stop[0]);
    }
    if (proxy->pid > 0) {
        const pid_t listener = find_listener(proxy->socket);
        if (listener > 0)
            (void)kill(listener, SIGKILL);
        end_kubectl(&(struct child){proxy->pid, proxy->output});
        close(proxy->socket_fd);
    }
    *proxy = (struct kubectl_proxy){0};
}
