/* SPDX-License-Identifier: Apache-2.0 */
#include "limbo.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY_NS ((int64_t)1000000000)

struct item {
    struct gs_limbo_entry entry;
    struct item *next;
};

struct gs_limbo {
    pthread_mutex_t lock;
    struct item *first;
    uint32_t count;
};

struct gs_limbo *gs_limbo_new(void)
{
    struct gs_limbo *limbo = calloc(1, sizeof(*limbo));
    if (limbo)
        pthread_mutex_init(&limbo->lock, NULL);
    return limbo;
}

void gs_limbo_entry_release(struct gs_limbo_entry *entry)
{
    free(entry->ns);
    free(entry->name);
    free(entry->uid);
    *entry = (struct gs_limbo_entry){0};
}

static void drop(struct gs_limbo *limbo, struct item **at)
{
    struct item *gone = *at;
    *at = gone->next;
    gs_limbo_entry_release(&gone->entry);
    free(gone);
    limbo->count--;
}

void gs_limbo_free(struct gs_limbo *limbo)
{
    if (!limbo)
        return;
    while (limbo->first)
        drop(limbo, &limbo->first);
    pthread_mutex_destroy(&limbo->lock);
    free(limbo);
}

static bool copy_entry(struct gs_limbo_entry *to, const struct gs_limbo_entry *from)
{
    *to = *from;
    to->ns = strdup(from->ns);
    to->name = strdup(from->name);
    to->uid = strdup(from->uid);
    if (to->ns && to->name && to->uid)
        return true;
    gs_limbo_entry_release(to);
    return false;
}

static struct item **find(struct gs_limbo *limbo, const char *uid)
{
    struct item **at = &limbo->first;
    while (*at && strcmp((*at)->entry.uid, uid) != 0)
        at = &(*at)->next;
    return at;
}

int gs_limbo_add(struct gs_limbo *limbo, const char *ns, const char *name, const char *uid,
                 int64_t now_ns)
{
    const struct gs_limbo_entry from = {(char *)ns,           (char *)name,           (char *)uid,
                                        now_ns + GS_LIMBO_NS, now_ns + LOOK_EVERY_NS, 0};
    struct item *item = malloc(sizeof(*item));
    if (!item || !copy_entry(&item->entry, &from)) {
        free(item);
        return -1;
    }
    pthread_mutex_lock(&limbo->lock);
    struct item **old = find(limbo, uid);
    if (*old) {
        item->entry.repetitions = (*old)->entry.repetitions;
        drop(limbo, old);
    }
    item->next = limbo->first;
    limbo->first = item;
    limbo->count++;
    pthread_mutex_unlock(&limbo->lock);
    return 0;
}

bool gs_limbo_has(struct gs_limbo *limbo, const char *uid)
{
    pthread_mutex_lock(&limbo->lock);
    bool has = *find(limbo, uid) != NULL;
    pthread_mutex_unlock(&limbo->lock);
    return has;
}

void gs_limbo_remove(struct gs_limbo *limbo, const char *uid)
{
    pthread_mutex_lock(&limbo->lock);
    struct item **at = find(limbo, uid);
    if (*at)
        drop(limbo, at);
    pthread_mutex_unlock(&limbo->lock);
}

bool gs_limbo_repeat_begin(struct gs_limbo *limbo, const char *uid)
{
    pthread_mutex_lock(&limbo->lock);
    struct item *item = *find(limbo, uid);
    if (item)
        item->entry.repetitions++;
    pthread_mutex_unlock(&limbo->lock);
    return item != NULL;
}

void gs_limbo_repeat_end(struct gs_limbo *limbo, const char *uid)
{
    pthread_mutex_lock(&limbo->lock);
    struct item *item = *find(limbo, uid);
    if (item && item->entry.repetitions) /* it may have been settled, and be another one by now */
        item->entry.repetitions--;
    pthread_mutex_unlock(&limbo->lock);
}

bool gs_limbo_over(struct gs_limbo *limbo, const char *uid, int64_t now_ns)
{
    pthread_mutex_lock(&limbo->lock);
    const struct item *item = *find(limbo, uid);
    bool over = item && !item->entry.repetitions && now_ns >= item->entry.until_ns;
    pthread_mutex_unlock(&limbo->lock);
    return over;
}

bool gs_limbo_due(struct gs_limbo *limbo, int64_t now_ns, struct gs_limbo_entry *ret)
{
    struct item *due = NULL;
    pthread_mutex_lock(&limbo->lock);
    for (struct item *item = limbo->first; item; item = item->next) {
        if (item->entry.next_look_ns <= (due ? due->entry.next_look_ns : now_ns))
            due = item;
    }
    bool copied = due && copy_entry(ret, &due->entry);
    if (due)
        due->entry.next_look_ns = now_ns + LOOK_EVERY_NS;
    pthread_mutex_unlock(&limbo->lock);
    return copied;
}

uint32_t gs_limbo_count(struct gs_limbo *limbo)
{
    pthread_mutex_lock(&limbo->lock);
    uint32_t count = limbo->count;
    pthread_mutex_unlock(&limbo->lock);
    return count;
}
