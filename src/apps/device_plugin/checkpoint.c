/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/checkpoint.h"

#include <errno.h>

#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"
#include "gpushare/base/stream.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/codec/checkpoint.h"
#include "gpushare/kube/base64.h"

/* All device ids of all plugins are in it: of 65,000 units they are 1.5 MB. */
#define FILE_MAX_BYTES ((size_t)32 << 20)

static int load(const char *path, struct gs_buf *out, struct gs_error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return gs_fail_errno(err, errno == ENOENT ? GS_ENOENT : GS_EIO, errno, "%.160s", path);
    bool read = gs_buf_read_stream(out, file);
    fclose(file);
    if (gs_buf_failed(out))
        return gs_fail(err, GS_ETOOBIG, "%.160s is too large", path);
    return read ? 0 : gs_fail(err, GS_EIO, "%.160s cannot be read", path);
}

/* The list of GPUs in an answer, in whatever form it was given. */
static const char *list_of(struct gs_arena *arena, const char *bytes, size_t len,
                           const struct gs_names *names)
{
    const char *gpus = NULL;
    if (gs_dp_answer_env(arena, bytes, len, names->gpus, &gpus, NULL) == 0 && !gpus)
        gs_dp_answer_env(arena, bytes, len, "NVIDIA_VISIBLE_DEVICES", &gpus, NULL);
    return gpus;
}

/* Where a container's answer points to, in today's indices; 0: it does not say, or to a GPU that
 * nobody knows. Its own index is that of the day on which it was given. */
static gs_gpu_mask gpus_of(struct gs_slice answer, const struct gs_names *names,
                           const struct gs_gpu_set *set)
{
    struct gs_arena scratch = {0};
    const char *idx = NULL, *list = NULL;
    char *bytes = NULL;
    size_t len;
    gs_gpu_mask gpus = 0;
    if (gs_base64_decode(answer.at, answer.len, &bytes, &len) &&
        gs_dp_answer_env(&scratch, bytes, len, names->idx, &idx, NULL) == 0 && idx &&
        (list = list_of(&scratch, bytes, len, names)) &&
        gs_codec_idx_parse(gs_slice_of(idx), &gpus))
        gpus = numbers_of_visible(set, list);
    free(bytes);
    gs_arena_release(&scratch);
    return gpus;
}

static int build(const struct gs_names *names, const struct gs_gpu_set *set, struct gs_slice json,
                 struct gs_arena *arena, struct gs_given **ret, size_t *ret_count,
                 struct gs_error *err)
{
    struct gs_checkpoint_entry *entries;
    uint32_t count;
    size_t kept = 0;
    if (gs_codec_checkpoint_decode(json, names->gpu_mem, arena, &entries, &count, err) < 0)
        return -1;
    struct gs_given *given = gs_arena_calloc(arena, (size_t)count + 1, sizeof(*given));
    if (!given)
        return gs_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        gs_gpu_mask gpus = gpus_of(entries[i].answer, names, set);
        if (gpus && entries[i].id_count)
            given[kept++] =
                (struct gs_given){.uid = entries[i].pod_uid,
                                  .key = gs_allocate_key(entries[i].ids, entries[i].id_count),
                                  .units = entries[i].id_count,
                                  .gpus = gpus};
    }
    *ret = given;
    *ret_count = kept;
    return 0;
}

int checkpoint_read(const char *dir, const struct gs_names *names, const struct gs_gpu_set *set,
                    struct gs_arena *arena, struct gs_given **ret, size_t *ret_count,
                    struct gs_error *err)
{
    struct gs_buf path = GS_BUF(4096), text = GS_BUF(FILE_MAX_BYTES);
    gs_buf_printf(&path, "%s/kubelet_internal_checkpoint", dir);
    int result = gs_buf_failed(&path) ? gs_fail(err, GS_ETOOBIG, "the folder's name is too long")
                                      : load(path.data, &text, err);
    if (result == 0)
        result =
            build(names, set, (struct gs_slice){text.data, text.len}, arena, ret, ret_count, err);
    gs_buf_release(&path);
    gs_buf_release(&text);
    return result;
}

void checkpoint_restore(struct plugin *plugin)
{
    struct gs_arena arena = {0};
    struct gs_given *given;
    size_t count;
    struct gs_error err = {0};
    struct gs_allocator_stats stats;
    gs_allocator_stats(plugin->alloc, &stats);
    if (plugin->restored || !plugin->have_gpus || !plugin->devices.node_read ||
        !(stats.pods || plugin->pods_listed))
        return;
    plugin->restored = plugin->pods_listed;
    if (plugin->restored)
        plugin_wake_at(plugin, 0);
    if (checkpoint_read(plugin->settings.device_plugin_dir, &plugin->names, &plugin->set, &arena,
                        &given, &count, &err) == 0)
        gs_allocator_restore(plugin->alloc, given, count);
    else if (err.code != GS_ENOENT)
        gs_log(GS_LOG_WARN, "the records of pods are believed: no checkpoint of the kubelet's",
               GS_STR("why", err.msg));
    gs_arena_release(&arena);
}
