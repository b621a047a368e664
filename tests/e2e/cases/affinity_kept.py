#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""By default a preferred nodeAffinity still decides between equal nodes, for pods with GPU memory."""

import time

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod

KUBE = ">=1.20"
PODS_SEEN = 24
NODES = ("n1", "n2", "n3", "n4")


def preferring(name):
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100, "preference": {"matchExpressions": [{
            "key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}}]}}}


def learn(cluster):
    """The policy rollout has tables from the 16th pod on: it shall have seen more than that, and find
    the nodes as empty as before."""
    made = [pod(f"seen-{i:02}", (1, 2, 4, 8)[i % 4]) for i in range(PODS_SEEN)]
    cluster.create_pods(made)
    for one in made:
        cluster.wait_bound(one["metadata"]["name"])
    for one in made:
        cluster.delete_pod(one["metadata"]["name"])
    cluster.wait_inspect_agrees()


def preferred(cluster, policy):
    for name in NODES:
        cluster.create_pods([pod("p", 4, **preferring(name))])
        where = bound_node(cluster.wait_bound("p"))
        check(where == name, f"{policy}: the pod prefers {name} and is on {where}")
        cluster.delete_pod("p")
        cluster.wait_inspect_agrees()


def body():
    for policy in ("binpack", "rollout"):
        with Cluster(nodes=[node(name, [16, 16]) for name in NODES],
                     extender_flags=("--policy", policy)) as cluster:
            preferred(cluster, policy)
            if policy == "rollout":
                learn(cluster)
                time.sleep(2)  # the tables are built anew once a second
                preferred(cluster, f"{policy} with its tables")


run(body)
