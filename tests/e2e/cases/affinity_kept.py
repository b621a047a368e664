#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""By default a preferred nodeAffinity still decides between equal nodes, for pods with GPU memory."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod

NODES = ("n1", "n2", "n3", "n4")


def preferring(name):
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100, "preference": {"matchExpressions": [{
            "key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}}]}}}


def body():
    for policy in ("binpack", "rollout"):
        with Cluster(nodes=[node(name, [16, 16]) for name in NODES],
                     extender_flags=("--policy", policy)) as cluster:
            for name in NODES:
                cluster.create_pods([pod("p", 4, **preferring(name))])
                where = bound_node(cluster.wait_bound("p"))
                check(where == name, f"{policy}: the pod prefers {name} and is on {where}")
                cluster.delete_pod("p")
                cluster.wait_inspect_agrees()


run(body)
