/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "inspect/doctor.h"
#include "inspect/fetch.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare doctor: what is wrong with this installation, and how to mend it. */

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

static int examine(struct doctor *doctor, struct gs_error *err)
{
    const struct fetch fetch = {.common = &doctor->common};
    if (doctor_check_api(doctor, err) < 0)
        return -1;
    doctor_find_extender(doctor);
    doctor_check_rights(doctor);
    doctor_check_scheduler(doctor);
    doctor_check_extender(doctor);
    if (fetch_cluster(&fetch, &doctor->snapshot, &doctor->broken, err) < 0)
        return -1;
    doctor_check_asked(doctor);
    doctor_find_plugin_nodes(doctor);
    doctor_check_nodes(doctor);
    doctor_check_gpus(doctor);
    doctor_check_limits(doctor);
    doctor_check_use(doctor);
    doctor_check_pods(doctor);
    return doctor_check_waits(doctor, err);
}

static void open_report(struct doctor *doctor)
{
    if (doctor->format == OUTPUT_TABLE)
        return;
    doc_open(&doctor->doc, stdout, doctor->format == OUTPUT_YAML);
    doc_list(&doctor->doc, "findings");
}

static int close_report(struct doctor *doctor)
{
    static const char *const names[] = {"ok", "skipped", "warnings", "failed"};
    const uint32_t *counts = doctor->counts;
    if (doctor->format == OUTPUT_TABLE) {
        printf("%" PRIu32 " ok, %" PRIu32 " skipped, %" PRIu32 " %s, %" PRIu32 " failed\n",
               counts[FINDING_OK], counts[FINDING_SKIP], counts[FINDING_WARN],
               counts[FINDING_WARN] == 1 ? "warning" : "warnings", counts[FINDING_FAIL]);
        return fflush(stdout) != 0 ? -1 : 0;
    }
    doc_end(&doctor->doc);
    for (int i = FINDING_OK; i <= FINDING_FAIL; i++)
        doc_number(&doctor->doc, names[i], counts[i]);
    return doc_close(&doctor->doc);
}

int cmd_doctor(const struct app *app, int argc, char **argv)
{
    struct doctor doctor = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    const uint32_t *counts = doctor.counts;
    read_options(&doctor, argc, argv);
    doctor.common.live = "doctor";
    int result = common_connect(&doctor.common, app, &err);
    if (result == 0) {
        open_report(&doctor);
        result = examine(&doctor, &err);
        if (close_report(&doctor) < 0 && result == 0)
            result = fail_output(&err);
    }
    json_decref(doctor.pods);
    snapshot_release(&doctor.snapshot);
    source_close(&doctor.common.source);
    if (result < 0)
        return complain(&err);
    return counts[FINDING_FAIL] || (doctor.strict && counts[FINDING_WARN] + counts[FINDING_SKIP]);
}
