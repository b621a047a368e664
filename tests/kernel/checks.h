/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpushare/limit/limiter.h"

/*
 * What the checks share. They run as process 1 of a virtual machine on a kernel that has the dmem
 * controller, with fakegpu.ko as the GPUs' driver, and print one line per promise: PASS or FAIL,
 * FACT for what others may do differently.
 */
#define MOUNT    "/sys/fs/cgroup"
#define REGION_0 "nvidia/0000:41:00/vidmem"
#define REGION_1 "nvidia/0000:c1:00/vidmem"
#define GIB      (1ULL << 30)

/* One promise. The condition is evaluated, with all that it does, before the arguments of its
 * words. */
#define check(holds, ...)                                                                          \
    do {                                                                                           \
        bool check_holds_ = (holds);                                                               \
        promise(check_holds_, __VA_ARGS__);                                                        \
    } while (0)

void promise(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fact(const char *format, ...) __attribute__((format(printf, 1, 2)));
void chapter(const char *title);

int64_t now_ns(void);

/* ---- what a kubelet and its runtime do (tree.c) ---- */

/* A pod's folder, with dmem, where the kernel has it, passed on to it as libcontainer does for the
 * kubelet. The path is
 * *borrowed* until the sixteenth call after it. */
const char *pod_make(const char *uid, enum gs_qos qos);
/* A container's folder in it; `runc`: with dmem.* of its own, else as crun leaves it. */
const char *container_make(const char *pod, const char *name, bool runc);
/* Removes it and what is below. */
void folder_remove(const char *path);
/* One write; 0 or an errno. */
int file_put(const char *folder, const char *file, const char *text);
bool file_has(const char *folder, const char *file, const char *text);

/* ---- processes that use a GPU (user.c) ---- */

struct user {
    pid_t pid;
    int orders, answers;
};

/* A process in that folder with /dev/fakegpuN open. */
struct user user_start(const char *folder, int gpu);
/* 0 or the errno that the GPU's driver gives. */
int user_take(const struct user *user, uint64_t bytes);
int user_give_back(const struct user *user);
void user_end(struct user *user);
/* One command to a GPU's driver, from this process. */
int driver_do(int gpu, const char *command);

/* ---- chapters ---- */

void check_limits(void);
void check_first_container(void);
void check_losses(void);
void check_rights(void);
void check_watch(void);
void check_host_without(enum gs_enforced expected);
