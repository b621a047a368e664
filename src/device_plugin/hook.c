/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/hook.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device_plugin/answer.h"
#include "device_plugin/plugin.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "gpushare/base/log.h"

#define LOOK_NS (10 * GS_NS_PER_S)
/* The loop also answers the kubelet. */
#define EMPTY_NS GS_NS_PER_S
enum {
    LIBRARY_BYTES_MAX = 16 << 20,
    ID_BYTES = 128,
    HOOK_PATH_BYTES = 512,
    SHA256_BYTES = 32,
    SHA256_DIGITS = 2 * SHA256_BYTES,
};
/* Where HAMi-core looks; the first is compiled into it. */
#define INSIDE  "/usr/local/vgpu"
#define LIBRARY INSIDE "/libvgpu.so"
#define PRELOAD "/etc/ld.so.preload"
#define LOCK    "/tmp/vgpulock"

const char *hook_settings_wrong(const char *library, const char *sha256)
{
    if (!library && !sha256)
        return NULL;
    if (!library || !sha256)
        return "--hook-library and --hook-sha256 must be given together";
    if (library[0] != '/')
        return "--hook-library must begin with /";
    if (strlen(sha256) != SHA256_DIGITS || strspn(sha256, "0123456789abcdef") != SHA256_DIGITS)
        return "--hook-sha256 must have 64 digits, as sha256sum prints them";
    return NULL;
}

/* ---- the library ---- */

/* NULL: it is as it has to be. Otherwise what is wrong with it. */
static const char *wrong_about(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "it is not a regular file";
    if (st->st_uid != 0 || st->st_mode & (S_IWGRP | S_IWOTH))
        return "it is writable by others than root";
    return st->st_size > LIBRARY_BYTES_MAX ? "it is larger than 16 MiB" : NULL;
}

static void path_of(const struct settings *settings, const char *leaf, char ret[HOOK_PATH_BYTES])
{
    snprintf(ret, HOOK_PATH_BYTES, "%.300s/%.200s", settings->hook_root, leaf);
}

static bool make_folder(const char *path, mode_t mode)
{
    return (mkdir(path, mode) == 0 || errno == EEXIST) && chmod(path, mode) == 0;
}

static bool write_file(const char *path, const char *bytes, size_t len)
{
    return gs_file_replace(path, bytes, len, 0644, false, NULL) == 0;
}

/* As sha256sum prints it. */
static bool has_sha256(const void *bytes, size_t len, const char *pinned)
{
    uint8_t sum[SHA256_BYTES];
    char digits[SHA256_DIGITS + 1] = "";
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, len, sum) < 0)
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(digits + 2 * i, 3, "%02x", sum[i]);
    return strcmp(digits, pinned) == 0;
}

/* The copy is made of the bytes that were compared. */
static const char *take_library(const struct settings *settings, int fd)
{
    char path[HOOK_PATH_BYTES];
    _cleanup_free_ char *bytes = NULL;
    size_t len;
    if (gs_file_read_fd(fd, settings->hook_library, LIBRARY_BYTES_MAX, &bytes, &len, NULL) < 0)
        return "it cannot be read";
    if (!has_sha256(bytes, len, settings->hook_sha256))
        return "its SHA-256 is not --hook-sha256";
    path_of(settings, "libvgpu.so", path);
    return make_folder(settings->hook_root, 0755) && write_file(path, bytes, len)
               ? NULL
               : "it cannot be copied to --hook-root";
}

static bool has_copy(const struct settings *settings)
{
    char path[HOOK_PATH_BYTES];
    path_of(settings, "libvgpu.so", path);
    return access(path, F_OK) == 0;
}

