/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be written to the API, in order, until it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/backoff.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/codec/event.h"
#include "internal.h"

#define FIRST_PAUSE_NS (500 * GS_NS_PER_MS)
#define LAST_PAUSE_NS  (32 * GS_NS_PER_S)

/* More than that is cut when it is sent. */
enum { MESSAGE_BYTES = GS_EVENT_MESSAGE_MAX + 1 };

static void free_write(struct queued_write *write)
{
    gs_arena_release(&write->texts);
    gs_arena_release(&write->annotations);
    free(write);
}

void gs_writes_free(struct gs_allocator *alloc)
{
    while (alloc->writes) {
        struct queued_write *next = alloc->writes->next;
        free_write(alloc->writes);
        alloc->writes = next;
    }
}

void gs_writes_count(const struct gs_allocator *alloc, struct gs_allocator_stats *stats)
{
    for (const struct queued_write *at = alloc->writes; at; at = at->next) {
        stats->writes_queued++;
        stats->writes_untried += !at->failures;
        stats->node_events += !at->out.ns[0];
    }
}

int64_t gs_allocator_now_ns(const struct gs_allocator *alloc)
{
    return alloc->config.clock ? gs_clock_now_ns(alloc->config.clock) : 0;
}

static void append(struct gs_allocator *alloc, struct queued_write *write)
{
    struct queued_write **at = &alloc->writes;
    while (*at)
        at = &(*at)->next;
    write->next = NULL;
    *at = write;
}

/* At the end of the queue, its texts *copied*; not at all when out of memory. */
static void add_write(struct gs_allocator *alloc, const struct gs_allocator_write *what)
{
    struct queued_write *write = calloc(1, sizeof(*write));
    if (!write)
        return;
    struct gs_allocator_write *out = &write->out;
    const char **const texts[] = {&out->ns,         &out->name,      &out->uid,
                                  &out->message,    &out->about.api, &out->about.kind,
                                  &out->about.name, &out->about.uid};
    bool whole = true;
    *out = *what;
    out->number = ++alloc->write_number;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        whole &= !*texts[i] || (*texts[i] = gs_arena_strdup(&write->texts, *texts[i]));
    if (whole)
        append(alloc, write);
    else
        free_write(write);
}

static bool is_record_of(const struct queued_write *write, const char *uid)
{
    return !write->out.event && strcmp(write->out.uid, uid) == 0;
}

bool gs_record_is_queued(const struct gs_allocator *alloc, const char *uid)
{
    const struct queued_write *at = alloc->writes;
    while (at && !is_record_of(at, uid))
        at = at->next;
    return at != NULL;
}

/* Its annotations do not say yet where it is, or that all of its containers have their GPUs. */
static bool is_record_due(const struct claimant *claimant)
{
    return claimant->allocated &&
           (!gs_claimant_is_recorded(claimant) ||
            (claimant->done == claimant->request_count && !claimant->pod.assigned));
}

/* One that waits already says whatever is true when it is taken. */
void gs_write_record(struct gs_allocator *alloc, struct claimant *claimant)
{
    const struct gs_pod *pod = &claimant->pod;
    const struct queued_write *at = alloc->writes;
    if (!is_record_due(claimant))
        return;
    gs_claimant_note_move(alloc, claimant, !gs_claimant_is_recorded(claimant));
    while (at && (at->under_way || !is_record_of(at, pod->uid)))
        at = at->next;
    if (!at)
        add_write(alloc,
                  &(struct gs_allocator_write){.ns = pod->ns, .name = pod->name, .uid = pod->uid});
}

static void write_event(struct gs_allocator *alloc, const struct gs_pod *of,
                        const struct gs_event_object *about, bool warning, const char *reason,
                        const char *message)
{
    add_write(alloc, &(struct gs_allocator_write){.ns = of->ns,
                                                  .name = of->name,
                                                  .uid = of->uid,
                                                  .event = true,
                                                  .about = *about,
                                                  .warning = warning,
                                                  .reason = reason,
                                                  .message = message});
}

void gs_write_event(struct gs_allocator *alloc, const struct claimant *claimant, bool warning,
                    const char *reason, const char *message)
{
    const struct gs_event_object pod = {"v1", "Pod", claimant->pod.name, claimant->pod.uid};
    write_event(alloc, &claimant->pod, &pod, warning, reason, message);
}

void gs_write_owner_event(struct gs_allocator *alloc, const struct claimant *claimant,
                          const char *reason, const char *message)
{
    const struct gs_pod *pod = &claimant->pod;
    const struct gs_event_object owner = {pod->owner_api, pod->owner_kind, pod->owner_name,
                                          pod->owner_uid};
    char words[MESSAGE_BYTES];
    if (!pod->owner_uid[0] || !pod->owner_name[0] || pod->static_uid[0])
        return;
    snprintf(words, sizeof(words), "pod %s %s", pod->name, message);
    write_event(alloc, pod, &owner, true, reason, words);
}

