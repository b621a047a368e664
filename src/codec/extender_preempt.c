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
    struct gs_reader reader;
    struct node_list meta, full;
    uint32_t victims; /* seen in all */
    struct gs_slice pod;
};

static void reset(struct gs_preemption_args *args)
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
static void read_pod_metadata(struct gs_reader *reader, const char **ret_uid)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata of a victim"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "uid"))
            gs_read_string(reader, "metadata.uid of a victim", ret_uid);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_victim(struct gs_reader *reader, bool meta, struct gs_victim *victim)
{
    struct gs_scan *scan = &reader->scan;
    struct gs_scan_text key;
    *victim = (struct gs_victim){.uid = ""};
    gs_scan_peek(scan);
    const char *begin = scan->at;
    gs_scan_object(scan, "victim");
    while (gs_scan_key(scan, &key)) {
        if (meta && gs_scan_text_is_nocase(key, "UID"))
            gs_read_string(reader, "UID of a victim", &victim->uid);
        else if (!meta && gs_scan_text_is(key, "metadata"))
            read_pod_metadata(reader, &victim->uid);
        else
            gs_scan_skip(scan);
    }
    if (!meta)
        victim->pod = (struct gs_slice){begin, (size_t)(scan->at - begin)};
}

static void read_pods(struct preempt_reader *pr, bool meta, struct gs_victims *victims)
{
    struct gs_reader *reader = &pr->reader;
    if (!gs_read_array(reader, "Pods of a node"))
        return;
    victims->pod_count = 0;
    while (gs_scan_element(&reader->scan)) {
        struct gs_victim *pods =
            gs_read_grow(reader, victims->pods, victims->pod_count, sizeof(*pods), "Pods of a node",
                         GS_EXTENDER_VICTIMS_MAX);
        if (!pods)
            return;
        victims->pods = pods;
        if (++pr->victims > GS_EXTENDER_VICTIMS_MAX) {
            gs_reader_stop(reader, GS_ETOOBIG, "preemption", "has too many victims");
            return;
        }
        read_victim(reader, meta, &pods[victims->pod_count]);
        victims->pod_count++;
    }
}

static void read_victims(struct preempt_reader *pr, bool meta, struct gs_victims *victims)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "victims of a node"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is_nocase(key, "Pods"))
            read_pods(pr, meta, victims);
        else if (!gs_scan_text_is_nocase(key, "NumPDBViolations"))
            gs_scan_skip(&reader->scan);
        else if (!gs_scan_null(&reader->scan))
            gs_scan_i64(&reader->scan, "NumPDBViolations", &victims->pdb_violations);
    }
}

static void read_nodes(struct preempt_reader *pr, bool meta, struct node_list *list)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    const char *what = meta ? "NodeNameToMetaVictims" : "NodeNameToVictims";
    if (!gs_read_object(reader, what))
        return;
    *list = (struct node_list){.there = true};
    while (gs_scan_key(&reader->scan, &key)) {
        struct gs_victims *items = gs_read_grow(reader, list->items, list->count, sizeof(*items),
                                                what, GS_EXTENDER_NODES_MAX);
        if (!items)
            return;
        list->items = items;
        struct gs_victims *victims = &items[list->count++];
        *victims = (struct gs_victims){.node = gs_scan_string_dup(reader->arena, key)};
        if (!victims->node) {
            gs_reader_stop(reader, GS_ENOMEM, what, "");
            return;
        }
        read_victims(pr, meta, victims);
    }
}

static void read_args(struct preempt_reader *pr)
{
    struct gs_scan *scan = &pr->reader.scan;
    struct gs_scan_text key;
    gs_scan_object(scan, "ExtenderPreemptionArgs");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is_nocase(key, "NodeNameToMetaVictims"))
            read_nodes(pr, true, &pr->meta);
        else if (gs_scan_text_is_nocase(key, "NodeNameToVictims"))
            read_nodes(pr, false, &pr->full);
        else if (gs_scan_text_is_nocase(key, "Pod") && !gs_scan_null(scan))
            gs_scan_raw(scan, &pr->pod);
        else if (!gs_scan_text_is_nocase(key, "Pod"))
            gs_scan_skip(scan);
    }
}

static int decode(const struct gs_names *names, struct gs_slice body,
                  struct gs_preemption_args *args, struct gs_error *err)
{
    struct preempt_reader pr = {.reader = {.arena = &args->arena}};
    gs_scan_init(&pr.reader.scan, body);
    read_args(&pr);
    if (gs_reader_finish(&pr.reader, err) < 0)
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
    reset(ret);
    if (decode(names, body, ret, err) == 0)
        return 0;
    reset(ret);
    return -1;
}
