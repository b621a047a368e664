/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes at random: all of the device plugin (node_rig.h) under pods that come, are edited, and end;
 * cards that fall off and come back in another order; overheads and units that change with a
 * restart; an API server and a kubelet that are away; records that are torn, deleted and forged;
 * cgroups that are late, made twice, or stand under another class or root; writes that are refused.
 *
 *   device_plugin_node_worlds [--seed N] [--first N] [--worlds N] [--seconds N]
 *
 * | what is so, always | |
 * | --- | --- |
 * | the promises on a card are at most its size | by what the containers were told |
 * | no limit of what runs is below what was promised, nor is its card denied | the kernel's files |
 * | pods that live at once have one unit | by what the containers were told |
 * | who is said to be held is: one cgroup, its limit read back | after each pass |
 * | required: what starts is held | at the start |
 * | the node's word is dmem or driver where all are held, and only there | when all is quiet |
 * | whoever was bound where there is room starts | when all is quiet |
 */
#include "node_rig.h"

#include <time.h>

enum { CARDS = 2, CARD_MIB = 16384, STEPS = 160, NOT_LATER_S = 75 };
static const char *const regions[CARDS] = {REGION_0, REGION_1};
static const char *const uuids[CARDS] = {"GPU-a", "GPU-b"};
static const char *const roots[] = {
    "/kubepods/besteffort/pod%s", "/kubepods/pod%s", "/kubepods/burstable/pod%s",
    "/kubepods.slice/kubepods-pod%s.slice",
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice"};

struct guest {
    struct node_pod *pod;
    gs_gpu_mask cards; /* what its container was told */
    uint32_t unit_mib; /* what its units are, by what it was told */
    uint64_t mib;      /* promised on each card */
    bool forged;       /* its record was written by its owner before it ran */
    bool guessed;      /* the API was away when it was admitted: until all is quiet it may be held
                          back, or be taken for another pod of its size */
};

static struct world {
    struct node node;
    uint64_t random;
    struct guest guests[NODE_PODS];
    uint32_t present; /* of the cards, by bits */
    uint32_t foreign; /* those that another driver names */
    uint32_t left;    /* of those, what the plugin has left to it */
    bool torn;        /* the kubelet's checkpoint */
    uint64_t seed;
    uint32_t number, step;
    const char *last;
} w;

static struct {
    uint64_t worlds, steps, admitted, refused, held, restarts, unit_changes, others, torn;
} sums;

static uint32_t pick(uint32_t below)
{
    w.random = w.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w.random >> 33) % below;
}

/* What is known of each pod. */
static void print_pods(void)
{
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        const struct guest *guest = &w.guests[i];
        const struct node_pod *pod = guest->pod;
        printf("  %s: %u units, count %u, record %llx, %s%s%s%s on %llx, %llu MiB%s\n", pod->name,
               pod->units, pod->count, (unsigned long long)pod->record, pod->bound ? "bound " : "",
               pod->admitted ? "admitted " : "", pod->running ? "runs " : "",
               pod->failed ? "failed" : "", (unsigned long long)guest->cards,
               (unsigned long long)guest->mib, guest->forged ? " forged" : "");
    }
}

#define WRONG(...)                                                                                 \
    do {                                                                                           \
        printf("seed %llu world %u step %u (%s): ", (unsigned long long)w.seed, w.number, w.step,  \
               w.last);                                                                            \
        printf(__VA_ARGS__);                                                                       \
        printf("\n  inventory %s\n  moved %s\n", w.node.inventory, w.node.moved);                  \
        print_pods();                                                                              \
        fail();                                                                                    \
    } while (0)

/* ---- the cgroups of a pod ---- */

static const char *folder_in(const char *root, const struct node_pod *pod)
{
    static char folder[128];
    const char *at = strstr(root, "%s");
    snprintf(folder, sizeof(folder), "%.*s%s%s", (int)(at - root), root, pod->name, at + 2);
    return folder;
}

