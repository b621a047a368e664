/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"

/* Whole files with a ceiling, and whether they changed. */

/* *ret: *caller frees*, NUL-terminated, the NUL is not counted. GS_ENOENT, GS_EIO, GS_ETOOBIG,
 * GS_ENOMEM, naming the file. Reads pipes and the like to their end as well. */
int gs_file_read(const char *path, size_t max, char **ret, size_t *ret_len, struct gs_error *err);
/* The same for what is open, *borrowed*; name stands for it in messages. */
int gs_file_read_fd(int fd, const char *name, size_t max, char **ret, size_t *ret_len,
                    struct gs_error *err);

/* Writes the whole file, or leaves the old one, by way of PATH.new beside it. lasting: also when
 * the power goes. GS_EIO, and errno. */
int gs_file_replace(const char *path, const void *bytes, size_t len, mode_t mode, bool lasting,
                    struct gs_error *err);

/* What tells one state of a file from the next; zeroed: never seen. */
struct gs_file_mark {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec changed; /* owner, mode or content */
};

/* The file's state now; false when it cannot be had. Follows links: mounted secrets are replaced by
 * turning a link. */
bool gs_file_mark(const char *path, struct gs_file_mark *ret);
struct gs_file_mark gs_file_mark_of(const struct stat *st);
bool gs_file_mark_eq(const struct gs_file_mark *a, const struct gs_file_mark *b);

/* free() after overwriting; NULL is fine. */
void gs_secret_free(char *text, size_t len);
