/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/index.h"

enum { KEYS = 3000 };

static char keys[KEYS][16];

static bool same(const void *ctx, uint32_t slot)
{
    return strcmp(keys[slot], ctx) == 0;
}

static uint64_t hash_of(const char *key)
{
    return gs_hash_bytes(key, strlen(key));
}

static uint32_t find(const struct gs_index *index, const char *key)
{
    return gs_index_find(index, hash_of(key), same, key);
}

static void put(struct gs_index *index, uint32_t slot)
{
    assert_int_equal(gs_index_reserve(index), 0);
    gs_index_insert(index, hash_of(keys[slot]), slot);
}

static int name_keys(void **state)
{
    for (int i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof(keys[i]), "key-%d", i);
    return 0;
}

static void what_was_put_is_found(void **state)
{
    struct gs_index index = {0};
    for (uint32_t i = 0; i < KEYS; i++) {
        put(&index, i);
        assert_true((uint64_t)index.count * 5 <= (uint64_t)(index.mask + 1) * 4); /* short chains */
    }
    assert_int_equal(index.count, KEYS);
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(find(&index, keys[i]), i);
    assert_int_equal(find(&index, "key-3000"), GS_INDEX_NONE);
    assert_int_equal(find(&index, ""), GS_INDEX_NONE);
    gs_index_release(&index);
    assert_int_equal(index.count, 0);
}

/* Against an array of flags, so that gaps of every shape are closed. */
static void removal_leaves_the_others_findable(void **state)
{
    struct gs_index index = {0};
    bool in[KEYS] = {0};
    uint64_t seed = 42;
    uint32_t count = 0;
    for (int step = 0; step < 40000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t slot = (uint32_t)(seed >> 33) % 200 * 13 % KEYS;
        if (in[slot])
            gs_index_remove(&index, hash_of(keys[slot]), slot);
        else
            put(&index, slot);
        in[slot] = !in[slot];
        count += in[slot] ? 1u : -1u;
        assert_int_equal(index.count, count);
        uint32_t other = (uint32_t)(seed >> 13) % KEYS;
        assert_int_equal(find(&index, keys[other]), in[other] ? other : GS_INDEX_NONE);
    }
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(find(&index, keys[i]), in[i] ? i : GS_INDEX_NONE);
    gs_index_release(&index);
}

/* One bit anywhere must give another hash, and both halves must spread. */
static void hashes_differ(void **state)
{
    char text[41] = "0123456789abcdef-0123456789abcdef-012345";
    for (size_t len = 0; len <= 40; len++) {
        uint64_t base = gs_hash_bytes(text, len);
        assert_true(base == gs_hash_bytes(text, len));
        if (len < 40)
            assert_true(base != gs_hash_bytes(text, len + 1));
        for (size_t bit = 0; bit < len * 8; bit++) {
            text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
            uint64_t other = gs_hash_bytes(text, len);
            text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
            assert_true(base >> 32 != other >> 32);
        }
    }
    assert_true(gs_hash_bytes(NULL, 0) == gs_hash_bytes("", 0));
    unsigned used[64] = {0};
    for (int i = 0; i < 64 * 20; i++)
        used[hash_of(keys[i]) & 63]++;
    for (int i = 0; i < 64; i++)
        assert_in_range(used[i], 3, 60); /* 20 expected */
}

static const char word[] = "A100";

/* Who knows the code cannot compute texts of one hash. Started anew by the test below: says the
 * word's hash, and ends. */
static int tell_hash(void)
{
    return printf("%016" PRIx64 "\n", gs_hash_text(word)) == 17 ? 0 : 1;
}

static void another_process_hashes_otherwise(void **state)
{
    char own[17], other[17] = "";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "test_index", "--hash", NULL);
        _exit(1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], other, 16), 16);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    snprintf(own, sizeof(own), "%016" PRIx64, gs_hash_text(word));
    assert_string_not_equal(own, other);
}

/* Values that anybody's FNV-1a gives: device ids in a kubelet's checkpoint depend on them. */
static void lasting_hashes_never_change(void **state)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } rows[] = {
        {"", 0xCBF29CE484222325u},
        {"a", 0xAF63DC4C8601EC8Cu},
        {"foobar", 0x85944171F73967E8u},
    };
    for (size_t i = 0; i < GS_COUNT_OF(rows); i++)
        assert_true(gs_hash_lasting(rows[i].text, strlen(rows[i].text)) == rows[i].hash);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--hash") == 0)
        return tell_hash();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found),
        cmocka_unit_test(removal_leaves_the_others_findable),
        cmocka_unit_test(hashes_differ),
        cmocka_unit_test(another_process_hashes_otherwise),
        cmocka_unit_test(lasting_hashes_never_change),
    };
    return cmocka_run_group_tests(tests, name_keys, NULL);
}
