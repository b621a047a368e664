/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"
#include "device_plugin/container_env.h"

static bool set_unit(void *to, const char *text)
{
    return gs_unit_parse(text, strlen(text), to);
}

static bool set_lists(void *to, const char *text)
{
    return device_lists_parse(text, to);
}

/* A node's name is its host's name, unless somebody says otherwise. */
static const char *host_name(void)
{
    static char name[256];
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

/* False also where they cannot be found. */
static bool pods_are_read_only(const char *cgroup_root)
{
    static const char *const names[] = {"kubepods.slice", "kubepods"};
    char path[PATH_MAX];
    bool read_only = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%.4000s/%s", cgroup_root, names[i]);
        if (access(path, W_OK) == 0)
            return false;
        read_only |= errno == EROFS;
    }
    return read_only;
}

/* NULL: nothing. */
static const char *what_is_wrong(const struct settings *settings)
{
    uint32_t reserved;
    if (settings->gpus.fake_gpus && settings->gpus.gpu_file)
        return "--fake-gpus and --gpu-file are mutually exclusive";
    if (!settings->node_name[0])
        return "--node-name is required: this host has no name";
    if (!settings->overhead_mib != !settings->overhead_slots)
        return "--overhead-mib and --overhead-slots must be given together";
    if (__builtin_mul_overflow(settings->overhead_mib, settings->overhead_slots, &reserved) ||
        __builtin_add_overflow(reserved, settings->gpu_reserve_mib, &reserved))
        return "--gpu-reserve plus --overhead-mib times --overhead-slots is too large";
    if (settings->hook_library && strlen(settings->hook_root) > HOOK_ROOT_MAX)
        return "--hook-root is longer than 300 bytes";
    if (settings->hook_library && settings->mps_root)
        return "--hook-library and --mps-root are mutually exclusive";
    if (settings->hook_library && settings->enforce > GS_ENFORCE_OBSERVE)
        return "--hook-library and --enforce=preferred or required are mutually exclusive";
    if (settings->enforce == GS_ENFORCE_REQUIRED && pods_are_read_only(settings->cgroup_root))
        return "--enforce=required writes to the pods' cgroups, which are mounted read-only: apply "
               "manifests/limits/systemd or manifests/limits/cgroupfs";
    if (settings->mps_by_label && !settings->mps_root)
        return "--mps-by-label requires --mps-root";
    if (settings->mps_root && !settings->mps_by_label && settings->enforce > GS_ENFORCE_OBSERVE)
        return "--mps-root and --enforce=preferred or required are mutually exclusive: the kernel "
               "charges the memory of MPS clients to the MPS server";
    return NULL;
}

static void check(struct settings *settings)
{
    const char *wrong = hook_settings_wrong(settings->hook_library, settings->hook_sha256);
    if (!wrong)
        wrong = what_is_wrong(settings);
    if (!wrong && (settings->hook_library || (settings->mps_root && !settings->mps_by_label)))
        settings->enforce = GS_ENFORCE_OFF;
    if (!wrong)
        return;
    fprintf(stderr, "gpushare-device-plugin: %s\n", wrong);
    exit(2);
}

