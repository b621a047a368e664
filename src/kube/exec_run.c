/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec_credential.h"
#include "gpushare/base/cleanup.h"

/* One run of a plugin. */
struct run {
    const struct gs_kube_exec *exec;
    const struct gs_clock *clock;
    bool interactive;
    int64_t deadline_ns; /* INT64_MAX when the user may be asked */
    pid_t pid;
};

static size_t count_words(char *const *words)
{
    size_t count = 0;
    while (words && words[count])
        count++;
    return count;
}

/* "NAME=value" sets a variable that `extra` sets as well. */
static bool is_overridden(const char *word, char *const *extra)
{
    size_t len = strcspn(word, "=");
    for (; extra && *extra; extra++)
        if (strncmp(*extra, word, len + 1) == 0)
            return true;
    return strncmp(word, "KUBERNETES_EXEC_INFO=", len + 1) == 0;
}

/* Our environment, what the kubeconfig adds, and the input. Borrowed words in an array that the
 * caller frees; NULL when out of memory. */
static char **build_env(const struct gs_kube_exec *exec, char *input)
{
    char **env = calloc(count_words(environ) + count_words(exec->env) + 2, sizeof(*env));
    size_t used = 0;
    for (size_t i = 0; env && environ && environ[i]; i++)
        if (!is_overridden(environ[i], exec->env))
            env[used++] = environ[i];
    for (size_t i = 0; env && exec->env && exec->env[i]; i++)
        env[used++] = exec->env[i];
    if (env)
        env[used] = input;
    return env;
}

static char **build_args(const struct gs_kube_exec *exec)
{
    size_t count = count_words(exec->args);
    char **args = calloc(count + 2, sizeof(*args));
    if (!args)
        return NULL;
    args[0] = exec->command;
    for (size_t i = 0; i < count; i++)
        args[i + 1] = exec->args[i];
    return args;
}

/* The child gets three descriptors and default signals; without a user to ask it gets a process
 * group of its own, so that its children can be ended with it. */
static int spawn(struct run *run, int out, char **args, char **env)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigemptyset(&none);
    sigfillset(&all);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return ENOMEM;
    }
    if (!run->interactive)
        flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attr, flags);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    int errnum = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (errnum == 0 && !run->interactive)
        errnum = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (errnum == 0)
        errnum = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (errnum == 0)
        errnum = posix_spawnp(&run->pid, run->exec->command, &actions, &attr, args, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return errnum;
}

static int wait_ms(const struct run *run)
{
    if (run->deadline_ns == INT64_MAX)
        return -1;
    int64_t left = (run->deadline_ns - gs_clock_now_ns(run->clock)) / GS_NS_PER_MS;
    return left <= 0 ? 0 : left > 3600000 ? 3600000 : (int)left + 1;
}

static int fail_slow(const struct run *run, struct gs_error *err)
{
    return gs_fail(err, GS_ETIMEOUT, "credential plugin %s did not finish in time",
                   run->exec->command);
}

static int read_output(const struct run *run, int fd, struct gs_buf *out, struct gs_error *err)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int ready = poll(&poll_fd, 1, wait_ms(run));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return fail_slow(run, err);
        char chunk[4096];
        ssize_t got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return gs_fail_errno(err, GS_EAUTH, errno, "cannot read from credential plugin %s",
                                 run->exec->command);
        if (got == 0)
            return 0;
        gs_buf_append(out, chunk, (size_t)got);
        explicit_bzero(chunk, sizeof(chunk));
        if (gs_buf_failed(out))
            return gs_fail(err, GS_EAUTH, "credential plugin %s printed more than %zu bytes",
                           run->exec->command, out->max);
    }
}

