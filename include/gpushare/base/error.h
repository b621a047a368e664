/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one error shape: owned by the caller, filled by the callee, no allocation.
 *
 *   struct gs_error err = {0};
 *   if (gs_load(path, &cfg, &err) < 0)
 *       log it: err.msg is a whole sentence without a final newline; one that was too long ends
 *       in "…"
 *
 * Functions that can fail return 0 or -1 and take `struct gs_error *err` last. The first failure
 * wins: a second gs_fail() on the same object leaves code and message as they are. A NULL err is
 * allowed where the caller does not care. "Does not fit" is never an error, it is a value.
 */

#include <stdarg.h>
#include <stddef.h>

enum gs_code {
    GS_OK = 0,
    GS_EINVAL,    /* the caller's or the user's input is wrong */
    GS_EPROTO,    /* bytes from outside are not what their format promises */
    GS_ETOOBIG,   /* a ceiling was reached */
    GS_ENOMEM,    /* allocation failed */
    GS_ENOENT,    /* named thing does not exist (HTTP 404) */
    GS_EEXIST,    /* it exists already, or belongs to somebody else */
    GS_ECONFLICT, /* HTTP 409: the object changed, or a precondition failed */
    GS_EAUTH,     /* HTTP 401 */
    GS_EDENIED,   /* HTTP 403 */
    GS_EGONE,     /* HTTP 410: resourceVersion too old */
    GS_EBUSY,     /* HTTP 429: asked to come back later */
    GS_ETIMEOUT,  /* no answer in time: the outcome is unknown */
    GS_EIO,       /* connection, file or 5xx failure: the outcome may be unknown */
    GS_ENOTREADY, /* not loaded yet, or not the leader */
    GS_ECANCELED, /* asked to stop */
    GS_EINTERNAL, /* a bug of ours */
};

struct gs_error {
    enum gs_code code;
    char msg[256];
};

/* Fills *err unless it holds a failure already; always returns -1. */
int gs_fail(struct gs_error *err, enum gs_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/* gs_fail(GS_ENOMEM) with the usual words; always returns -1. */
int gs_fail_nomem(struct gs_error *err) __attribute__((cold));

/* Appends ": strerror(errnum)" to the words; always returns -1. */
int gs_fail_errno(struct gs_error *err, enum gs_code code, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), cold));

/* Puts "context: " before the message of a failure; for callers that know more. Returns -1. */
int gs_error_prefix(struct gs_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Makes *err empty again, for a retry. */
void gs_error_clear(struct gs_error *err);

/* vsnprintf() whose text ends in "…" when it did not fit, behind a whole UTF-8 character. size is
 * at least 8. */
void gs_words(char *out, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
