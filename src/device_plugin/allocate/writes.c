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
    free(write->ns);
    free(write->name);
    free(write->uid);
    free(write->message);
    gs_arena_release(&write->arena);
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
        stats->node_events += !at->ns[0];
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

/* A new write that is not in the queue yet, or NULL when out of memory. */
static struct queued_write *new_write(struct gs_allocator *alloc, const struct gs_pod *pod,
                                      enum write_kind kind)
{
    struct queued_write *write = calloc(1, sizeof(*write));
    if (!write)
        return NULL;
    write->kind = kind;
    write->ns = strdup(pod->ns);
    write->name = strdup(pod->name);
    write->uid = strdup(pod->uid);
    if (!write->ns || !write->name || !write->uid) {
        free_write(write);
        return NULL;
    }
    write->number = ++alloc->write_number;
    return write;
}

/* A write of this kind that waits already says whatever is true when it is taken. */
static struct queued_write *find_write(const struct gs_allocator *alloc, const char *uid,
                                       enum write_kind kind, bool under_way)
{
    struct queued_write *at = alloc->writes;
    while (at && (at->kind != kind || (at->under_way && !under_way) || strcmp(at->uid, uid) != 0))
        at = at->next;
    return at;
}

static void queue(struct gs_allocator *alloc, const struct claimant *claimant, enum write_kind kind)
{
    struct queued_write *write = find_write(alloc, claimant->pod.uid, kind, false);
    if (!write && (write = new_write(alloc, &claimant->pod, kind)))
        append(alloc, write);
}

void gs_write_record(struct gs_allocator *alloc, struct claimant *claimant)
{
    claimant->record_ns = gs_allocator_now_ns(alloc);
    queue(alloc, claimant, WRITE_RECORD);
}

bool gs_record_is_queued(const struct gs_allocator *alloc, const char *uid)
{
    return find_write(alloc, uid, WRITE_RECORD, true);
}

void gs_write_assigned(struct gs_allocator *alloc, const struct claimant *claimant)
{
    if (!find_write(alloc, claimant->pod.uid, WRITE_RECORD, false)) /* it says ASSIGNED, too */
        queue(alloc, claimant, WRITE_ASSIGNED);
}

static int keep_about(struct queued_write *write, const struct gs_event_object *about)
{
    struct gs_event_object *to = &write->about;
    to->api = gs_arena_strdup(&write->arena, about->api);
    to->kind = gs_arena_strdup(&write->arena, about->kind);
    to->name = gs_arena_strdup(&write->arena, about->name);
    to->uid = gs_arena_strdup(&write->arena, about->uid);
    return to->api && to->kind && to->name && to->uid ? 0 : -1;
}

static void write_event(struct gs_allocator *alloc, const struct gs_pod *of,
                        const struct gs_event_object *about, bool warning, const char *reason,
                        const char *message)
{
    struct queued_write *write = new_write(alloc, of, WRITE_EVENT);
    if (!write)
        return;
    write->warning = warning;
    write->reason = reason;
    write->message = strdup(message);
    if (write->message && keep_about(write, about) == 0)
        append(alloc, write);
    else
        free_write(write);
}

void gs_write_event(struct gs_allocator *alloc, const struct claimant *claimant, bool warning,
                    const char *reason, const char *message)
{
    const struct gs_event_object pod = {"v1", "Pod", claimant->pod.name, claimant->pod.uid};
    write_event(alloc, &claimant->pod, &pod, warning, reason, message);
}

void gs_write_owner_event(struct gs_allocator *alloc, const struct claimant *claimant, bool warning,
                          const char *reason, const char *message)
{
    const struct gs_pod *pod = &claimant->pod;
    const struct gs_event_object owner = {pod->owner_api, pod->owner_kind, pod->owner_name,
                                          pod->owner_uid};
    char words[MESSAGE_BYTES];
    if (!pod->owner_uid[0] || !pod->owner_name[0] || pod->static_uid[0])
        return;
    snprintf(words, sizeof(words), "pod %s %s", pod->name, message);
    write_event(alloc, pod, &owner, warning, reason, words);
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
        if (at->kind == WRITE_EVENT && strcmp(at->uid, uid) == 0 && strcmp(at->reason, reason) == 0)
            return true;
    }
    return false;
}

/* A pod that came without the extender was never assumed: its creation stands for that. */
static int64_t assume_time_ns(const struct gs_pod *pod)
{
    return pod->assume_time_ns ? pod->assume_time_ns : pod->created_s * GS_NS_PER_S;
}

/* The annotations of a patch, as things are now; -1 when out of memory. */
static int compose(struct gs_allocator *alloc, struct queued_write *write,
                   const struct claimant *claimant, struct gs_allocator_write *ret)
{
    const struct gs_names *names = alloc->config.names;
    const struct gs_bind_record record = {
        .gpus = claimant->allocated,
        .dev_units = gs_allocator_gpu_size(alloc, claimant->allocated),
        .charge = claimant->charge,
        .assume_time_ns = assume_time_ns(&claimant->pod),
    };
    struct gs_kv *kv;
    size_t count = 1;
    gs_arena_reset(&write->arena);
    if (write->kind == WRITE_ASSIGNED) {
        kv = gs_arena_calloc(&write->arena, count, sizeof(*kv));
        if (!kv)
            return -1;
        kv->key = names->assigned;
    } else if (gs_codec_bind_annotations(names, &claimant->pod, &record, &write->arena, &kv, &count,
                                         NULL) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (claimant->done == claimant->request_count && strcmp(kv[i].key, names->assigned) == 0)
            kv[i].value = "true";
    }
    ret->annotations = kv;
    ret->annotation_count = count;
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
    return (events_only && write->kind != WRITE_EVENT) ||
           write->not_before_ns > gs_allocator_now_ns(alloc) ||
           (write->kind == WRITE_RECORD && !gs_claimant_move_is_written(alloc, claimant));
}

/* Not when the pod is gone, its place open again, or its allocation not whole any more. */
static bool holds_still(const struct queued_write *write, const struct claimant *claimant)
{
    switch (write->kind) {
    case WRITE_RECORD:
        return claimant && claimant->allocated;
    case WRITE_ASSIGNED:
        return claimant && claimant->done == claimant->request_count;
    case WRITE_EVENT:
        break;
    }
    return true;
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
        struct claimant *claimant = gs_claimant_find(alloc, write->uid);
        if (!holds_still(write, claimant)) {
            if (!write->under_way)
                drop(alloc, write);
            continue;
        }
        if (write->under_way || comes_too_early(alloc, write, claimant, events_only))
            continue;
        *ret = (struct gs_allocator_write){.number = write->number,
                                           .ns = write->ns,
                                           .name = write->name,
                                           .uid = write->uid,
                                           .event = write->kind == WRITE_EVENT,
                                           .about = write->about,
                                           .warning = write->warning,
                                           .reason = write->reason,
                                           .message = write->message};
        if (write->kind != WRITE_EVENT && compose(alloc, write, claimant, ret) < 0)
            return false;
        write->under_way = true;
        return true;
    }
    return false;
}

void gs_allocator_write_done(struct gs_allocator *alloc, uint64_t number, bool sent)
{
    for (struct queued_write *write = alloc->writes; write; write = write->next) {
        if (write->number != number)
            continue;
        if (sent)
            drop(alloc, write);
        else
            put_off(alloc, write);
        return;
    }
}
