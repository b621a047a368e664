#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pod that fits a node's sum but no GPU waits and says why; elsewhere it gets the right GPU.

The figures are those of the original's design document: 8138 MiB, on one node with two GPUs of
16276 MiB of which 12207 are taken each, and on one where 12207, 8138, 4069 and 16276 are free."""

import time

from harness.api import node_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import annotation, bound_node, node, original_annotations, pod

KUBE = ">=1.20"
GPU = 16276
ASK = 8138


def taken(node_name, gpu_idx, units):
    """A pod that holds this much of a GPU already."""
    return pod(f"taken-{node_name}-{gpu_idx}", units, node_name=node_name,
               annotations=original_annotations(gpu_idx, units, GPU))


def waits_and_says_why(cluster):
    cluster.create_pods([pod("wanted", ASK)])
    message = cluster.wait_refused("wanted")
    print(f"note: {message}")
    check("GPU" in message and "Insufficient" not in message,
          f"the message does not name the GPU as the reason: {message}")
    check("%" not in message, f"a percent sign in: {message}")


def gets_the_best_fit(cluster):
    # Cordoned until all is in place: newer releases try a waiting pod as soon as a node appears.
    cluster.add_nodes([{**node("n2", [GPU] * 4, unit="MiB"), "spec": {"unschedulable": True}}])
    free = [12207, 8138, 4069, 16276]
    cluster.create_pods([taken("n2", idx, GPU - left)
                         for idx, left in enumerate(free) if left < GPU])
    cluster.wait_inspect_agrees()
    cluster.api.patch(node_path("n2"), {"spec": {"unschedulable": None}})
    found = cluster.wait_bound("wanted")
    check(bound_node(found) == "n2", f"bound to {bound_node(found)}")
    expected = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": str(ASK),
                "ALIYUN_COM_GPU_MEM_DEV": str(GPU), "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
                "scheduler.framework.gpushare.allocation": '{"0":{"1":8138}}'}
    for name, value in expected.items():
        check(annotation(found, name) == value, f"{name} is {annotation(found, name)}, not {value}")
    bind_time_ns = int(annotation(found, "ALIYUN_COM_GPU_MEM_ASSUME_TIME"))
    check(abs(bind_time_ns - time.time_ns()) < 60e9, f"assume time {bind_time_ns} is not about now")


def body():
    with Cluster(nodes=[node("n1", [GPU, GPU], unit="MiB")]) as cluster:
        cluster.create_pods([taken("n1", 0, 12207), taken("n1", 1, 12207)])
        cluster.wait_inspect_agrees()
        waits_and_says_why(cluster)
        gets_the_best_fit(cluster)
        cluster.wait_inspect_agrees()


run(body)
