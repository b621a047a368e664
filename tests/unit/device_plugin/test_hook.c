/* SPDX-License-Identifier: Apache-2.0 */
#include "remove_tree.h"
#include "starting_pod.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES "not really a library"
#define SUM   "8c94411e7c8b87bd238af6ff286f5e356e89b0b393364163b58e2ca433a40fe5" /* by sha256sum */

/* The folder is named after the least of them. */
static const char *const its_ids[] = {"b-1", "a-7"};
static const struct gs_start_request its_start = {.ids = its_ids, .id_count = 2};

struct rig {
    char folder[32], library[64], root[64];
    struct plugin plugin;
};

static void put(const char *path, const char *bytes)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fputs(bytes, file) >= 0, 1);
    assert_int_equal(fchmod(fileno(file), 0644), 0);
    fclose(file);
}

static const char *get(const struct rig *rig, const char *name)
{
    static char text[128];
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", rig->root, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return "(not there)";
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static unsigned mode_of(const struct rig *rig, const char *name)
{
    char path[160];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", rig->root, name);
    return lstat(path, &st) < 0 ? 0 : st.st_mode & 07777;
}

static int start(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    strcpy(rig->folder, "/tmp/gpushare-hook.XXXXXX");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->library, sizeof(rig->library), "%s/lib.so", rig->folder);
    snprintf(rig->root, sizeof(rig->root), "%s/root", rig->folder);
    put(rig->library, BYTES);
    rig->plugin.settings.hook_library = rig->library;
    rig->plugin.settings.hook_sha256 = SUM;
    rig->plugin.settings.hook_root = rig->root;
    rig->plugin.devices.unit = GS_UNIT_GIB;
    starting = (struct gs_placed){.uid = "p", .gpus = 1};
    *state = rig;
    return 0;
}

static int stop(void **state)
{
    struct rig *rig = *state;
    remove_tree(rig->folder);
    free(rig);
    return 0;
}

static bool starts(struct rig *rig, struct gs_error *err)
{
    return hook_may_start(&rig->plugin, &its_start, &starting, err);
}

