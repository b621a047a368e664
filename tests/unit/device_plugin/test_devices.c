/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/advertise.h"
#include "device_plugin/unit.h"
#include "gpushare/base/index.h"
#include "rows.h"

/* Ids are written short: "a3" is unit 3 of GPU 0 as we name it, "b3" of GPU 1, anything else stands
 * as it is. */
enum { IDS = 12, ID_TEXT = 96 };
static const struct ids_in_use nothing;

static void uuid_of(uint32_t idx, char out[GS_UUID_BYTES])
{
    snprintf(out, GS_UUID_BYTES, "GPU-%u", idx);
}

static struct gs_gpu_set make_set(const uint32_t mib[2], gs_gpu_mask gone, enum gs_unit unit)
{
    struct gs_gpu_set set = {.gone = gone};
    for (uint32_t i = 0; i < 2 && mib[i]; i++) {
        struct gs_gpu *gpu = &set.gpus[set.count++];
        *gpu = (struct gs_gpu){.idx = i, .mem_mib = mib[i], .numa = (int16_t)i, .healthy = true};
        uuid_of(i, gpu->uuid);
    }
    advertise_divide(&set, unit);
    return set;
}

static void spell(const char *word, char out[ID_TEXT])
{
    char uuid[GS_UUID_BYTES];
    bool ours = (word[0] == 'a' || word[0] == 'b') && word[1] >= '0' && word[1] <= '9';
    if (!ours) {
        snprintf(out, ID_TEXT, "%s", word);
        return;
    }
    uuid_of(word[0] == 'b', uuid);
    snprintf(out, ID_TEXT, "%08x-%s", (uint32_t)(gs_hash_lasting(uuid, strlen(uuid)) >> 32),
             word + 1);
}

/* A container of a pod, which the allocator does not know. */
static void hold(const char *const words[IDS], struct ids_in_use *in_use)
{
    char text[ID_TEXT];
    struct ids_in_use next = {0};
    for (int i = 0; i < IDS && words[i]; i++) {
        spell(words[i], text);
        assert_int_equal(ids_in_use_add(&next, text), 0);
    }
    ids_in_use_replace(in_use, &next);
}

static bool is_listed(const struct advertised *made, const char *word)
{
    char id[ID_TEXT];
    bool listed = false;
    spell(word, id);
    for (size_t i = 0; i < made->count; i++)
        listed |= strcmp(made->ids[i], id) == 0;
    return listed;
}

#define OLD(n) "GPU-00000000-0000-0000-0000-000000000000-_-" #n

