#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shipped RBAC manifests grant what is documented, and nothing beyond it; the doctor says what is
missing."""

import subprocess

from harness.case import check, run
from harness.cluster import Cluster
from harness.control_plane import built_program

KUBE = ">=1.20"
MANIFESTS = ("base/device-plugin/rbac.yaml", "base/second-scheduler/rbac.yaml")
# (ServiceAccount, verb, resource, namespace, expected)
RIGHTS = (
    ("gpushare-extender", "watch", "nodes", "", True),
    ("gpushare-extender", "watch", "pods", "", True),
    ("gpushare-extender", "patch", "pods", "default", True),
    ("gpushare-extender", "create", "pods/binding", "default", True),
    ("gpushare-extender", "create", "events", "default", True),
    ("gpushare-extender", "patch", "events", "default", False),
    ("gpushare-extender", "create", "leases.coordination.k8s.io", "gpushare-system", True),
    ("gpushare-extender", "create", "leases.coordination.k8s.io", "kube-system", False),
    ("gpushare-extender", "update", "leases.coordination.k8s.io", "kube-system", False),
    ("gpushare-extender", "update", "pods/status", "default", False),
    ("gpushare-extender", "watch", "poddisruptionbudgets.policy", "", True),
    ("gpushare-extender", "create", "pods/eviction", "default", False),
    ("gpushare-extender", "create", "pods", "default", False),
    ("gpushare-extender", "delete", "pods", "default", False),
    ("gpushare-extender", "patch", "pods/status", "default", True),
    ("gpushare-extender", "patch", "nodes", "", False),
    ("gpushare-extender", "get", "secrets", "default", False),
    ("gpushare-device-plugin", "patch", "nodes/status", "", True),
    ("gpushare-device-plugin", "patch", "nodes", "", True),
    ("gpushare-device-plugin", "patch", "pods", "default", True),
    ("gpushare-device-plugin", "create", "events", "default", True),
    ("gpushare-device-plugin", "create", "pods/binding", "default", False),
    ("gpushare-device-plugin", "delete", "pods", "default", False),
    ("gpushare-device-plugin", "get", "secrets", "default", False),
    ("gpushare-scheduler", "create", "pods/binding", "default", True),
    ("gpushare-scheduler", "patch", "pods", "default", True),
    ("gpushare-scheduler", "watch", "nodes", "", True),
    ("gpushare-scheduler", "get", "secrets", "default", False),
)


def allowed(cluster, account, verb, resource, namespace):
    kind, _, group = resource.partition(".")
    name, _, sub = kind.partition("/")
    answer = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": f"system:serviceaccount:gpushare-system:{account}",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {"verb": verb, "resource": name, "subresource": sub,
                                   "group": group, "namespace": namespace}}})
    return answer["status"]["allowed"]


def doctor(cluster):
    """Its lines about permissions."""
    done = subprocess.run([
        built_program("kubectl-inspect-gpushare"), "--kubeconfig",
        cluster.control_plane.kubeconfig("admin"), "doctor"],
        capture_output=True, text=True, check=False, timeout=60)
    return [line for line in done.stdout.splitlines() if "  permissions: " in line]


def body():
    with Cluster(scheduler=None) as cluster:
        cluster.control_plane.apply(*MANIFESTS)
        wrong = [f"{account} {verb} {resource} in '{namespace}' should be {expected}"
                 for account, verb, resource, namespace, expected in RIGHTS
                 if allowed(cluster, account, verb, resource, namespace) != expected]
        check(not wrong, "; ".join(wrong))
        said = doctor(cluster)
        check(len(said) == 1 and said[0].startswith("ok "), f"all rights granted: {said}")
        cluster.control_plane.kubectl("delete", "clusterrole", "gpushare-device-plugin")
        said = doctor(cluster)
        check(said and all(line.startswith("FAIL ") for line in said), f"without the ClusterRole: {said}")


run(body)
