/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <dirent.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/splitmix.h"
#include "scan_compare.h"

/*
 * The scanner against jansson on every seed of the codec layer's fuzz targets, and on what becomes
 * of them under random damage. The damage is the same in every run.
 */
enum { SEED_MAX_BYTES = 1 << 16, DAMAGED_PER_SEED = 300 };

/* Changes a few bytes: another byte, one that means something in JSON, one left out, one twice, or
 * the text cut. Returns the new length; there is room for one byte more per change. */
static size_t damage(char *text, size_t len, uint64_t *random)
{
    static const char telling[] = "{}[]:,\"\\/ntfu0123456789-+.eE \n\x7f\x80\xC3\xE2\xED\xF0\xFF";
    for (size_t changes = gs_splitmix_next(random) % 3 + 1; changes && len; changes--) {
        size_t at = gs_splitmix_next(random) % len;
        switch (gs_splitmix_next(random) % 5) {
        case 0:
            text[at] = (char)gs_splitmix_next(random);
            break;
        case 1:
            text[at] = telling[gs_splitmix_next(random) % (sizeof(telling) - 1)];
            break;
        case 2:
            memmove(text + at, text + at + 1, len - at - 1);
            len--;
            break;
        case 3:
            memmove(text + at + 1, text + at, len - at);
            len++;
            break;
        default:
            if (gs_splitmix_next(random) % 4 == 0)
                len = at;
        }
    }
    return len;
}

static void compare(const char *name, const char *text, size_t len, int *agreed_valid)
{
    /* exactly its size: a sanitizer sees a read past the end */
    _cleanup_free_ char *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, text, len);
    const char *problem = scan_compare(exact, len);
    if (problem)
        print_error("%s: differs in: %s\n%.*s\n", name, problem, (int)len, text);
    assert_null(problem);
    struct gs_scan scan;
    gs_scan_init(&scan, (struct gs_slice){exact, len});
    gs_scan_skip(&scan);
    *agreed_valid += gs_scan_finish(&scan, NULL) == 0;
}

static size_t read_seed(const char *path, char *text)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(text, 1, SEED_MAX_BYTES, file);
    fclose(file);
    return len;
}

static void compare_seed(const char *path, int *seeds, int *valid)
{
    _cleanup_free_ char *seed = malloc(SEED_MAX_BYTES), *text = malloc(SEED_MAX_BYTES + 8);
    assert_non_null(seed);
    assert_non_null(text);
    size_t seed_len = read_seed(path, seed);
    uint64_t random = seed_len;
    compare(path, seed, seed_len, valid);
    for (int i = 0; i < DAMAGED_PER_SEED; i++) {
        memcpy(text, seed, seed_len);
        compare(path, text, damage(text, seed_len, &random), valid);
    }
    ++*seeds;
}

static void seeds_and_their_damaged_copies_are_judged_as_jansson_does(void **state)
{
    const char *corpus = GS_SOURCE_DIR "/tests/fuzz/corpus";
    int seeds = 0, valid = 0;
    DIR *targets = opendir(corpus);
    assert_non_null(targets);
    for (struct dirent *target; (target = readdir(targets));) {
        char folder[4096];
        if (strncmp(target->d_name, "codec_", 6) != 0)
            continue;
        snprintf(folder, sizeof(folder), "%s/%s", corpus, target->d_name);
        DIR *files = opendir(folder);
        assert_non_null(files);
        for (struct dirent *file; (file = readdir(files));) {
            char path[8192];
            snprintf(path, sizeof(path), "%s/%s", folder, file->d_name);
            if (file->d_name[0] != '.')
                compare_seed(path, &seeds, &valid);
        }
        closedir(files);
    }
    closedir(targets);
    /* both verdicts were met, many times */
    assert_true(seeds > 50);
    assert_true(valid > 1000 && valid < seeds * DAMAGED_PER_SEED - 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_and_their_damaged_copies_are_judged_as_jansson_does),
    };
    return GS_RUN(tests);
}