static void options_that_pin_nothing_are_refused(void **state)
{
    static const struct {
        const char *row, *library, *sum;
        bool good;
    } rows[] = {
        {"neither", NULL, NULL, true},
        {"both", "/l", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", true},
        {"no sum", "/l", NULL, false},
        {"no library", NULL, "ba", false},
        {"not from the root", "l",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", false},
        {"too short", "/l", "ba7816bf", false},
        {"capitals", "/l", "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
         false},
        {"one more", "/l", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad0",
         false},
    };
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, hook_settings_wrong(r->library, r->sum) == NULL, r->good);
}

/* The word, as the file is, and after each of the next looks. */
static void only_what_was_pinned_is_preloaded(void **state)
{
    static const struct {
        const char *row, *bytes; /* NULL: none */
        mode_t mode;
        uid_t owner;
        bool link, ready;
    } rows[] = {
        {"as it should be", BYTES, 0644, 0, false, true},
        {"one that nobody may write", BYTES, 0444, 0, false, true},
        {"other bytes", "another library", 0644, 0, false, false},
        {"the same again", BYTES, 0644, 0, false, true},
        {"nothing in it", "", 0644, 0, false, false},
        {"not there", NULL, 0, 0, false, false},
        {"the group may write", BYTES, 0664, 0, false, false},
        {"others may write", BYTES, 0646, 0, false, false},
        {"somebody else's", BYTES, 0644, 1000, false, false},
        {"a link to it", BYTES, 0644, 0, true, false},
        {"and back", BYTES, 0644, 0, false, true},
    };
    struct rig *rig = *state;
    char other[80];
    if (geteuid() != 0)
        skip();
    snprintf(other, sizeof(other), "%s/other", rig->folder);
    GS_FOR_EACH_ROW (r, rows) {
        unlink(rig->library);
        if (r->bytes) {
            put(r->link ? other : rig->library, r->bytes);
            assert_int_equal(chmod(r->link ? other : rig->library, r->mode), 0);
            assert_int_equal(chown(r->link ? other : rig->library, r->owner, r->owner), 0);
        }
        if (r->link)
            assert_int_equal(symlink(other, rig->library), 0);
        rig->plugin.hook.look_ns = 0;
        rig->plugin.round.wake_ns = INT64_MAX;
        hook_round(&rig->plugin);
        row_equal(r->row, hook_word(&rig->plugin, NULL, 0),
                  r->ready ? GS_ENFORCED_HOOK : GS_ENFORCED_HOOK_AWAY);
        row_true(r->row, rig->plugin.round.wake_ns != INT64_MAX);
        if (r->ready)
            row_text(r->row, get(rig, "libvgpu.so"), BYTES);
    }
}

static void a_container_gets_its_limits_and_mounts(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask gpus;
        uint32_t units;
        const char *ids[3];
        size_t id_count, envs;
        const char *limit, *second;
        uint32_t cores_pct;
    } rows[] = {
        {"one GPU", 2, 8, {"c-0", "b-1", "a-7"}, 3, 3, "8192m", "(not set)"},
        {"compute as well", 1, 8, {"b-1", "a-7", "c-0"}, 3, 4, "8192m", "(not set)", 40},
        {"two GPUs", 5, 8, {"a-7"}, 1, 4, "4096m", "4096m"},
    };
    struct rig *rig = *state;
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        const struct gs_dp_pair first = {"NVIDIA_VISIBLE_DEVICES", "GPU-a"};
        const struct gs_dp_path mount = {"/dev/null", "/x"};
        struct gs_dp_container made = {
            .envs = &first, .env_count = 1, .mounts = &mount, .mount_count = 1};
        const struct gs_allocate_answer answer = {
            .gpus = r->gpus, .units = r->units, .cores_pct = r->cores_pct};
        const struct gs_dp_ids ids = {.ids = (const char *const *)r->ids, .count = r->id_count};
        struct gs_error err = {0};
        char cache[80], preload[96], library[80], lock[80];
        const struct gs_dp_path mounts[] = {
            mount,
            {cache, "/usr/local/vgpu", false},
            {library, "/usr/local/vgpu/libvgpu.so", true},
            {preload, "/etc/ld.so.preload", true},
            {lock, "/tmp/vgpulock", false},
        };
        snprintf(cache, sizeof(cache), "%s/a-7/cache", rig->root);
        snprintf(library, sizeof(library), "%s/libvgpu.so", rig->root);
        snprintf(preload, sizeof(preload), "%s/a-7/ld.so.preload", rig->root);
        snprintf(lock, sizeof(lock), "%s/lock", rig->root);
        row_equal(r->row, hook_add(&rig->plugin, &answer, &ids, &arena, &made, &err), 0);
        row_equal(r->row, made.env_count, r->envs);
        row_text(r->row, env(&made, "NVIDIA_VISIBLE_DEVICES"), "GPU-a");
        row_text(r->row, env(&made, "CUDA_DEVICE_MEMORY_LIMIT_0"), r->limit);
        row_text(r->row, env(&made, "CUDA_DEVICE_MEMORY_LIMIT_1"), r->second);
        row_text(r->row, env(&made, "CUDA_DEVICE_MEMORY_SHARED_CACHE"),
                 "/usr/local/vgpu/a-7.cache");
        row_text(r->row, env(&made, "CUDA_DEVICE_SM_LIMIT"), r->cores_pct ? "40" : "(not set)");
        row_equal(r->row, made.mount_count, 5);
        for (size_t i = 0; i < 5; i++) {
            row_text(r->row, made.mounts[i].host, mounts[i].host);
            row_text(r->row, made.mounts[i].container, mounts[i].container);
            row_equal(r->row, made.mounts[i].read_only, mounts[i].read_only);
        }
    }
}

static void ids_that_name_no_folder_are_refused(void **state)
{
    static const char *const rows[] = {"", ".", "..", "a/b", ".hidden"};
    struct rig *rig = *state;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_arena arena = {0};
        struct gs_dp_container made = {0};
        const struct gs_allocate_answer answer = {.gpus = 1, .units = 1};
        const struct gs_dp_ids ids = {.ids = r, .count = 1};
        const struct gs_start_request request = {.ids = r, .id_count = 1};
        struct gs_error err = {0};
        row_equal(*r, hook_add(&rig->plugin, &answer, &ids, &arena, &made, &err), -1);
        row_equal(*r, err.code, GS_EINVAL);
        row_true(*r, !hook_may_start(&rig->plugin, &request, &starting, &err));
        row_equal(*r, made.env_count + made.mount_count, 0);
    }
    struct gs_dp_container made = {0};
    rig->plugin.settings.hook_library = NULL;
    assert_int_equal(hook_add(&rig->plugin, NULL, NULL, NULL, &made, NULL), 0);
    assert_int_equal(made.env_count + made.mount_count, 0);
}