static uint32_t cgroups_of(const struct node_pod *pod)
{
    uint32_t count = 0;
    for (size_t i = 0; i < GS_COUNT_OF(roots); i++)
        count += tree_has(&w.node.tree, folder_in(roots[i], pod), NULL);
    return count;
}

static void remove_cgroups(const struct node_pod *pod)
{
    for (size_t i = 0; i < GS_COUNT_OF(roots); i++)
        tree_rmdir(&w.node.tree, folder_in(roots[i], pod));
}

static void make_cgroup(const struct node_pod *pod)
{
    const char *folder = folder_in(roots[pick(GS_COUNT_OF(roots))], pod);
    if (!tree_has(&w.node.tree, folder, NULL))
        tree_mkdirs(&w.node.tree, folder, true);
}

/* The least of what its cgroups allow on a card; UINT64_MAX: no limit. */
static uint64_t limit_of(const struct node_pod *pod, uint32_t card)
{
    uint64_t least = UINT64_MAX;
    GS_FOR_EACH_ROW (r, roots) {
        const char *folder = folder_in(*r, pod), *line;
        uint64_t bytes = UINT64_MAX;
        char path[512];
        tree_path(&w.node.tree, folder, NULL, path, sizeof(path));
        const struct fake_limit *one = fake_limit_of(&w.node.driver, uuids[card], path);
        if (one && tree_has(&w.node.tree, folder, NULL))
            bytes = one->bytes;
        line = strstr(tree_get(&w.node.tree, folder, "dmem.max"), regions[card]);
        if (line && strncmp(line + strlen(regions[card]) + 1, "max", 3) != 0)
            bytes = strtoull(line + strlen(regions[card]) + 1, NULL, 10);
        least = bytes < least ? bytes : least;
    }
    return least;
}

/* ---- what the node's word offers ---- */

static const char *unit_word(void)
{
    static const char *const words[] = {"\"unit\":\"GiB\"", "\"unit\":\"256MiB\"",
                                        "\"unit\":\"MiB\""};
    GS_FOR_EACH_ROW (r, words) {
        if (strstr(w.node.inventory, *r))
            return *r;
    }
    return "";
}

static uint32_t unit_mib_of(uint32_t dev)
{
    return dev <= 24 ? 1024 : dev <= 96 ? 256 : 1;
}

static bool number_after(const char *from, const char *key, uint32_t *ret)
{
    const char *at = from ? strstr(from, key) : NULL;
    if (at)
        *ret = (uint32_t)strtoul(at + strlen(key), NULL, 10);
    return at != NULL;
}

/* Of a card: its index and units. False: pods may not be bound there. */
static bool offered(uint32_t card, uint32_t *ret_idx, uint32_t *ret_units)
{
    char key[32];
    snprintf(key, sizeof(key), "\"uuid\":\"%s\"", uuids[card]);
    const char *entry = strstr(w.node.inventory, key), *begin = entry;
    while (begin && begin > w.node.inventory && *begin != '{')
        begin--;
    if (!entry || !number_after(begin, "\"idx\":", ret_idx) ||
        !number_after(entry, "\"mem\":", ret_units))
        return false;
    const char *end = strchr(entry, '}'), *no = strstr(entry, "\"schedulable\":false");
    const char *ill = strstr(entry, "\"healthy\":false");
    return !(no && no < end) && !(ill && ill < end);
}

static uint64_t promised_mib(uint32_t card)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        const struct guest *guest = &w.guests[i];
        if (guest->pod->admitted && (guest->pod->running || !guest->guessed) &&
            guest->cards & GS_GPU_BIT(card))
            sum += guest->mib;
    }
    return sum;
}

/* As the extender counts: for so many units more, beside what was taken in and what is bound. */
static bool has_room(uint32_t card, const struct guest *but, uint32_t each)
{
    uint32_t idx, units,
        unit_mib = strstr(unit_word(), "256")   ? 256
                   : strstr(unit_word(), "GiB") ? 1024
                                                : 1;
    if (!offered(card, &idx, &units))
        return false;
    uint64_t taken = promised_mib(card);
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        const struct node_pod *pod = &w.node.pods[i];
        if (pod->bound && !pod->admitted && &w.guests[i] != but && pod->record & GS_GPU_BIT(idx))
            taken += (uint64_t)pod->units * unit_mib;
    }
    return taken + (uint64_t)each * unit_mib <= (uint64_t)units * unit_mib;
}

