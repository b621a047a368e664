/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mps_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/file.h"
#include "gpushare/base/num.h"

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

static void set_away(struct mps_state *state, const char *why, size_t len)
{
    state->ready = false;
    snprintf(state->why, sizeof(state->why), "%.*s", (int)len, why);
}

static void be_away(struct mps_state *state, const char *why)
{
    set_away(state, why, strlen(why));
}

void mps_state_parse(const char *line, size_t len, int64_t now_ns, struct mps_state *ret)
{
    static const char torn[] = "the state file of gpushare-mps is invalid";
    const char *end = memchr(line, '\n', len);
    const char *space = memchr(line, ' ', len);
    int64_t at_s;
    if (!end || !space || space > end) {
        be_away(ret, torn);
        return;
    }
    const char *number = space + 1;
    const char *why = memchr(number, ' ', (size_t)(end - number));
    bool ready = (size_t)(space - line) == strlen("ready") && memcmp(line, "ready", 5) == 0;
    bool away = (size_t)(space - line) == strlen("away") && memcmp(line, "away", 4) == 0;
    if (!gs_parse_i64(number, (size_t)((why ? why : end) - number), &at_s) || ready == away ||
        at_s < 0) {
        be_away(ret, torn);
        return;
    }
    if (now_ns / GS_NS_PER_S - at_s > MPS_STATE_MAX_S || at_s > now_ns / GS_NS_PER_S + 1)
        be_away(ret, "gpushare-mps is no longer running on this node");
    else if (ready)
        *ret = (struct mps_state){.ready = true};
    else
        set_away(ret, why ? why + 1 : "", why ? (size_t)(end - why - 1) : 0);
}

void mps_state_read(const char *root, const char *uuid, int64_t now_ns, struct mps_state *ret)
{
    char path[MPS_PATH_BYTES], line[MPS_WHY_BYTES * 2];
    FILE *file = mps_path(root, uuid, "state", path) ? fopen(path, "re") : NULL;
    if (!file) {
        be_away(ret, "gpushare-mps is not running on this node, or does not manage this GPU");
        return;
    }
    size_t len = fread(line, 1, sizeof(line), file);
    fclose(file);
    mps_state_parse(line, len, now_ns, ret);
}
