/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over its inputs without libFuzzer: the seeds of a folder, each whole and cut
 * short at every length (up to CUT_MAX_BYTES), and those that libFuzzer found, in one file
 * (campaign.py says how), if there is one. Each lies in memory of exactly its size, so that a
 * sanitizer sees a read past its end. Fails when there is no seed.
 */
#include <dirent.h>
#include <malloc.h>

#include "fuzz.h"
#include "gpushare/base/cleanup.h"

enum { CUT_MAX_BYTES = 8192, FILE_MAX_BYTES = 1 << 24 };

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

/* *Caller frees.* NULL when it cannot be read. */
static uint8_t *read_whole(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *bytes = malloc(FILE_MAX_BYTES);
    *ret_len = bytes ? fread(bytes, 1, FILE_MAX_BYTES, file) : 0;
    fclose(file);
    return bytes;
}

static int replay_seed(const char *folder, const char *name)
{
    char path[4096];
    size_t len = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    _cleanup_free_ uint8_t *bytes = read_whole(path, &len);
    int result = bytes ? run(bytes, len) : -1;
    for (size_t cut = 0; result == 0 && cut < len && len <= CUT_MAX_BYTES; cut++)
        result = run(bytes, cut);
    return result;
}

/* How many seeds there were, -1 when one cannot be read. */
static int replay_seeds(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return -1;
    for (struct dirent *entry; count >= 0 && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.')
            count = replay_seed(folder, entry->d_name) < 0 ? -1 : count + 1;
    }
    closedir(dir);
    return count;
}

/* How many inputs there were (none without a file), -1 when one is cut off. */
static int replay_grown(const char *path)
{
    size_t len = 0, at = 0;
    int count = 0;
    _cleanup_free_ uint8_t *bytes = read_whole(path, &len);
    for (; bytes && at < len; count++) {
        const uint8_t *b = bytes + at;
        if (len - at < 4)
            return -1;
        size_t size = b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
        if (size > len - at - 4 || run(b + 4, size) < 0)
            return -1;
        at += 4 + size;
    }
    return count;
}

int main(int argc, char **argv)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* as the programs do: large tables come zeroed */
    if (argc != 3) {
        fprintf(stderr, "usage: %s SEEDS GROWN\n", argv[0]);
        return 2;
    }
    int seeds = replay_seeds(argv[1]);
    int grown = replay_grown(argv[2]);
    printf("%d seeds, %d grown\n", seeds, grown);
    return seeds > 0 && grown >= 0 ? 0 : 1;
}
