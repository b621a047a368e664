/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <strings.h>

/*
 * How often texts were compared, for programs that are linked with --wrap=strncasecmp: the entries
 * of a pod's lists are compared with nothing else. A count does not depend on how busy the machine
 * is.
 */
int __real_strncasecmp(const char *a, const char *b, size_t len);
int __wrap_strncasecmp(const char *a, const char *b, size_t len);

static unsigned long compared;

int __wrap_strncasecmp(const char *a, const char *b, size_t len)
{
    compared++;
    return __real_strncasecmp(a, b, len);
}