/* `kubectl describe node` looks for events whose UID is the node's name, as the kubelet's are. */
void gs_allocator_tell_node(struct gs_allocator *alloc, bool warning, const char *reason,
                            const char *message)
{
    const char *name = alloc->config.node;
    const struct gs_pod node = {.ns = "", .name = name, .uid = name};
    const struct gs_event_object about = {"v1", "Node", name, name};
    write_event(alloc, &node, &about, warning, reason, message);
}

bool gs_event_is_queued(const struct gs_allocator *alloc, const char *uid, const char *reason)
{
    for (const struct queued_write *at = alloc->writes; at; at = at->next) {
        const struct gs_allocator_write *out = &at->out;
        if (out->event && strcmp(out->uid, uid) == 0 && strcmp(out->reason, reason) == 0)
            return true;
    }
    return false;
}

/* The annotations of a patch, as things are now: of a pod with a true record ASSIGNED alone. -1
 * when out of memory. */
static int compose(struct gs_allocator *alloc, struct queued_write *write,
                   const struct claimant *claimant)
{
    const struct gs_names *names = alloc->config.names;
    const struct gs_bind_record record = {
        .gpus = claimant->allocated,
        .dev_units = gs_allocator_gpu_size(alloc, claimant->allocated),
        .charge = claimant->charge,
        .assume_time_ns = claimant->pod.assume_time_ns,
    };
    struct gs_kv *kv;
    size_t count = 1;
    gs_arena_reset(&write->annotations);
    if (gs_claimant_is_recorded(claimant)) {
        kv = gs_arena_calloc(&write->annotations, count, sizeof(*kv));
        if (!kv)
            return -1;
        kv->key = names->assigned;
    } else if (gs_codec_bind_annotations(names, &claimant->pod, &record, &write->annotations, &kv,
                                         &count, NULL) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (claimant->done == claimant->request_count && strcmp(kv[i].key, names->assigned) == 0)
            kv[i].value = "true";
    }
    write->out.annotations = kv;
    write->out.annotation_count = count;
    return 0;
}

static void unlink_write(struct gs_allocator *alloc, const struct queued_write *write)
{
    struct queued_write **at = &alloc->writes;
    while (*at != write)
        at = &(*at)->next;
    *at = write->next;
}

static void drop(struct gs_allocator *alloc, struct queued_write *write)
{
    unlink_write(alloc, write);
    free_write(write);
}

/* The pod's own annotations are for those who read nothing else: the node's word comes first. */
static bool comes_too_early(const struct gs_allocator *alloc, const struct queued_write *write,
                            const struct claimant *claimant, bool events_only)
{
    const bool record = !write->out.event;
    return (events_only && record) || write->not_before_ns > gs_allocator_now_ns(alloc) ||
           (record && !gs_claimant_move_is_written(alloc, claimant));
}

/* Not when the pod is gone, its place open again, or its annotations are true. */
static bool holds_still(const struct queued_write *write, const struct claimant *claimant)
{
    return write->out.event || (claimant && is_record_due(claimant));
}

/* One that cannot be sent must not stop the others. */
static void put_off(struct gs_allocator *alloc, struct queued_write *write)
{
    unlink_write(alloc, write);
    append(alloc, write);
    write->under_way = false;
    if (alloc->config.clock)
        write->not_before_ns = gs_allocator_now_ns(alloc) +
                               gs_pause_ns(write->failures, FIRST_PAUSE_NS, LAST_PAUSE_NS);
    write->failures++;
}

int64_t gs_allocator_write_due_ns(const struct gs_allocator *alloc)
{
    int64_t now_ns = gs_allocator_now_ns(alloc), due_ns = INT64_MAX;
    for (const struct queued_write *at = alloc->writes; at; at = at->next) {
        if (at->not_before_ns > now_ns && !at->under_way && at->not_before_ns < due_ns)
            due_ns = at->not_before_ns;
    }
    return due_ns;
}

bool gs_allocator_next_write(struct gs_allocator *alloc, bool events_only,
                             struct gs_allocator_write *ret)
{
    struct queued_write *next;
    for (struct queued_write *write = alloc->writes; write; write = next) {
        next = write->next;
        const struct claimant *claimant = gs_claimant_find(alloc, write->out.uid);
        if (!holds_still(write, claimant)) {
            if (!write->under_way)
                drop(alloc, write);
            continue;
        }
        if (write->under_way || comes_too_early(alloc, write, claimant, events_only))
            continue;
        if (!write->out.event && compose(alloc, write, claimant) < 0)
            return false;
        *ret = write->out;
        write->under_way = true;
        return true;
    }
    return false;
}

void gs_allocator_write_done(struct gs_allocator *alloc, uint64_t number, bool sent)
{
    for (struct queued_write *write = alloc->writes; write; write = write->next) {
        if (write->out.number != number)
            continue;
        if (sent)
            drop(alloc, write);
        else
            put_off(alloc, write);
        return;
    }
}
