/* SPDX-License-Identifier: Apache-2.0 */
/* A node's pods at random: cgroups late, twice, under other classes and in other trees; writes that
 * are refused, limits that are lost. After every look no word is said that is not so. */
#include "cgroup_tree.h"

#include "gpushare/limit/keeper.h"

enum { PODS = 4, PLACES = 5, WORLDS = 20, STEPS = 150 };

static const char *const places[PLACES] = {
    "/kubepods/pod%s", "/kubepods/burstable/pod%s", "/kubepods/besteffort/pod%s",
    "/kubepods.slice/kubepods-pod%s.slice",
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice"};
static const char *const uids[PODS] = {"a", "b", "c", "d"};

struct world {
    struct cgroup_tree tree;
    struct gs_limiter *limiter;
    struct gs_keeper *keeper;
    uint64_t random;
    bool awaited[PODS]; /* it was started without a cgroup, and had none at any look since */
    uint64_t used[PODS];
};

static uint32_t pick(struct world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

static const char *folder_of(uint32_t pod, uint32_t place)
{
    static char folder[128];
    static const size_t room = sizeof(folder);
    const char *at = strstr(places[place], "%s");
    snprintf(folder, room, "%.*s%s%s", (int)(at - places[place]), places[place], uids[pod], at + 2);
    return folder;
}

static bool is_there(struct world *w, uint32_t pod, uint32_t place)
{
    return tree_has(&w->tree, folder_of(pod, place), NULL);
}

static uint32_t cgroups_of(struct world *w, uint32_t pod)
{
    uint32_t count = 0;
    for (uint32_t place = 0; place < PLACES; place++)
        count += is_there(w, pod, place);
    return count;
}

/* The limit in the kernel; 0: none. Of a pod with one cgroup. */
static uint64_t limit_of(struct world *w, uint32_t pod)
{
    unsigned long long bytes = 0;
    for (uint32_t place = 0; place < PLACES; place++) {
        const char *line =
            strstr(tree_get(&w->tree, folder_of(pod, place), "dmem.max"), REGION_0 " ");
        if (line)
            bytes = strtoull(line + strlen(REGION_0 " "), NULL, 10);
    }
    return bytes;
}

/* What it uses is in its first cgroup. */
static void put_use(struct world *w, uint32_t pod)
{
    char text[128], none[] = REGION_0 " 0\n" REGION_1 " 0\n";
    const char *now = text;
    snprintf(text, sizeof(text), REGION_0 " %llu\n" REGION_1 " 0\n",
             (unsigned long long)w->used[pod]);
    for (uint32_t place = 0; place < PLACES; place++)
        if (is_there(w, pod, place)) {
            tree_put(&w->tree, folder_of(pod, place), "dmem.current", now);
            now = none;
        }
}

static void note_seen(struct world *w, uint32_t pod)
{
    w->awaited[pod] = w->awaited[pod] && cgroups_of(w, pod) == 0;
}

static void step(struct world *w)
{
    static const int errors[] = {0, 0, 0, EACCES, EROFS, EIO};
    uint32_t pod = pick(w, PODS), place = pick(w, PLACES);
    const char *reason;
    char folder[128];
    snprintf(folder, sizeof(folder), "%s", folder_of(pod, place));
    bool there = is_there(w, pod, place);
    switch (pick(w, 6)) {
    case 0:
        if (!there && (cgroups_of(w, pod) == 0 || pick(w, 4) == 0))
            tree_mkdir(&w->tree, folder);
        put_use(w, pod);
        if (pick(w, 2)) {
            gs_keeper_appeared(w->keeper, uids[pod]);
            note_seen(w, pod);
        }
        break;
    case 1:
        if (there)
            tree_rmdir(&w->tree, folder);
        put_use(w, pod);
        break;
    case 2:
        gs_keeper_may_start(w->keeper, uids[pod], &reason);
        w->awaited[pod] = cgroups_of(w, pod) == 0;
        break;
    case 3:
        if (there)
            tree_put(&w->tree, folder, "dmem.max", REGION_1 " max\n" REGION_0 " max\n");
        break;
    case 4:
        w->tree.put_error = errors[pick(w, 6)];
        w->tree.put_errors = -1;
        break;
    default:
        w->used[pod] = pick(w, 7) * GIB;
        put_use(w, pod);
    }
}

static void check(struct world *w)
{
    bool fine = true; /* each pod is limited where it is, and none is missed */
    struct gs_kept kept;
    for (uint32_t pod = 0; pod < PODS; pod++) {
        uint32_t cgroups = cgroups_of(w, pod);
        note_seen(w, pod);
        assert_true(gs_keeper_find(w->keeper, uids[pod], &kept));
        fine = fine && !w->awaited[pod] && (cgroups == 0 || (cgroups == 1 && limit_of(w, pod)));
        assert_int_equal(kept.held,
                         cgroups == 1 && limit_of(w, pod) == 4 * GIB && w->used[pod] <= 4 * GIB);
    }
    assert_int_equal(gs_keeper_enforces(w->keeper, 0) == GS_ENFORCED_DMEM, fine);
}

static void make(struct world *w, uint64_t seed)
{
    static const char *const addresses[] = {"0000:41:00.0", "0000:c1:00.0"};
    struct gs_region gpus[2];
    *w = (struct world){.random = seed};
    tree_make(&w->tree);
    for (uint32_t place = 0; place < PLACES; place++) {
        char folder[128];
        snprintf(folder, sizeof(folder), "%s", folder_of(0, place));
        *strrchr(folder, '/') = '\0';
        tree_mkdirs(&w->tree, folder, true);
        tree_put(&w->tree, folder, "cgroup.subtree_control", "memory pids dmem\n");
    }
    const struct gs_limiter_options options = {w->tree.mount, &w->tree.host, false};
    assert_int_equal(gs_limiter_new(&options, &w->limiter, NULL), 0);
    const struct gs_keeper_options rules = {w->limiter, GS_ENFORCE_PREFERRED, false};
    w->keeper = gs_keeper_new(&rules);
    gs_keeper_gpus(w->keeper, gs_limiter_look(w->limiter, addresses, 2, gpus), gpus, 2);
    for (uint32_t pod = 0; pod < PODS; pod++) {
        const struct gs_share share = {uids[pod], 1, 4 * GIB};
        assert_int_equal(gs_keeper_share(w->keeper, &share, NULL), 0);
    }
}

static void no_word_is_said_that_is_not_so(void **state)
{
    uint32_t held = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world w;
        make(&w, seed);
        for (int i = 0; i < STEPS; i++) {
            step(&w);
            gs_keeper_pass(w.keeper);
            check(&w);
            held += gs_keeper_enforces(w.keeper, 0) == GS_ENFORCED_DMEM;
        }
        gs_keeper_free(w.keeper);
        gs_limiter_free(w.limiter);
        tree_rmdir(&w.tree, "");
    }
    assert_in_range(held, WORLDS * STEPS / 20, WORLDS * STEPS * 19 / 20); /* both words were met */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_word_is_said_that_is_not_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
