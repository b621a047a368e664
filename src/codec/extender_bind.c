/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/extender.h"

#include "reader.h"

/* ExtenderBindingArgs: the bind verb's request. */

static void reset(struct gs_binding_args *args)
{
    gs_arena_reset(&args->arena);
    args->name = args->ns = args->uid = args->node = "";
}

void gs_binding_args_release(struct gs_binding_args *args)
{
    gs_arena_release(&args->arena);
    *args = (struct gs_binding_args){0};
}

static void read_args(struct gs_reader *reader, struct gs_binding_args *args)
{
    struct gs_scan_text key;
    gs_scan_object(&reader->scan, "ExtenderBindingArgs");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is_nocase(key, "PodName"))
            gs_read_string(reader, "PodName", &args->name);
        else if (gs_scan_text_is_nocase(key, "PodNamespace"))
            gs_read_string(reader, "PodNamespace", &args->ns);
        else if (gs_scan_text_is_nocase(key, "PodUID"))
            gs_read_string(reader, "PodUID", &args->uid);
        else if (gs_scan_text_is_nocase(key, "Node"))
            gs_read_string(reader, "Node", &args->node);
        else
            gs_scan_skip(&reader->scan);
    }
}

static int require(const struct gs_binding_args *args, struct gs_error *err)
{
    const struct {
        const char *value;
        const char *field;
    } fields[] = {{args->name, "PodName"},
                  {args->ns, "PodNamespace"},
                  {args->uid, "PodUID"},
                  {args->node, "Node"}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!fields[i].value[0])
            return gs_fail(err, GS_EINVAL, "%s is missing", fields[i].field);
    }
    return 0;
}

int gs_codec_binding_args(struct gs_slice body, struct gs_binding_args *ret, struct gs_error *err)
{
    reset(ret);
    struct gs_reader reader = {.arena = &ret->arena};
    gs_scan_init(&reader.scan, body);
    read_args(&reader, ret);
    if (gs_reader_finish(&reader, err) == 0 && require(ret, err) == 0)
        return 0;
    reset(ret);
    return -1;
}