/* There is room where it was bound, and nobody's owner or a guess is in its way. */
static bool is_sure(const struct guest *guest)
{
    const struct node_pod *pod = guest->pod;
    uint32_t idx, units, left = 0;
    for (uint32_t i = 0; i < w.node.pod_count; i++)
        if (w.guests[i].pod->bound && (w.guests[i].forged || w.guests[i].guessed))
            return false;
    for (uint32_t card = 0; card < CARDS; card++) {
        if (!offered(card, &idx, &units))
            return false;
        left += (pod->record & GS_GPU_BIT(idx)) != 0;
        if (pod->record & GS_GPU_BIT(idx) &&
            !has_room(card, guest, pod->units / (pod->count > 1 ? pod->count : 1)))
            return false;
    }
    return left == (pod->count > 1 ? pod->count : 1);
}

/* ---- events ---- */

static void bind_pod(void)
{
    uint32_t idx[CARDS], units[CARDS], count = 1 + (pick(4) == 0);
    uint32_t first = pick(CARDS), mask = 0;
    if (w.node.pod_count == NODE_PODS - 1 || w.node.device_count == 0 || !unit_word()[0])
        return;
    uint32_t each = 1u << pick(5);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t card = (first + i) % CARDS;
        if (!offered(card, &idx[card], &units[card]))
            return;
        if (!has_room(card, NULL, each))
            return;
        mask |= 1u << idx[card];
    }
    char name[40];
    snprintf(name, sizeof(name), "p%035u", w.node.pod_count);
    struct node_pod *pod =
        node_bind(&w.node, name, each * count, mask, count > 1 ? count : pick(3) == 0);
    w.guests[w.node.pod_count - 1] = (struct guest){.pod = pod};
}

/* Of those that wait, the one that was bound first: that is the kubelet's order. */
static struct guest *any_guest(bool admitted)
{
    uint32_t from = admitted ? pick(NODE_PODS) : 0;
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        struct guest *guest = &w.guests[(from + i) % w.node.pod_count];
        if (guest->pod->bound && guest->pod->admitted == admitted && !guest->pod->failed)
            return guest;
    }
    return NULL;
}

static bool is_calm(void)
{
    const struct node *node = &w.node;
    return !node->node_away && !node->pods_away && !node->slices_away && !node->tree.put_errors &&
           !w.torn && !w.foreign && w.present == (1u << CARDS) - 1;
}

static void end_pod(struct guest *guest)
{
    remove_cgroups(guest->pod);
    w.node.lazy = pick(2);
    node_end(&w.node, guest->pod);
}

/* It; one that has the same ids, as the plugin cannot tell which of them starts; one that was given
 * a card of its by guess. */
static bool may_be_held_back(const struct guest *guest)
{
    bool may = false;
    for (const struct guest *at = w.guests; at < w.guests + w.node.pod_count; at++)
        may |= at->pod->admitted && ((at->guessed && at->cards & guest->cards) ||
                                     (strcmp(at->pod->ids[0], guest->pod->ids[0]) == 0 &&
                                      (at->forged || cgroups_of(at->pod) != 1)));
    return may;
}

static void start_pod(struct guest *guest)
{
    bool required = w.node.settings.enforce == GS_ENFORCE_REQUIRED;
    bool calm = is_calm() && cgroups_of(guest->pod) == 1;
    if (!node_starts(&w.node, guest->pod)) {
        if (calm && !may_be_held_back(guest) && !w.node.settings.overhead_mib)
            WRONG("%s is held back: %s", guest->pod->name, guest->pod->why);
        if (calm)
            end_pod(guest); /* as the reason says */
        return;
    }
    guest->pod->running = true;
    node_list_pods(&w.node);
    for (uint32_t card = 0; required && card < CARDS; card++) {
        if (guest->cards & GS_GPU_BIT(card) && limit_of(guest->pod, card) == UINT64_MAX)
            WRONG("required, and %s starts without a limit on %s", guest->pod->name, uuids[card]);
    }
}

