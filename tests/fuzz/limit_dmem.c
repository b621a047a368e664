/* SPDX-License-Identifier: Apache-2.0 */
/* What a file of the dmem controller says is the same after being written out and read again, and a
 * GPU's region is one of its regions. */
#include "fuzz.h"
#include "gpushare/limit/region.h"

static void written_out_it_reads_the_same(const struct gs_dmem_line *line)
{
    char region[GS_DMEM_REGION_BYTES] = "", text[GS_DMEM_WRITE_BYTES];
    struct gs_dmem_line again[GS_DMEM_LINES_MAX];
    size_t count = 0;
    FUZZ_CHECK(line->region.len > 0 && line->region.len < sizeof(region));
    memcpy(region, line->region.at, line->region.len);
    gs_dmem_format(region, line->bytes, text);
    FUZZ_CHECK(gs_dmem_parse(gs_slice_of(text), again, &count, NULL) == 0 && count == 1);
    FUZZ_CHECK(gs_slice_eq(again[0].region, line->region) && again[0].bytes == line->bytes);
}

static void a_region_is_one_of_the_lines(const struct gs_dmem_line *lines, size_t count)
{
    static const char *const addresses[] = {"0000:41:00.0", "00000000:C1:00.0", "0000:41:00.1"};
    for (size_t i = 0; i < 3; i++) {
        struct gs_region region = gs_region_of(addresses, 3, i, lines, count);
        bool usable = region.state == GS_ENFORCED_DMEM;
        FUZZ_CHECK(usable == (gs_dmem_find(lines, count, region.name) != NULL));
    }
}

FUZZ_TEXT(text)
{
    struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
    size_t count = 77;
    struct gs_error err = {0};
    if (gs_dmem_parse(text, lines, &count, &err) < 0) {
        FUZZ_CHECK(count == 77 && err.code != GS_OK);
        return;
    }
    FUZZ_CHECK(count <= GS_DMEM_LINES_MAX);
    for (size_t i = 0; i < count; i++)
        written_out_it_reads_the_same(&lines[i]);
    a_region_is_one_of_the_lines(lines, count);
}
