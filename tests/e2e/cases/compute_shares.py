#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""aliyun.com/gpu-core.percentage: a pod as ACK's documents write it; 60 and 40 share a GPU, 60 and 50
do not, and the one that waits is told so in words of its own; preemption goes by compute; compute
without memory goes nowhere. No GPU is ever promised more than 100 (some 20 s)."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import (GPU_CORES, GPU_MEM, IDX, PAUSE_IMAGE, annotation, bound_node, node, pod,
                             with_cores)
from harness.shapes import create_priorities, start_preempting_scheduler

KUBE = ">=1.20"
PRIORITIES = {"low": 10, "mid": 100, "urgent": 500}
# The limits of the example in ACK's page on compute: whole numbers, not quoted.
ACK = {"name": "cuda-sample", "image": PAUSE_IMAGE, "command": ["bash", "run.sh"],
       "resources": {"limits": {GPU_MEM: 2, GPU_CORES: 30}}, "workingDir": "/root"}


def promised(cluster):
    """{GPU: percent} of n1, from the API alone."""
    sums = {}
    for found in cluster.api.pods():
        limits = found["spec"]["containers"][0].get("resources", {}).get("limits", {})
        if bound_node(found):
            gpu = annotation(found, IDX)
            sums[gpu] = sums.get(gpu, 0) + int(limits.get(GPU_CORES, 0))
    check(all(percent <= 100 for percent in sums.values()), f"promised: {sums}")
    return sums


def asks(name, units, percent, **spec):
    return with_cores(pod(name, units, terminationGracePeriodSeconds=0, **spec), percent)


def place(cluster, made, gpu):
    name = made["metadata"]["name"]
    cluster.create_pods([made])
    found = cluster.wait_bound(name)
    check(annotation(found, IDX) == gpu, f"{name} is on GPU {annotation(found, IDX)}, not {gpu}")


def as_ack_writes_it(cluster):
    made = pod("ack", terminationGracePeriodSeconds=0)
    made["spec"].update(containers=[ACK], restartPolicy="Never")
    place(cluster, made, "0")
    check(promised(cluster) == {"0": 30}, f"promised: {promised(cluster)}")
    cluster.delete_pod("ack")


def sums_of_a_gpu(cluster):
    place(cluster, asks("mid-a", 8, 60, priorityClassName="mid"), "0")
    place(cluster, asks("mid-b", 4, 60, priorityClassName="mid"), "1")
    cluster.create_pods([asks("fifty", 2, 50)])  # of the node 80 are left, of no GPU more than 40
    message = cluster.wait_refused("fifty")
    print(f"note: {message}")
    check("insufficient free compute" in message and "Insufficient" not in message, message)
    check("%" not in message, f"a percent sign in: {message}")
    cluster.delete_pod("fifty")
    place(cluster, asks("low-d", 4, 40, priorityClassName="low"), "0")
    place(cluster, pod("none", 2, terminationGracePeriodSeconds=0), "0")  # the tightest, as ever
    check(promised(cluster) == {"0": 100, "1": 60}, f"promised: {promised(cluster)}")
    cluster.delete_pod("none")
    cluster.wait_inspect_agrees()


def preemption(cluster):
    """kube-scheduler proposes the least important one by the node's sum, after which no GPU has the
    compute: one more is added, on the GPU where least has to go."""
    place(cluster, asks("urgent", 2, 50, priorityClassName="urgent"), "0")
    left = {found["metadata"]["name"] for found in cluster.api.pods()
            if not found["metadata"].get("deletionTimestamp")}
    check(left == {"mid-b", "urgent"}, f"left: {sorted(left)}")
    check(promised(cluster) == {"0": 50, "1": 60}, f"promised: {promised(cluster)}")
    cluster.wait_inspect_agrees()


def alone(cluster):
    cluster.create_pods([with_cores(pod("alone"), 10)])
    message = cluster.wait_refused("alone")
    check("gpu-core.percentage requested without gpu-mem" in message, message)


def body():
    with Cluster(nodes=[node("n1", [16, 16])], scheduler=None) as cluster:
        start_preempting_scheduler(cluster)
        create_priorities(cluster, PRIORITIES)
        as_ack_writes_it(cluster)
        sums_of_a_gpu(cluster)
        preemption(cluster)
        alone(cluster)


run(body)