static void a_start_finds_what_the_container_mounts(void **state)
{
    struct rig *rig = *state;
    struct gs_error err = {0};
    char left[96];
    if (geteuid() != 0)
        skip();
    for (int i = 0; i < 2; i++) {
        assert_true(starts(rig, &err));
        assert_string_equal(get(rig, "a-7/ld.so.preload"), "/usr/local/vgpu/libvgpu.so\n");
        assert_string_equal(get(rig, "libvgpu.so"), BYTES);
        assert_int_equal(mode_of(rig, "a-7"), 0755);
        assert_int_equal(mode_of(rig, "a-7/cache"), 0777);
        assert_int_equal(mode_of(rig, "lock"), 01777);
        assert_int_equal(mode_of(rig, "a-7/ld.so.preload"), 0644);
        assert_string_equal(get(rig, "a-7/cache/x.cache"), "(not there)");
        assert_int_equal(mode_of(rig, "a-7/cache/deep"), 0);
        /* what the container leaves behind, a link to what is not its own among it */
        snprintf(left, sizeof(left), "%s/a-7/cache/x.cache", rig->root);
        put(left, "old");
        snprintf(left, sizeof(left), "%s/a-7/cache/deep", rig->root);
        assert_int_equal(mkdir(left, 0700), 0);
        snprintf(left, sizeof(left), "%s/a-7/cache/deep/link", rig->root);
        assert_int_equal(symlink(rig->folder, left), 0);
    }
    assert_int_equal(access(rig->library, F_OK), 0);
    snprintf(left, sizeof(left), "%s/libvgpu.so", rig->root);
    assert_int_equal(unlink(left), 0); /* somebody cleans up: it is copied once more */
    assert_true(starts(rig, &err));
    assert_string_equal(get(rig, "libvgpu.so"), BYTES);
}

static void without_the_library_pods_that_insist_are_held(void **state)
{
    static const struct {
        const char *row;
        bool there, known, required, starts;
    } rows[] = {
        {"in place", true, true, false, true},
        {"in place, it insists", true, true, true, true},
        {"in place, nobody knows it", true, false, false, true},
        {"changed", false, true, false, true},
        {"changed, it insists", false, true, true, false},
        {"changed, nobody knows it", false, false, false, false},
    };
    struct rig *rig = *state;
    if (geteuid() != 0)
        skip();
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        unlink(rig->library);
        put(rig->library, r->there ? BYTES : "changed");
        starting = (struct gs_placed){
            .uid = r->known ? "p" : NULL, .gpus = 1, .enforce_required = r->required};
        row_equal(r->row, starts(rig, &err), r->starts);
        row_equal(r->row, err.code, r->starts ? GS_OK : GS_EBUSY);
        row_text(r->row, get(rig, "a-7/ld.so.preload"),
                 r->there ? "/usr/local/vgpu/libvgpu.so\n" : "");
    }
}

/* As the DaemonSet runs: root without capabilities. */
static void be_privileged(bool on)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    assert_int_equal(syscall(SYS_capget, &head, caps), 0);
    for (int i = 0; i < 2; i++)
        caps[i].effective = on ? caps[i].permitted : 0;
    assert_int_equal(syscall(SYS_capset, &head, caps), 0);
}