/* A child that closed its stdout need not have ended. */
static int reap(const struct run *run, struct gs_error *err)
{
    int status;
    for (;;) {
        pid_t got = waitpid(run->pid, &status, run->deadline_ns == INT64_MAX ? 0 : WNOHANG);
        if (got == run->pid)
            break;
        if (got < 0 && errno != EINTR)
            return gs_fail_errno(err, GS_EAUTH, errno, "cannot wait for credential plugin %s",
                                 run->exec->command);
        if (wait_ms(run) == 0)
            return fail_slow(run, err);
        nanosleep(&(struct timespec){.tv_nsec = 2 * GS_NS_PER_MS}, NULL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 127)
        return gs_fail(err, GS_EAUTH, "credential plugin %s failed with exit status %d",
                       run->exec->command, WEXITSTATUS(status));
    if (WIFEXITED(status))
        return gs_fail(err, GS_EAUTH, "credential plugin %s cannot be run. %s", run->exec->command,
                       run->exec->install_hint);
    return gs_fail(err, GS_EAUTH, "credential plugin %s was ended by signal %d", run->exec->command,
                   WTERMSIG(status));
}

static void end(const struct run *run)
{
    kill(run->interactive ? run->pid : -run->pid, SIGKILL);
    while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int start_and_read(struct run *run, char *input, struct gs_buf *out, struct gs_error *err)
{
    _cleanup_free_ char **args = build_args(run->exec);
    _cleanup_free_ char **env = build_env(run->exec, input);
    int pipe_fds[2];
    if (!args || !env)
        return gs_fail_nomem(err);
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return gs_fail_errno(err, GS_EAUTH, errno, "cannot start credential plugin");
    _cleanup_close_ int read_fd = pipe_fds[0];
    int errnum = spawn(run, pipe_fds[1], args, env);
    close(pipe_fds[1]);
    if (errnum != 0) {
        gs_fail_errno(err, GS_EAUTH, errnum, "credential plugin %s", run->exec->command);
        return gs_error_prefix(err, "%s",
                               errnum == ENOENT && run->exec->install_hint[0]
                                   ? run->exec->install_hint
                                   : "cannot run it");
    }
    if (read_output(run, read_fd, out, err) < 0) {
        end(run);
        return -1;
    }
    if (reap(run, err) < 0) {
        if (err && err->code == GS_ETIMEOUT)
            end(run);
        return -1;
    }
    return 0;
}

int gs_exec_credential_run(const struct gs_kube_config *config, const char *ca, size_t ca_len,
                           const struct gs_clock *clock, int64_t timeout_ns,
                           struct gs_exec_credential *ret, struct gs_error *err)
{
    const struct gs_kube_exec *exec = config->exec;
    bool terminal = isatty(STDIN_FILENO) == 1;
    struct run run = {.exec = exec, .clock = clock, .deadline_ns = INT64_MAX};
    run.interactive = terminal && exec->interactive != GS_KUBE_INTERACTIVE_NEVER;
    if (exec->interactive == GS_KUBE_INTERACTIVE_ALWAYS && !terminal)
        return gs_fail(err, GS_EAUTH,
                       "credential plugin %s must ask the user, but stdin is no "
                       "terminal",
                       exec->command);
    if (!run.interactive)
        run.deadline_ns = gs_clock_now_ns(clock) + timeout_ns;

    _cleanup_(gs_buf_release) struct gs_buf input = GS_BUF(GS_EXEC_OUTPUT_BYTES_MAX);
    gs_buf_puts(&input, "KUBERNETES_EXEC_INFO=");
    gs_exec_credential_input(config, run.interactive, ca, ca_len, &input);
    if (gs_buf_failed(&input))
        return gs_fail_nomem(err);
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(GS_EXEC_OUTPUT_BYTES_MAX);
    struct gs_error why = {0};
    int result = start_and_read(&run, input.data, &out, &why);
    if (result == 0 && gs_exec_credential_parse(out.data ? out.data : "", out.len,
                                                exec->api_version, ret, &why) < 0) {
        why.code = why.code == GS_ENOMEM ? GS_ENOMEM : GS_EAUTH;
        result = gs_error_prefix(&why, "credential plugin %s", exec->command);
    }
    if (out.data)
        explicit_bzero(out.data, out.len);
    return result < 0 ? gs_fail(err, why.code, "%s", why.msg) : 0;
}
