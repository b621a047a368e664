/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words of node.scenarios mean: the device plugin on a node (node_rig.h) with the cards a
 * and b of 16 GiB: GPU-a is GPU 0, GPU-b is GPU 1. Limits are in MiB; "-" is none.
 */
#include <poll.h>

#include "node_rig.h"
#include "scenario.h"

static struct node node;
static struct gs_gpu_set both;
static char cordon[8], others[64], kubelet[16];

static void begin(struct scenario *s)
{
    node_make(&node);
    both = node.gpus;
    cordon[0] = others[0] = kubelet[0] = '\0';
    node.cordon = cordon;
    node.others = others;
    node.kubelet = kubelet;
    node.settings.pod_usage = 1;
}

static void end(void)
{
    node_free(&node);
}

/* --- words --- */

static struct node_pod *find_pod(struct scenario *s)
{
    const char *name = scenario_word(s);
    for (uint32_t i = 0; i < node.pod_count; i++) {
        if (strcmp(node.pods[i].name, name) == 0)
            return &node.pods[i];
    }
    scenario_fail(s, "there is no pod %s", name);
}

static void need(struct scenario *s, const char *word)
{
    if (!scenario_has(s, word))
        scenario_fail(s, "%s is missing", word);
}

/* Of the next word, among these. */
static unsigned index_of(struct scenario *s, const char *words)
{
    unsigned index = 0;
    const char *word = scenario_word(s), *at = strstr(words, word);
    if (!at)
        scenario_fail(s, "%s is none of %s", word, words);
    for (; at > words; at--)
        index += at[-1] == ' ';
    return index;
}

static const char *path_of(const char *file)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s/%s", node.dir, file);
    return path;
}

/* --- the node --- */

/* set WORD VALUE: an option, or what others make of the node */
static void verb_set(struct scenario *s)
{
    static const enum gs_code codes[] = {GS_OK,     GS_ENOENT,  GS_ECONFLICT,
                                         GS_EINVAL, GS_EDENIED, GS_EIO};
    struct settings *settings = &node.settings;
    const struct {
        const char *word;
        bool *value;
    } flags[] = {{"deny", &settings->deny_foreign_gpus},
                 {"mps-by-label", &settings->mps_by_label},
                 {"mps", &node.mps},
                 {"share", &settings->share_with_others},
                 {"upgrading", &node.upgrading},
                 {"lists-fail", &node.lists_fail},
                 {"twice", &node.twice},
                 {"node-away", &node.node_away},
                 {"pods-away", &node.pods_away},
                 {"unwatched", &node.unwatched},
                 {"slices-away", &node.slices_away}};
    const struct {
        const char *word;
        uint32_t *value;
    } numbers[] = {{"reserve", &settings->gpu_reserve_mib},
                   {"overhead", &settings->overhead_mib},
                   {"slots", &settings->overhead_slots},
                   {"more-starts", &node.more_starts}};
    const struct {
        const char *word;
        char *value;
        size_t size;
    } texts[] = {{"cordon", cordon, sizeof(cordon)},
                 {"others", others, sizeof(others)},
                 {"kubelet", kubelet, sizeof(kubelet)},
                 {"inventory", node.inventory, sizeof(node.inventory)},
                 {"moved", node.moved, sizeof(node.moved)}};
    GS_FOR_EACH_ROW (flag, flags) {
        if (scenario_has(s, flag->word))
            *flag->value = scenario_number(s) != 0;
    }
    GS_FOR_EACH_ROW (number, numbers) {
        if (scenario_has(s, number->word))
            *number->value = (uint32_t)scenario_number(s);
    }
    GS_FOR_EACH_ROW (text, texts) {
        if (scenario_has(s, text->word))
            snprintf(text->value, text->size, "%s", scenario_peek(s) ? scenario_word(s) : "");
    }
    if (scenario_has(s, "unit")) {
        const char *unit = scenario_word(s);
        gs_unit_parse(unit, strlen(unit), &settings->unit);
    }
    if (scenario_has(s, "hook")) { /* a library that is not there */
        settings->hook_library = "/none";
        settings->hook_root = node.dir;
    }
    if (scenario_has(s, "enforce"))
        settings->enforce = index_of(s, "off observe preferred required");
    const bool refused = scenario_has(s, "refused");
    if (refused || scenario_has(s, "node-error"))
        *(refused ? &node.refused : &node.node_error) =
            codes[index_of(s, "OK ENOENT ECONFLICT EINVAL EDENIED EIO")];
    if (scenario_has(s, "enforce-by"))
        settings->enforce_by = index_of(s, "auto driver dmem");
}

