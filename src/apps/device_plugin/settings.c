/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"
#include "device_plugin/hook.h"

static bool set_unit(void *to, const char *text)
{
    return gs_unit_parse(text, strlen(text), to);
}

static bool set_visible(void *to, const char *text)
{
    bool uuid = strcmp(text, "uuid") == 0;
    if (!uuid && strcmp(text, "index") != 0)
        return false;
    *(enum visible_devices *)to = uuid ? VISIBLE_UUID : VISIBLE_INDEX;
    return true;
}

static bool set_lists(void *to, const char *text)
{
    return device_lists_parse(text, to);
}

static bool set_enforce(void *to, const char *text)
{
    return gs_enforce_parse(text, strlen(text), to);
}

static bool set_switch(void *to, const char *text)
{
    bool on = strcmp(text, "on") == 0;
    if (!on && strcmp(text, "off") != 0)
        return false;
    *(bool *)to = on;
    return true;
}

static bool set_from(void *to, const char *text)
{
    static const char *const words[] = {
        [POD_USAGE_DMEM] = "dmem", [POD_USAGE_NVML] = "nvml", [POD_USAGE_AUTO] = "auto"};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i]) != 0)
            continue;
        *(enum pod_usage_from *)to = (enum pod_usage_from)i;
        return true;
    }
    return false;
}

