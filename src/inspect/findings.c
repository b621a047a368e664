/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/array.h"
#include "gpushare/base/utf8.h"
#include "inspect/doctor.h"

/* Its line, which follows those of its topic; NULL: out of memory. */
static struct finding *line_of(struct doctor *doctor, const struct finding *like, bool named)
{
    uint32_t at = doctor->count;
    for (uint32_t i = 0; i < doctor->count; i++) {
        struct finding *line = &doctor->findings[i];
        if (strcmp(line->topic, like->topic) != 0)
            continue;
        at = i + 1;
        if (named && line->count && line->level == like->level &&
            strcmp(line->what, like->what) == 0)
            return line;
    }
    if (!gs_array_reach(&doctor->findings, &doctor->cap, doctor->count, sizeof(*like))) {
        doctor->failed = true;
        return NULL;
    }
    memmove(&doctor->findings[at + 1], &doctor->findings[at],
            (doctor->count++ - at) * sizeof(*like));
    doctor->findings[at] = *like;
    return &doctor->findings[at];
}

void doctor_say_of(struct doctor *doctor, enum level level, const char *topic, const char *name,
                   const char *fmt, ...)
{
    struct finding finding = {.level = level, .topic = topic};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(finding.what, sizeof(finding.what), fmt, ap);
    va_end(ap);
    gs_utf8_calm(finding.what);
    struct finding *line = line_of(doctor, &finding, name != NULL);
    if (!name || !line || line->count++ > FINDING_NAMED)
        return;
    const size_t len = strlen(line->names);
    snprintf(line->names + len, sizeof(line->names) - len, "%s%s", len ? ", " : "",
             line->count > FINDING_NAMED ? "…" : name);
}

bool doctor_is_ok(const struct doctor *doctor, const char *topic)
{
    GS_EACH_OF (finding, doctor->findings, doctor->count) {
        if (finding->level > FINDING_OK && strcmp(finding->topic, topic) == 0)
            return false;
    }
    return true;
}
