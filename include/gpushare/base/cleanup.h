/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

/*
 * Cleanup by scope.
 *
 *   _cleanup_free_ char *text = strdup(word);
 *   ...
 *   *ret_text = gs_steal(&text);     the caller frees now
 *
 * A module with its own destructor says GS_DEFINE_CLEANUP(struct gs_ledger *, gs_ledger_free) and
 * its users write _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = ...;
 */

#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void gs_freep(void *p)
{
    free(*(void **)p);
}

static inline void gs_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define _cleanup_free_  _cleanup_(gs_freep)
#define _cleanup_close_ _cleanup_(gs_closep)

/* Takes the pointer out of a variable: the variable becomes NULL, the value goes on. */
#define gs_steal(ptr)                                                                              \
    ({                                                                                             \
        __typeof__(*(ptr)) gs_stolen_ = *(ptr);                                                    \
        *(ptr) = NULL;                                                                             \
        gs_stolen_;                                                                                \
    })

/* For a variable that holds `type *`: defines NAMEp(), which calls NAME() unless NULL. */
#define GS_DEFINE_CLEANUP(type, name)                                                              \
    static inline void name##p(type *p)                                                            \
    {                                                                                              \
        if (*p)                                                                                    \
            name(*p);                                                                              \
    }
