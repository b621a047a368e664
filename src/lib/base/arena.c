/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With its header a first chunk is no larger than what malloc() keeps ready for each thread. */
enum { FIRST_CHUNK_BYTES = 960, ALIGN = alignof(max_align_t) };

struct gs_arena_chunk {
    struct gs_arena_chunk *next;
    size_t used;
    size_t size;
    alignas(max_align_t) char bytes[];
};

static struct gs_arena_chunk *add_chunk(struct gs_arena *arena, size_t need)
{
    size_t size = arena->head ? arena->head->size * 2 : FIRST_CHUNK_BYTES;
    if (size < need)
        size = need;
    struct gs_arena_chunk *chunk = malloc(sizeof(*chunk) + size);
    if (!chunk)
        return NULL;
    chunk->next = arena->head;
    chunk->used = 0;
    chunk->size = size;
    arena->head = chunk;
    return chunk;
}

/* As gs_arena_alloc(), with whatever was there before. */
static void *take(struct gs_arena *arena, size_t size)
{
    size_t need;
    if (__builtin_add_overflow(size, (size_t)ALIGN - 1, &need) || need > (size_t)1 << 40)
        return NULL;
    need &= ~((size_t)ALIGN - 1);
    struct gs_arena_chunk *chunk = arena->head;
    if (!chunk || chunk->size - chunk->used < need) {
        chunk = add_chunk(arena, need);
        if (!chunk)
            return NULL;
    }
    void *mem = chunk->bytes + chunk->used;
    chunk->used += need;
    return mem;
}

void *gs_arena_alloc(struct gs_arena *arena, size_t size)
{
    void *mem = take(arena, size);
    return mem ? memset(mem, 0, size) : NULL;
}

void *gs_arena_calloc(struct gs_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return gs_arena_alloc(arena, bytes);
}

char *gs_arena_strndup(struct gs_arena *arena, const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? take(arena, len + 1) : NULL;
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *gs_arena_strdup(struct gs_arena *arena, const char *text)
{
    return gs_arena_strndup(arena, text, strlen(text));
}

char *gs_arena_printf(struct gs_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = len < 0 ? NULL : take(arena, (size_t)len + 1);
    if (text)
        vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    return text;
}

void *gs_arena_extend(struct gs_arena *arena, const void *list, size_t count, size_t more,
                      size_t size)
{
    size_t all;
    if (__builtin_add_overflow(count, more, &all))
        return NULL;
    void *copy = gs_arena_calloc(arena, all, size);
    if (copy && count)
        memcpy(copy, list, count * size);
    return copy;
}

size_t gs_arena_bytes(const struct gs_arena *arena)
{
    size_t bytes = 0;
    for (const struct gs_arena_chunk *chunk = arena->head; chunk; chunk = chunk->next)
        bytes += sizeof(*chunk) + chunk->size;
    return bytes;
}

void gs_arena_reset(struct gs_arena *arena)
{
    struct gs_arena_chunk *keep = arena->head; /* the newest chunk is the largest */
    if (!keep)
        return;
    struct gs_arena old = {.head = keep->next};
    gs_arena_release(&old);
    keep->next = NULL;
    keep->used = 0;
}

void gs_arena_release(struct gs_arena *arena)
{
    while (arena->head) {
        struct gs_arena_chunk *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
}
