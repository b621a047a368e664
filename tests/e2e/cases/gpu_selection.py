#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPUs chosen by model and UUID; a broken annotation is named, and the pod never placed."""

import time

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, bound_node, pod
from harness.shapes import node_of

NODES = {"n1": ["NVIDIA A100-SXM4-80GB", "Tesla T4"], "n2": ["Tesla T4", "NVIDIA H100 PCIe"]}
# (row, annotations, where it must be)
CHOICES = (
    ("model", {"model": "a100"}, [("n1", "0")]),
    ("part of a name", {"model": "h100 pc"}, [("n2", "1")]),
    ("model denied", {"model-deny": "tesla,h100"}, [("n1", "0")]),
    ("UUID", {"uuid": "GPU-n2-0"}, [("n2", "0")]),
    ("UUID, another case", {"uuid": "gpu-N1-1"}, [("n1", "1")]),
    ("allowed and denied", {"model": "T4", "uuid-deny": "GPU-n1-1"}, [("n2", "0")]),
)
# (row, annotations, what the message must say)
REFUSED = (
    ("part of a UUID", {"uuid": "GPU-n2"}, "no GPU of the requested model"),
    ("broken model", {"model": "A100,,T4"}, "invalid gpu-model: not a comma-separated list"),
    ("broken uuid", {"uuid": "GPU-n1-0,"}, "invalid gpu-uuid: not"),
    ("broken placement", {"placement": "best"}, "invalid gpu-placement: unknown policy"),
)


def wish(name, wishes):
    return pod(name, 4, annotations={f"aliyun.com/gpu-{key}": value
                                     for key, value in wishes.items()})


def chosen(cluster):
    for number, (row, wishes, places) in enumerate(CHOICES):
        name = f"choice-{number}"
        cluster.create_pods([wish(name, wishes)])
        found = cluster.wait_bound(name)
        where = (bound_node(found), annotation(found, IDX))
        check(where in places, f"{row}: on {where}, not on {places}")
        cluster.delete_pod(name)
    cluster.wait_inspect_agrees()


def refused(cluster):
    cluster.create_pods([wish(f"refused-{i}", wishes)
                         for i, (_row, wishes, _text) in enumerate(REFUSED)])
    for number, (row, _wishes, text) in enumerate(REFUSED):
        message = cluster.wait_refused(f"refused-{number}")
        check(text in message, f"{row}: {message}")
        check("%" not in message, f"{row}: a percent sign in: {message}")


def never_placed(cluster):
    """Room that comes free, and a node that comes, change nothing for them."""
    cluster.create_pods([pod("passing", 16)])
    cluster.wait_bound("passing")
    cluster.delete_pod("passing")
    cluster.add_nodes([node_of("n3", [16], model=["NVIDIA L4"])])
    time.sleep(5)
    placed = [p["metadata"]["name"] for p in cluster.api.pods() if bound_node(p)]
    check(not placed, f"placed all the same: {placed}")
    cluster.wait_inspect_agrees()


def body():
    nodes = [node_of(name, [16, 16], model=models) for name, models in NODES.items()]
    with Cluster(nodes=nodes) as cluster:
        chosen(cluster)
        refused(cluster)
        never_placed(cluster)


run(body)
