/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/doc.h"
#include "inspect/doctor.h"
#include "inspect/fetch.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare doctor: what is wrong with this installation, and how to fix it. */

static void read_options(struct doctor *doctor, int argc, char **argv)
{
    const struct gs_option table[] = {
        SYSTEM_NAMESPACE_OPTION(&doctor->common),
        OPT_STRING("scheduler-config", &doctor->scheduler_config, "FILE",
                   "kube-scheduler's configuration file, if this machine can read it"),
        OPT_FLAG("strict", &doctor->strict, "exit code 1 also for warn and skip"),
        OPT_FORMAT(&doctor->format),
        NAMESPACE_OPTION(&doctor->common, "same as --system-namespace"),
        COMMON_OPTIONS(&doctor->common),
    };
    common_parse(argc, argv, NULL,
                 "Checks the installation for common problems. One line per finding: ok, skip (not "
                 "checked), warn, FAIL. The exit code is 1 if a check failed.",
                 table, sizeof(table) / sizeof(table[0]));
    if (doctor->common.ns)
        doctor->common.system_ns = doctor->common.ns;
}

static void print_finding(const struct finding *finding, struct doc *doc)
{
    static const char *const levels[] = {"ok", "skip", "warn", "fail"};
    static const char *const words[] = {"ok  ", "skip", "warn", "FAIL"};
    char line[sizeof(*finding) + 64], total[32] = ": ";
    if (finding->count > FINDING_NAMED)
        snprintf(total, sizeof(total), " (%" PRIu32 " total): ", finding->count);
    snprintf(line, sizeof(line), "%s%s%s", finding->names, finding->count ? total : "",
             finding->what);
    if (!doc) {
        printf("%s  %s: %s\n", words[finding->level], finding->topic, line);
        return;
    }
    doc_object(doc, NULL);
    doc_text(doc, "level", levels[finding->level]);
    doc_text(doc, "topic", finding->topic);
    doc_text(doc, "message", line);
    doc_end(doc);
}

/* counts: findings of each level. */
static int print_findings(const struct doctor *doctor, uint32_t counts[FINDING_FAIL + 1])
{
    static const char *const names[] = {"ok", "skipped", "warnings", "failed"};
    struct doc doc, *to = doctor->format == OUTPUT_TABLE ? NULL : &doc;
    if (to) {
        doc_open(to, stdout, doctor->format == OUTPUT_YAML);
        doc_list(to, "findings");
    }
    GS_EACH_OF (finding, doctor->findings, doctor->count) {
        counts[finding->level]++;
        print_finding(finding, to);
    }
    if (!to) {
        printf("%" PRIu32 " ok, %" PRIu32 " skipped, %" PRIu32 " %s, %" PRIu32 " failed\n",
               counts[FINDING_OK], counts[FINDING_SKIP], counts[FINDING_WARN],
               counts[FINDING_WARN] == 1 ? "warning" : "warnings", counts[FINDING_FAIL]);
        return fflush(stdout) != 0 ? -1 : 0;
    }
    doc_end(to);
    for (int i = FINDING_OK; i <= FINDING_FAIL; i++)
        doc_number(to, names[i], counts[i]);
    return doc_close(to);
}

/* ---- checks ---- */

static int examine(struct doctor *doctor, struct gs_error *err)
{
    const struct fetch fetch = {.common = &doctor->common};
    if (doctor_check_api(doctor, err) < 0)
        return -1;
    doctor_find_extender(doctor);
    doctor_check_rights(doctor);
    doctor_check_scheduler(doctor);
    if (fetch_cluster(&fetch, &doctor->snapshot, &doctor->broken, err) < 0)
        return -1;
    doctor_check_extender(doctor);
    doctor_find_plugin_nodes(doctor);
    doctor_check_nodes(doctor);
    return doctor_check_pods(doctor, err);
}

int cmd_doctor(const struct app *app, int argc, char **argv)
{
    struct doctor doctor = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    uint32_t counts[FINDING_FAIL + 1] = {0};
    read_options(&doctor, argc, argv);
    doctor.common.live = "doctor";
    int result = common_connect(&doctor.common, app, &err);
    if (result == 0) {
        result = examine(&doctor, &err);
        if (doctor.failed)
            result = gs_fail_nomem(&err);
        if (print_findings(&doctor, counts) < 0 && result == 0)
            result = fail_output(&err);
    }
    json_decref(doctor.pods);
    json_decref(doctor.served);
    free(doctor.findings);
    snapshot_release(&doctor.snapshot);
    if (common_end(&doctor.common, result, &err) != 0)
        return 1;
    return counts[FINDING_FAIL] || (doctor.strict && counts[FINDING_WARN] + counts[FINDING_SKIP]);
}
