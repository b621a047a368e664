#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""300 nodes whose sums all fit and exactly one GPU that does: bound in the first cycle, where
kube-scheduler looks at all nodes (case sampling_offers: where it does not)."""

import os

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, bound_node, node, original_annotations, pod

NODES = 300
ROUNDS = 5


def taken(index, gpu_idx, units):
    name = f"node-{index:03}"
    return pod(f"taken-{index:03}-{gpu_idx}", units, node_name=name,
               annotations=original_annotations(gpu_idx, units, 16))


def body():
    os.environ["GPUSHARE_ALL_NODES"] = "1"
    nodes = [node(f"node-{i:03}", [16, 16, 16]) for i in range(NODES)]
    with Cluster(nodes=nodes) as cluster:
        # Every GPU keeps 6 free, so each node's sum of 18 would take the 12 that will be asked.
        cluster.create_pods([taken(i, g, 10) for i in range(NODES) for g in range(3)])
        cluster.wait_inspect_agrees(timeout_s=30)
        for turn in range(ROUNDS):
            index = (turn * 61 + 17) % NODES
            cluster.delete_pod(f"taken-{index:03}-1")
            cluster.wait_inspect_agrees()
            cluster.create_pods([pod(f"wanted-{turn}", 12)])
            found = cluster.wait_bound(f"wanted-{turn}", timeout_s=10)
            where = (bound_node(found), annotation(found, IDX))
            check(where == (f"node-{index:03}", "1"), f"bound to {where}, not GPU 1 of {index}")
            events = cluster.events(f"wanted-{turn}")
            check("FailedScheduling" not in events, f"not in the first cycle: {events}")


run(body)