/* A node's name is its host's name, unless somebody says otherwise. */
static const char *host_name(void)
{
    static char name[256];
    return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

/* NULL: nothing. */
static const char *what_is_wrong(const struct settings *settings)
{
    uint32_t reserved;
    if (settings->fake_gpus && settings->gpu_file)
        return "--fake-gpus and --gpu-file exclude each other";
    if (!settings->node_name[0])
        return "--node-name is needed: this host has no name";
    if (!settings->overhead_mib != !settings->overhead_slots)
        return "--overhead-mib and --overhead-slots need each other";
    if (__builtin_mul_overflow(settings->overhead_mib, settings->overhead_slots, &reserved))
        return "--overhead-mib times --overhead-slots is too large";
    if (settings->hook_library && strlen(settings->hook_root) > HOOK_ROOT_MAX)
        return "--hook-root is longer than 300 bytes";
    if (settings->hook_library && settings->mps_root)
        return "--hook-library and --mps-root exclude each other";
    if (settings->hook_library && settings->enforce > GS_ENFORCE_OBSERVE)
        return "--hook-library and limits of the kernel (--enforce) exclude each other";
    if (settings->mps_by_label && !settings->mps_root)
        return "--mps-by-label needs --mps-root";
    if (settings->mps_root && !settings->mps_by_label && settings->enforce > GS_ENFORCE_OBSERVE)
        return "--mps-root and limits of the kernel (--enforce) exclude each other: clients of an "
               "MPS daemon are charged to its server";
    return NULL;
}

static void check(struct settings *settings)
{
    const char *wrong = device_lists_settle(&settings->device_lists, &settings->cdi_kind);
    if (!wrong)
        wrong = hook_settings_wrong(settings->hook_library, settings->hook_sha256);
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
        .pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock",
        .enforce = GS_ENFORCE_OBSERVE,
        .cgroup_root = "/sys/fs/cgroup",
        .nvidia_dev_root = "/",
        .hook_root = "/var/lib/gpushare/hook",
    };
    const struct gs_option table[] = {
        OPT_STRING(
            "kubeconfig", &settings->kubeconfig, "FILE",
            "how to reach the API server; without it $KUBECONFIG, ~/.kube/config, then in-cluster"),
        OPT_STRING("context", &settings->context, "NAME", "context of the kubeconfig"),
        OPT_STRING("node-name", &settings->node_name, "NAME", "name of this node (the host's name)",
                   .env = "NODE_NAME"),
        OPT_STRING("domain", &settings->domain, "DOMAIN",
                   "domain of resources and annotations (aliyun.com)"),
        OPT_CUSTOM("memory-unit", &settings->unit, set_unit, "MiB|64MiB|256MiB|GiB",
                   "what one unit of gpu-mem is, the same on every node (GiB)"),
        OPT_STRING("fake-gpus", &settings->fake_gpus, "SPEC",
                   "pretend to have GPUs, such as 2x16384MiB,1x80GiB"),
        OPT_STRING(
            "gpu-file", &settings->gpu_file, "JSON",
            "GPUs from a file in the form of the inventory annotation, read again when it changes"),
        OPT_STRING("nvml-library", &settings->nvml_library, "FILE",
                   "the NVIDIA driver's library (libnvidia-ml.so.1)"),
        OPT_STRING("device-plugin-dir", &settings->device_plugin_dir, "DIR",
                   "where kubelet.sock is (/var/lib/kubelet/device-plugins)"),
        OPT_STRING("pod-resources-socket", &settings->pod_resources_socket, "PATH",
                   "the kubelet's PodResources API (/var/lib/kubelet/pod-resources/kubelet.sock)"),
        OPT_CUSTOM("visible-devices", &settings->visible_devices, set_visible, "uuid|index",
                   "form of NVIDIA_VISIBLE_DEVICES (uuid)"),
        OPT_CUSTOM("device-list-strategy", &settings->device_lists, set_lists,
                   "envvar,volume-mounts,cdi-annotations,cdi-cri",
                   "how the container runtime is told a container's GPUs, one or several of these "
                   "(envvar)",
                   .env = "DEVICE_LIST_STRATEGY"),
        OPT_STRING("cdi-kind", &settings->cdi_kind, "VENDOR/CLASS",
                   "kind of the CDI devices (nvidia.com/gpu); without --device-list-strategy the "
                   "same as envvar,cdi-cri"),
        OPT_FLAG("pass-device-specs", &settings->pass_device_specs,
                 "answer with /dev/nvidiaN and the driver's other device nodes as well, so that a "
                 "container keeps its GPU over systemctl daemon-reload",
                 .env = "PASS_DEVICE_SPECS"),
        OPT_STRING("nvidia-dev-root", &settings->nvidia_dev_root, "DIR",
                   "below which the host has these, such as /run/nvidia/driver (/)",
                   .env = "NVIDIA_DEV_ROOT"),
        OPT_FLAG("share-with-others", &settings->share_with_others,
                 "share GPUs that NVIDIA's device plugin or DRA driver gives out as well"),
        OPT_CUSTOM("enforce", &settings->enforce, set_enforce, "off|observe|preferred|required",
                   "let the kernel keep pods to their share: not at all, only tell who would be "
                   "refused, where it can, or hold a pod's start until it does (observe)",
                   .env = "ENFORCE"),
        OPT_STRING("cgroup-root", &settings->cgroup_root, "DIR",
                   "where the host's cgroup file system is mounted (/sys/fs/cgroup)"),
        OPT_FLAG("deny-foreign-gpus", &settings->deny_foreign_gpus,
                 "with limits: no memory on GPUs of this node that a pod was not given"),
        OPT_U32(
            "overhead-mib", &settings->overhead_mib, "N",
            "with limits: so much more for each container with GPU memory, for its CUDA context "
            "(0)"),
        OPT_U32("overhead-slots", &settings->overhead_slots, "N",
                "for so many containers on each GPU overhead-mib is taken off what it offers"),
        OPT_STRING("mps-root", &settings->mps_root, "DIR",
                   "make containers clients of the MPS daemons that gpushare-mps keeps in DIR, the "
                   "same on the host; the kernel's limits are off then",
                   .env = "MPS_ROOT"),
        OPT_FLAG("mps-by-label", &settings->mps_by_label,
                 "only if this node has the label gpu-mps=true, in our domain, when the program "
                 "starts; without it as if there were no --mps-root",
                 .env = "MPS_BY_LABEL"),
        OPT_STRING("hook-library", &settings->hook_library, "FILE",
                   "preload this library of yours (HAMi-core's libvgpu.so), a file that only root "
                   "may write, into containers with GPU memory; the kernel's limits are off then",
                   .env = "HOOK_LIBRARY"),
        OPT_STRING("hook-sha256", &settings->hook_sha256, "HEX",
                   "what sha256sum prints of it: no other is preloaded", .env = "HOOK_SHA256"),
        OPT_STRING("hook-root", &settings->hook_root, "DIR",
                   "where the plugin keeps its copy, and a folder for each container, the same on "
                   "the host (/var/lib/gpushare/hook)",
                   .env = "HOOK_ROOT"),
        OPT_STRING("http-listen", &settings->http_listen, "ADDR:PORT",
                   "healthz, readyz and metrics (not served by default)"),
        OPT_CUSTOM("pod-usage", &settings->pod_usage, set_switch, "off|on",
                   "tell everybody who reaches --http-listen what each pod uses of its GPUs, by "
                   "name; off: only each GPU's sum (off)",
                   .env = "POD_USAGE"),
        OPT_CUSTOM(
            "pod-usage-from", &settings->pod_usage_from, set_from, "dmem|nvml|auto",
            "who counts what pods use: the kernel, the driver's list of processes, for which "
            "the plugin needs the host's PID namespace, or the driver where the kernel does "
            "not (dmem)",
            .env = "POD_USAGE_FROM"),
        OPT_FLAG("print-inventory", &settings->print_inventory,
                 "print the GPUs and what would be advertised, and exit"),
    };
    const struct gs_command command = {
        .name = "gpushare-device-plugin",
        .doc = "Node agent that tells the kubelet how much GPU memory there is, and gives each "
               "container the GPU that gpushare-extender chose.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
    check(settings);
}
