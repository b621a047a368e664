#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods the original bound, on nodes without inventory, are counted, also after a restart."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, node, original_annotations, pod


def from_the_original(name, gpu_idx, units, node_name="n1"):
    return pod(name, units, node_name=node_name,
               annotations=original_annotations(gpu_idx, units, 16))


def expect_gpu(cluster, name, units, gpu_idx):
    cluster.create_pods([pod(name, units)])
    got = annotation(cluster.wait_bound(name), IDX)
    check(got == str(gpu_idx), f"{name} got GPU {got}, not {gpu_idx}")


def body():
    with Cluster(nodes=[node("n1", [16, 16], with_inventory=False)]) as cluster:
        cluster.create_pods([from_the_original("old-a", 0, 12), from_the_original("old-b", 1, 6)])
        cluster.wait_inspect_agrees()
        expect_gpu(cluster, "best-fit", 4, 0)
        cluster.create_pods([pod("too-large", 12)])
        cluster.wait_refused("too-large")

        cluster.extender.kill()
        cluster.extender.start()
        cluster.wait_inspect_agrees()
        expect_gpu(cluster, "only-there", 10, 1)
        cluster.delete_pod("old-a")
        got = annotation(cluster.wait_bound("too-large", timeout_s=10), IDX)
        check(got == "0", f"too-large got GPU {got}")
        cluster.wait_inspect_agrees()


run(body)
