#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods the original and its successor bound, on nodes without inventory, are counted, also after a
restart; pods they only began to bind are placed anew."""

import json

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import (ALLOCATION, IDX, annotation, node, original_annotations, pod,
                             successor_annotations)


def from_the_original(name, gpu_idx, units, node_name="n1"):
    return pod(name, units, node_name=node_name,
               annotations=original_annotations(gpu_idx, units, 16))


def expect_gpu(cluster, name, gpu_idx, **kwargs):
    got = annotation(cluster.wait_bound(name, **kwargs), IDX)
    check(got == str(gpu_idx), f"{name} got GPU {got}, not {gpu_idx}")


def of_the_original(cluster):
    cluster.create_pods([from_the_original("old-a", 0, 12), from_the_original("old-b", 1, 6)])
    cluster.wait_inspect_agrees()
    cluster.create_pods([pod("best-fit", 4)])
    expect_gpu(cluster, "best-fit", 0)
    cluster.create_pods([pod("too-large", 12)])
    cluster.wait_refused("too-large")

    cluster.extender.kill()
    cluster.extender.start()
    cluster.wait_inspect_agrees()
    cluster.create_pods([pod("only-there", 10)])
    expect_gpu(cluster, "only-there", 1)
    cluster.delete_pod("old-a")
    expect_gpu(cluster, "too-large", 0, timeout_s=10)
    cluster.wait_inspect_agrees()


def begun_by_the_original(cluster):
    """Patched, but never bound: it holds nothing, and what was written is written anew."""
    written = original_annotations(1, 16, 16) | {
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false", ALLOCATION: json.dumps({"0": {"1": 16}})}
    began = pod("begun", 6, annotations=written)
    began["spec"]["schedulerName"] = "gone"
    cluster.create_pods([began])
    again = pod("begun-again", 16, annotations=written)
    again["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n2"}
    cluster.create_pods([again])
    expect_gpu(cluster, "begun-again", 0)
    stored = cluster.pod("begun-again")
    check(annotation(stored, "ALIYUN_COM_GPU_MEM_POD") == "16", "it has the old charge")
    check(json.loads(annotation(stored, ALLOCATION)) == {"0": {"0": 16}},
          f"it has the old allocation {annotation(stored, ALLOCATION)}")
    cluster.wait_inspect_agrees()


def of_the_successor(cluster):
    """It writes the allocation and no index."""
    cluster.create_pods([pod("v2", containers=[4, 4], node_name="n3",
                             annotations=successor_annotations((1, 4), (1, 4)))])
    cluster.wait_inspect_agrees()
    shown = cluster.extender.inspect()["n3"]
    check((shown[0][1], shown[1][1]) == (0, 8), f"v2 is not on GPU 1 alone: {shown}")
    beside = pod("beside-v2", 8)
    beside["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n3"}
    cluster.create_pods([beside])
    expect_gpu(cluster, "beside-v2", 1)
    cluster.wait_inspect_agrees()


def body():
    with Cluster(nodes=[node("n1", [16, 16], with_inventory=False)]) as cluster:
        of_the_original(cluster)
        cluster.add_nodes([node("n2", [16, 16], with_inventory=False)])
        begun_by_the_original(cluster)
        cluster.add_nodes([node("n3", [16, 16], with_inventory=False)])
        of_the_successor(cluster)


run(body)