void settings_read(struct settings *settings, int argc, char **argv)
{
    *settings = (struct settings){
        .node_name = host_name(),
        .domain = "aliyun.com",
        .unit = GS_UNIT_GIB,
        .device_plugin_dir = "/var/lib/kubelet/device-plugins",
        .device_lists = DEVICE_LIST_ENVVAR,
        .enforce = GS_ENFORCE_OBSERVE,
        .cgroup_root = "/sys/fs/cgroup",
        .nvidia_dev_root = "/",
        .hook_root = "/var/lib/gpushare/hook",
    };
    const struct gs_option table[] = {
        OPT_STRING("kubeconfig", &settings->kubeconfig, "FILE",
                   "kubeconfig file (default: the service account of the pod)",
                   .env = "KUBECONFIG"),
        OPT_STRING("node-name", &settings->node_name, "NAME",
                   "name of this node (default: the host name)", .env = "NODE_NAME"),
        OPT_STRING("domain", &settings->domain, "DOMAIN",
                   "domain of resource names, labels and annotations (default aliyun.com)"),
        OPT_CUSTOM(
            "memory-unit", &settings->unit, set_unit, "MiB|64MiB|256MiB|GiB",
            "amount of memory that gpu-mem: 1 means; must be the same on every node (default GiB)"),
        OPT_STRING("fake-gpus", &settings->gpus.fake_gpus, "SPEC",
                   "simulate GPUs, such as 2x16384MiB,1x80GiB"),
        OPT_STRING("gpu-file", &settings->gpus.gpu_file, "FILE",
                   "JSON file of the GPUs, as in the annotation gpu-inventory; reread on change"),
        OPT_STRING("nvml-library", &settings->gpus.nvml_library, "FILE",
                   "the NVIDIA driver's library (default libnvidia-ml.so.1)"),
        OPT_STRING("device-plugin-dir", &settings->device_plugin_dir, "DIR",
                   "directory of kubelet.sock (default /var/lib/kubelet/device-plugins)"),
        OPT_CUSTOM("device-list-strategy", &settings->device_lists, set_lists,
                   "envvar,volume-mounts,cdi-annotations,cdi-cri",
                   "how the container runtime receives GPUs; one or more of these (default envvar)",
                   .env = "DEVICE_LIST_STRATEGY"),
        OPT_FLAG("pass-device-specs", &settings->pass_device_specs,
                 "also pass /dev/nvidiaN and the driver's other device nodes, so that a container "
                 "does not lose its GPUs on systemctl daemon-reload",
                 .env = "PASS_DEVICE_SPECS"),
        OPT_STRING("nvidia-dev-root", &settings->nvidia_dev_root, "DIR",
                   "root directory of the driver's device nodes on the host, such as "
                   "/run/nvidia/driver (default /)",
                   .env = "NVIDIA_DEV_ROOT"),
        OPT_FLAG("allow-shared-devices", &settings->share_with_others,
                 "also advertise GPUs of NVIDIA's device plugin or DRA driver; both may then "
                 "allocate the same GPU"),
        OPT_WORD("enforce", &settings->enforce, "off|observe|preferred|required",
                 "limit on the GPU memory of each pod, by the driver or the kernel. "
                 "off: none; observe: only report pods above their request; preferred: set where "
                 "possible; required: containers do not start before it is set (default observe)",
                 .env = "ENFORCE"),
        OPT_WORD("enforce-by", &settings->enforce_by, "auto|driver|dmem",
                 "driver (615 or newer, CAP_SYS_ADMIN), dmem (Linux 6.14 or newer), or auto, the "
                 "first that works (default auto)",
                 .env = "ENFORCE_BY"),
        OPT_STRING("cgroup-root", &settings->cgroup_root, "DIR",
                   "where the host's cgroup file system is mounted (default /sys/fs/cgroup)"),
        OPT_FLAG("deny-unallocated-gpus", &settings->deny_foreign_gpus,
                 "where a pod is limited (--enforce), limit it to 0 on GPUs not allocated to it"),
        OPT_U32("overhead-mib", &settings->overhead_mib, "N",
                "MiB that are added to a pod's limit for each of its containers with gpu-mem, for "
                "the CUDA context (default 0)"),
        OPT_U32("overhead-slots", &settings->overhead_slots, "N",
                "containers per GPU for which --overhead-mib is not advertised (default 0)"),
        OPT_U32("gpu-reserve", &settings->gpu_reserve_mib, "N",
                "MiB of each GPU that are not advertised, for the driver's own use (default 0)"),
        OPT_STRING(
            "mps-root", &settings->mps_root, "DIR",
            "connect containers to the MPS daemons that gpushare-mps runs in DIR, the same path on "
            "the host; turns --enforce=observe off and excludes preferred and required",
            .env = "MPS_ROOT"),
        OPT_FLAG("mps-by-label", &settings->mps_by_label,
                 "use --mps-root, instead of --enforce, only if this node has the label "
                 "gpu-mps=true (prefix: --domain) when the program starts",
                 .env = "MPS_BY_LABEL"),
        OPT_STRING(
            "hook-library", &settings->hook_library, "FILE",
            "preload this library (hook), such as HAMi-core's libvgpu.so, into containers with "
            "gpu-mem; only root may have write access to it; affects --enforce as --mps-root does",
            .env = "HOOK_LIBRARY"),
        OPT_STRING("hook-sha256", &settings->hook_sha256, "HEX",
                   "SHA-256 that --hook-library must have, or it is not preloaded",
                   .env = "HOOK_SHA256"),
        OPT_STRING("hook-root", &settings->hook_root, "DIR",
                   "directory of the host, mounted at the same path, for a copy of the library and "
                   "a directory for each container (default /var/lib/gpushare/hook)",
                   .env = "HOOK_ROOT"),
        OPT_STRING("health-listen", &settings->http_listen, "ADDR:PORT",
                   "serve healthz, readyz, metrics and usage at this address (no authentication)"),
        OPT_WORD("pod-usage", &settings->pod_usage, "off|on",
                 "on: metrics and usage at --health-listen name each pod and what it uses, for "
                 "every client; off: only totals of each GPU (default off)",
                 .env = "POD_USAGE"),
        OPT_WORD("pod-usage-from", &settings->pod_usage_from, "dmem|nvml|auto",
                 "source of what pods use. dmem: the kernel; nvml: the driver's list of processes, "
                 "which needs the host's PID namespace; auto: dmem, else nvml (default dmem)",
                 .env = "POD_USAGE_FROM"),
        OPT_FLAG("print-inventory", &settings->print_inventory,
                 "print the GPUs and the resources to advertise, and exit"),
    };
    const struct gs_command command = {
        .name = "gpushare-device-plugin",
        .doc = "Node agent that advertises GPU memory to the kubelet and allocates to each "
               "container the GPU that gpushare-extender chose.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
    check(settings);
}