static void admit(struct guest *guest)
{
    struct node_pod *pod = guest->pod;
    if (!w.node.linked || pod->units > node_free_ids(&w.node))
        return;
    pod->late = pick(3) == 0;
    w.node.twice = pick(2);
    guest->guessed = w.node.pods_away || w.torn;
    if (!node_admit(&w.node, pod)) {
        if (is_calm() && !guest->forged && strstr(w.node.inventory, "\"schedulable\":true"))
            sums.refused++;
        if (is_calm() && is_sure(guest))
            WRONG("%s is refused: %s", pod->name, pod->why);
        remove_cgroups(pod);
        pod->bound = false; /* its owner takes it away */
        node_list_pods(&w.node);
        return;
    }
    const char *cards = node_env(pod, "NVIDIA_VISIBLE_DEVICES");
    for (uint32_t card = 0; card < CARDS; card++)
        guest->cards |= strstr(cards, uuids[card]) ? GS_GPU_BIT(card) : 0;
    uint32_t dev = (uint32_t)strtoul(node_env(pod, "ALIYUN_COM_GPU_MEM_DEV"), NULL, 10);
    guest->unit_mib = unit_mib_of(dev);
    uint32_t count = (guest->cards & 1) + (guest->cards >> 1 & 1);
    if (!count || !dev)
        WRONG("%s was given %s of %u", pod->name, cards, dev);
    /* rounded up: one whose gpu-count was edited to what does not divide has more, not less */
    guest->mib = ((uint64_t)pod->units + count - 1) / count * guest->unit_mib;
    sums.admitted++;
    if (guest->cards & w.left)
        WRONG("%s was given %s, which is another driver's", pod->name, cards);
    if (cgroups_of(pod) || pick(2))
        start_pod(guest);
}

static void edit(struct guest *guest)
{
    struct node_pod *pod = guest->pod;
    if (pick(2))
        pod->count = pick(4);
    else
        pod->record = pick(4);
    guest->forged |= !pod->running;
    node_list_pods(&w.node);
}

static void set_cards(uint32_t present, bool turned)
{
    struct gs_gpu gpus[CARDS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < CARDS; i++) {
        uint32_t card = turned ? CARDS - 1 - i : i;
        if (!(present & 1u << card))
            continue;
        gpus[count] = (struct gs_gpu){.idx = count,
                                      .mem_mib = CARD_MIB,
                                      .healthy = true,
                                      .schedulable = true,
                                      .numa = GS_NUMA_NONE};
        snprintf(gpus[count].uuid, sizeof(gpus[count].uuid), "%s", uuids[card]);
        snprintf(gpus[count++].pci, sizeof(gpus[0].pci), "%s",
                 card ? "0000:c1:00.0" : "0000:41:00.0");
    }
    w.present = present;
    node_set_gpus(&w.node, gpus, count);
}

static void tamper(void)
{
    static const char *const texts[] = {
        NULL,
        "{\"v\":1,\"unit\":\"Mi",
        "",
        "[]",
        "{\"v\":1,\"unit\":\"256MiB\",\"gpus\":[],\"node\":\"n1\",\"rev\":99999}",
        "{\"v\":1,\"unit\":\"MiB\",\"gpus\":[],\"node\":\"n2\",\"rev\":99999}"};
    char path[160];
    const char *text = texts[pick(GS_COUNT_OF(texts))];
    if (pick(3) == 0)
        w.node.inventory[0] = '\0';
    if (!w.node.inventory[0] && pick(2))
        return;
    snprintf(path, sizeof(path), "%s/gpushare-aliyun.com/record.json", w.node.dir);
    if (text)
        put_text(path, text);
    else
        unlink(path);
}

