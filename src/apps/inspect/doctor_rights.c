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
     "set kube-scheduler's percentageOfNodesToScore to 100, else a pod may stay Pending beside a "
     "GPU that is free"},
    {WHO_EXTENDER, {"create", "", "pods", "binding"}},
    {WHO_EXTENDER,
     {"watch", "policy", "poddisruptionbudgets", ""},
     "mind that PodDisruptionBudgets do not count for the victims that preemption adds"},
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
    return allowed < 0 ? gs_error_prefix(err, "of %s", name_of(doctor, right)) : allowed;
}

/* ---- kube-scheduler's Lease ---- */

/* NAMESPACE/NAME of the Lease that these arguments tell the extender to follow; NULL: none. */
static const char *followed(const json_t *args)
{
    static const char option[] = "--scheduler-lease";
    size_t i, len = sizeof(option) - 1;
    json_t *item;
    json_array_foreach(args, i, item)
    {
        const char *arg = json_is_string(item) ? json_string_value(item) : "";
        if (strncmp(arg, option, len) != 0)
            continue;
        if (arg[len] == '=')
            return arg + len + 1;
        if (!arg[len])
            return json_string_value(json_array_get(args, i + 1));
    }
    return NULL;
}

/* Of the first pod that follows one: a layout's pods have the same arguments. */
static const char *followed_lease(const json_t *pods)
{
    size_t i, j;
    json_t *pod, *container;
    json_array_foreach(json_object_get(pods, "items"), i, pod)
    {
        const json_t *spec = json_object_get(pod, "spec");
        json_array_foreach(json_object_get(spec, "containers"), j, container)
        {
            const char *lease = followed(json_object_get(container, "args"));
            if (lease)
                return lease;
        }
    }
    return NULL;
}

/* As ask_right(). A replica that cannot read the Lease never binds. */
static int check_lease(struct doctor *doctor, struct gs_error *err)
{
    const char *lease = followed_lease(doctor->pods);
    const char *slash = lease ? strchr(lease, '/') : NULL;
    if (!slash)
        return 1;
    _cleanup_free_ char *ns = strndup(lease, (size_t)(slash - lease));
    if (!ns)
        return gs_fail_nomem(err);
    const struct right right = {WHO_EXTENDER,
                                {"get", "coordination.k8s.io", "leases", "", ns, slash + 1}};
    int allowed = ask_right(doctor, &right, err);
    if (allowed == 0)
        doctor_say(doctor, FINDING_FAIL, "rights",
                   "%s may not get the Lease %s that it follows, and so binds no pod; apply %s",
                   name_of(doctor, &right), lease, rbac_of(doctor, &right));
    return allowed;
}

/* ---- all ---- */

static int check_right(struct doctor *doctor, const struct right *right, struct gs_error *err)
{
    int allowed = ask_right(doctor, right, err);
    if (allowed == 0)
        doctor_say(doctor, right->otherwise ? FINDING_WARN : FINDING_FAIL, "rights",
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
    return check_lease(doctor, err);
}

void doctor_check_rights(struct doctor *doctor)
{
    struct gs_error err = {0};
    uint32_t found = doctor->counts[FINDING_FAIL] + doctor->counts[FINDING_WARN];
    if (check_all(doctor, &err) < 0)
        doctor_say(doctor, FINDING_SKIP, "rights", "%s", err.msg);
    else if (doctor->counts[FINDING_FAIL] + doctor->counts[FINDING_WARN] == found)
        doctor_say(doctor, FINDING_OK, "rights",
                   "this user, extender and device plugin may do what they have to");
}
