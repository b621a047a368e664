/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_fail.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* The linker sends calls of X to __wrap_X, and __real_X to the C library (ld --wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

static atomic_uint fail_at; /* 0: never */
static atomic_uint counted;
static atomic_bool and_after;
static atomic_bool paused;
static atomic_bool happened;

void alloc_fail_begin(unsigned n)
{
    counted = 0;
    happened = false;
    and_after = false;
    paused = false;
    fail_at = n;
}

void alloc_fail_begin_from(unsigned n)
{
    alloc_fail_begin(0);
    and_after = true;
    fail_at = n;
}

void alloc_fail_pause(bool pause)
{
    paused = pause;
}

bool alloc_fail_end(void)
{
    fail_at = 0;
    return happened;
}

static bool fails_now(void)
{
    unsigned at = fail_at;
    if (!at || paused)
        return false;
    unsigned now = atomic_fetch_add(&counted, 1) + 1;
    if (now != at && !(and_after && now > at))
        return false;
    happened = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return fails_now() ? NULL : __real_reallocarray(old, count, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len)
{
    return fails_now() ? NULL : __real_strndup(text, len);
}