static void restart(void)
{
    static const enum gs_unit units[] = {GS_UNIT_GIB, GS_UNIT_GIB, GS_UNIT_256MIB, GS_UNIT_MIB};
    struct settings *settings = &w.node.settings;
    node_kill(&w.node);
    if (!w.torn && pick(4) == 0)
        tamper();
    if (pick(4) == 0)
        settings->unit = units[pick(GS_COUNT_OF(units))];
    if (pick(4) == 0)
        settings->overhead_mib = settings->overhead_mib ? 0 : 400;
    settings->overhead_slots = settings->overhead_mib ? 4 : 0;
    if (pick(4) == 0)
        settings->enforce = pick(2) ? GS_ENFORCE_REQUIRED : GS_ENFORCE_PREFERRED;
    if (pick(4) == 0)
        set_cards(w.present, pick(2));
    if (!node_start(&w.node))
        WRONG("it does not start");
    sums.restarts++;
}

static void lose_limit(const struct guest *guest)
{
    w.node.driver.count = 0; /* it was loaded anew */
    GS_FOR_EACH_ROW (r, roots) {
        const char *folder = folder_in(*r, guest->pod);
        if (tree_has(&w.node.tree, folder, "dmem.max"))
            tree_put(&w.node.tree, folder, "dmem.max", REGION_1 " max\n" REGION_0 " max\n");
    }
}

static void calm_down(void)
{
    w.node.node_away = w.node.pods_away = w.node.slices_away = false;
    w.node.tree.put_errors = w.node.driver.set_error = 0;
    set_cards((1u << CARDS) - 1, false);
    node_list_pods(&w.node);
    w.node.others = NULL;
    w.node.slices[0] = '\0';
    if (w.foreign)
        node_run(&w.node, NOT_LATER_S); /* until the node is read again */
    w.foreign = w.left = 0;
}

/* NVIDIA's plugin beside this one, or its DRA driver with a slice that names a card. */
static void change_others(void)
{
    static const char *const capacities[] = {
        ",\"nvidia.com/gpu\":\"2\"", ",\"nvidia.com/gpu.shared\":\"8\"",
        ",\"nvidia.com/mig-1g.10gb\":\"7\"", ",\"nvidia.com/mig-1g.5gb.shared\":\"14\""};
    uint32_t card = pick(CARDS), kind = pick(3);
    if (kind == 2) {
        calm_down(); /* until the plugin has seen that they are its again */
        return;
    }
    w.node.others = NULL;
    w.node.slices[0] = '\0';
    w.foreign = w.left = 0;
    if (kind == 0) {
        w.node.others = capacities[pick(GS_COUNT_OF(capacities))];
        w.foreign = (1u << CARDS) - 1;
    } else {
        snprintf(
            w.node.slices, sizeof(w.node.slices),
            "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.nvidia.com\",\"nodeName\":"
            "\"n1\",\"devices\":[{\"name\":\"g\",\"attributes\":{\"uuid\":{\"string\":\"%s\"}}}]}}",
            uuids[card]);
        w.foreign = 1u << card;
    }
    if (w.node.node_away || w.node.slices_away || w.present != (1u << CARDS) - 1)
        return;
    node_run(&w.node, 2 * NOT_LATER_S);
    w.left = w.foreign;
    for (uint32_t at = 0; at < CARDS; at++) {
        uint32_t idx, units;
        if (w.left & 1u << at && offered(at, &idx, &units))
            WRONG("%s is another driver's, and offered", uuids[at]);
    }
    sums.others++;
}

/* The API server tells meanwhile. */
static void tear_checkpoint(void)
{
    static const char *const texts[] = {NULL, "",
                                        "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"p0\"",
                                        "{\"Data\":{\"PodDeviceEntries\":null},\"Checksum\":1}"};
    const char *text = texts[pick(GS_COUNT_OF(texts))];
    char path[160];
    if (!is_calm())
        return;                     /* nothing would tell */
    node_run(&w.node, NOT_LATER_S); /* until the node names those whose records were edited */
    snprintf(path, sizeof(path), "%s/kubelet_internal_checkpoint", w.node.dir);
    if (text)
        put_text(path, text);
    else
        unlink(path);
    w.torn = true;
    node_run(&w.node, 1 + (int)pick(5));
    if (pick(2))
        restart();
    struct guest *waiting = any_guest(false);
    if (waiting)
        admit(waiting);
    node_write_checkpoint(&w.node);
    w.torn = false;
    sums.torn++;
}

