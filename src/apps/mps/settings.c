/* SPDX-License-Identifier: Apache-2.0 */
#include "mps/settings.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/options.h"

void settings_read(struct settings *settings, int argc, char **argv)
{
    *settings = (struct settings){.root = "/run/gpushare/mps"};
    const struct gs_option table[] = {
        OPT_STRING("root", &settings->root, "DIR",
                   "where each GPU's daemon has its folder, the device plugin's --mps-root "
                   "(/run/gpushare/mps)"),
        OPT_STRING("driver-root", &settings->driver_root, "DIR",
                   "where the driver's nvidia-cuda-mps-control is run (/driver-root if it is "
                   "there, else /)"),
        OPT_STRING("fake-gpus", &settings->fake_gpus, "SPEC",
                   "pretend to have GPUs, such as 2x16384MiB,1x80GiB"),
        OPT_STRING("gpu-file", &settings->gpu_file, "JSON",
                   "GPUs from a file in the form of the inventory annotation"),
        OPT_STRING("nvml-library", &settings->nvml_library, "FILE",
                   "the NVIDIA driver's library (libnvidia-ml.so.1)"),
    };
    const struct gs_command command = {
        .name = "gpushare-mps",
        .doc = "Runs an MPS control daemon for each GPU of this node, and tells "
               "gpushare-device-plugin which of them work.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
    if (settings->fake_gpus && settings->gpu_file) {
        fputs("gpushare-mps: --fake-gpus and --gpu-file exclude each other\n", stderr);
        exit(2);
    }
}
