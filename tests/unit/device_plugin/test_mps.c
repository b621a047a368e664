/* SPDX-License-Identifier: Apache-2.0 */
#include "remove_tree.h"
#include "starting_pod.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mps_state.h"

struct rig {
    char root[32];
    struct plugin plugin;
};

static const char *const uuids[] = {"GPU-a", "GPU-b"};

static void say(struct rig *rig, uint32_t i, bool ready)
{
    const struct mps_state state = {.ready = ready, .why = "it hangs"};
    assert_true(mps_state_write(rig->root, uuids[i], &state, gs_clock_now_ns(gs_clock_system())));
}

static int start(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    char path[MPS_PATH_BYTES];
    strcpy(rig->root, "/tmp/gpushare-mps.XXXXXX");
    assert_non_null(mkdtemp(rig->root));
    rig->plugin.settings.mps_root = rig->root;
    rig->plugin.devices.unit = GS_UNIT_GIB;
    for (uint32_t i = 0; i < 2; i++) {
        struct gs_gpu *gpu = &rig->plugin.devices.set.gpus[i];
        *gpu = (struct gs_gpu){.idx = i, .healthy = true, .schedulable = true};
        strcpy(gpu->uuid, uuids[i]);
        assert_true(mps_path(rig->root, uuids[i], "", path));
        assert_int_equal(mkdir(path, 0700), 0);
        say(rig, i, true);
    }
    rig->plugin.devices.set.count = 2;
    rig->plugin.devices.found = rig->plugin.devices.set;
    *state = rig;
    return 0;
}

static int stop(void **state)
{
    struct rig *rig = *state;
    remove_tree(rig->root);
    free(rig);
    return 0;
}

static void a_client_gets_its_limit_pipes_and_shm(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask gpus;
        uint32_t units;
        enum gs_unit unit;
        bool own_shm;
        const char *limit;
        size_t mounts;
        uint32_t cores_pct;
        const char *share; /* NULL: no such variable */
    } rows[] = {
        {"the second is number 0 to it, too", 2, 2, GS_UNIT_GIB, false, "0=2048M", 3},
        {"shm of its own", 1, 8, GS_UNIT_GIB, true, "0=8192M", 2},
        {"another unit", 1, 3, GS_UNIT_256MIB, false, "0=768M", 3},
        {"the largest", 1, UINT32_MAX, GS_UNIT_GIB, false, "0=4398046510080M", 3},
        {"compute", 1, 8, GS_UNIT_GIB, false, "0=8192M", 3, 30, "30"},
        {"all of the compute", 2, 8, GS_UNIT_GIB, true, "0=8192M", 2, 100, "100"},
    };
    struct rig *rig = *state;
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        const struct gs_dp_pair first = {"NVIDIA_VISIBLE_DEVICES", "GPU-a"};
        const struct gs_dp_path mount = {"/dev/null", "/x"};
        struct gs_dp_container made = {
            .envs = &first, .env_count = 1, .mounts = &mount, .mount_count = 1};
        const struct gs_allocate_answer answer = {
            .gpus = r->gpus, .units = r->units, .own_shm = r->own_shm, .cores_pct = r->cores_pct};
        struct gs_error err = {0};
        char pipe[MPS_PATH_BYTES], shm[MPS_PATH_BYTES];
        rig->plugin.devices.unit = r->unit;
        row_equal(r->row, mps_add(&rig->plugin, &answer, NULL, &arena, &made, &err), 0);
        row_equal(r->row, made.env_count, r->share ? 4 : 3);
        row_text(r->row, env(&made, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
                 r->share ? r->share : "(not set)");
        row_text(r->row, env(&made, "NVIDIA_VISIBLE_DEVICES"), "GPU-a");
        row_text(r->row, env(&made, "CUDA_MPS_PIPE_DIRECTORY"), "/tmp/nvidia-mps");
        row_text(r->row, env(&made, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), r->limit);
        row_equal(r->row, made.mount_count, r->mounts);
        assert_true(mps_path(rig->root, uuids[r->gpus - 1], "pipe", pipe));
        assert_true(mps_path(rig->root, NULL, "shm", shm));
        row_text(r->row, made.mounts[0].container, "/x");
        row_text(r->row, made.mounts[1].host, pipe);
        row_text(r->row, made.mounts[1].container, "/tmp/nvidia-mps");
        row_true(r->row, made.mounts[1].read_only);
        if (r->mounts < 3)
            continue;
        row_true(r->row, !made.mounts[2].read_only);
        row_text(r->row, made.mounts[2].host, shm);
        row_text(r->row, made.mounts[2].container, "/dev/shm");
    }
}