/* start = no: it ends at once */
static void verb_start(struct scenario *s)
{
    node.settings.mps_root = node.settings.mps_by_label ? "/nonexistent" : NULL;
    const bool starts = node_start(&node);
    if (scenario_has(s, "="))
        scenario_is_text(s, "the start", starts ? "yes" : "no", scenario_word(s));
}

static void verb_kill(struct scenario *s)
{
    node_kill(&node);
}

/* It is told to end. */
static void verb_leave(struct scenario *s)
{
    shutdown_begin(&plugin);
}

static void verb_wait(struct scenario *s)
{
    node_run(&node, (int)(scenario_time(s) / GS_NS_PER_S));
}

static void verb_restart(struct scenario *s)
{
    node_kill(&node);
    node_start(&node);
    node_run(&node, 15);
}

/* cards b a sick half: what the driver lists, in its order, with half its memory; MIG-1@a: an
 * instance of GPU-a */
static void verb_cards(struct scenario *s)
{
    struct gs_gpu gpus[4];
    uint32_t count = 0;
    for (; scenario_peek(s) && count < GS_COUNT_OF(gpus); count++) {
        const char *word = scenario_word(s), *address = strchr(word, '@');
        gpus[count] = both.gpus[strcmp(address ? address + 1 : word, "b") == 0];
        gpus[count].idx = count;
        gpus[count].healthy = !scenario_has(s, "sick");
        gpus[count].mem_mib /= scenario_has(s, "half") ? 2 : 1;
        if (address) {
            memcpy(gpus[count].card, gpus[count].uuid, GS_UUID_BYTES);
            snprintf(gpus[count].uuid, GS_UUID_BYTES, "%.*s", (int)(address - word), word);
        }
    }
    node_set_gpus(&node, gpus, count);
}

/* The API server. */
static void verb_away(struct scenario *s)
{
    node.node_away = node.pods_away = node.slices_away = true;
}

static void verb_back(struct scenario *s)
{
    node.node_away = node.pods_away = node.slices_away = false;
    node_list_pods(&node);
}

static void verb_list(struct scenario *s)
{
    node_list_pods(&node);
}

/* slice GPU-b …: a DRA driver's; slice: none */
static void verb_slice(struct scenario *s)
{
    size_t len = 0;
    node.slices[0] = '\0';
    while (scenario_peek(s))
        len += (size_t)snprintf(
            node.slices + len, sizeof(node.slices) - len,
            "%s{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.nvidia.com\","
            "\"nodeName\":\"n1\",\"devices\":[{\"name\":\"g\",\"attributes\":{\"uuid\":"
            "{\"string\":\"%s\"}}}]}}",
            len ? "," : "", scenario_word(s));
}

/* host works; host refuses EACCES 1: writes to cgroups, so many of them; host lies: it takes them
 * and changes nothing; host allows EROFS: to write at all; host is EMEDIUMTYPE: cgroup v1; host has
 * "cpu memory": controllers; host counts 1: the memory of GPU 1 alone */
