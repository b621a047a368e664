#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods over several GPUs: on one NUMA node where they fit, all or nothing, annotations right."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, bound_node, pod
from harness.shapes import node_of, resident

ALLOCATION = "scheduler.framework.gpushare.allocation"


def one_numa_node(cluster):
    """GPU 0 and 1 are the tightest, but each on a NUMA node of its own."""
    cluster.create_pods([resident("a", "n1", 0, 4), resident("b", "n1", 1, 4)])
    cluster.wait_inspect_agrees()
    cluster.create_pods([pod("two", containers=[16, 0, 8], gpu_count=2)])
    found = cluster.wait_bound("two")
    expected = {IDX: "0,2", "ALIYUN_COM_GPU_MEM_POD": "24", "ALIYUN_COM_GPU_MEM_DEV": "16",
                "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
                ALLOCATION: '{"0":{"0":8,"2":8},"2":{"0":4,"2":4}}'}
    for name, value in expected.items():
        check(annotation(found, name) == value, f"{name} is {annotation(found, name)}, not {value}")
    cluster.wait_inspect_agrees()


def over_numa_nodes(cluster):
    """Three GPUs are on no NUMA node: it does not wait for them."""
    cluster.create_pods([pod("three", 12, gpu_count=3)])
    found = cluster.wait_bound("three")
    gpus = annotation(found, IDX).split(",")
    check(len(set(gpus)) == 3, f"on GPUs {gpus}")
    cluster.wait_inspect_agrees()


def all_or_nothing(cluster):
    """Only GPU 3 has 10 left: neither one half on it nor both halves."""
    cluster.create_pods([pod("waiting", 20, gpu_count=2)])
    message = cluster.wait_refused("waiting")
    check("too few GPUs with enough free memory" in message, message)
    cluster.create_pods([pod("never", 20, gpu_count=5)])
    message = cluster.wait_refused("never")
    check("too few GPUs large enough" in message, message)
    cluster.wait_inspect_agrees()
    cluster.delete_pod("two")
    found = cluster.wait_bound("waiting", timeout_s=20)
    check(len(annotation(found, IDX).split(",")) == 2, f"on {annotation(found, IDX)}")
    cluster.wait_inspect_agrees()


def not_divisible(cluster):
    cluster.create_pods([pod("odd", 15, gpu_count=2), pod("odd-part", containers=[3, 3],
                                                          gpu_count=2)])
    for name in ("odd", "odd-part"):
        message = cluster.wait_refused(name)
        check("invalid gpu-count: gpu-mem of each container" in message, f"{name}: {message}")


def body():
    with Cluster(nodes=[node_of("n1", [16] * 4, numa=[0, 1, 0, 1])]) as cluster:
        one_numa_node(cluster)
        over_numa_nodes(cluster)
        all_or_nothing(cluster)
        not_divisible(cluster)
        check(bound_node(cluster.pod("never")) == "", "five GPUs of four")


run(body)
