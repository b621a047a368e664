/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mps_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/file.h"
#include "gpushare/base/num.h"
#include "gpushare/base/slice.h"

bool mps_path(const char *root, const char *uuid, const char *leaf, char ret[MPS_PATH_BYTES])
{
    if (uuid && (!uuid[0] || uuid[0] == '.' || strchr(uuid, '/')))
        return false;
    int len =
        snprintf(ret, MPS_PATH_BYTES, "%s/%s%s%s", root, uuid ? uuid : "", uuid ? "/" : "", leaf);
    return len < MPS_PATH_BYTES;
}

bool mps_state_write(const char *root, const char *uuid, const struct mps_state *state,
                     int64_t now_ns)
{
    char path[MPS_PATH_BYTES], line[MPS_WHY_BYTES * 2];
    int len =
        snprintf(line, sizeof(line), "%s %" PRId64 "%s%s\n", state->ready ? "ready" : "away",
                 now_ns / GS_NS_PER_S, state->ready ? "" : " ", state->ready ? "" : state->why);
    return mps_path(root, uuid, "state", path) &&
           gs_file_replace(path, line, (size_t)len, 0644, false, NULL) == 0;
}

static void set_away(struct mps_state *state, struct gs_slice why)
{
    state->ready = false;
    snprintf(state->why, sizeof(state->why), "%.*s", (int)why.len, why.at);
}

void mps_state_parse(const char *line, size_t len, int64_t now_ns, struct mps_state *ret)
{
    struct gs_slice rest = {line, len}, text = gs_slice_cut(&rest, '\n');
    const struct gs_slice word = gs_slice_cut(&text, ' '), number = gs_slice_cut(&text, ' ');
    const uint64_t now_s = (uint64_t)(now_ns / GS_NS_PER_S);
    bool ready = gs_slice_eq(word, GS_SLICE("ready"));
    uint64_t at_s;
    if (!rest.at || (!ready && !gs_slice_eq(word, GS_SLICE("away"))) ||
        !gs_parse_u64(number.at, number.len, &at_s))
        set_away(ret, GS_SLICE("the state file of gpushare-mps is invalid"));
    else if (at_s + MPS_STATE_MAX_S < now_s || at_s > now_s + 1)
        set_away(ret, GS_SLICE("gpushare-mps is no longer running on this node"));
    else if (ready)
        *ret = (struct mps_state){.ready = true};
    else
        set_away(ret, text);
}

void mps_state_read(const char *root, const char *uuid, int64_t now_ns, struct mps_state *ret)
{
    char path[MPS_PATH_BYTES], line[MPS_WHY_BYTES * 2];
    FILE *file = mps_path(root, uuid, "state", path) ? fopen(path, "re") : NULL;
    if (!file) {
        set_away(ret, GS_SLICE("gpushare-mps is not running on this node, or does not manage this "
                               "GPU"));
        return;
    }
    size_t len = fread(line, 1, sizeof(line), file);
    fclose(file);
    mps_state_parse(line, len, now_ns, ret);
}
