#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pod that prefers an empty node comes to it although the extender prefers each of the 129 others: by
its node affinity, by its affinity to a pod there, by the affinity of a pod there to it (not with --filter-names=one).
29 s on two busy cores."""

import os
import time

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod
from harness.scheduler import all_nodes
from harness.shapes import resident

NODES = 130
EMPTY = "n000"
LABELS = {"app": "web"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
BY_NODE = {"nodeAffinity": {PREFERRED: [{"weight": 100, "preference": {"matchExpressions": [
    {"key": "kubernetes.io/hostname", "operator": "In", "values": [EMPTY]}]}}]}}
BY_POD = {"podAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": {
    "labelSelector": {"matchLabels": LABELS}, "topologyKey": "kubernetes.io/hostname"}}]}}


def labelled(made):
    made["metadata"]["labels"] = LABELS
    return made


# (row, a pod on the empty node or None, the pod that comes, whether it comes to the empty node)
ROWS = (
    ("nothing is said", None, pod("p", 4), False),
    ("preferred node affinity", None, pod("p", 4, affinity=BY_NODE), True),
    ("preferred pod affinity", labelled(pod("there", node_name=EMPTY)),
     pod("p", 4, affinity=BY_POD), True),
    ("an existing pod's preferred affinity", pod("there", node_name=EMPTY, affinity=BY_POD),
     labelled(pod("p", 4)), os.environ.get("GPUSHARE_FILTER_NAMES") != "one"),
    ("nothing is said any more", None, labelled(pod("p", 4)), False),
)


def check_row(cluster, row, there, comes, preferred):
    if there:
        cluster.create_pods([there])
        time.sleep(0.5)  # kube-scheduler and extender each have a watch
    cluster.create_pods([comes])
    where = bound_node(cluster.wait_bound("p"))
    check((where == EMPTY) == preferred, f"{row}: on {where}")
    cluster.delete_pod("p")
    if there:
        cluster.delete_pod("there")
    cluster.wait_inspect_agrees()


def body():
    names = [f"n{i:03}" for i in range(NODES)]
    with Cluster(nodes=[node(name, [16, 16]) for name in names], scheduler=None,
                 extender_flags=("--policy", "binpack")) as cluster:
        # a sample might not hold the empty node
        cluster.scheduler.start(cluster.extender.url, edit=all_nodes)
        cluster.create_pods([resident(f"on-{name}", name, 0, 8) for name in names[1:]])
        cluster.wait_inspect_agrees()
        for row in ROWS:
            check_row(cluster, *row)


run(body)