static void several_gpus_are_refused(void **state)
{
    struct rig *rig = *state;
    struct gs_arena arena = {0};
    struct gs_dp_container made = {0};
    struct gs_error err = {0};
    const struct gs_allocate_answer answer = {.gpus = 3, .units = 8};
    assert_int_equal(mps_add(&rig->plugin, &answer, NULL, &arena, &made, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_non_null(strstr(err.msg, "a container with several GPUs"));
    rig->plugin.settings.mps_root = NULL;
    assert_int_equal(mps_add(&rig->plugin, &answer, NULL, &arena, &made, &err), 0);
    assert_int_equal(made.env_count + made.mount_count, 0);
}

static void gpus_without_a_daemon_take_nobody(void **state)
{
    struct rig *rig = *state;
    struct gs_gpu_set set = rig->plugin.devices.set;
    set.gpus[0].max_pods = 60;
    say(rig, 1, false);
    mps_mark(&rig->plugin, &set);
    assert_true(set.gpus[0].healthy);
    assert_false(set.gpus[1].healthy);
    assert_int_equal(set.gpus[0].max_pods, 60);
    assert_int_equal(set.gpus[1].max_pods, 48);
    assert_int_equal(mps_word(&rig->plugin, &set.gpus[0], 1), GS_ENFORCED_MPS);
    assert_int_equal(mps_word(&rig->plugin, &set.gpus[1], 1), GS_ENFORCED_MPS_AWAY);
    set.gpus[0].healthy = false; /* and one that is sick neither */
    mps_mark(&rig->plugin, &set);
    assert_false(set.gpus[0].healthy);
    rig->plugin.settings.mps_root = NULL;
    set.gpus[1].healthy = true;
    mps_mark(&rig->plugin, &set);
    assert_int_equal(set.gpus[0].max_pods + set.gpus[1].max_pods, 0);
    assert_true(set.gpus[1].healthy);
}

static void starts_wait_for_the_daemon(void **state)
{
    static const struct {
        const char *row;
        bool known, required, ready;
        gs_gpu_mask gpus;
        const char *why; /* NULL: it starts */
    } rows[] = {
        {"its daemon is ready", true, false, true, 2, NULL},
        {"its daemon is away", true, false, false, 2, "MPS daemon of GPU 1 is ready: it hangs"},
        {"another's is away", true, false, false, 1, NULL},
        {"it insists on a limit", true, true, true, 1, "gpu-enforce: required"},
        {"nobody knows it", false, false, true, 0, NULL},
        {"nobody knows it, one is away", false, false, false, 0, "it hangs"},
    };
    struct rig *rig = *state;
    const struct gs_start_request request = {.id_count = 1};
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        starting = (struct gs_placed){
            .uid = r->known ? "p" : NULL, .gpus = r->gpus, .enforce_required = r->required};
        say(rig, 1, r->ready);
        row_equal(r->row, mps_may_start(&rig->plugin, &request, &starting, &err), r->why == NULL);
        row_true(r->row, !r->why || strstr(err.msg, r->why));
        row_true(r->row, !r->why || err.code == GS_EBUSY);
    }
    rig->plugin.settings.mps_root = NULL;
    assert_true(mps_may_start(&rig->plugin, &request, &starting, NULL));
}

static void a_daemon_that_came_or_went_is_told(void **state)
{
    struct rig *rig = *state;
    struct plugin *plugin = &rig->plugin;
    static const struct {
        const char *row;
        bool ready, told;
    } rows[] = {
        {"the first look", true, true},   {"the same", true, false}, {"it went", false, true},
        {"the same again", false, false}, {"it came", true, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        plugin->devices.due = false;
        plugin->mps.look_ns = 0;
        plugin->round.wake_ns = INT64_MAX;
        say(rig, 1, r->ready);
        mps_round(plugin);
        row_equal(r->row, plugin->devices.due, r->told);
        row_true(r->row, plugin->round.wake_ns != INT64_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_client_gets_its_limit_pipes_and_shm, start, stop),
        cmocka_unit_test_setup_teardown(several_gpus_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(gpus_without_a_daemon_take_nobody, start, stop),
        cmocka_unit_test_setup_teardown(starts_wait_for_the_daemon, start, stop),
        cmocka_unit_test_setup_teardown(a_daemon_that_came_or_went_is_told, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