static size_t entries_of(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

/* Folders in folders, deeper than any path may be long. */
static void nest(const char *path, int depth)
{
    char name[200] = "";
    int at = open(path, O_RDONLY | O_DIRECTORY);
    memset(name, 'd', sizeof(name) - 1);
    for (int i = 0; i < depth; i++) {
        assert_int_equal(mkdirat(at, name, 0700), 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
    }
    close(at);
}

static void fill(const char *path, int files)
{
    char file[160];
    for (int i = 0; i < files; i++) {
        snprintf(file, sizeof(file), "%s/%d", path, i);
        put(file, "");
    }
}

static void empty_in_rounds(struct rig *rig)
{
    for (int i = 0; i < 20; i++) {
        rig->plugin.hook.look_ns = 0;
        hook_round(&rig->plugin);
    }
}

static void what_a_container_leaves_behind_holds_nobody(void **state)
{
    static const struct {
        const char *row;
        int depth, files;
        uid_t owner; /* of a folder with a file in it */
        bool all;    /* the cache is that owner's, too */
        uint32_t left;
    } rows[] = {
        {"nothing"},
        {"a nest that no path reaches", .depth = 40},
        {"many files", .files = 1100},
        {"a folder of root's", .files = 1, .depth = 1},
        {"a folder of another user's", .owner = 1000,
         .left = 1}, /* in the cache, which is left around it */
        {"a cache that is another user's", .owner = 1000, .all = true, .left = 1},
    };
    if (geteuid() != 0)
        skip();
    GS_FOR_EACH_ROW (r, rows) {
        void *made = NULL;
        start(&made);
        struct rig *rig = made;
        struct gs_error err = {0};
        char cache[96], other[112], trash[96];
        snprintf(cache, sizeof(cache), "%s/a-7/cache", rig->root);
        snprintf(trash, sizeof(trash), "%s/.trash", rig->root);
        snprintf(other, sizeof(other), "%s/other", cache);
        size_t before = entries_of("/proc/self/fd");
        be_privileged(false);
        row_true(r->row, starts(rig, &err));
        be_privileged(true);
        nest(cache, r->depth);
        fill(cache, r->files);
        if (r->owner) {
            assert_int_equal(mkdir(other, 0700), 0);
            fill(other, 1);
            assert_int_equal(chown(other, r->owner, r->owner), 0);
        }
        if (r->all)
            assert_int_equal(chown(cache, r->owner, r->owner) + chmod(cache, 0700), 0);
        be_privileged(false);
        for (int i = 0; i < 3; i++) {
            row_true(r->row, starts(rig, &err));
            row_equal(r->row, entries_of(cache), 0);
            row_equal(r->row, mode_of(rig, "a-7/cache"), 0777);
            row_text(r->row, get(rig, "a-7/ld.so.preload"), "/usr/local/vgpu/libvgpu.so\n");
        }
        empty_in_rounds(rig);
        row_equal(r->row, rig->plugin.hook.trash.left, r->left);
        row_equal(r->row, entries_of(trash), r->left);
        row_equal(r->row, entries_of("/proc/self/fd"), before);
        be_privileged(true); /* root on the node, or a plugin that may */
        empty_in_rounds(rig);
        row_equal(r->row, rig->plugin.hook.trash.left + entries_of(trash), 0);
        stop(&made);
    }
}

static void one_round_removes_a_bounded_part_of_the_trash(void **state)
{
    struct rig *rig = *state;
    struct gs_error err = {0};
    char path[96];
    size_t rounds = 0, left = 0;
    if (geteuid() != 0)
        skip();
    assert_true(starts(rig, &err));
    for (int i = 0; i < 1500; i++) {
        snprintf(path, sizeof(path), "%s/.trash/%d", rig->root, i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(path, sizeof(path), "%s/.trash", rig->root);
    for (size_t now; (now = entries_of(path)) > 0 && rounds < 100; rounds++, left = now) {
        assert_true(rounds == 0 || left - now <= 1000);
        rig->plugin.hook.look_ns = 0;
        hook_round(&rig->plugin);
        if (rounds == 0) /* it is not over, and seen */
            assert_true(entries_of(path) >= 500);
    }
    assert_in_range(rounds, 2, 4);
    hook_release(&rig->plugin); /* in the middle, or not */
    assert_null(rig->plugin.hook.trash.pass);
}

static void what_cannot_be_made_holds_the_start(void **state)
{
    struct rig *rig = *state;
    struct gs_error err = {0};
    char trash[96];
    if (geteuid() != 0)
        skip();
    assert_true(starts(rig, &err));
    snprintf(trash, sizeof(trash), "%s/.trash", rig->root);
    assert_int_equal(rmdir(trash), 0);
    put(trash, "");
    assert_false(starts(rig, &err));
    assert_int_equal(err.code, GS_EBUSY);
    assert_non_null(strstr(err.msg, "/a-7: "));
    err = (struct gs_error){0};
    rig->plugin.settings.hook_root = rig->library; /* a file */
    assert_false(starts(rig, &err));
    rig->plugin.settings.hook_library = NULL;
    assert_true(starts(rig, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_pin_nothing_are_refused),
        cmocka_unit_test_setup_teardown(only_what_was_pinned_is_preloaded, start, stop),
        cmocka_unit_test_setup_teardown(a_container_gets_its_limits_and_mounts, start, stop),
        cmocka_unit_test_setup_teardown(ids_that_name_no_folder_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(a_start_finds_what_the_container_mounts, start, stop),
        cmocka_unit_test_setup_teardown(without_the_library_pods_that_insist_are_held, start, stop),
        cmocka_unit_test(what_a_container_leaves_behind_holds_nobody),
        cmocka_unit_test_setup_teardown(one_round_removes_a_bounded_part_of_the_trash, start, stop),
        cmocka_unit_test_setup_teardown(what_cannot_be_made_holds_the_start, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
