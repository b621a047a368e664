/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over the seeds of a folder without libFuzzer: each one whole, and cut short at
 * every length (seeds up to CUT_MAX_BYTES). Each input lies in memory of exactly its size, so that
 * a sanitizer sees a read past its end. Fails when there is no seed.
 */
#include <dirent.h>

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

static int replay(const char *folder, const char *name)
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
    for (size_t cut = 0; result == 0 && cut < len && len <= CUT_MAX_BYTES; cut++)
        result = run(bytes, cut);
    return result;
}

int main(int argc, char **argv)
{
    int seeds = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        if (replay(argv[1], entry->d_name) < 0)
            return 1;
        seeds++;
    }
    closedir(dir);
    printf("%d seeds\n", seeds);
    return seeds ? 0 : 1;
}