static void verb_host(struct scenario *s)
{
    static const int errors[] = {EACCES, EROFS, EIO, EMEDIUMTYPE};
    static const char words[] = "EACCES EROFS EIO EMEDIUMTYPE";
    struct cgroup_tree *tree = &node.tree;
    if (scenario_has(s, "refuses")) {
        tree->put_error = errors[index_of(s, words)];
        tree->put_errors = scenario_peek(s) ? (int)scenario_number(s) : -1;
    } else if (scenario_has(s, "allows")) {
        tree->may_put_error = errors[index_of(s, words)];
    } else if (scenario_has(s, "is")) {
        tree->check_error = errors[index_of(s, words)];
    } else if (scenario_has(s, "has")) {
        tree_put(tree, "", "cgroup.controllers", scenario_word(s));
    } else if (scenario_has(s, "counts")) {
        tree_put(tree, "", "dmem.capacity", REGION_1 " 17179869184\n");
        need(s, "1");
    } else {
        tree->lies = scenario_has(s, "lies");
        tree->put_error = tree->check_error = 0;
        if (!tree->lies)
            need(s, "works");
    }
}

/* folder PATH of cgroups; folder PATH gone; folder PATH busy: a process is in it; folder PATH idle
 */
static void verb_folder(struct scenario *s)
{
    const char *folder = scenario_word(s);
    if (scenario_has(s, "gone"))
        tree_rmdir(&node.tree, folder);
    else if (scenario_has(s, "busy"))
        tree_put(&node.tree, folder, "cgroup.procs", "7\n");
    else if (scenario_has(s, "limited"))
        tree_put(&node.tree, folder, "dmem.max", REGION_0 " 77\n" REGION_1 " 77\n");
    else if (scenario_has(s, "idle"))
        tree_put(&node.tree, folder, "cgroup.procs", "");
    else if (strstr(folder, "/podp/")) /* a container's: the pod's own passes nothing on to it */
        tree_mkdir(&node.tree, folder);
    else
        tree_mkdirs(&node.tree, folder, true);
}

/* driver works, cannot (580; the kernel can), forbids, refuses (not only for what is in use) */
static void verb_driver(struct scenario *s)
{
    static const int errors[] = {0, EOPNOTSUPP, EPERM, EINVAL};
    node.driver.set_error = errors[index_of(s, "works cannot forbids refuses")];
}

/* record: the host's is deleted; record TEXT; record blocked: it cannot be kept */
static void verb_record(struct scenario *s)
{
    if (scenario_has(s, "blocked"))
        put_text(path_of("gpushare-aliyun.com"), "in the way");
    else if (scenario_peek(s))
        put_text(path_of("gpushare-aliyun.com/record.json"), scenario_word(s));
    else
        unlink(path_of("gpushare-aliyun.com/record.json"));
}

/* checkpoint lost; checkpoint: the kubelet writes it */
static void verb_checkpoint(struct scenario *s)
{
    if (scenario_has(s, "lost"))
        unlink(path_of("kubelet_internal_checkpoint"));
    else
        node_write_checkpoint(&node);
}

/* --- pods --- */

/* NAME UNITS on GPUS count N beside UNITS late required owned */
static struct node_pod *bind_pod(struct scenario *s)
{
    const char *name = scenario_word(s);
    const uint32_t units = (uint32_t)scenario_number(s);
    gs_gpu_mask gpus = 0;
    if (scenario_has(s, "on"))
        for (const char *at = scenario_word(s); *at; at++)
            gpus |= *at == ',' ? 0 : GS_GPU_BIT(*at - '0');
    const uint32_t count = scenario_has(s, "count") ? (uint32_t)scenario_number(s) : 0;
    struct node_pod *pod = node_bind(&node, name, units, gpus, count);
    pod->beside = scenario_has(s, "beside") ? (uint32_t)scenario_number(s) : 0;
    pod->late = scenario_has(s, "late");
    pod->required = scenario_has(s, "required");
    pod->owned = scenario_has(s, "owned");
    node_list_pods(&node);
    return pod;
}

static void verb_bind(struct scenario *s)
{
    bind_pod(s);
}

/* ask NAME: a call that begins a list, which does not come yet */
static void verb_ask(struct scenario *s)
{
    node_ask(&node, find_pod(s));
    plugin_round(&plugin);
}