/* Read again only when it is another file than at the last look. */
static void look(struct plugin *plugin)
{
    struct hook *hook = &plugin->hook;
    const struct settings *settings = &plugin->settings;
    struct stat st = {0};
    _cleanup_close_ int fd =
        open(settings->hook_library, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool there = fd >= 0 && fstat(fd, &st) == 0;
    const struct gs_file_mark seen = gs_file_mark_of(&st);
    if (hook->looked && gs_file_mark_eq(&seen, &hook->seen) && (!hook->ready || has_copy(settings)))
        return;
    const char *wrong = there ? wrong_about(&st) : "it cannot be opened";
    if (!wrong)
        wrong = take_library(settings, fd);
    hook->looked = true;
    hook->seen = seen;
    hook->ready = !wrong;
    gs_log(wrong ? GS_LOG_ERROR : GS_LOG_INFO,
           wrong ? "hook library not loaded" : "hook library loaded",
           GS_STR("library", settings->hook_library), GS_STR("reason", wrong ? wrong : ""));
}

static bool empty_trash(struct plugin *plugin)
{
    char path[HOOK_PATH_BYTES];
    path_of(&plugin->settings, ".trash", path);
    return trash_empty(&plugin->hook.trash, path);
}

void hook_round(struct plugin *plugin)
{
    int64_t now_ns = plugin_now_ns(plugin);
    if (!plugin->settings.hook_library)
        return;
    if (now_ns >= plugin->hook.look_ns) {
        look(plugin);
        plugin->hook.look_ns = now_ns + (empty_trash(plugin) ? EMPTY_NS : LOOK_NS);
    }
    plugin_wake_at(plugin, plugin->hook.look_ns);
}

void hook_release(struct plugin *plugin)
{
    trash_release(&plugin->hook.trash);
}

enum gs_enforced hook_word(const struct plugin *plugin, const struct gs_gpu *gpu, uint32_t pods)
{
    if (!plugin->settings.hook_library)
        return GS_ENFORCED_UNKNOWN;
    return plugin->hook.ready ? GS_ENFORCED_HOOK : GS_ENFORCED_HOOK_AWAY;
}

/* ---- a container ---- */

/* The least of the ids: the same for Allocate and for the start, in whatever order they come. */
static int name_of(const char *const *ids, size_t count, char ret[ID_BYTES], struct gs_error *err)
{
    const char *least = count ? ids[0] : "";
    for (size_t i = 1; i < count; i++)
        if (strcmp(ids[i], least) < 0)
            least = ids[i];
    if (!least[0] || least[0] == '.' || strchr(least, '/') || strlen(least) >= ID_BYTES)
        return gs_fail(err, GS_EINVAL, "device ID \"%.40s\" is not valid as a folder name", least);
    snprintf(ret, ID_BYTES, "%s", least);
    return 0;
}

static bool add_envs(const struct plugin *plugin, const struct gs_allocate_answer *answer,
                     const char *id, struct gs_arena *arena, struct gs_dp_container *container)
{
    uint32_t gpus = gs_gpu_mask_count(answer->gpus);
    uint64_t mib = (uint64_t)answer->units / gpus * gs_unit_mib(plugin->devices.unit);
    bool whole = true;
    for (uint32_t i = 0; i < gpus; i++) /* as it counts those that the container sees */
        whole &= answer_add_env(container, arena,
                                gs_arena_printf(arena, "CUDA_DEVICE_MEMORY_LIMIT_%u", i),
                                gs_arena_printf(arena, "%llum", (unsigned long long)mib));
    whole &= answer_add_env(container, arena, "CUDA_DEVICE_MEMORY_SHARED_CACHE",
                            gs_arena_printf(arena, INSIDE "/%s.cache", id));
    return whole &&
           (!answer->cores_pct || answer_add_env(container, arena, "CUDA_DEVICE_SM_LIMIT",
                                                 gs_arena_printf(arena, "%u", answer->cores_pct)));
}

/* The folder first: the library is mounted into it. */
static bool add_mounts(const struct plugin *plugin, const char *id, struct gs_arena *arena,
                       struct gs_dp_container *container)
{
    const char *root = plugin->settings.hook_root;
    const struct gs_dp_path own[] = {
        {gs_arena_printf(arena, "%s/%s/cache", root, id), INSIDE, false},
        {gs_arena_printf(arena, "%s/libvgpu.so", root), LIBRARY, true},
        {gs_arena_printf(arena, "%s/%s/ld.so.preload", root, id), PRELOAD, true},
        {gs_arena_printf(arena, "%s/lock", root), LOCK, false},
    };
    bool whole = true;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        whole &= answer_add_mount(container, arena, own[i]);
    return whole;
}

int hook_add(const struct plugin *plugin, const struct gs_allocate_answer *answer,
             const struct gs_dp_ids *ids, struct gs_arena *arena, struct gs_dp_container *container,
             struct gs_error *err)
{
    char id[ID_BYTES];
    if (!plugin->settings.hook_library)
        return 0;
    if (name_of(ids->ids, ids->count, id, err) < 0)
        return -1;
    return add_envs(plugin, answer, id, arena, container) &&
                   add_mounts(plugin, id, arena, container)
               ? 0
               : gs_fail_nomem(err);
}

/* ---- a start ---- */

/* What the last container with that id left there, whatever it is, is out of the way by one rename
 * of a folder that it did not see. */
static bool make_own(const struct plugin *plugin, const char *id)
{
    char own[HOOK_PATH_BYTES], cache[HOOK_PATH_BYTES + 8], trash[HOOK_PATH_BYTES];
    path_of(&plugin->settings, ".trash", trash);
    path_of(&plugin->settings, id, own);
    snprintf(cache, sizeof(cache), "%s/cache", own);
    return make_folder(trash, 0700) && (trash_take(trash, AT_FDCWD, own) || errno == ENOENT) &&
           make_folder(own, 0755) && make_folder(cache, 0777);
}

/* Without a library that was verified an empty file takes its place, and nothing is preloaded. */
static int prepare(const struct plugin *plugin, const char *id, struct gs_error *err)
{
    static const char preload[] = LIBRARY "\n";
    const struct settings *settings = &plugin->settings;
    char own[HOOK_PATH_BYTES], file[HOOK_PATH_BYTES + 16], path[HOOK_PATH_BYTES];
    path_of(settings, id, own);
    snprintf(file, sizeof(file), "%s/ld.so.preload", own);
    path_of(settings, "lock", path);
    bool made =
        make_folder(settings->hook_root, 0755) && make_folder(path, 01777) && make_own(plugin, id);
    path_of(settings, "libvgpu.so", path);
    made = made && (has_copy(settings) || write_file(path, "", 0)) &&
           write_file(file, preload, plugin->hook.ready ? strlen(preload) : 0);
    return made ? 0
                : gs_fail_errno(err, GS_EBUSY, errno,
                                "start blocked: cannot create the hook's folder %.260s", own);
}

bool hook_may_start(struct plugin *plugin, const struct gs_start_request *request,
                    const struct gs_placed *pod, struct gs_error *err)
{
    char id[ID_BYTES];
    if (!plugin->settings.hook_library)
        return true;
    look(plugin);
    if (name_of(request->ids, request->id_count, id, err) < 0 || prepare(plugin, id, err) < 0)
        return false;
    if (plugin->hook.ready || (pod->uid && !pod->enforce_required))
        return true;
    gs_fail(err, GS_EBUSY,
            "start blocked: the pod may require enforcement (gpu-enforce: required), and %s",
            gs_enforced_reason(GS_ENFORCED_HOOK_AWAY));
    return false;
}
