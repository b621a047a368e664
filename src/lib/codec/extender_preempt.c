/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/extender.h"

#include "gpushare/codec/pod.h"
#include "reader.h"

/* ExtenderPreemptionArgs: the preempt verb's request. */

struct node_list {
    bool there;
    struct gs_victims *items;
    uint32_t count;
};

struct preempt_reader {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    struct node_list meta, full;
    const struct node_list *list; /* the one that is being read */
    uint32_t victims;             /* total */
    struct gs_slice pod;
};

static void reset_args(struct gs_preemption_args *args)
{
    gs_pod_reset(&args->pod);
    gs_arena_reset(&args->arena);
    args->meta = false;
    args->nodes = NULL;
    args->node_count = 0;
}

void gs_preemption_args_release(struct gs_preemption_args *args)
{
    gs_pod_release(&args->pod);
    gs_arena_release(&args->arena);
    *args = (struct gs_preemption_args){0};
}

/* metadata.uid of a victim's Pod object, or UID of a MetaPod. */
static const struct gs_member meta_members[] = {
    GS_MEMBER(struct gs_victim, "UID", uid),
    {0},
};
static const struct gs_member pod_members[] = {
    GS_OBJECT("metadata", GS_MEMBERS(GS_MEMBER(struct gs_victim, "uid", uid))),
    {0},
};

static void read_victim(struct preempt_reader *pr, struct gs_victim *victim)
{
    struct gs_scan *scan = &pr->reader.scan;
    *victim = (struct gs_victim){.uid = ""};
    gs_scan_peek(scan);
    const char *begin = scan->at;
    gs_read_entry(&pr->reader, "[]", pr->list == &pr->meta ? meta_members : pod_members, victim);
    if (pr->list == &pr->full)
        victim->pod = (struct gs_slice){begin, (size_t)(scan->at - begin)};
}

static void read_pod(struct gs_reader *reader, void *to)
{
    struct preempt_reader *pr = (struct preempt_reader *)reader;
    struct gs_victims *victims = to;
    struct gs_victim *victim =
        gs_read_append(reader, &victims->pods, &victims->pod_count, sizeof(*victim), UINT32_MAX);
    if (++pr->victims > GS_EXTENDER_VICTIMS_MAX)
        gs_reader_stop(reader, GS_ETOOBIG, "has too many victims");
    else if (victim)
        read_victim(pr, victim);
}

static const struct gs_member victims_members[] = {
    GS_EACH_IN(struct gs_victims, "Pods", pod_count, read_pod),
    GS_MEMBER(struct gs_victims, "NumPDBViolations", pdb_violations),
    {0},
};

static void read_nodes(struct gs_reader *reader, void *to)
{
    struct node_list *list = to;
    struct gs_scan_text key;
    if (!gs_read_object(reader))
        return;
    ((struct preempt_reader *)reader)->list = list;
    *list = (struct node_list){.there = true};
    while (gs_scan_key(&reader->scan, &key)) {
        struct gs_victims *victims = gs_read_append(reader, &list->items, &list->count,
                                                    sizeof(*victims), GS_EXTENDER_NODES_MAX);
        if (!victims)
            return;
        victims->node = gs_read_dup(reader, key);
        gs_read_members(reader, victims_members, victims);
    }
}

#define NODES(key, field) GS_CALL_AT(struct preempt_reader, key, field, read_nodes)

static const struct gs_member args_members[] = {
    NODES("NodeNameToMetaVictims", meta),
    NODES("NodeNameToVictims", full),
    GS_MEMBER(struct preempt_reader, "Pod", pod),
    {0},
};

static int decode_args(const struct gs_names *names, struct gs_slice body,
                       struct gs_preemption_args *args, struct gs_error *err)
{
    struct preempt_reader pr = {.reader = {.arena = &args->arena, .any_case = true}};
    if (gs_read_document(&pr.reader, body, "ExtenderPreemptionArgs", args_members, &pr, err) < 0)
        return -1;
    if (!pr.pod.at)
        return gs_fail(err, GS_EINVAL, "Pod is missing");
    if (!pr.meta.there && !pr.full.there)
        return gs_fail(err, GS_EINVAL, "NodeNameToVictims and NodeNameToMetaVictims are missing");
    if (gs_codec_pod(names, pr.pod, &args->pod, err) < 0)
        return gs_error_prefix(err, "Pod");
    const struct node_list *list = pr.meta.there ? &pr.meta : &pr.full;
    args->meta = pr.meta.there;
    args->nodes = list->items;
    args->node_count = list->count;
    return 0;
}

int gs_codec_preemption_args(const struct gs_names *names, struct gs_slice body,
                             struct gs_preemption_args *ret, struct gs_error *err)
{
    reset_args(ret);
    if (decode_args(names, body, ret, err) == 0)
        return 0;
    reset_args(ret);
    return -1;
}
