/* SPDX-License-Identifier: Apache-2.0 */
/* gpushare-mps: NVIDIA's MPS control daemons, one for each GPU of the node (docs/limits.md). */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "common/signals.h"
#include "gpushare/base/log.h"
#include "gpushare/nvml/driver.h"
#include "gpushare/nvml/listed.h"
#include "mps/settings.h"
#include "mps/supervise.h"

enum { AGAIN_S = 5 };

static int open_source(const struct settings *settings, struct gs_gpu_source *ret,
                       struct gs_error *err)
{
    const struct gs_nvml_config config = {.library = settings->nvml_library,
                                          .clock = gs_clock_system()};
    if (settings->fake_gpus)
        return gs_gpus_from_spec(settings->fake_gpus, ret, err);
    if (settings->gpu_file)
        return gs_gpus_from_file(settings->gpu_file, ret, err);
    return gs_gpus_from_driver(&config, ret, err);
}

/* Waits for the signal that ends the program; false: it has not come meanwhile. */
static bool stops_within(int seconds)
{
    const sigset_t set = gs_signals_stop_set();
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
        if (result == 0 && (result = open_source(settings, &source, &err)) == 0) {
            result = source.ops->read(source.ctx, ret, &err);
            source.ops->close(source.ctx);
        }
        if (result == 0 && ret->count)
            return true;
        gs_log(GS_LOG_WARN, "no MPS daemon yet", GS_STR("why", result ? err.msg : "no GPU"));
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
            gs_log(GS_LOG_ERROR, "no MPS daemon for a GPU", GS_INT("gpu", set->gpus[i].idx),
                   GS_STR("why", err.msg));
    }
    gs_log(GS_LOG_INFO, "serving", GS_STR("version", GS_VERSION), GS_INT("gpus", count),
           GS_STR("driver_root", control->driver_root), GS_STR("program", control->program),
           GS_STR("multiuser", control->multiuser ? "yes" : "no"));
    gs_signals_wait();
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
    settings_read(&settings, argc, argv);
    gs_signals_block();
    if (find_gpus(&settings, &control, &set))
        serve(&settings, &control, &set);
    return 0;
}
