/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * A bump allocator for things that die together, such as all strings of one decoded pod.
 * Not thread-safe. A zeroed struct is a valid empty arena.
 *
 *   struct gs_arena arena = {0};
 *   const char *name = gs_arena_strndup(&arena, text, len);     borrowed until reset or release
 *   gs_arena_reset(&arena);                                     keeps one chunk for the next round
 *   gs_arena_release(&arena);
 *
 * All functions return NULL when memory is out; the arena stays as it was.
 */
struct gs_arena_chunk;
struct gs_arena {
    struct gs_arena_chunk *head;
};

/* Zeroed memory, aligned for any type. size 0 gives a valid pointer. */
void *gs_arena_alloc(struct gs_arena *arena, size_t size);

/* count * size with overflow checked. */
void *gs_arena_calloc(struct gs_arena *arena, size_t count, size_t size);

/* A NUL-terminated copy. */
char *gs_arena_strndup(struct gs_arena *arena, const char *text, size_t len);
char *gs_arena_strdup(struct gs_arena *arena, const char *text);

/* Text by a format, of any length. */
char *gs_arena_printf(struct gs_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A copy of a list (NULL when count is 0) with room for more elements behind it, zeroed. */
void *gs_arena_extend(struct gs_arena *arena, const void *list, size_t count, size_t more,
                      size_t size);

/* How much memory it holds. */
size_t gs_arena_bytes(const struct gs_arena *arena);

/* Forgets everything; keeps the largest chunk. */
void gs_arena_reset(struct gs_arena *arena);

/* Frees everything; the arena is empty and usable. */
void gs_arena_release(struct gs_arena *arena);
