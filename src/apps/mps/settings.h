/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_MPS_SETTINGS_H
#define GPUSHARE_APPS_MPS_SETTINGS_H

/* What the command line, the environment and the file say. Strings live as long as the process. */
struct settings {
    const char *root;
    const char *driver_root; /* NULL: looked for */
    const char *fake_gpus;
    const char *gpu_file;
    const char *nvml_library;
};

/* Exits on --help, --version and bad usage. */
void settings_read(struct settings *settings, int argc, char **argv);

#endif
