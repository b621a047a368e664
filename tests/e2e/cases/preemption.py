#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Preemption by PriorityClass: the right victims on the right GPU, and no needless one."""

import time

from harness import release
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, bound_node, node, pod
from harness.shapes import create_priorities, only_on, resident, start_preempting_scheduler

KUBE = ">=1.20"
PRIORITIES = {"low": 10, "mid": 100, "urgent": 500, "high": 1000}
# node: ((pod, GPU, units), ...), a pod's priority is the first part of its name
RESIDENTS = {
    "n1": (("high-1", 0, 16), ("mid-1", 1, 16)),
    "n2": (("low-2a", 0, 8), ("low-2b", 0, 8), ("mid-2", 1, 16)),
    "n3": (("high-3a", 0, 16), ("high-3b", 1, 16)),
    "halves": (("high-4", 0, 8), ("low-4a", 0, 8), ("low-4b", 1, 8), ("mid-4", 1, 8)),
    "hopeless": (("high-5a", 0, 8), ("low-5a", 0, 8), ("high-5b", 1, 8), ("low-5b", 1, 8)),
    "split": (("mid-6", 0, 10), ("low-6", 1, 10)),
    "small": (("low-7", 0, 2),),
}
GPUS = {"small": [8, 8, 8]}  # of the others: two of 16


def living(cluster):
    return {p["metadata"]["name"] for p in cluster.api.pods()
            if not p["metadata"].get("deletionTimestamp")}


def preempts(cluster, name, units, nodes):
    """A pod of 500 that may run on these nodes: (where it is, who had to go)."""
    before = living(cluster)
    cluster.create_pods([urgent(name, units, nodes)])
    found = cluster.wait_bound(name)
    gone = before - living(cluster)
    print(f"note: {name}: {bound_node(found)} GPU {annotation(found, IDX)}, "
          f"victims {' '.join(sorted(gone))}")
    cluster.wait_inspect_agrees()
    return bound_node(found), annotation(found, IDX), gone


def urgent(name, units, nodes):
    return pod(name, units, priorityClassName="urgent", **only_on(*nodes))


def least_important_and_no_more(cluster):
    place = preempts(cluster, "first", 8, ("n1", "n2", "n3"))
    check(place[:2] == ("n2", "0") and len(place[2]) == 1 and place[2] < {"low-2a", "low-2b"},
          f"one of the two small pods of n2 should have gone: {place}")
    place = preempts(cluster, "second", 16, ("n1", "n2", "n3"))
    check(place in (("n1", "1", {"mid-1"}), ("n2", "1", {"mid-2"})),
          f"a pod of middle priority on GPU 1 should have gone: {place}")


def the_right_gpu_is_cleared(cluster):
    """kube-scheduler proposes the two small pods, whose halves do not make a whole: the rest of
    GPU 1 is added, and what was proposed is never taken back."""
    place = preempts(cluster, "third", 16, ("halves",))
    check(place == ("halves", "1", {"low-4a", "low-4b", "mid-4"}), f"GPU 1 to be cleared: {place}")


def nobody_goes_in_vain(cluster):
    """The sum would do after two evictions, no GPU would."""
    before = living(cluster)
    cluster.create_pods([urgent("fourth", 16, ("hopeless",))])
    cluster.wait_refused("fourth")
    time.sleep(3)
    check(before < living(cluster), f"evicted in vain: {before - living(cluster)}")
    found = cluster.pod("fourth")
    check(not found["status"].get("nominatedNodeName"), "nominated to a node that cannot take it")
    cluster.delete_pod("fourth")


def too_large_for_any_gpu(cluster):
    """Newer releases do not even ask about such nodes (FailedAndUnresolvableNodes)."""
    before = living(cluster)
    cluster.create_pods([urgent("giant", 12, ("small",))])
    message = cluster.wait_refused("giant")
    check("no GPU large enough for the request" in message, message)
    time.sleep(1)
    check(before < living(cluster), f"evicted in vain: {before - living(cluster)}")
    cluster.delete_pod("giant")


def fragmentation(cluster):
    if release.PREEMPTS_WHEN_THE_SUM_FITS:
        place = preempts(cluster, "fifth", 12, ("split",))
        check(place == ("split", "1", {"low-6"}), f"only low-6 is needed: {place}")


def body():
    nodes = [node(name, GPUS.get(name, [16, 16])) for name in RESIDENTS]
    with Cluster(nodes=nodes, scheduler=None) as cluster:
        start_preempting_scheduler(cluster)
        create_priorities(cluster, PRIORITIES)
        # Whoever is evicted goes at once, as nobody runs on simulated nodes to confirm its end.
        cluster.create_pods([resident(name, where, idx, units, terminationGracePeriodSeconds=0,
                                      priorityClassName=name.split("-", maxsplit=1)[0])
                             for where, pods in RESIDENTS.items() for name, idx, units in pods])
        cluster.wait_inspect_agrees()
        least_important_and_no_more(cluster)
        the_right_gpu_is_cleared(cluster)
        nobody_goes_in_vain(cluster)
        too_large_for_any_gpu(cluster)
        fragmentation(cluster)


run(body)
