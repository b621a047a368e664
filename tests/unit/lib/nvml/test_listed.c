/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/nvml/listed.h"

#include <unistd.h>

#include "gpushare/base/clock.h"

#include "rows.h"

static void a_spec_lists_gpus_or_is_refused(void **state)
{
    static const struct {
        const char *row, *spec;
        uint32_t count, first_mib, last_mib;
    } rows[] = {
        {"one", "80GiB", 1, 81920, 81920},
        {"two kinds", "2x16384MiB,1x80GiB", 3, 16384, 81920},
        {"largest", "64x1MiB", 64, 1, 1},
        {"no unit", "2x16", 0, 0, 0},
        {"zero GPUs", "0x16GiB", 0, 0, 0},
        {"zero memory", "1x0GiB", 0, 0, 0},
        {"one too many", "64x1GiB,1GiB", 0, 0, 0},
        {"overflow", "1x4294967296MiB", 0, 0, 0},
        {"GiB overflow", "1x4294967295GiB", 0, 0, 0},
        {"trailing comma", "1GiB,", 0, 0, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_gpu_source source;
        struct gs_gpu_set set = {0};
        struct gs_error err = {0};
        int result = gs_gpus_from_spec(r->spec, &source, &err);
        row_equal(r->row, result, r->count ? 0 : -1);
        if (result < 0) {
            row_equal(r->row, err.code, GS_EINVAL);
            continue;
        }
        row_equal(r->row, source.ops->read(source.ctx, &set, &err), 0);
        row_equal(r->row, set.count, r->count);
        row_equal(r->row, set.gpus[0].mem_mib, r->first_mib);
        row_equal(r->row, set.gpus[r->count - 1].mem_mib, r->last_mib);
        row_equal(r->row, set.gpus[r->count - 1].idx, r->count - 1);
        source.ops->close(source.ctx);
    }
}

struct listed {
    char path[64];
    struct gs_gpu_source source;
};

static void put(const char *path, const char *text)
{
    char other[80];
    snprintf(other, sizeof(other), "%s.new", path);
    FILE *file = fopen(other, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(other, path), 0);
}

#define ONE           "{\"idx\":0,\"mem\":16,\"uuid\":\"GPU-a\"}"
#define OTHER         "{\"idx\":1,\"mem\":4,\"memMiB\":5000,\"healthy\":false}"
#define FILE_OF(gpus) "{\"v\":1,\"unit\":\"GiB\",\"gpus\":[" gpus "]}"

static void open_listed(struct listed *listed, const char *text)
{
    struct gs_error err = {0};
    *listed = (struct listed){.path = "/tmp/gpushare-listed.XXXXXX"};
    int fd = mkstemp(listed->path);
    assert_true(fd >= 0);
    close(fd);
    put(listed->path, text);
    assert_int_equal(gs_gpus_from_file(listed->path, &listed->source, &err), 0);
}

static void close_listed(struct listed *listed)
{
    listed->source.ops->close(listed->source.ctx);
    unlink(listed->path);
}

static void a_file_is_read_again_when_it_changes(void **state)
{
    struct listed listed;
    struct gs_gpu_set set;
    struct gs_error err = {0};
    open_listed(&listed, FILE_OF(ONE "," OTHER));
    assert_int_equal(listed.source.ops->read(listed.source.ctx, &set, &err), 0);
    assert_int_equal(set.count, 2);
    assert_int_equal(set.gpus[0].mem_mib, 16384);
    assert_int_equal(set.gpus[1].mem_mib, 5000);
    assert_true(set.gpus[0].healthy && !set.gpus[1].healthy);
    assert_int_equal(listed.source.ops->wait(listed.source.ctx, GS_NS_PER_MS, &err), 0);
    assert_int_equal(set.vendor, 0);
    put(listed.path, "{\"v\":1,\"unit\":\"GiB\",\"vendor\":\"simulated\",\"gpus\":["
                     "{\"idx\":0,\"mem\":16,\"minor\":77}]}");
    assert_int_equal(listed.source.ops->wait(listed.source.ctx, GS_NS_PER_S, &err), 1);
    assert_int_equal(listed.source.ops->read(listed.source.ctx, &set, &err), 0);
    assert_int_equal(set.count, 1);
    assert_string_equal(gs_vendors[set.vendor].name, "simulated");
    assert_int_equal(set.gpus[0].node, 77 + 1);
    close_listed(&listed);
}

static void a_broken_file_changes_nothing(void **state)
{
    struct listed listed;
    struct gs_gpu_set set = {.count = 7};
    struct gs_error err = {0};
    open_listed(&listed, "{\"v\":1");
    assert_int_equal(listed.source.ops->read(listed.source.ctx, &set, &err), -1);
    assert_int_equal(err.code, GS_EPROTO);
    assert_int_equal(set.count, 7);
    assert_int_equal(listed.source.ops->wait(listed.source.ctx, GS_NS_PER_MS, &err), 0);
    put(listed.path, "{\"v\":1,\"unit\":\"GiB\",\"vendor\":\"nobody\",\"gpus\":[]}");
    gs_error_clear(&err);
    assert_int_equal(listed.source.ops->read(listed.source.ctx, &set, &err), -1);
    assert_non_null(strstr(err.msg, "the vendor nobody is not known"));
    assert_int_equal(set.count, 7);
    unlink(listed.path);
    gs_error_clear(&err);
    assert_int_equal(listed.source.ops->read(listed.source.ctx, &set, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    close_listed(&listed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_lists_gpus_or_is_refused),
        cmocka_unit_test(a_file_is_read_again_when_it_changes),
        cmocka_unit_test(a_broken_file_changes_nothing),
    };
    return GS_RUN(tests);
}
