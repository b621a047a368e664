/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/extender.h"

#include "reader.h"

/* ExtenderBindingArgs: the bind verb's request. */

static void reset_args(struct gs_binding_args *args)
{
    gs_arena_reset(&args->arena);
    args->name = args->ns = args->uid = args->node = "";
}

void gs_binding_args_release(struct gs_binding_args *args)
{
    gs_arena_release(&args->arena);
    *args = (struct gs_binding_args){0};
}

#define MEMBER(key, field) GS_MEMBER(struct gs_binding_args, key, field)

static const struct gs_member members[] = {
    MEMBER("PodName", name),
    MEMBER("PodNamespace", ns),
    MEMBER("PodUID", uid),
    MEMBER("Node", node),
    {0},
};

static int require_all(const struct gs_binding_args *args, struct gs_error *err)
{
    for (const struct gs_member *member = members; member->kind != GS_READ_END; member++) {
        const char *const *value = (const void *)((const char *)args + member->at);
        if (!(*value)[0])
            return gs_fail(err, GS_EINVAL, "%s is missing", member->key);
    }
    return 0;
}

int gs_codec_binding_args(struct gs_slice body, struct gs_binding_args *ret, struct gs_error *err)
{
    reset_args(ret);
    struct gs_reader reader = {.arena = &ret->arena, .any_case = true};
    if (gs_read_document(&reader, body, "ExtenderBindingArgs", members, ret, err) == 0 &&
        require_all(ret, err) == 0)
        return 0;
    reset_args(ret);
    return -1;
}
