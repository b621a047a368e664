/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/sim/manifest.h"

#include <string.h>

#include "gpushare/codec/manifest.h"

struct taking {
    gs_sim_take *each;
    void *ctx;
};

static int take(void *ctx, const char *version, const char *type, struct gs_slice json,
                struct gs_error *err)
{
    const struct taking *taking = ctx;
    const enum gs_sim_kind kind = gs_sim_kind_of_type(version, type);
    if (kind == GS_SIM_KINDS)
        return gs_fail(err, GS_EINVAL, "the cluster knows no kind \"%.40s\" of \"%.40s\"", type,
                       version);
    return taking->each(taking->ctx, kind, json, err);
}

int gs_sim_manifest_parse(struct gs_slice text, const char *name, gs_sim_take *each, void *ctx,
                          struct gs_error *err)
{
    struct taking taking = {each, ctx};
    return gs_manifest_parse(text, name, take, &taking, err);
}

int gs_sim_manifest_read(const char *path, gs_sim_take *each, void *ctx, struct gs_error *err)
{
    struct taking taking = {each, ctx};
    return gs_manifest_read(path, take, &taking, err);
}

int gs_sim_manifest_read_listed(const char *option, const char *paths, gs_sim_take *each, void *ctx,
                                struct gs_error *err)
{
    for (const char *at = paths; at && *at;) {
        char path[1024];
        size_t len = strcspn(at, ",");
        if (len >= sizeof(path))
            return gs_fail(err, GS_EINVAL, "%s: a file name is too long", option);
        memcpy(path, at, len);
        path[len] = 0;
        if (len > 0 && gs_sim_manifest_read(path, each, ctx, err) < 0)
            return -1;
        at += len + (at[len] == ',');
    }
    return 0;
}
