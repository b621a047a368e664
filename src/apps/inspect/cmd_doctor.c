/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "inspect/doctor.h"
#include "inspect/fetch.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare doctor: what is wrong with this installation, and how to mend it. */

static void check(const struct doctor *doctor)
{
    bool tls = doctor->extender && strncmp(doctor->extender, "https://", 8) == 0;
    const char *wrong = NULL;
    if (!doctor->extender_cert != !doctor->extender_key)
        wrong = "--extender-cert and --extender-key go together";
    else if (!tls && (doctor->extender_ca || doctor->extender_cert || doctor->extender_name))
        wrong = "--extender-ca, -cert, -key and -server-name need --extender https://...";
    if (!wrong)
        return;
    fprintf(stderr, "kubectl inspect gpushare doctor: %s\n", wrong);
    exit(2);
}

static void read_options(struct doctor *doctor, int argc, char **argv)
{
    const struct gs_option table[] = {
        SYSTEM_NAMESPACE_OPTION(&doctor->common),
        OPT_STRING("scheduler-config", &doctor->scheduler_config, "FILE",
                   "kube-scheduler's configuration, where this machine can read it"),
        OPT_STRING(
            "extender", &doctor->extender, "URL",
            "ask the extender here, such as http://127.0.0.1:39999; else through the API server"),
        OPT_STRING("extender-ca", &doctor->extender_ca, "FILE",
                   "CA of its certificate, PEM (the system's)"),
        OPT_STRING("extender-cert", &doctor->extender_cert, "FILE",
                   "client certificate to show it, such as kube-scheduler's"),
        OPT_STRING("extender-key", &doctor->extender_key, "FILE", "its key"),
        OPT_STRING("extender-server-name", &doctor->extender_name, "NAME",
                   "what its certificate names, where that is not the URL's host"),
        OPT_FLAG("strict", &doctor->strict, "exit code 1 for a warn or skip, too"),
        OPT_FORMAT(&doctor->format),
        COMMON_OPTIONS(&doctor->common, "the same as --system-namespace"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "Looks for what goes wrong in practice. One line per finding: ok, skip (could not "
               "be looked at), warn, FAIL. Exit code 1 when something failed.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .quiet = true,
    };
    gs_options_parse(&command, argc, argv);
    if (doctor->common.ns)
        doctor->common.system_ns = doctor->common.ns;
    check(doctor);
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
    doctor_check_plugin_pods(doctor);
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
    if (doctor->format == FORMAT_TEXT)
        return;
    doc_open(&doctor->doc, stdout, doctor->format == FORMAT_YAML);
    doc_list(&doctor->doc, "findings");
}

static int close_report(struct doctor *doctor)
{
    static const char *const names[] = {"ok", "skipped", "warnings", "failed"};
    const uint32_t *counts = doctor->counts;
    if (doctor->format == FORMAT_TEXT) {
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
    struct doctor doctor = {.common = COMMON_DEFAULTS, .colour = app->terminal.colour};
    struct gs_error err = {0};
    const uint32_t *counts = doctor.counts;
    read_options(&doctor, argc, argv);
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
