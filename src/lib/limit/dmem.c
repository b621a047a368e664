/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/dmem.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpushare/base/num.h"

static bool is_name(struct gs_slice text)
{
    if (text.len == 0 || text.len >= GS_DMEM_REGION_BYTES)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= ' ' || text.at[i] == 0x7f)
            return false;
    return true;
}

static bool parse_line(struct gs_slice text, struct gs_dmem_line *ret)
{
    struct gs_slice value = text, region = gs_slice_cut(&value, ' ');
    uint64_t bytes = GS_DMEM_NO_LIMIT;
    if (!is_name(region))
        return false;
    if (!gs_slice_eq(value, GS_SLICE("max")) && !gs_parse_u64(value.at, value.len, &bytes))
        return false;
    *ret = (struct gs_dmem_line){region, bytes};
    return true;
}

int gs_dmem_parse(struct gs_slice text, struct gs_dmem_line *lines, size_t *ret_count,
                  struct gs_error *err)
{
    size_t count = 0;
    while (text.len > 0) {
        struct gs_slice line = gs_slice_cut(&text, '\n');
        if (count == GS_DMEM_LINES_MAX)
            return gs_fail(err, GS_ETOOBIG, "more than %d regions", GS_DMEM_LINES_MAX);
        if (!parse_line(line, &lines[count]))
            return gs_fail(err, GS_EPROTO, "line %zu is not a region and a number", count + 1);
        count++;
    }
    *ret_count = count;
    return 0;
}

const struct gs_dmem_line *gs_dmem_find(const struct gs_dmem_line *lines, size_t count,
                                        const char *region)
{
    struct gs_slice name = gs_slice_of(region);
    for (size_t i = 0; i < count; i++)
        if (gs_slice_eq(lines[i].region, name))
            return &lines[i];
    return NULL;
}

void gs_dmem_format(const char *region, uint64_t bytes, char out[GS_DMEM_WRITE_BYTES])
{
    if (bytes == GS_DMEM_NO_LIMIT)
        snprintf(out, GS_DMEM_WRITE_BYTES, "%s max\n", region);
    else
        snprintf(out, GS_DMEM_WRITE_BYTES, "%s %" PRIu64 "\n", region, bytes);
}
