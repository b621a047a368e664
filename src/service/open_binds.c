/* SPDX-License-Identifier: Apache-2.0 */
#include "open_binds.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY_NS (1 * GS_NS_PER_S)

struct item {
    struct gs_open_bind entry;
    struct item *next;
};

struct gs_open_binds {
    struct item *first;
    atomic_uint count;
};

struct gs_open_binds *gs_open_binds_new(void)
{
    return calloc(1, sizeof(struct gs_open_binds));
}

void gs_open_bind_release(struct gs_open_bind *entry)
{
    free(entry->ns);
    free(entry->name);
    free(entry->uid);
    *entry = (struct gs_open_bind){0};
}

static void drop(struct gs_open_binds *open_binds, struct item **at)
{
    struct item *gone = *at;
    *at = gone->next;
    gs_open_bind_release(&gone->entry);
    free(gone);
    atomic_fetch_sub(&open_binds->count, 1);
}

void gs_open_binds_free(struct gs_open_binds *open_binds)
{
    if (!open_binds)
        return;
    while (open_binds->first)
        drop(open_binds, &open_binds->first);
    free(open_binds);
}

static bool copy_entry(struct gs_open_bind *to, const struct gs_open_bind *from)
{
    *to = *from;
    to->ns = strdup(from->ns);
    to->name = strdup(from->name);
    to->uid = strdup(from->uid);
    if (to->ns && to->name && to->uid)
        return true;
    gs_open_bind_release(to);
    return false;
}

static struct item **find(struct gs_open_binds *open_binds, const char *uid)
{
    struct item **at = &open_binds->first;
    while (*at && strcmp((*at)->entry.uid, uid) != 0)
        at = &(*at)->next;
    return at;
}

int gs_open_binds_add(struct gs_open_binds *open_binds, const char *ns, const char *name,
                      const char *uid, int64_t now_ns, int64_t until_ns)
{
    const struct gs_open_bind from = {
        .ns = (char *)ns,
        .name = (char *)name,
        .uid = (char *)uid,
        .until_ns = until_ns,
        .next_look_ns = now_ns + LOOK_EVERY_NS,
    };
    struct item *item = malloc(sizeof(*item));
    if (!item || !copy_entry(&item->entry, &from)) {
        free(item);
        return -1;
    }
    struct item **old = find(open_binds, uid);
    if (*old) {
        item->entry.repetitions = (*old)->entry.repetitions;
        if ((*old)->entry.until_ns > until_ns)
            item->entry.until_ns = (*old)->entry.until_ns;
        drop(open_binds, old);
    }
    item->next = open_binds->first;
    open_binds->first = item;
    atomic_fetch_add(&open_binds->count, 1);
    return 0;
}

bool gs_open_binds_has(struct gs_open_binds *open_binds, const char *uid)
{
    return *find(open_binds, uid) != NULL;
}

void gs_open_binds_remove(struct gs_open_binds *open_binds, const char *uid)
{
    struct item **at = find(open_binds, uid);
    if (*at)
        drop(open_binds, at);
}

bool gs_open_binds_repeat_begin(struct gs_open_binds *open_binds, const char *uid)
{
    struct item *item = *find(open_binds, uid);
    if (item)
        item->entry.repetitions++;
    return item != NULL;
}

void gs_open_binds_repeat_end(struct gs_open_binds *open_binds, const char *uid)
{
    struct item *item = *find(open_binds, uid);
    if (item && item->entry.repetitions) /* it may have been settled, and be another one by now */
        item->entry.repetitions--;
}

bool gs_open_binds_over(struct gs_open_binds *open_binds, const char *uid, int64_t now_ns)
{
    const struct item *item = *find(open_binds, uid);
    return item && !item->entry.repetitions && now_ns >= item->entry.until_ns;
}

bool gs_open_binds_due(struct gs_open_binds *open_binds, int64_t now_ns, struct gs_open_bind *ret)
{
    struct item *due = NULL;
    for (struct item *item = open_binds->first; item; item = item->next) {
        if (item->entry.next_look_ns <= (due ? due->entry.next_look_ns : now_ns))
            due = item;
    }
    bool copied = due && copy_entry(ret, &due->entry);
    if (due)
        due->entry.next_look_ns = now_ns + LOOK_EVERY_NS;
    return copied;
}

uint32_t gs_open_binds_count(struct gs_open_binds *open_binds)
{
    return atomic_load(&open_binds->count);
}
