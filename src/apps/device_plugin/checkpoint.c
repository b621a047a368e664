/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/checkpoint.h"

#include <errno.h>

#include "device_plugin/plugin.h"
#include "gpushare/base/file.h"
#include "gpushare/base/log.h"
#include "gpushare/base/num.h"
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

/* A container's answer, as far as it is understood. */
struct told {
    gs_gpu_mask gpus; /* where it points to, in today's indices: its own index is that of the day on
                         which it was given. 0: to a GPU that nobody knows, or it does not say */
    gs_gpu_mask idx;  /* in its own */
    const char *names; /* NVIDIA_VISIBLE_DEVICES, in the arena; "": it does not say */
    uint32_t units;    /* of one of them; 0: it does not say */
};

static void understand(struct gs_slice answer, const struct gs_names *names,
                       const struct gs_gpu_set *set, struct gs_arena *arena, struct told *ret)
{
    const char *idx = NULL, *list = NULL, *dev = NULL;
    char *bytes = NULL;
    size_t len;
    *ret = (struct told){.names = ""};
    if (gs_base64_decode(answer.at, answer.len, &bytes, &len) &&
        gs_dp_answer_env(arena, bytes, len, names->idx, &idx, NULL) == 0 && idx &&
        (list = list_of(arena, bytes, len, names)) &&
        gs_codec_idx_parse(gs_slice_of(idx), &ret->idx)) {
        ret->names = list;
        ret->gpus = numbers_of_visible(set, list);
    }
    if (bytes && gs_dp_answer_env(arena, bytes, len, names->dev, &dev, NULL) == 0 && dev)
        gs_parse_u32(dev, strlen(dev), &ret->units);
    free(bytes);
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
        struct told told;
        understand(entries[i].answer, names, set, arena, &told);
        if (told.gpus && entries[i].id_count)
            given[kept++] =
                (struct gs_given){.uid = entries[i].pod_uid,
                                  .key = gs_allocate_key(entries[i].ids, entries[i].id_count),
                                  .units = entries[i].id_count,
                                  .gpus = told.gpus};
    }
    *ret = given;
    *ret_count = kept;
    return 0;
}

static int load_from(const char *dir, struct gs_buf *text, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    gs_buf_printf(&path, "%s/kubelet_internal_checkpoint", dir);
    return gs_buf_failed(&path) ? gs_fail(err, GS_ETOOBIG, "the folder's name is too long")
                                : load(path.data, text, err);
}

int checkpoint_read(const char *dir, const struct gs_names *names, const struct gs_gpu_set *set,
                    struct gs_arena *arena, struct gs_given **ret, size_t *ret_count,
                    struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(FILE_MAX_BYTES);
    if (load_from(dir, &text, err) < 0)
        return -1;
    return build(names, set, (struct gs_slice){text.data, text.len}, arena, ret, ret_count, err);
}

/* Ids of ours and of the original's end in a number: "6e1a0b2c-17", "GPU-8f3c…-_-17". */
static void count_ids(const struct gs_checkpoint_entry *entry, struct unit_note *note)
{
    for (uint32_t i = 0; i < entry->id_count; i++) {
        const char *dash = strrchr(entry->ids[i], '-');
        uint32_t number;
        if (dash && gs_parse_u32(dash + 1, strlen(dash + 1), &number) && number < UINT32_MAX &&
            number + 1 > note->units)
            note->units = number + 1;
        note->original |= strstr(entry->ids[i], "-_-") != NULL;
    }
}

/* Index by index, UUID by UUID. Those that contradict an earlier one are passed over. */
static void take_indices(const struct told *told, struct numbers *indices)
{
    uint32_t idx;
    const char *name = told->names;
    GS_FOR_EACH_GPU (idx, told->idx) {
        struct gs_gpu gpu = {.idx = idx, .mem_units = told->units, .numa = GS_NUMA_NONE};
        size_t len = strcspn(name, ",");
        uint32_t number;
        if (len && len < sizeof(gpu.uuid) && !gs_parse_u32(name, len, &number)) {
            memcpy(gpu.uuid, name, len);
            numbers_remember(indices, &gpu, 1);
        }
        name += len + (name[len] == ',');
    }
}

static bool take_note(const struct gs_checkpoint_entry *entry, const struct gs_names *names,
                      const struct gs_gpu_set *set, struct gs_arena *arena, struct numbers *indices,
                      struct unit_note *ret)
{
    struct told told;
    understand(entry->answer, names, set, arena, &told);
    take_indices(&told, indices);
    if (!told.gpus)
        return false;
    const struct gs_gpu *gpu =
        gs_gpu_find(set->gpus, set->count, (uint32_t)__builtin_ctzll(told.gpus));
    *ret = (struct unit_note){.mib = gpu ? gpu->mem_mib : 0, .units = told.units};
    count_ids(entry, ret);
    if (!ret->mib || !ret->units)
        return false;
    memcpy(ret->uuid, gpu->uuid, sizeof(ret->uuid));
    return true;
}

int checkpoint_units(const char *dir, const struct gs_names *names, const struct gs_gpu_set *set,
                     struct gs_arena *arena, struct checkpoint_notes *ret, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(FILE_MAX_BYTES);
    struct gs_checkpoint_entry *entries = NULL;
    uint32_t count = 0;
    struct gs_error why = {0};
    *ret = (struct checkpoint_notes){0};
    if (load_from(dir, &text, &why) < 0 && why.code != GS_ENOENT)
        return gs_fail(err, why.code, "%s", why.msg);
    if (text.len && gs_codec_checkpoint_decode((struct gs_slice){text.data, text.len},
                                               names->gpu_mem, arena, &entries, &count, err) < 0)
        return -1;
    ret->notes = gs_arena_calloc(arena, (size_t)count + 1, sizeof(*ret->notes));
    if (!ret->notes)
        return gs_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++)
        ret->count +=
            take_note(&entries[i], names, set, arena, &ret->indices, &ret->notes[ret->count]);
    ret->unclear = count - ret->count;
    return 0;
}

bool checkpoint_holder(const struct plugin *plugin, uint64_t key, struct gs_arena *arena,
                       struct gs_given *ret)
{
    struct gs_given *given = NULL;
    size_t count = 0;
    checkpoint_read(plugin->settings.device_plugin_dir, &plugin->names, &plugin->devices.set, arena,
                    &given, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        if (given[i].key == key) {
            *ret = given[i];
            return true;
        }
    }
    return false;
}

void checkpoint_restore(struct plugin *plugin)
{
    struct gs_arena arena = {0};
    struct gs_given *given;
    size_t count;
    struct gs_error err = {0};
    struct gs_allocator_stats stats;
    gs_allocator_stats(plugin->alloc, &stats);
    if (plugin->restored || !plugin->devices.have_gpus || !devices_known(&plugin->devices) ||
        !(stats.pods || plugin->pods_listed || !plugin->link))
        return;
    plugin->restored = plugin->pods_listed;
    if (plugin->restored) {
        plugin->enforce.look_due = true; /* pods' cgroups that came meanwhile are told again */
        plugin_wake_at(plugin, 0);
    }
    if (checkpoint_read(plugin->settings.device_plugin_dir, &plugin->names, &plugin->devices.set,
                        &arena, &given, &count, &err) == 0)
        gs_allocator_restore(plugin->alloc, given, count);
    else if (err.code != GS_ENOENT)
        gs_log(GS_LOG_WARN, "the records of pods are believed: no checkpoint of the kubelet's",
               GS_STR("why", err.msg));
    gs_arena_release(&arena);
}
