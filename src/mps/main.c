/* SPDX-License-Identifier: Apache-2.0 */
/* gpushare-mps: NVIDIA's MPS control daemons, one for each GPU of the node (docs/limits.md). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/options.h"
#include "common/process.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"
#include "gpushare/nvml/listed.h"
#include "mps/pipes.h"
#include "mps/supervise.h"

enum { AGAIN_S = 5 };

/* What the command line, the environment and the file say. Strings live as long as the process. */
struct settings {
    const char *root;
    const char *driver_root; /* NULL: looked for */
    struct gs_gpu_options gpus;
    bool mount_shm;
};

/* Exits on --help, --version and bad usage. */
static void read_settings(struct settings *settings, int argc, char **argv)
{
    *settings = (struct settings){.root = "/run/gpushare/mps"};
    const struct gs_option table[] = {
        OPT_STRING("root", &settings->root, "DIR",
                   "directory of the pipes and logs of each GPU's daemon; --mps-root of the device "
                   "plugin (default /run/gpushare/mps)"),
        OPT_STRING("driver-root", &settings->driver_root, "DIR",
                   "root of the driver's installation, in which nvidia-cuda-mps-control runs by "
                   "chroot (default /driver-root if it exists, else /)"),
        OPT_STRING("fake-gpus", &settings->gpus.fake_gpus, "SPEC",
                   "simulate GPUs, such as 2x16384MiB,1x80GiB"),
        OPT_STRING("gpu-file", &settings->gpus.gpu_file, "FILE",
                   "JSON file of the GPUs, as in the annotation gpu-inventory"),
        OPT_STRING("nvml-library", &settings->gpus.nvml_library, "FILE",
                   "the NVIDIA driver's library (default libnvidia-ml.so.1)"),
        OPT_FLAG("mount-shm", &settings->mount_shm,
                 "mount a tmpfs of 1 GiB at DIR/shm, unless something is mounted there, and exit"),
    };
    const struct gs_command command = {
        .name = "gpushare-mps",
        .doc = "Runs an MPS control daemon for each GPU of this node. Files under --root report to "
               "gpushare-device-plugin which of them are ready.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
    if (settings->gpus.fake_gpus && settings->gpus.gpu_file) {
        fputs("gpushare-mps: --fake-gpus and --gpu-file are mutually exclusive\n", stderr);
        exit(2);
    }
}

/* Waits for the signal that ends the program; false: it has not come meanwhile. */
static bool stops_within(int seconds)
{
    const sigset_t set = process_stop_signals();
    const struct timespec wait = {.tv_sec = seconds};
    return sigtimedwait(&set, NULL, &wait) > 0;
}

/* The GPUs that there are; those that come later are a new start's. False: the program shall end.
 */
static bool find_gpus(const struct settings *settings, struct control *control,
                      struct gs_gpu_set *ret)
{
    for (;;) {
        struct gs_gpu_source source;
        struct gs_error err = {0};
        int result = control_find(settings->driver_root, control, &err);
        if (result == 0 && (result = gs_gpus_open(&settings->gpus, &source, &err)) == 0) {
            result = source.ops->read(source.ctx, ret, &err);
            source.ops->close(source.ctx);
        }
        if (result == 0 && ret->count)
            return true;
        gs_log(GS_LOG_WARN, "no MPS daemon yet", GS_STR("error", result ? err.msg : "no GPU"));
        if (stops_within(AGAIN_S))
            return false;
    }
}

static void serve(const struct settings *settings, const struct control *control,
                  const struct gs_gpu_set *set)
{
    struct supervisor *all[GS_GPUS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        struct gs_error err = {0};
        if (supervisor_start(control, settings->root, &set->gpus[i], &all[count], &err) == 0)
            count++;
        else
            gs_log(GS_LOG_ERROR, "cannot run the MPS daemon of a GPU",
                   GS_INT("gpu", set->gpus[i].idx), GS_STR("error", err.msg));
    }
    gs_log(GS_LOG_INFO, "serving", GS_STR("version", GS_VERSION), GS_INT("gpus", count),
           GS_STR("driver_root", control->driver_root), GS_STR("program", control->program),
           GS_STR("multiuser", control->multiuser ? "yes" : "no"));
    process_wait_for_stop();
    gs_log(GS_LOG_INFO, "stopping");
    for (uint32_t i = 0; i < count; i++)
        supervisor_ask_to_stop(all[i]);
    for (uint32_t i = 0; i < count; i++)
        supervisor_free(all[i]);
}

int main(int argc, char **argv)
{
    struct settings settings;
    struct control control;
    struct gs_gpu_set set;
    struct gs_error err = {0};
    bool mounted;
    read_settings(&settings, argc, argv);
    process_block_signals();
    gs_invariants_survive();
    if (pipes_mount_shm(settings.root, &mounted, &err) < 0)
        gs_log(GS_LOG_WARN, "MPS clients can fill the file system of --root",
               GS_STR("error", err.msg));
    if (settings.mount_shm)
        return err.code != GS_OK;
    if (find_gpus(&settings, &control, &set))
        serve(&settings, &control, &set);
    if (mounted)
        pipes_unmount_shm(settings.root);
    return 0;
}
