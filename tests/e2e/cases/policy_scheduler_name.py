#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/policies/scheduler-name: a pod with GPU memory whose schedulerName was forgotten is refused;
with set.yaml it gets the name."""

from harness import release
from harness.api import pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, node, pod
from harness.policies import check_rows, refusal
from harness.processes import wait_for

KUBE = ">=1.30"
NAME = "gpushare-scheduler"
REFUSED = f"needs schedulerName {NAME}"
PODS = pod_path(NAMESPACE)

# (row, words of the refusal or "", pod, schedulerName with set.yaml)
ROWS = (
    ("forgotten", REFUSED, pod("a", 4), NAME),
    ("an init container asks", REFUSED, pod("b", 0, init=[4]), NAME),
    ("another scheduler", REFUSED, pod("c", 4, schedulerName="other"), None),
    ("the right one", "", pod("d", 4, schedulerName=NAME), NAME),
    ("nobody asks", "", pod("e"), "default-scheduler"),
    ("on a node already", "", pod("f", 4, node_name="n1"), "default-scheduler"),
)


def scheduler_given(cluster, made):
    return cluster.api.create(f"{PODS}?dryRun=All", made)["spec"]["schedulerName"]


def body():
    with Cluster(nodes=[node("n1", [16])], scheduler=None, extender=False) as cluster:
        rows = [(row, words, cluster.api, "POST", PODS, made) for row, words, made, _ in ROWS]
        kubectl, folder = cluster.control_plane.kubectl, "policies/scheduler-name"
        kubectl("apply", "-k", cluster.control_plane.manifest(folder))
        wait_for("the policy stands", lambda: REFUSED in refusal(*rows[0][2:]))
        check_rows(rows)
        if release.MINOR < 36:
            print("note: this API server does not set the name")
            return
        cluster.control_plane.apply(f"{folder}/set.yaml")
        wait_for("the name is set", lambda: not refusal(*rows[0][2:]))
        for row, _, made, expected in ROWS:
            if expected is None:
                check(REFUSED in refusal(cluster.api, "POST", PODS, made), f"{row}: let in")
            else:
                given = scheduler_given(cluster, made)
                check(given == expected, f"{row}: {given}, not {expected}")


run(body)