/* admit NAME = GPU-a,GPU-b; = no */
static void verb_admit(struct scenario *s)
{
    struct node_pod *pod = find_pod(s);
    const bool admitted = node_admit(&node, pod);
    need(s, "=");
    scenario_is_text(s, "its GPUs", admitted ? node_env(pod, "NVIDIA_VISIBLE_DEVICES") : "no",
                     scenario_word(s));
}

/* env NAME KEY VALUE: what its container was told; - for nothing */
static void verb_env(struct scenario *s)
{
    const struct node_pod *pod = find_pod(s);
    const char *key = scenario_word(s), *value = node_env(pod, key);
    scenario_is_text(s, key, value[0] ? value : "-", scenario_word(s));
}

/* begin NAME = ok; = held "why": its container starts */
static void verb_begin(struct scenario *s)
{
    struct node_pod *pod = find_pod(s);
    const bool starts = node_starts(&node, pod);
    need(s, "=");
    scenario_is_text(s, "the start", starts ? "ok" : "held", scenario_word(s));
    if (scenario_peek(s))
        scenario_has_text(s, pod->why, scenario_word(s));
    pod->running |= starts;
    node_list_pods(&node);
}

/* pod NAME…: bound, admitted, and it runs */
static void verb_pod(struct scenario *s)
{
    struct node_pod *pod = bind_pod(s);
    if (!node_admit(&node, pod) || !node_starts(&node, pod))
        scenario_fail(s, "%s", pod->why);
    pod->running = true;
    node_list_pods(&node);
    node_run(&node, 1);
}

/* edit NAME 2: its gpu-count, by its owner; edit NAME required: its limit */
static void verb_edit(struct scenario *s)
{
    struct node_pod *pod = find_pod(s);
    pod->required = scenario_has(s, "required");
    if (!pod->required)
        pod->count = (uint32_t)scenario_number(s);
    node_list_pods(&node);
}

static void verb_end(struct scenario *s)
{
    node_end(&node, find_pod(s));
}

/* original UNITS DEV: "old" on GPU 1, which the original's plugin served: its ids, its answer, and
 * no record of the node */
static void verb_original(struct scenario *s)
{
    struct node_pod *pod = &node.pods[node.pod_count++];
    const uint32_t units = (uint32_t)scenario_number(s), dev = (uint32_t)scenario_number(s);
    *pod = (struct node_pod){.name = "old",
                             .units = units,
                             .record = GS_GPU_BIT(1),
                             .bound = true,
                             .running = true,
                             .admitted = true};
    for (uint32_t i = 0; i < units; i++)
        snprintf(pod->ids[i], sizeof(pod->ids[0]), "GPU-b-_-%u", i * (dev / units));
    snprintf(pod->env, sizeof(pod->env),
             "NVIDIA_VISIBLE_DEVICES=GPU-b\nALIYUN_COM_GPU_MEM_IDX=1\nALIYUN_COM_GPU_MEM_DEV=%u\n",
             dev);
    tree_mkdirs(&node.tree, node_folder(pod), true);
    node_write_checkpoint(&node);
}

/* use NAME 5120 0: MiB of GPU 0 and GPU 1; it has a cgroup from now on */
static void verb_use(struct scenario *s)
{
    char text[160];
    struct node_pod *pod = find_pod(s);
    const long first = scenario_number(s), second = scenario_peek(s) ? scenario_number(s) : 0;
    if (!tree_has(&node.tree, node_folder(pod), NULL))
        tree_mkdirs(&node.tree, node_folder(pod), true);
    snprintf(text, sizeof(text), REGION_0 " %ld\n" REGION_1 " %ld\n", first << 20, second << 20);
    tree_put(&node.tree, node_folder(pod), "dmem.current", text);
    if (scenario_has(s, "peak"))
        tree_put(&node.tree, node_folder(pod), "dmem.peak", text);
}

/* kernel NAME 8589934592 max: its limits in bytes, of GPU 0 and GPU 1 */
static void verb_kernel(struct scenario *s)
{
    char text[160];
    const struct node_pod *pod = find_pod(s);
    const char *first = scenario_word(s);
    snprintf(text, sizeof(text), REGION_0 " %s\n" REGION_1 " %s\n", first, scenario_word(s));
    tree_put(&node.tree, node_folder(pod), "dmem.max", text);
}

