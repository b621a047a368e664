/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* A folder for a test's files, which the program enters: names below are relative to it. Whatever
 * goes wrong here fails the test. */
void scratch_enter(void);
/* Removes it with all that lies in it. */
void scratch_leave(void);
const char *scratch_path(void);

/* By renaming, as a careful administrator does. */
void scratch_write(const char *name, const void *bytes, size_t len);
void scratch_text(const char *name, const char *text);
/* *Caller frees.* */
char *scratch_read(const char *name);
void scratch_copy(const char *from, const char *to);

/* Makes NAME.crt and NAME.key by openssl, signed by ISSUER (NULL: by itself). subject: "/CN=x",
 * "/": nobody; extensions: words of `openssl req`; days from now until it expires. */
void scratch_certify(const char *name, const char *issuer, const char *subject,
                     const char *extensions, int days);
