#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a pod says of itself when it is created, its charge is that of its spec, and on GPUs that
hold it; what it says before it is bound is overwritten."""

import functools

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import ALLOCATION, IDX, annotation, node, original_annotations, pod
from harness.processes import wait_for

POD = "ALIYUN_COM_GPU_MEM_POD"

# (row, annotations of a pod of 8 on a node with GPUs of 16 and 4, what each of them is charged)
ROWS = (
    ("a smaller charge", original_annotations(0, 1, 16), (8, 0)),
    ("a smaller allocation", {IDX: "0", ALLOCATION: '{"0":{"0":1}}'}, (8, 0)),
    ("a GPU that is too small", original_annotations(1, 8, 4), (8, 8)),
    ("a GPU that is not there", original_annotations(7, 8, 16), (8, 0)),
    ("more GPUs than it asked for", {IDX: "0,1", POD: "8"}, (4, 4)),
    ("more GPUs than it divides by", {IDX: "0,1,2", POD: "8"}, (8, 8)),
    ("nonsense", {IDX: "x", POD: "-1"}, (8, 0)),
    ("nothing", {}, (8, 0)),
)


def is_charged(cluster, name, expected):
    found = tuple(used for _, used, _ in cluster.extender.inspect()[name].values())
    if found != expected:
        raise OSError(f"{found}")
    return True


def body():
    nodes = [node(f"n{i}", [16, 4]) for i in range(len(ROWS))]
    with Cluster(nodes=[*nodes, node("free", [16, 12])]) as cluster:
        cluster.create_pods([pod(f"p{i}", 8, node_name=f"n{i}", annotations=notes)
                             for i, (_, notes, _) in enumerate(ROWS)])
        for i, (row, _, expected) in enumerate(ROWS):
            wait_for(f"{row}: charged {expected}", functools.partial(is_charged, cluster, f"n{i}",
                                                                     expected))
        cluster.create_pods([pod("waits", 14, annotations=original_annotations(1, 1, 4))])
        bound = cluster.wait_bound("waits")
        check((annotation(bound, IDX), annotation(bound, POD)) == ("0", "14"),
              f"a forged record was kept: {bound['metadata']['annotations']}")


run(body)
