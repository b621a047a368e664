/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's checkpoint in its folder, and what the plugin makes of it. */
#include "device_plugin/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include "allocate_rig.h"
#include "device_plugin/plugin.h"
#include "rows.h"

/* Base64 of answers: NVIDIA_VISIBLE_DEVICES and ALIYUN_COM_GPU_MEM_IDX. */
#define VISIBLE "Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBUdQVS"
#define IDX_0   "ChsKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSATA="
#define ON_0    VISIBLE "0w" IDX_0 /* GPU-0 */
#define ON_1    VISIBLE "0x" IDX_0 /* GPU-1, which was index 0 that day */
#define ON_0_1                                                                                     \
    "CiUKFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSC0dQVS0wLEdQVS0xCh0KFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSAzAs" \
    "MQ=="
#define BY_INDEX                                                                                   \
    "ChsKFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSATE"                                                      \
    "KGwoWQUxJWVVOX0NPTV9HUFVfTUVNX0lEWBIBMA==" /* 1: the driver's, ours is 0 */
#define BY_MOUNTS                                                                                  \
    "CjsKFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSIS92YXIvcnVuL252aWRpYS1jb250YWluZXItZGV2aWNlcwobChZBTElZ" \
    "VU5f"                                                                                         \
    "Q09NX0dQVV9NRU1fSURYEgEwCiAKF0FMSVlVTl9DT01fR1BVX01FTV9HUFVTEgVHUFUtMRI0CicvdmFyL3J1bi9udmlk" \
    "aWEt"                                                                                         \
    "Y29udGFpbmVyLWRldmljZXMvR1BVLTESCS9kZXYvbnVsbA=="
#define BY_CDI                                                                                     \
    "Ch4KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBHZvaWQKGwoWQUxJWVVOX0NPTV9HUFVfTUVNX0lEWBIBMAogChdBTElZ" \
    "VU5f"                                                                                         \
    "Q09NX0dQVV9NRU1fR1BVUxIFR1BVLTEiLwoXY2RpLms4cy5pby9ncHVzaGFyZV9ncHUSFG52aWRpYS5jb20vZ3B1PUdQ" \
    "VS0x"                                                                                         \
    "KhYKFG52aWRpYS5jb20vZ3B1PUdQVS0x"
/* GPU-0, and into how many units it was divided (ALIYUN_COM_GPU_MEM_DEV). */
#define OF_256                                                                                     \
    "Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBUdQVS0wChsKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSATAKHQoWQUxJ" \
    "WVVOX0NPTV9HUFVfTUVNX0RFVhIDMjU2"
#define OF_16                                                                                      \
    "Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBUdQVS0wChsKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSATAKHAoWQUxJ" \
    "WVVOX0NPTV9HUFVfTUVNX0RFVhICMTY="
/* SIMULATED_VISIBLE_DEVICES in place of the first. */
#define BY_SIMULATED                                                                               \
    "CiIKGVNJTVVMQVRFRF9WSVNJQkxFX0RFVklDRVMSBUdQVS0xChsKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSATA="
#define ON_NONE   VISIBLE "0wChwKFkFMSVlVTl9DT01fR1BVX01FTV9JRFgSAi0x" /* index -1 */
#define STRANGER  VISIBLE "14" IDX_0                                   /* GPU-x */
#define UNSEEN    IDX_0
#define NO_INDEX  "CgoKBU9USEVSEgEx" /* OTHER=1 */
#define POD_UID   "0a1b2c3d-0000-4000-8000-000000000001"
#define FILE_NAME "kubelet_internal_checkpoint"

#define ENTRY(uid, ids, answer)                                                                    \
    "{\"PodUID\":\"" uid "\",\"ContainerName\":\"c\",\"ResourceName\":\"aliyun.com/gpu-mem\","     \
    "\"DeviceIDs\":{\"-1\":[" ids "]},\"AllocResp\":\"" answer "\"}"
