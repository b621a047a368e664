/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "device_plugin/plugin.h"
#include "gpushare/base/array.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/index.h"
#include "gpushare/base/log.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/codec/checkpoint.h"
#include "gpushare/kube/base64.h"

/* What was read of the file is let go after so much: it may be larger than the plugin's memory. */
#define PASSED_BYTES ((size_t)1 << 20)

/* An id that a pod has on these GPUs. */
struct own_id {
    uint64_t hash;
    gs_gpu_mask gpus;
};

/* The file as it is read, and what is made of it: given, or (`notes`) what answers say of GPUs. */
struct reading {
    const struct gs_names *names;
    const struct gs_gpu_set *set;
    struct gs_arena *arena; /* of given */
    struct gs_arena answer; /* of the entry in hand */
    struct gs_slice file;
    size_t passed;
    struct gs_given *given;
    uint32_t count;
    struct gs_index index; /* of the pod in hand, which the kubelet writes side by side: ids */
    struct own_id *ids;
    uint32_t id_count, id_room;
    struct ids_in_use *in_use; /* NULL: not wanted */
    const struct gs_allocator *alloc;
    struct checkpoint_notes *notes;
    const struct gs_inventory *record; /* and the unit that is wanted: what notes are judged by */
    enum gs_unit wanted;
};

/* The list of GPUs in an answer, in whatever form it was given. */
static const char *list_of(struct gs_arena *arena, const char *bytes, size_t len,
                           const struct gs_names *names, uint32_t vendor)
{
    const char *gpus = NULL;
    if (gs_dp_answer_env(arena, bytes, len, names->gpus, &gpus, NULL) == 0 && !gpus)
        gs_dp_answer_env(arena, bytes, len, gs_vendors[vendor].visible_devices, &gpus, NULL);
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
        (list = list_of(arena, bytes, len, names, set->vendor)) &&
        gs_codec_idx_parse(gs_slice_of(idx), &ret->idx)) {
        ret->names = list;
        ret->gpus = gpu_indices_of_visible(set, list);
    }
    if (bytes && gs_dp_answer_env(arena, bytes, len, names->dev, &dev, NULL) == 0 && dev)
        gs_parse_u32(dev, strlen(dev), &ret->units);
    free(bytes);
}

static bool is_own(const void *ctx, uint32_t slot)
{
    const struct reading *reading = ctx;
    const struct own_id *wanted = &reading->ids[reading->id_count], *id = &reading->ids[slot];
    return id->hash == wanted->hash && id->gpus == wanted->gpus;
}

/* How many of its ids no entry of its pod before it has on the same GPUs: an init container's are
 * used again. -1: out of memory. */
static int64_t take_own(struct reading *reading, const struct gs_checkpoint_entry *entry,
                        gs_gpu_mask gpus)
{
    const bool lives = reading->in_use && gs_allocator_may_live(reading->alloc, entry->pod_uid);
    const uint32_t before = reading->id_count;
    for (uint32_t i = 0; i < entry->id_count; i++) {
        const uint64_t hash = gs_hash_text(entry->ids[i]);
        if (!gs_array_reach(&reading->ids, &reading->id_room, reading->id_count,
                            sizeof(*reading->ids)) ||
            gs_index_reserve(&reading->index) < 0)
            return -1;
        reading->ids[reading->id_count] = (struct own_id){hash, gpus};
        if (gs_index_find(&reading->index, hash, is_own, reading) != GS_INDEX_NONE)
            continue;
        gs_index_insert(&reading->index, hash, reading->id_count++);
        if (lives && ids_in_use_add(reading->in_use, entry->ids[i]) < 0)
            return -1;
    }
    return reading->id_count - before;
}

static bool take_given(struct reading *reading, const struct gs_checkpoint_entry *entry)
{
    struct gs_given *last = reading->count ? &reading->given[reading->count - 1] : NULL;
    const bool same_pod = last && strcmp(last->uid, entry->pod_uid) == 0;
    struct told told;
    understand(entry->answer, reading->names, reading->set, &reading->answer, &told);
    if (!same_pod) {
        gs_index_release(&reading->index);
        reading->id_count = 0;
    }
    struct gs_given given = {.uid = same_pod ? last->uid
                                             : gs_arena_strdup(reading->arena, entry->pod_uid),
                             .key = gs_allocate_key(entry->ids, entry->id_count),
                             .gpus = told.gpus};
    const int64_t own = take_own(reading, entry, told.gpus);
    if ((reading->count & (reading->count + 1)) == 0) /* full: 0, 1, 3, 7, … */
        reading->given = gs_arena_extend(reading->arena, reading->given, reading->count,
                                         (size_t)reading->count + 1, sizeof(given));
    if (!given.uid || own < 0 || !reading->given)
        return false;
    given.units = (uint32_t)own;
    reading->given[reading->count++] = given;
    return true;
}

/* Index by index, UUID by UUID. Those that contradict an earlier one are passed over. */
static void take_indices(const struct told *told, struct gpu_indices *indices)
{
    uint32_t idx;
    struct gs_slice rest = gs_slice_of(told->names);
    GS_FOR_EACH_GPU (idx, told->idx) {
        struct gs_gpu gpu = {.idx = idx, .mem_units = told->units, .numa = GS_NUMA_NONE};
        const struct gs_slice name = gs_slice_cut(&rest, ',');
        uint32_t number;
        if (name.len && name.len < sizeof(gpu.uuid) && !gs_parse_u32(name.at, name.len, &number)) {
            memcpy(gpu.uuid, name.at, name.len);
            gpu_indices_remember(indices, &gpu, 1);
        }
    }
}

