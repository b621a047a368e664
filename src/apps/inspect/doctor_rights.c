/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/doctor.h"
#include "inspect/lookup.h"

enum who { WHO_USER, WHO_EXTENDER, WHO_PLUGIN };

struct right {
    enum who who;
    struct lookup_right is;
    const char *otherwise; /* what can be done without it; NULL: nothing */
};

/* What the programs need. */
static const struct right rights[] = {
    {WHO_USER, {"list", "", "nodes", ""}},
    {WHO_USER, {"list", "", "pods", ""}},
    {WHO_EXTENDER, {"watch", "", "nodes", ""}},
    {WHO_EXTENDER, {"watch", "", "pods", ""}},
    {WHO_EXTENDER, {"patch", "", "pods", ""}},
    {WHO_EXTENDER,
     {"patch", "", "pods", "status"},
     "set kube-scheduler's percentageOfNodesToScore to 100, otherwise a pod may stay Pending "
     "although a GPU has enough free memory"},
    {WHO_EXTENDER, {"create", "", "pods", "binding"}},
    {WHO_EXTENDER,
     {"watch", "policy", "poddisruptionbudgets", ""},
     "accept that preemption ignores PodDisruptionBudgets of the victims that it adds"},
    {WHO_PLUGIN, {"watch", "", "pods", ""}},
    {WHO_PLUGIN, {"patch", "", "pods", ""}},
    {WHO_PLUGIN, {"patch", "", "nodes", ""}},
    {WHO_PLUGIN, {"patch", "", "nodes", "status"}},
};

static const char *account_of(const struct doctor *doctor, const struct right *right)
{
    return right->who == WHO_EXTENDER ? doctor->layout->name : "gpushare-device-plugin";
}

static const char *name_of(const struct doctor *doctor, const struct right *right)
{
    return right->who == WHO_USER ? "this user" : account_of(doctor, right);
}

static const char *rbac_of(const struct doctor *doctor, const struct right *right)
{
    return right->who == WHO_PLUGIN ? "manifests/base/device-plugin/rbac.yaml"
                                    : doctor->layout->rbac;
}

/* 1 allowed, 0 not, -1 cannot be asked. */
static int ask_right(const struct doctor *doctor, const struct right *right, struct gs_error *err)
{
    char account[512];
    snprintf(account, sizeof(account), "system:serviceaccount:%.200s:%s", doctor->common.system_ns,
             account_of(doctor, right));
    int allowed = lookup_allowed(&doctor->common.source, &right->is,
                                 right->who == WHO_USER ? NULL : account, 0, err);
    return allowed < 0 ? gs_error_prefix(err, "%s", name_of(doctor, right)) : allowed;
}

/* ---- all ---- */

static int check_right(struct doctor *doctor, const struct right *right, struct gs_error *err)
{
    int allowed = ask_right(doctor, right, err);
    if (allowed == 0)
        doctor_say(doctor, right->otherwise ? FINDING_WARN : FINDING_FAIL, "permissions",
                   "%s may not %s %s%s%s; apply %s%s%s", name_of(doctor, right), right->is.verb,
                   right->is.resource, right->is.sub[0] ? "/" : "", right->is.sub,
                   rbac_of(doctor, right), right->otherwise ? ", or " : "",
                   right->otherwise ? right->otherwise : "");
    return allowed;
}

static int check_all(struct doctor *doctor, struct gs_error *err)
{
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        if (check_right(doctor, &rights[i], err) < 0)
            return -1;
    }
    return 0;
}

void doctor_check_rights(struct doctor *doctor)
{
    struct gs_error err = {0};
    uint32_t found = doctor->counts[FINDING_FAIL] + doctor->counts[FINDING_WARN];
    if (check_all(doctor, &err) < 0)
        doctor_say(doctor, FINDING_SKIP, "permissions", "%s", err.msg);
    else if (doctor->counts[FINDING_FAIL] + doctor->counts[FINDING_WARN] == found)
        doctor_say(
            doctor, FINDING_OK, "permissions",
            "this user, the extender and the device plugin have the permissions that they require");
}
