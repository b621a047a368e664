/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/extender.h"

#include <stdlib.h>

#include "gpushare/codec/pod.h"
#include "reader.h"

/* Empties the struct and keeps its memory. */
static void reset_args(struct gs_filter_args *args)
{
    gs_pod_reset(&args->pod);
    gs_arena_reset(&args->arena);
    args->has_names = args->has_nodes = false;
    args->name_count = args->node_count = 0;
    args->names_plain = args->node_names_plain = true;
}

void gs_filter_args_release(struct gs_filter_args *args)
{
    gs_pod_release(&args->pod);
    gs_arena_release(&args->arena);
    gs_buf_release(&args->kept);
    free(args->names);
    free(args->nodes);
    free(args->node_names);
    *args = (struct gs_filter_args){0};
}

/* Makes room for one more entry. These arrays may be long and are reused by later requests, so they
 * are not in the arena. */
static bool make_room(struct gs_reader *reader, struct gs_slice **items, uint32_t *room,
                      uint32_t count)
{
    if (count < *room)
        return true;
    if (count >= GS_EXTENDER_NODES_MAX)
        return gs_reader_stop(reader, GS_ETOOBIG, "has more than 100000 entries");
    uint32_t wider = *room ? *room * 2 : 128;
    if (wider > GS_EXTENDER_NODES_MAX)
        wider = GS_EXTENDER_NODES_MAX;
    struct gs_slice *grown = reallocarray(*items, wider, sizeof(*grown));
    if (!grown)
        return gs_reader_stop(reader, GS_ENOMEM, "");
    *items = grown;
    *room = wider;
    return true;
}

/* The characters of a name: in the body, or decoded into the arena if it has escapes. */
static bool keep_name(struct gs_reader *reader, struct gs_scan_text text, struct gs_slice *to,
                      bool *plain)
{
    *plain &= !text.escaped;
    return gs_scan_text_slice(reader->arena, text, to) || gs_reader_stop(reader, GS_ENOMEM, "");
}

/* A longer list of names is parsed for each request. */
enum { KEPT_BYTES_MAX = 1 << 20 };

/* If NodeNames has the same bytes as in the last request, the names are the same. */
static bool take_kept_names(struct gs_scan *scan, struct gs_filter_args *args)
{
    size_t len = args->kept.len;
    if (!len || (size_t)(scan->end - scan->at) < len || memcmp(scan->at, args->kept.data, len) != 0)
        return false;
    scan->at += len;
    args->name_count = args->kept_count;
    return true;
}

static void keep_names(struct gs_filter_args *args, struct gs_slice text)
{
    args->kept.max = KEPT_BYTES_MAX;
    gs_buf_append(&args->kept, text.at, text.len);
    if (gs_buf_failed(&args->kept)) {
        gs_buf_reset(&args->kept);
        return;
    }
    args->kept_count = args->name_count;
    for (uint32_t i = 0; i < args->name_count; i++)
        args->names[i].at = args->kept.data + (args->names[i].at - text.at);
}

/* Reads one name that gs_scan_plain_strings() does not: after white space, or with escapes. */
static bool read_name(struct gs_reader *reader, struct gs_filter_args *args)
{
    struct gs_scan_text text;
    return make_room(reader, &args->names, &args->name_room, args->name_count) &&
           gs_scan_string(&reader->scan, "[]", &text) &&
           keep_name(reader, text, &args->names[args->name_count], &args->names_plain);
}

struct filter_reader {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    struct gs_filter_args *args;
    struct gs_slice pod;
};

static void read_names(struct gs_reader *reader, void *to)
{
    struct gs_filter_args *args = ((struct filter_reader *)to)->args;
    struct gs_scan *scan = &reader->scan;
    args->names_plain = true;
    if (gs_scan_peek(scan) == GS_SCAN_ARRAY && take_kept_names(scan, args)) {
        args->has_names = true;
        return;
    }
    const char *begin = scan->at;
    if (!gs_read_array(reader))
        return;
    args->has_names = true;
    args->name_count = 0;
    args->names_id++;
    gs_buf_reset(&args->kept);
    for (;;) {
        if (args->name_count < args->name_room)
            args->name_count += gs_scan_plain_strings(scan, args->names + args->name_count,
                                                      args->name_room - args->name_count);
        if (!gs_scan_element(scan))
            break;
        if (!read_name(reader, args))
            return;
        args->name_count++;
    }
    if (!scan->failed && args->names_plain)
        keep_names(args, (struct gs_slice){begin, (size_t)(scan->at - begin)});
}

struct node {
    struct gs_scan_text name;
};

static const struct gs_member node_members[] = {
    GS_OBJECT("metadata", GS_MEMBERS(GS_MEMBER(struct node, "name", name))),
    {0},
};

/* Records the bytes and the name of one Node. gs_codec_node() decodes it later. */
static bool read_node(struct gs_reader *reader, struct gs_filter_args *args)
{
    struct gs_scan *scan = &reader->scan;
    struct node node = {0};
    gs_scan_peek(scan);
    const char *begin = scan->at;
    gs_read_entry(reader, "[]", node_members, &node);
    if (scan->failed)
        return false;
    args->nodes[args->node_count] = (struct gs_slice){begin, (size_t)(scan->at - begin)};
    return keep_name(reader, node.name, &args->node_names[args->node_count],
                     &args->node_names_plain);
}

static void read_item(struct gs_reader *reader, void *to)
{
    struct gs_filter_args *args = to;
    const uint32_t count = args->node_count;
    args->node_count += make_room(reader, &args->nodes, &args->node_room, count) &&
                        make_room(reader, &args->node_names, &args->node_name_room, count) &&
                        read_node(reader, args);
}

static const struct gs_member list_members[] = {
    GS_EACH_IN(struct gs_filter_args, "items", node_count, read_item),
    {0},
};

static void read_nodes(struct gs_reader *reader, void *to)
{
    struct gs_filter_args *args = ((struct filter_reader *)to)->args;
    args->has_nodes = true;
    gs_read_members(reader, list_members, args);
}

static const struct gs_member args_members[] = {
    GS_CALL("NodeNames", read_names),
    GS_CALL("Nodes", read_nodes),
    GS_MEMBER(struct filter_reader, "Pod", pod),
    {0},
};

static int decode_args(const struct gs_names *names, struct gs_slice body,
                       struct gs_filter_args *args, struct gs_error *err)
{
    struct filter_reader fr = {.reader = {.arena = &args->arena, .any_case = true}, .args = args};
    if (gs_read_document(&fr.reader, body, "ExtenderArgs", args_members, &fr, err) < 0)
        return -1;
    if (!fr.pod.at)
        return gs_fail(err, GS_EINVAL, "Pod is missing");
    if (!args->has_names && !args->has_nodes)
        return gs_fail(err, GS_EINVAL, "NodeNames and Nodes are missing");
    if (gs_codec_pod(names, fr.pod, &args->pod, err) < 0)
        return gs_error_prefix(err, "Pod");
    return 0;
}

int gs_codec_filter_args(const struct gs_names *names, struct gs_slice body,
                         struct gs_filter_args *ret, struct gs_error *err)
{
    reset_args(ret);
    if (decode_args(names, body, ret, err) == 0)
        return 0;
    reset_args(ret);
    return -1;
}