static void trouble(void)
{
    static const int errors[] = {EACCES, EROFS, EIO};
    switch (pick(7)) {
    case 5:
        change_others();
        break;
    case 6:
        tear_checkpoint();
        break;
    case 0:
        w.node.node_away = w.node.pods_away = w.node.slices_away = true;
        break;
    case 1:
        w.node.node_away = !w.node.node_away;
        break;
    case 2:
        set_cards(pick(1u << CARDS), pick(2));
        break;
    case 3:
        w.node.driver.set_error = w.node.tree.put_error = errors[pick(3)];
        w.node.tree.put_errors = -1;
        break;
    default:
        w.node.slices_away = !w.node.slices_away;
    }
}

/* ---- what is so ---- */

static void check_always(void)
{
    const struct guest *other = NULL;
    for (uint32_t card = 0; card < CARDS; card++) {
        if (promised_mib(card) > CARD_MIB)
            WRONG("%llu MiB are promised on %s", (unsigned long long)promised_mib(card),
                  uuids[card]);
    }
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        const struct guest *guest = &w.guests[i];
        if (!guest->pod->admitted || !guest->pod->running || guest->guessed)
            continue;
        if (other && other->unit_mib != guest->unit_mib)
            WRONG("%s was given units of %u MiB, %s of %u", guest->pod->name, guest->unit_mib,
                  other->pod->name, other->unit_mib);
        other = guest;
        for (uint32_t card = 0; card < CARDS; card++) {
            uint64_t limit = limit_of(guest->pod, card);
            if (guest->cards & GS_GPU_BIT(card) && limit < guest->mib << 20)
                WRONG("the limit of %s on %s is %llu, promised were %llu MiB", guest->pod->name,
                      uuids[card], (unsigned long long)limit, (unsigned long long)guest->mib);
        }
    }
}

static bool is_limited(const struct guest *guest)
{
    uint64_t most = (guest->mib + w.node.settings.overhead_mib) << 20;
    bool limited = cgroups_of(guest->pod) == 1;
    for (uint32_t card = 0; card < CARDS; card++) {
        if (guest->cards & GS_GPU_BIT(card))
            limited = limited && limit_of(guest->pod, card) <= most;
    }
    return limited;
}

/* Right after a pass. */
static void check_words(void)
{
    struct gs_kept kept;
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        const struct guest *guest = &w.guests[i];
        if (!guest->pod->admitted || !guest->pod->running || !plugin.enforce.keeper ||
            !gs_keeper_find(plugin.enforce.keeper, guest->pod->name, &kept))
            continue;
        sums.held += kept.held;
        if (kept.held && !is_limited(guest))
            WRONG("%s is said to be held", guest->pod->name);
    }
}

static void check_quiet(void)
{
    calm_down();
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        struct node_pod *pod = w.guests[i].pod;
        if (pod->bound && !pod->admitted)
            end_pod(&w.guests[i]); /* one of them may have been taken for one that started */
        if (pod->admitted && cgroups_of(pod) != 1) {
            remove_cgroups(pod);
            make_cgroup(pod);
        }
    }
    node_run(&w.node, 2 * NOT_LATER_S);
    for (uint32_t i = 0; i < w.node.pod_count; i++)
        w.guests[i].guessed &= !w.guests[i].pod->running; /* the kubelet has said which is which */
    check_always();
    check_words();
    for (uint32_t i = 0; i < w.node.pod_count; i++) {
        struct guest *guest = &w.guests[i];
        if (!guest->pod->admitted)
            continue;
        if (!guest->pod->running)
            start_pod(guest);
        if (guest->pod->running && !is_limited(guest))
            WRONG("%s has no limit when all is quiet", guest->pod->name);
    }
    node_run(&w.node, NOT_LATER_S);
    const bool by_driver = w.node.settings.enforce_by == ENFORCE_BY_AUTO;
    if (strcmp(w.node.label, by_driver ? "driver" : "dmem") != 0)
        WRONG("all is quiet, and the node's word is '%s'", w.node.label);
}