static void held_ids_stay_listed_in_place_of_as_many_free_ones(void **state)
{
    static const struct {
        const char *row;
        uint32_t mib[2];
        gs_gpu_mask gone;
        const char *in_use[IDS];
        size_t count, foreign;
        const char *in[IDS], *out[IDS];
    } rows[] = {
        {"nothing held", {4096, 4096}, 0, {0}, 8, 0, {"a0", "a3", "b0", "b3"}, {"a4"}},
        {"no GPU", {0}, 0, {0}, 0, 0, {0}, {"a0"}},
        {"ours held", {4096, 4096}, 0, {"b3", "a0"}, 8, 0, {"a0", "b3", "a1"}, {0}},
        {"the original's",
         {4096, 4096},
         0,
         {OLD(0), OLD(7)},
         8,
         2,
         {OLD(0), OLD(7), "a0", "b1"},
         {"b2", "b3"}},
        {"the original's beside ours that would be left out",
         {4096, 4096},
         0,
         {OLD(0), OLD(7), "b3", "b2"},
         8,
         2,
         {OLD(0), OLD(7), "b3", "b2", "a3"},
         {"b0", "b1"}},
        {"all is held by the original's",
         {2048, 0},
         0,
         {OLD(0), OLD(1)},
         2,
         2,
         {OLD(0), OLD(1)},
         {"a0", "a1"}},
        {"more is held than there is",
         {1024, 0},
         0,
         {OLD(0), OLD(1), "a0"},
         3,
         2,
         {OLD(0), OLD(1), "a0"},
         {0}},
        {"held twice, as by an init container",
         {2048, 0},
         0,
         {OLD(0), OLD(0)},
         2,
         1,
         {OLD(0), "a0"},
         {"a1"}},
        {"ours of a finer unit", {2048, 0}, 0, {"a7", "a1"}, 2, 1, {"a7", "a1"}, {"a0"}},
        {"no list can carry it",
         {2048, 0},
         0,
         {"0123456789012345678901234567890123456789012345678901234567890123", "x"},
         2,
         1,
         {"x", "a0"},
         {"a1"}},
        {"a GPU is gone", {2048, 2048}, 2, {"b0"}, 4, 0, {"a0", "a1", "b0", "b1"}, {0}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_gpu_set set = make_set(r->mib, r->gone, GS_UNIT_GIB);
        struct ids_in_use in_use = {0};
        struct advertised made;
        hold(r->in_use, &in_use);
        row_equal(r->row, advertise_devices(&set, GS_UNIT_GIB, &in_use, &made, NULL), 0);
        row_equal(r->row, made.count, r->count);
        row_equal(r->row, made.foreign, r->foreign);
        row_equal(r->row, made.dropped, 0);
        for (int i = 0; i < IDS && r->in[i]; i++)
            row_true(r->in[i], is_listed(&made, r->in[i]));
        for (int i = 0; i < IDS && r->out[i]; i++)
            row_true(r->out[i], !is_listed(&made, r->out[i]));
        for (size_t i = 0; i < made.count; i++)
            for (size_t j = 0; j < i; j++)
                row_true(r->row, strcmp(made.ids[i], made.ids[j]) != 0);
        free((void *)made.ids);
        ids_in_use_release(&in_use);
    }
}

static size_t distinct_ids(const struct gs_gpu_set *set)
{
    struct advertised made;
    size_t distinct = 0;
    assert_int_equal(advertise_devices(set, GS_UNIT_GIB, &nothing, &made, NULL), 0);
    for (size_t i = 0; i < made.count; i++) {
        bool twice = false;
        for (size_t j = 0; j < i && !twice; j++)
            twice = strcmp(made.ids[i], made.ids[j]) == 0;
        distinct += !twice;
    }
    free((void *)made.ids);
    return distinct;
}

struct hashed {
    uint32_t hash, number;
};

static int by_hash(const void *a, const void *b)
{
    const struct hashed *left = a, *right = b;
    return left->hash < right->hash ? -1 : left->hash > right->hash;
}

/* Two UUIDs whose hashes meet in the 32 bits that ids carry. */
static bool find_meeting(struct gs_gpu_set *set)
{
    enum { TRIES = 600000 };
    struct hashed *all = calloc(TRIES, sizeof(*all));
    bool found = false;
    for (uint32_t i = 0; i < TRIES; i++) {
        char uuid[GS_UUID_BYTES];
        snprintf(uuid, sizeof(uuid), "GPU-%u", i);
        all[i] = (struct hashed){(uint32_t)(gs_hash_lasting(uuid, strlen(uuid)) >> 32), i};
    }
    qsort(all, TRIES, sizeof(*all), by_hash);
    for (uint32_t i = 1; i < TRIES && !found; i++) {
        found = all[i].hash == all[i - 1].hash;
        for (uint32_t g = 0; found && g < 2; g++)
            snprintf(set->gpus[g].uuid, GS_UUID_BYTES, "GPU-%u", all[i - g].number);
    }
    free(all);
    return found;
}

static void no_two_gpus_share_an_id(void **state)
{
    static const struct {
        const char *row;
        bool meet;
    } rows[] = {{"without UUIDs", false}, {"hashes meet", true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_gpu_set set = make_set((uint32_t[2]){4096, 4096}, 0, GS_UNIT_GIB);
        set.gpus[0].uuid[0] = set.gpus[1].uuid[0] = '\0';
        if (r->meet)
            row_true(r->row, find_meeting(&set));
        row_equal(r->row, distinct_ids(&set), 8);
    }
}

/* The kubelet takes 4 MiB: what is held comes first, free units give way to longer foreign ids. */
static void a_long_list_fits_the_kubelet(void **state)
{
    static const struct {
        const char *row;
        uint32_t mib;
        size_t in_use; /* of the original's */
        bool dropped;
    } rows[] = {
        {"as many as the original could have", 68000, 68000, false},
        {"half of them", 68000, 34000, false},
        {"more than the original could list", 107000, 60000, true},
        {"no foreign id, no room to spare", 107000, 0, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_gpu_set set = make_set((uint32_t[2]){r->mib, 0}, 0, GS_UNIT_MIB);
        struct ids_in_use in_use = {0};
        struct advertised made;
        struct gs_error err = {0};
        for (size_t i = 0; i < r->in_use; i++) {
            char id[ID_TEXT];
            snprintf(id, sizeof(id), "GPU-00000000-0000-0000-0000-000000000000-_-%05zu", i);
            assert_int_equal(ids_in_use_add(&in_use, id), 0);
        }
        if (advertise_devices(&set, GS_UNIT_MIB, &in_use, &made, &err) < 0)
            fail_msg("%s: %s", r->row, err.msg);
        row_true(r->row, gs_dp_list_bytes(made.ids, made.count) <= GS_DP_LIST_MAX_BYTES);
        row_equal(r->row, made.foreign, r->in_use);
        row_equal(r->row, made.count + made.dropped, r->mib);
        row_equal(r->row, made.dropped > 0, r->dropped);
        free((void *)made.ids);
        ids_in_use_release(&in_use);
    }
}

static void a_unit_that_does_not_fit_is_refused(void **state)
{
    const struct gs_gpu_set set = make_set((uint32_t[2]){81920, 81920}, 0, GS_UNIT_MIB);
    struct advertised made = {.count = 7};
    struct gs_error err = {0};
    assert_int_equal(advertise_devices(&set, GS_UNIT_MIB, &nothing, &made, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
    assert_non_null(strstr(err.msg, "--memory-unit 64MiB"));
    assert_int_equal(made.count, 7);
}

static void overhead_is_taken_off_every_gpu(void **state)
{
    static const struct {
        const char *row;
        uint32_t mib[2], reserved_mib, units[2];
        enum gs_code code;
        gs_gpu_mask gone;
    } rows[] = {
        {"a part of a unit takes a whole one", {16384, 8192}, 3200, {12, 4}, GS_OK},
        {"what is left of a unit takes it in", {81559, 0}, 600, {79, 0}, GS_OK},
        {"all of the smaller one", {16384, 8192}, 8192, {8, 0}, GS_EINVAL},
        {"all of a removed one", {16384, 8192}, 8192, {8, 0}, GS_OK, 2},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_gpu_set set = make_set(r->mib, r->gone, GS_UNIT_GIB);
        struct gs_error err = {0};
        set.reserved_mib = r->reserved_mib;
        advertise_divide(&set, GS_UNIT_GIB);
        for (uint32_t i = 0; i < set.count; i++)
            row_equal(r->row, set.gpus[i].mem_units, r->units[i]);
        row_equal(r->row, advertise_check(&set, GS_UNIT_GIB, &err), r->code == GS_OK ? 0 : -1);
        row_equal(r->row, err.code, r->code);
        struct advertised made = {0};
        if (r->code != GS_OK)
            continue;
        row_equal(r->row, advertise_devices(&set, GS_UNIT_GIB, &nothing, &made, &err), 0);
        row_equal(r->row, made.count, r->units[0] + r->units[1]);
        free((void *)made.ids);
    }
}

/* A pod of 4 units on a GPU that offers 2 by now, with whatever ids: the other GPU's 2 are there
 * for others. */
static void what_a_pod_has_above_its_gpu_is_no_ones_place(void **state)
{
    static const struct {
        const char *row;
        size_t above, count;
        const char *in_use[IDS];
    } rows[] = {{"not told", 0, 4, {"a0", "a1", "a2", "a3"}},
                {"told", 2, 6, {"a0", "a1", "a2", "a3"}},
                {"ids of both GPUs", 2, 6, {"a0", "b1", "b0", "a1"}},
                {"the original's", 2, 6, {OLD(0), OLD(7), OLD(8), OLD(9)}}};
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_gpu_set set = make_set((uint32_t[2]){2048, 2048}, 0, GS_UNIT_GIB);
        struct ids_in_use in_use = {0};
        struct advertised made;
        hold(r->in_use, &in_use);
        in_use.above = r->above;
        row_equal(r->row, advertise_devices(&set, GS_UNIT_GIB, &in_use, &made, NULL), 0);
        row_equal(r->row, made.count, r->count);
        free((void *)made.ids);
        ids_in_use_release(&in_use);
    }
}

/* One GPU of 16 GiB, which the record has with so many units. */
static void what_the_kubelet_noted_tells_the_unit(void **state)
{
    static const struct {
        const char *row;
        uint32_t units[2];
        bool original;
        enum gs_unit recorded;
        uint32_t offered, reserved_mib;
        enum gs_unit wanted, noted;
    } rows[] = {
        {"much overhead then and now",
         {25},
         false,
         GS_UNIT_256MIB,
         25,
         9900,
         GS_UNIT_GIB,
         GS_UNIT_256MIB},
        {"another than recorded", {16384}, false, GS_UNIT_GIB, 16, 0, GS_UNIT_GIB, GS_UNIT_MIB},
        {"no record, as wanted", {256}, false, 0, 0, 0, GS_UNIT_64MIB, GS_UNIT_64MIB},
        {"no record, overhead as wanted", {25}, false, 0, 0, 9984, GS_UNIT_256MIB, GS_UNIT_256MIB},
        {"no record, GiB", {15}, false, 0, 0, 0, GS_UNIT_MIB, GS_UNIT_GIB},
        {"the original's, of a larger card", {64}, true, 0, 0, 0, GS_UNIT_256MIB, GS_UNIT_GIB},
        {"they contradict each other", {16384, 16}, false, 0, 0, 0, GS_UNIT_MIB, GS_UNIT_GIB},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_gpu_set set = make_set((uint32_t[2]){16384, 0}, 0, GS_UNIT_GIB);
        struct gs_gpu recorded = set.gpus[0];
        const struct gs_inventory record = {.unit = r->recorded, .gpus = &recorded, .gpu_count = 1};
        struct unit_note notes[2] = {{.mib = 16384}, {.mib = 16384}};
        size_t count = 0;
        set.reserved_mib = r->reserved_mib;
        advertise_divide(&set, r->wanted);
        recorded.mem_units = r->offered;
        for (; count < 2 && r->units[count]; count++) {
            notes[count].units = r->units[count];
            notes[count].original = r->original;
            snprintf(notes[count].uuid, GS_UUID_BYTES, "%s", set.gpus[0].uuid);
        }
        enum gs_unit noted = GS_UNIT_UNKNOWN;
        for (size_t i = 0; i < count; i++) {
            const enum gs_unit unit = unit_noted(&notes[i], &record, &set, r->wanted);
            noted = unit > noted ? unit : noted;
        }
        row_equal(r->row, noted, r->noted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_kubelet_noted_tells_the_unit),
        cmocka_unit_test(what_a_pod_has_above_its_gpu_is_no_ones_place),
        cmocka_unit_test(overhead_is_taken_off_every_gpu),
        cmocka_unit_test(held_ids_stay_listed_in_place_of_as_many_free_ones),
        cmocka_unit_test(no_two_gpus_share_an_id),
        cmocka_unit_test(a_long_list_fits_the_kubelet),
        cmocka_unit_test(a_unit_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
