/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "inspect/doctor.h"

/* How a finding is printed. */

void doctor_say(struct doctor *doctor, enum finding finding, const char *topic, const char *fmt,
                ...)
{
    static const char *const words[] = {"ok  ", "skip", "warn", "FAIL"};
    static const char *const levels[] = {"ok", "skip", "warn", "fail"};
    char what[4096]; /* with words of servers, pods and files in it */
    va_list ap;
    doctor->counts[finding]++;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    gs_utf8_calm(what);
    if (doctor->format != OUTPUT_TABLE) {
        doc_object(&doctor->doc, NULL);
        doc_text(&doctor->doc, "level", levels[finding]);
        doc_text(&doctor->doc, "topic", topic);
        doc_text(&doctor->doc, "message", what);
        doc_end(&doctor->doc);
        return;
    }
    printf("%s  %s: %s\n", words[finding], topic, what);
}

enum { NAMED = 5 };

void doctor_add_name(struct doctor_names *names, const char *name)
{
    size_t len = strlen(names->text);
    if (names->count++ < NAMED)
        snprintf(names->text + len, sizeof(names->text) - len, "%s%.150s", len ? ", " : "", name);
    else if (names->count == NAMED + 1)
        snprintf(names->text + len, sizeof(names->text) - len, ", …");
}

void doctor_say_list(struct doctor *doctor, enum finding finding, const char *topic,
                     const struct doctor_names *names, const char *fmt, ...)
{
    char what[2048];
    va_list ap;
    if (!names->count)
        return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    if (names->count > NAMED)
        doctor_say(doctor, finding, topic, "%s (%" PRIu32 " total): %s", names->text, names->count,
                   what);
    else
        doctor_say(doctor, finding, topic, "%s: %s", names->text, what);
}