/* own NAME 7: its container has a limit of its own on GPU 1, and uses so many bytes */
static void verb_own(struct scenario *s)
{
    char path[512];
    tree_path(&node.tree, node_folder(find_pod(s)), "c", path, sizeof(path));
    assert_int_equal(mkdir(path, 0755), 0);
    fake_limits_set(&node.driver, "GPU-b", path, GIB);
    fake_limit_of(&node.driver, "GPU-b", path)->used = (uint64_t)scenario_number(s);
}

/* --- what came of it --- */

/* limit NAME 8192 -: of GPU 0 and GPU 1 */
static void verb_limit(struct scenario *s)
{
    static const char *const regions[] = {REGION_0, REGION_1};
    const struct node_pod *pod = find_pod(s);
    GS_FOR_EACH_ROW (region, regions) {
        const uint64_t bytes = node_limit(&node, pod, *region);
        if (scenario_has(s, "-"))
            scenario_is_text(s, *region, bytes == UINT64_MAX ? "none" : "one", "none");
        else
            scenario_is(s, *region, (long)(bytes >> 20));
    }
}

/* shown PATH 4096: the limit that a container's cgroup shows, in MiB; "-": none */
static void verb_shown(struct scenario *s)
{
    const char *max = tree_get(&node.tree, scenario_word(s), "dmem.max");
    const char *line = strstr(max, REGION_0 " ");
    const long mib = line ? (long)(strtoull(line + strlen(REGION_0 " "), NULL, 10) >> 20) : 0;
    if (scenario_has(s, "-"))
        scenario_is_text(s, "the limit", mib ? max : "none", "none");
    else
        scenario_is(s, "the limit", mib);
}

/* word 0 dmem: what limits pods on a GPU, or why nothing does; the node says so */
static void verb_word(struct scenario *s)
{
    const enum gs_enforced word = plugin.devices.set.gpus[scenario_number(s)].enforced;
    const char *text = gs_enforced_holds(word) ? gs_enforced_by(word) : gs_enforced_why(word);
    scenario_is_text(s, "its word", text, scenario_word(s));
    scenario_has_text(s, node.inventory, text);
}

/* page NAME{labels} VALUE: of gpushare_device_plugin_NAME */
static void verb_page(struct scenario *s)
{
    struct gs_buf page = GS_BUF(1 << 20);
    char line[256];
    pages_metrics(&plugin.pages.state, &page);
    for (int i = 0; i < USAGE_FAMILIES; i++)
        gs_buf_append(&page, plugin.pages.state.usage.text[i].data,
                      plugin.pages.state.usage.text[i].len);
    gs_buf_putc(&page, '\0');
    snprintf(line, sizeof(line), "\ngpushare_device_plugin_%s ", scenario_word(s));
    const char *at = strstr(page.data, line);
    const long found = at ? strtol(at + strlen(line), NULL, 10) : -1;
    gs_buf_release(&page);
    scenario_is(s, line + 1, found);
}

/* event REASON "words" 0..1: so many */
static void verb_event(struct scenario *s)
{
    const char *reason = scenario_word(s), *words = scenario_word(s);
    long found = 0;
    for (uint32_t i = 0; i < node.event_count; i++)
        found += strstr(node.events[i], reason) && strstr(node.events[i], words);
    scenario_is(s, "the number of events", found);
}

/* Folders that appeared, which nobody has read: the loop would turn at full speed. */
static long appeared_unread(void)
{
    struct pollfd fd = {.fd = gs_cgroup_watch_fd(plugin.enforce.watch), .events = POLLIN};
    return poll(&fd, 1, 0);
}

static long inventory_has(const char *text)
{
    return strstr(node.inventory, text) != NULL;
}