static void take_note(struct reading *reading, const struct gs_checkpoint_entry *entry)
{
    struct checkpoint_notes *all = reading->notes;
    struct told told;
    understand(entry->answer, reading->names, reading->set, &reading->answer, &told);
    take_indices(&told, &all->indices);
    const struct gs_gpu *gpu = told.gpus ? gs_gpu_find(reading->set->gpus, reading->set->count,
                                                       (uint32_t)__builtin_ctzll(told.gpus))
                                         : NULL;
    struct unit_note note = {.mib = gpu ? gpu->mem_mib : 0,
                             .units = told.units,
                             .original = strstr(entry->ids[0], "-_-") != NULL};
    if (!note.mib || !note.units) {
        all->unclear = true;
        return;
    }
    memcpy(note.uuid, gpu->uuid, sizeof(note.uuid));
    const enum gs_unit unit = unit_noted(&note, reading->record, reading->set, reading->wanted);
    all->unit = unit > all->unit ? unit : all->unit;
}

/* An entry without ids says nothing. */
static bool on_entry(void *ctx, const struct gs_checkpoint_entry *entry, size_t done)
{
    struct reading *reading = ctx;
    const bool says = entry && entry->id_count;
    const bool taken = !says || reading->notes || take_given(reading, entry);
    if (says && reading->notes)
        take_note(reading, entry);
    gs_arena_reset(&reading->answer);
    if (done - reading->passed > PASSED_BYTES) {
        const size_t bytes = (done - reading->passed) & ~(PASSED_BYTES - 1);
        madvise((char *)reading->file.at + reading->passed, bytes, MADV_DONTNEED);
        reading->passed += bytes;
    }
    return taken;
}

/* The kubelet puts a new file in its place, and never changes one. */
static int open_file(const char *dir, struct gs_slice *ret, struct gs_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    void *mapped = NULL;
    snprintf(path, sizeof(path), "%s/kubelet_internal_checkpoint", dir);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0 ||
        (info.st_size &&
         (mapped = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED))
        return gs_fail_errno(err, errno == ENOENT ? GS_ENOENT : GS_EIO, errno, "%.160s", path);
    *ret = (struct gs_slice){mapped, (size_t)info.st_size};
    return 0;
}

static int read_file(const char *dir, struct reading *reading, struct gs_error *err)
{
    if (open_file(dir, &reading->file, err) < 0)
        return -1;
    const int result =
        gs_codec_checkpoint_decode(reading->file, reading->names->gpu_mem, on_entry, reading, err);
    if (reading->file.len)
        munmap((void *)reading->file.at, reading->file.len);
    gs_arena_release(&reading->answer);
    gs_index_release(&reading->index);
    free(reading->ids);
    return result;
}

int checkpoint_read(const struct plugin *plugin, struct ids_in_use *in_use, struct gs_arena *arena,
                    struct gs_given **ret, size_t *ret_count, struct gs_error *err)
{
    struct reading reading = {.names = &plugin->names,
                              .set = &plugin->devices.set,
                              .arena = arena,
                              .in_use = in_use,
                              .alloc = plugin->alloc};
    if (read_file(plugin->settings.device_plugin_dir, &reading, err) < 0)
        return -1;
    *ret = reading.given;
    *ret_count = reading.count;
    return 0;
}

int checkpoint_units(const char *dir, const struct gs_names *names, const struct gs_gpu_set *set,
                     const struct gs_inventory *record, enum gs_unit wanted,
                     struct checkpoint_notes *ret, struct gs_error *err)
{
    struct reading reading = {
        .names = names, .set = set, .notes = ret, .record = record, .wanted = wanted};
    struct gs_error why = {0};
    *ret = (struct checkpoint_notes){0};
    if (read_file(dir, &reading, &why) == 0)
        return 0;
    *ret = (struct checkpoint_notes){0};
    return why.code == GS_ENOENT ? 0 : gs_fail(err, why.code, "%s", why.msg);
}

static void note_file(struct plugin *plugin, const struct gs_error *failure)
{
    bool unread = failure->code != GS_OK && failure->code != GS_ENOENT;
    if (unread && !plugin->checkpoint_unread)
        gs_log(GS_LOG_WARN,
               "the kubelet's checkpoint cannot be read: pods' annotations are used instead",
               GS_STR("error", failure->msg));
    plugin->checkpoint_unread = unread;
}

static void take_ids(struct devices *devices, struct ids_in_use *next)
{
    ids_in_use_replace(&devices->in_use, next);
    if (devices->in_use.unlistable)
        gs_log(GS_LOG_WARN, "pods use device IDs that cannot be advertised",
               GS_INT("ids", devices->in_use.unlistable));
    devices->ids_observed = devices->due = true;
}

bool checkpoint_observe(struct plugin *plugin, bool at_allocate, bool with_ids)
{
    struct gs_arena arena = {0};
    struct ids_in_use in_use = {0};
    struct gs_given *given = NULL;
    size_t count = 0;
    struct gs_error err = {0};
    checkpoint_read(plugin, with_ids ? &in_use : NULL, &arena, &given, &count, &err);
    note_file(plugin, &err);
    const bool told = devices_known(&plugin->devices) &&
                      (err.code == GS_OK || err.code == GS_ENOENT || err.code == GS_EPROTO);
    if (told)
        gs_allocator_observe(plugin->alloc, given, count, at_allocate);
    if (with_ids && !plugin->checkpoint_unread)
        take_ids(&plugin->devices, &in_use);
    ids_in_use_release(&in_use);
    gs_arena_release(&arena);
    return told;
}

void checkpoint_restore(struct plugin *plugin)
{
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
    checkpoint_observe(plugin, false, true);
}