static void step(void)
{
    struct guest *waiting = any_guest(false), *runs = any_guest(true);
    switch (pick(14)) {
    case 0:
    case 1:
    case 2:
        w.last = "bind";
        bind_pod();
        break;
    case 3:
    case 4:
    case 5:
        w.last = "admit";
        if (waiting)
            admit(waiting);
        break;
    case 6:
        w.last = "end";
        if (runs)
            end_pod(runs);
        break;
    case 7:
        w.last = "edit";
        if (pick(4) ? runs != NULL : waiting != NULL)
            edit(runs && (!waiting || pick(4)) ? runs : waiting);
        break;
    case 8:
        w.last = "restart";
        restart();
        break;
    case 9:
        w.last = "trouble";
        trouble();
        break;
    case 10:
        w.last = "calm";
        calm_down();
        break;
    case 11:
        w.last = "cgroup";
        if (runs)
            make_cgroup(runs->pod);
        break;
    case 12:
        w.last = "lost limit";
        if (runs)
            lose_limit(runs);
        break;
    default:
        w.last = "time";
        node_run(&w.node, 1 + (int)pick(NOT_LATER_S));
        if (!w.node.tree.put_errors && is_calm()) {
            node_run(&w.node, NOT_LATER_S);
            check_words();
        }
    }
    check_always();
    if (pick(20) == 0) {
        w.last = "quiet";
        check_quiet();
    }
}

static void world(uint64_t seed, uint32_t number)
{
    memset(&w, 0, sizeof(w));
    w.seed = seed;
    w.number = number;
    w.random = seed * 1000003 + number;
    pick(2);
    node_make(&w.node);
    GS_FOR_EACH_ROW (r, roots) {
        char above[128];
        snprintf(above, sizeof(above), "%.*s", (int)(strrchr(*r, '/') - *r), *r);
        strcat(above, "/other");
        tree_mkdirs(&w.node.tree, above, true);
    }
    w.node.settings.enforce = pick(2) ? GS_ENFORCE_REQUIRED : GS_ENFORCE_PREFERRED;
    w.node.settings.deny_foreign_gpus = pick(2);
    w.node.settings.enforce_by = pick(2) ? ENFORCE_BY_AUTO : ENFORCE_BY_DMEM;
    set_cards((1u << CARDS) - 1, false);
    node_start(&w.node);
    for (w.step = 0; w.step < STEPS; w.step++)
        step();
    w.last = "end";
    check_quiet();
    node_free(&w.node);
    sums.worlds++;
    sums.steps += STEPS;
}

static uint64_t seed = 1, first, worlds = 6, seconds;

static void nodes_at_random(void **state)
{
    time_t until = time(NULL) + (time_t)seconds;
    for (uint64_t number = first; seconds ? time(NULL) < until : number < first + worlds; number++)
        world(seed, (uint32_t)number);
    printf("%llu worlds, %llu steps, %llu restarts, %llu pods, %llu refused, held %llu times, "
           "others %llu, torn %llu\n",
           (unsigned long long)sums.worlds, (unsigned long long)sums.steps,
           (unsigned long long)sums.restarts, (unsigned long long)sums.admitted,
           (unsigned long long)sums.refused, (unsigned long long)sums.held,
           (unsigned long long)sums.others, (unsigned long long)sums.torn);
    assert_true(sums.admitted > sums.worlds && sums.held > sums.worlds);
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        uint64_t *value;
    } options[] = {
        {"--seed", &seed}, {"--first", &first}, {"--worlds", &worlds}, {"--seconds", &seconds}};
    for (int i = 1; i + 1 < argc; i += 2) {
        GS_FOR_EACH_ROW (r, options) {
            if (strcmp(argv[i], r->name) == 0)
                *r->value = strtoull(argv[i + 1], NULL, 10);
        }
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_at_random)};
    return GS_RUN(tests);
}
