/* SPDX-License-Identifier: Apache-2.0 */
#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
    char text[64]; /* for the driver */
};

int driver_do(int gpu, const char *command)
{
    char name[16];
    snprintf(name, sizeof(name), "fakegpu%d", gpu);
    return file_put("/dev", name, command);
}

static void serve(int gpu, int orders, int answers)
{
    char path[32];
    struct order order;
    snprintf(path, sizeof(path), "/dev/fakegpu%d", gpu);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    while (read(orders, &order, sizeof(order)) == (ssize_t)sizeof(order)) {
        int error = write(fd, order.text, strlen(order.text)) < 0 ? errno : 0;
        if (write(answers, &error, sizeof(error)) < 0)
            break;
    }
    _exit(0);
}

struct user user_start(const char *folder, int gpu)
{
    char pid[16];
    int down[2], up[2];
    struct user user = {0};
    if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
        abort();
    user.pid = fork();
    if (user.pid == 0) {
        close(down[1]);
        close(up[0]);
        serve(gpu, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    user.orders = down[1];
    user.answers = up[0];
    snprintf(pid, sizeof(pid), "%d", user.pid);
    int error = file_put(folder, "cgroup.procs", pid);
    if (error)
        check(false, "a process enters %s: %s", folder, strerror(error));
    return user;
}

static int tell(const struct user *user, const struct order *order)
{
    int error = -1;
    if (write(user->orders, order, sizeof(*order)) < 0 ||
        read(user->answers, &error, sizeof(error)) != (ssize_t)sizeof(error))
        return -1;
    return error;
}

int user_take(const struct user *user, uint64_t bytes)
{
    struct order order = {{0}};
    snprintf(order.text, sizeof(order.text), "charge %" PRIu64, bytes);
    return tell(user, &order);
}

int user_give_back(const struct user *user)
{
    return tell(user, &(struct order){"uncharge"});
}

void user_end(struct user *user)
{
    kill(user->pid, SIGKILL);
    waitpid(user->pid, NULL, 0);
    close(user->orders);
    close(user->answers);
}
