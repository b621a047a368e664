#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""While victims end, a stream of small pods does not take the GPU of the pod they made room for."""

import time

from harness import release
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, bound_node, node, pod
from harness.processes import wait_for
from harness.shapes import create_priorities, only_on, resident, start_preempting_scheduler

KUBE = ">=1.20"
# GPU of 16: what its high pod takes. Beside 2, the sum of the node has room for small pods even
# while it counts the victim and the nominated pod both, so that only the extender can refuse them.
BESIDE = {"full": 8, "split": 2}


def residents(name, high_units):
    return [resident(f"victim-{name}", name, 0, 10, priorityClassName="low",
                     terminationGracePeriodSeconds=3600),
            resident(f"high-{name}", name, 1, high_units, priorityClassName="high")]


def wait_nominated(cluster, name, node_name):
    def probe():
        return (cluster.pod(f"wanted-{name}")["status"].get("nominatedNodeName") == node_name and
                cluster.pod(f"victim-{name}")["metadata"].get("deletionTimestamp"))
    wait_for(f"wanted-{name} is nominated and its victim is ending", probe)


def stream(cluster, name, turn, count=4):
    cluster.create_pods([pod(f"small-{name}-{turn}-{i}", 4, priorityClassName="low", **only_on(name))
                         for i in range(count)])
    time.sleep(1)


def small_gpus(cluster, name):
    return [annotation(p, IDX) for p in cluster.api.pods()
            if p["metadata"]["name"].startswith(f"small-{name}") and bound_node(p)]


def no_steal(cluster, name):
    cluster.create_pods(residents(name, BESIDE[name]))
    cluster.wait_inspect_agrees()
    cluster.create_pods([pod(f"wanted-{name}", 16, priorityClassName="urgent", **only_on(name))])
    wait_nominated(cluster, name, name)
    for turn in range(3):
        stream(cluster, name, turn)
    check("0" not in small_gpus(cluster, name), "a small pod sits beside the ending victim")
    if name == "split":
        check("1" in small_gpus(cluster, name), "small pods were kept off the other GPU as well")
    cluster.delete_pod(f"victim-{name}")
    stream(cluster, name, 3)
    found = cluster.wait_bound(f"wanted-{name}", timeout_s=20)
    check(annotation(found, IDX) == "0", f"bound to GPU {annotation(found, IDX)}")
    print(f"note: {name}: small pods on GPUs {small_gpus(cluster, name)}")
    cluster.wait_inspect_agrees()


def body():
    nodes = [node(name, [16, 16]) for name in BESIDE]
    with Cluster(nodes=nodes, scheduler=None) as cluster:
        start_preempting_scheduler(cluster)
        create_priorities(cluster, {"low": 10, "urgent": 500, "high": 1000})
        no_steal(cluster, "full")
        if release.PREEMPTS_WHEN_THE_SUM_FITS:
            no_steal(cluster, "split")


run(body)