#define DATA(entries)                                                                              \
    "{\"Data\":{\"PodDeviceEntries\":[" entries "],\"RegisteredDevices\":null},\"Checksum\":1}"

/* The driver counts them the other way round. */
static const struct gs_gpu_set set = {
    .gpus = {{.idx = 0, .uuid = "GPU-0"}, {.idx = 1, .uuid = "GPU-1"}},
    .count = 2,
    .source_idx = {1, 0},
};

struct folder {
    char dir[64], file[128];
};

static void folder_up(struct folder *folder, const char *text)
{
    strcpy(folder->dir, "/tmp/gpushare-checkpoint-XXXXXX");
    assert_non_null(mkdtemp(folder->dir));
    snprintf(folder->file, sizeof(folder->file), "%s/" FILE_NAME, folder->dir);
    if (!text)
        return;
    FILE *file = fopen(folder->file, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void folder_down(const struct folder *folder)
{
    unlink(folder->file);
    rmdir(folder->file);
    assert_int_equal(rmdir(folder->dir), 0);
}

static struct plugin plugin_in(const struct folder *folder)
{
    struct plugin plugin = {.settings.device_plugin_dir = folder->dir, .devices.set = set};
    assert_int_equal(gs_names_init(&plugin.names, "aliyun.com", NULL), 0);
    return plugin;
}

static void what_the_kubelet_kept_of_our_answers_is_read(void **state)
{
    static const char *const ids[] = {"b", "a", "d"};
    static const struct {
        const char *row, *text;
        size_t count;
        gs_gpu_mask gpus; /* of the last of "u", or of the first */
        uint32_t vendor;
    } rows[] = {
        {"one", DATA(ENTRY("u", "\"b\",\"a\"", ON_0)), 1, 1},
        {"two", DATA(ENTRY("u", "\"b\",\"a\"", ON_1) "," ENTRY("v", "\"c\"", ON_0)), 2, 2},
        {"on two GPUs", DATA(ENTRY("u", "\"b\",\"a\"", ON_0_1)), 1, 3},
        {"its index is that of another day", DATA(ENTRY("u", "\"b\",\"a\"", ON_1)), 1, 2},
        {"by the driver's index", DATA(ENTRY("u", "\"b\",\"a\"", BY_INDEX)), 1, 1},
        {"by volume mounts", DATA(ENTRY("u", "\"b\",\"a\"", BY_MOUNTS)), 1, 2},
        {"by CDI alone", DATA(ENTRY("u", "\"b\",\"a\"", BY_CDI)), 1, 2},
        {"of those that say nothing",
         DATA(
             ENTRY("w", "\"c\"", ON_NONE) "," ENTRY("w", "\"c\"", NO_INDEX) "," ENTRY("w", "\"c\"", STRANGER) "," ENTRY(
                 "w", "\"c\"",
                 UNSEEN) "," ENTRY("w", "\"c\"",
                                   "") "," ENTRY("w", "\"c\"",
                                                 "no base64!") "," ENTRY("w", "",
                                                                         ON_0) "," ENTRY("u",
                                                                                         "\"b\","
                                                                                         "\"a\"",
                                                                                         ON_0)),
         7, 1},
        {"an init container's ids used again",
         DATA(ENTRY("u", "\"b\"", ON_1) "," ENTRY("u", "\"b\"",
                                                  ON_1) "," ENTRY("u", "\"b\",\"d\",\"a\"", ON_1)),
         3, 2},
        {"its ids on another GPU",
         DATA(ENTRY("u", "\"b\"", ON_0) "," ENTRY("u", "\"b\",\"a\"", ON_1)), 2, 2},
        {"another pod's ids", DATA(ENTRY("w", "\"b\"", ON_0) "," ENTRY("u", "\"b\",\"a\"", ON_0)),
         2, 1},
        {"another vendor's", DATA(ENTRY("u", "\"b\",\"a\"", BY_SIMULATED)), 1, 2, 1},
        {"none", DATA(""), 0, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_arena arena = {0};
        struct gs_given *given = NULL;
        struct folder folder;
        size_t count = 77;
        struct gs_error err = {0};
        static struct plugin plugin;
        plugin = plugin_in(&folder);
        plugin.devices.set.vendor = r->vendor;
        folder_up(&folder, r->text);
        row_equal(r->row, checkpoint_read(&plugin, NULL, &arena, &given, &count, &err), 0);
        row_equal(r->row, count, r->count);
        if (r->count) {
            const struct gs_given *u = &given[count - 1];
            u = strcmp(u->uid, "u") == 0 ? u : given;
            row_text(r->row, u->uid, "u");
            row_equal(r->row, u->gpus, r->gpus);
            row_equal(r->row, u->units, 2);
            row_equal(r->row, u->key, gs_allocate_key(ids, count == 3 ? 3 : 2));
        }
        gs_arena_release(&arena);
        folder_down(&folder);
    }
}

static void a_file_that_is_missing_or_none_is_told(void **state)
{
    static const struct {
        const char *row, *text;
        bool folder;
        enum gs_code code;
    } rows[] = {
        {"missing", NULL, false, GS_ENOENT},
        {"a folder", NULL, true, GS_EIO},
        {"empty", "", false, GS_EPROTO},
        {"cut short", "{\"Data\":{", false, GS_EPROTO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_arena arena = {0};
        struct gs_given *given = NULL;
        struct folder folder;
        size_t count = 77;
        struct gs_error err = {0};
        folder_up(&folder, r->text);
        if (r->folder)
            row_equal(r->row, mkdir(folder.file, 0700), 0);
        static struct plugin plugin;
        plugin = plugin_in(&folder);
        row_equal(r->row, checkpoint_read(&plugin, NULL, &arena, &given, &count, &err), -1);
        row_equal(r->row, err.code, r->code);
        row_true(r->row, !given && count == 77);
        gs_arena_release(&arena);
        folder_down(&folder);
    }
}

/* The pod is recorded on GPU 1 and was given GPU 0. */
static void it_is_recalled_once_pods_and_gpus_are_known(void **state)
{
    static const struct {
        const char *row;
        bool gpus, node, pod, listed, restored; /* recalled: before */
        bool placed, done;
    } rows[] = {
        {"both", true, true, true, true, false, true, true},
        {"no GPUs yet", false, true, true, true, false, false, false},
        {"the node's numbers are not known", true, false, true, true, false, false, false},
        {"a pod of a quick list", true, true, true, false, false, true, false},
        {"no pod yet: it is charged all the same", true, true, false, false, false, true, false},
        {"no pod at all", true, true, false, true, false, false, true},
        {"again", true, true, true, true, true, false, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct folder folder;
        struct gs_allocator_stats stats;
        rig_up(&rig);
        folder_up(&folder, DATA(ENTRY(POD_UID, "\"a\",\"b\"", ON_0)));
        if (r->listed)
            gs_allocator_list_begin(rig.alloc);
        if (r->pod)
            give_pod(&rig, &(struct given_pod){"p", {2}, 1, .uid = POD_UID});
        if (r->listed)
            gs_allocator_list_end(rig.alloc);
        struct plugin plugin = {.alloc = rig.alloc,
                                .names = rig.names,
                                .settings.device_plugin_dir = folder.dir,
                                .devices = {.have_gpus = r->gpus,
                                            .set = set,
                                            .unit_state = r->node ? UNIT_HELD : UNIT_UNREAD},
                                .pods_listed = r->listed,
                                .restored = r->restored};
        checkpoint_restore(&plugin);
        gs_allocator_stats(rig.alloc, &stats);
        row_equal(r->row, stats.used_units[0], r->placed ? 2 : 0);
        row_equal(r->row, plugin.restored, r->done);
        row_equal(r->row, plugin.devices.in_use.count, r->placed ? 2 : 0);
        ids_in_use_release(&plugin.devices.in_use);
        gs_allocator_free(rig.alloc);
        folder_down(&folder);
    }
}

/* Ids that were in use before stay so until the file says something else. */
static void what_cannot_be_read_changes_nothing(void **state)
{
    static const struct {
        const char *row, *text;
        uint32_t ids;
        bool unread;
    } rows[] = {{"other ids", DATA(ENTRY("q", "\"c\"", ON_1)), 1, false},
                {"none", DATA(""), 0, false},
                {"no file", NULL, 0, false},
                {"no JSON", "{", 2, true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct folder before, now;
        rig_up(&rig);
        folder_up(&before, DATA(ENTRY("p", "\"a\",\"b\"", ON_0)));
        folder_up(&now, r->text);
        struct plugin plugin = {
            .alloc = rig.alloc, .names = rig.names, .settings.device_plugin_dir = before.dir};
        checkpoint_observe(&plugin, false, true);
        plugin.settings.device_plugin_dir = now.dir;
        checkpoint_observe(&plugin, false, true);
        row_equal(r->row, plugin.devices.in_use.count, r->ids);
        row_equal(r->row, plugin.checkpoint_unread, r->unread);
        ids_in_use_release(&plugin.devices.in_use);
        gs_allocator_free(rig.alloc);
        folder_down(&now);
        folder_down(&before);
    }
}

static void answers_tell_how_a_gpu_was_divided(void **state)
{
    static const struct {
        const char *row, *text;
        enum gs_unit unit; /* of a GPU of 16 GiB */
        bool unclear;
    } rows[] = {
        {"ours", DATA(ENTRY("u", "\"6e1a-255\",\"6e1a-0\"", OF_256)), GS_UNIT_64MIB, false},
        {"the original's", DATA(ENTRY("u", "\"GPU-0-_-255\"", OF_256)), GS_UNIT_GIB, false},
        {"of several the largest unit",
         DATA(ENTRY("u", "\"6e1a-255\"", OF_256) "," ENTRY("v", "\"6e1a-15\"", OF_16) "," ENTRY(
             "w", "\"6e1a-255\"", OF_256)),
         GS_UNIT_GIB, false},
        {"it does not say", DATA(ENTRY("u", "\"6e1a-15\"", ON_0)), GS_UNIT_UNKNOWN, true},
        {"of no GPU that is here", DATA(ENTRY("u", "\"6e1a-15\"", STRANGER)), GS_UNIT_UNKNOWN,
         true},
        {"no ids", DATA(ENTRY("u", "", ON_0)), GS_UNIT_UNKNOWN, false},
        {"cut short", "{\"Data\":{\"PodDeviceEntries\":[" ENTRY("u", "\"6e1a-15\"", ON_0),
         GS_UNIT_UNKNOWN, false},
    };
    struct gs_names names;
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_gpu_set of_16_gib = set;
        struct checkpoint_notes notes;
        struct folder folder;
        folder_up(&folder, r->text);
        of_16_gib.gpus[0].mem_mib = 16384;
        row_equal(r->row,
                  checkpoint_units(folder.dir, &names, &of_16_gib, NULL, GS_UNIT_MIB, &notes, NULL),
                  strcmp(r->row, "cut short") == 0 ? -1 : 0);
        row_equal(r->row, notes.unit, r->unit);
        row_equal(r->row, notes.unclear, r->unclear);
        folder_down(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_tell_how_a_gpu_was_divided),
        cmocka_unit_test(what_the_kubelet_kept_of_our_answers_is_read),
        cmocka_unit_test(a_file_that_is_missing_or_none_is_told),
        cmocka_unit_test(it_is_recalled_once_pods_and_gpus_are_known),
        cmocka_unit_test(what_cannot_be_read_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
