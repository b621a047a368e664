/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over the inputs of two folders without libFuzzer: each one whole, and those of
 * the first also cut short at every length (up to CUT_MAX_BYTES). Each input lies in memory of
 * exactly its size, so that a sanitizer sees a read past its end. Fails when there is no seed in
 * the first; the second may be missing.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>

#include "fuzz.h"
#include "gpushare/base/cleanup.h"

enum { CUT_MAX_BYTES = 8192, SEED_MAX_BYTES = 1 << 24 };

static int run(const uint8_t *bytes, size_t len)
{
    uint8_t *exact = malloc(len ? len : 1);
    if (!exact)
        return -1;
    memcpy(exact, bytes, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    return 0;
}

static int replay(const char *folder, const char *name, bool cuts)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    _cleanup_free_ uint8_t *bytes = malloc(SEED_MAX_BYTES);
    size_t len = bytes ? fread(bytes, 1, SEED_MAX_BYTES, file) : 0;
    int result = bytes && !ferror(file) ? run(bytes, len) : -1;
    fclose(file);
    for (size_t cut = 0; cuts && result == 0 && cut < len && len <= CUT_MAX_BYTES; cut++)
        result = run(bytes, cut);
    return result;
}

/* How many inputs there were, -1 when one cannot be read. */
static int replay_all(const char *folder, bool cuts)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return 0;
    for (struct dirent *entry; count >= 0 && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.')
            count = replay(folder, entry->d_name, cuts) < 0 ? -1 : count + 1;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* as the programs do: large tables come zeroed */
    if (argc != 3) {
        fprintf(stderr, "usage: %s SEEDS GROWN\n", argv[0]);
        return 2;
    }
    int seeds = replay_all(argv[1], true);
    int grown = replay_all(argv[2], false);
    printf("%d seeds, %d grown\n", seeds, grown);
    return seeds > 0 && grown >= 0 ? 0 : 1;
}
