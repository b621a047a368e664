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

/* 1 allowed, 0 not, -1 cannot be asked. */
static int check_right(struct doctor *doctor, const struct right *right, struct gs_error *err)
{
    const char *program = right->who == WHO_PLUGIN ? "gpushare-device-plugin"
                          : doctor->second         ? "gpushare-scheduler"
                                                   : "gpushare-extender";
    const char *rbac = right->who == WHO_PLUGIN ? "manifests/base/device-plugin/rbac.yaml"
                       : doctor->second         ? "manifests/base/second-scheduler/rbac.yaml"
                                                : "manifests/base/extender/rbac.yaml";
    const char *name = right->who == WHO_USER ? "this user" : program;
    char account[512];
    snprintf(account, sizeof(account), "system:serviceaccount:%.200s:%s", doctor->common.system_ns,
             program);
    int allowed = lookup_allowed(&doctor->common.source, &right->is,
                                 right->who == WHO_USER ? NULL : account, 0, err);
    if (allowed < 0)
        return gs_error_prefix(err, "%s", name);
    if (!allowed)
        doctor_say(doctor, right->otherwise ? FINDING_WARN : FINDING_FAIL, "permissions",
                   "%s may not %s %s%s%s; apply %s%s%s", name, right->is.verb, right->is.resource,
                   right->is.sub[0] ? "/" : "", right->is.sub, rbac,
                   right->otherwise ? ", or " : "", right->otherwise ? right->otherwise : "");
    return allowed;
}

void doctor_check_rights(struct doctor *doctor)
{
    struct gs_error err = {0};
    GS_EACH_OF (right, rights, sizeof(rights) / sizeof(rights[0])) {
        if (check_right(doctor, right, &err) < 0) {
            doctor_say(doctor, FINDING_SKIP, "permissions", "%s", err.msg);
            return;
        }
    }
    if (doctor_is_ok(doctor, "permissions"))
        doctor_say(
            doctor, FINDING_OK, "permissions",
            "this user, the extender and the device plugin have the permissions that they require");
}