static void verb_expect(struct scenario *s)
{
    struct gs_allocator_stats stats;
    char unit[32];
    gs_allocator_stats(plugin.alloc, &stats);
    const struct {
        const char *word;
        long found;
    } numbers[] = {{"devices", (long)node.device_count},
                   {"linked", node.linked},
                   {"ending", plugin.round.stopping},
                   {"mps", plugin.settings.mps_root != NULL},
                   {"doubted", inventory_has("\"unitConflict\":true")},
                   {"open", inventory_has("\"schedulable\":true")},
                   {"waits-for-node", plugin.pages.state.node_error[0] != '\0'},
                   {"used-0", (long)stats.used_units[0]},
                   {"used-1", (long)stats.used_units[1]},
                   {"patches", node.node_patches},
                   {"node-tries", node.node_tries},
                   {"pod-patches", node.pod_patches},
                   {"event-tries", node.event_tries},
                   {"skips-running", plugin.calls.skips_running},
                   {"slice-requests", node.slice_requests},
                   {"enablings", node.tree.enablings},
                   {"readings", node.readings},
                   {"sets", node.driver.sets},
                   {"unread", plugin.enforce.watch ? appeared_unread() : 0},
                   {"start-wakes", node.start_wakes},
                   {"wakes-soon", plugin.round.wake.at_ns <= node.now_ns + NODE_SOON_NS}};
    GS_FOR_EACH_ROW (number, numbers) {
        if (scenario_has(s, number->word)) {
            scenario_is(s, number->word, number->found);
            return;
        }
    }
    if (scenario_has(s, "unit")) {
        snprintf(unit, sizeof(unit), "\"unit\":\"%s\"", scenario_word(s));
        scenario_has_text(s, node.inventory, unit);
    } else if (scenario_has(s, "label")) {
        scenario_is_text(s, "the label", node.label[0] ? node.label : "none", scenario_word(s));
    } else if (scenario_has(s, "moved")) {
        scenario_is_text(s, "gpu-reassigned", node.moved, scenario_word(s));
    } else if (scenario_has(s, "reason")) {
        scenario_has_text(s, plugin.pages.state.node_error, scenario_word(s));
    } else if (scenario_has(s, "inventory")) {
        scenario_has_text(s, node.inventory, scenario_word(s));
    } else {
        need(s, "no");
        const char *text = scenario_word(s);
        scenario_is_text(s, text, inventory_has(text) ? "there" : "missing", "missing");
    }
}

/* count patches: from now on, and what else is counted */
static void verb_count(struct scenario *s)
{
    node.node_patches = node.node_tries = node.slice_requests = 0;
    node.pod_patches = node.tree.enablings = node.driver.sets = 0;
    node.readings = 0;
}

static const struct scenario_verb verbs[] = {
    {"set", verb_set},       {"start", verb_start},
    {"kill", verb_kill},     {"leave", verb_leave},
    {"wait", verb_wait},     {"restart", verb_restart},
    {"cards", verb_cards},   {"away", verb_away},
    {"back", verb_back},     {"list", verb_list},
    {"slice", verb_slice},   {"driver", verb_driver},
    {"record", verb_record}, {"host", verb_host},
    {"folder", verb_folder}, {"use", verb_use},
    {"shown", verb_shown},   {"word", verb_word},
    {"bind", verb_bind},     {"checkpoint", verb_checkpoint},
    {"ask", verb_ask},       {"admit", verb_admit},
    {"begin", verb_begin},   {"env", verb_env},
    {"pod", verb_pod},       {"edit", verb_edit},
    {"end", verb_end},       {"original", verb_original},
    {"kernel", verb_kernel}, {"own", verb_own},
    {"limit", verb_limit},   {"page", verb_page},
    {"event", verb_event},   {"expect", verb_expect},
    {"count", verb_count},   {NULL, NULL},
};

static const struct scenario_layer layer = {.verbs = verbs, .begin = begin, .end = end};

int main(void)
{
    static const char *const files[] = {"tests/integration/device_plugin/node.scenarios",
                                        "tests/integration/device_plugin/limits.scenarios", NULL};
    return scenario_main(&layer, files, NULL, 0);
}
