/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "gpushare/base/utf8.h"
#include "inspect/doctor.h"

/* How a finding is printed. */

void doctor_say(struct doctor *doctor, enum finding finding, const char *topic, const char *fmt,
                ...)
{
    static const char *const words[] = {"ok  ", "skip", "warn", "FAIL"};
    static const char *const colours[] = {"\033[32m", "\033[2m", "\033[33m", "\033[31m"};
    char what[4096]; /* with words of servers, pods and files in it */
    va_list ap;
    doctor->counts[finding]++;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    gs_utf8_calm(what);
    printf("%s%s%s  %s: %s\n", doctor->colour ? colours[finding] : "", words[finding],
           doctor->colour ? "\033[0m" : "", topic, what);
}
