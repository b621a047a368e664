#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What victims that end at once leave is not taken by pods of lower priority before kube-scheduler's nomination of the urgent pod,
which comes 0.5 or 3 s late, can be seen. 100 urgent pods, half of them with a choice of nodes. Some 4 minutes."""

import time

from harness.case import check, run
from harness.cluster import Cluster
from harness.delays import ApiProxy, through
from harness.objects import bound_node, node, pod
from harness.shapes import create_priorities, only_on, resident, start_preempting_scheduler

KUBE = ">=1.34"
NODES = [f"n{i}" for i in range(5)]
LATE_S = (0.5, 3)
TURNS = 10  # of each
LIMIT_S = 20


def low(name):
    """It fits where a victim was, and nowhere else, though the sum of the node has room beside the urgent pod."""
    return pod(name, 4, priorityClassName="low")


def urgent_names(turn):
    """A late patch means whoever has the name by then."""
    return [f"urgent-{turn}-{i}" for i in range(len(NODES))]


def wait_until_bound(cluster, turn):
    """(how long it took, lower pods that were bound): a stream of them comes meanwhile."""
    began, number = time.monotonic(), 0
    while True:
        pods = cluster.api.pods()
        bound = {p["metadata"]["name"] for p in pods if bound_node(p)}
        took = time.monotonic() - began
        if bound.issuperset(urgent_names(turn)) or took > LIMIT_S:
            return took, sorted(name for name in bound if name.startswith("low-"))
        cluster.create_pods([low(f"low-{turn}-{number}")])
        number += 1
        time.sleep(0.1)


def clear(cluster):
    for prefix in ("low-", "urgent-", "victim-"):
        for one in cluster.api.pods():
            if one["metadata"]["name"].startswith(prefix):
                cluster.delete_pod(one["metadata"]["name"])


def one_turn(cluster, turn, pinned):
    cluster.create_pods([resident(f"victim-{turn}-{name}", name, 0, 16, priorityClassName="low",
                                  terminationGracePeriodSeconds=0) for name in NODES])
    cluster.wait_inspect_agrees()
    cluster.create_pods([low(f"low-{turn}-parked-{i}") for i in range(3)])
    cluster.create_pods([pod(name, 16, priorityClassName="urgent",
                             **(only_on(where) if pinned else {})) for name, where in zip(urgent_names(turn), NODES)])
    found = wait_until_bound(cluster, turn)
    clear(cluster)
    return found


def body():
    nodes = [node(name, [16, 16, 16]) for name in NODES]
    with Cluster(nodes=nodes, scheduler=None) as cluster:
        proxy = ApiProxy(cluster.control_plane, cluster.control_plane.tokens["system:kube-scheduler"])
        shipped = cluster.control_plane.kubeconfig("system:kube-scheduler")
        late = through(shipped, proxy)
        cluster.scheduler.flags = ["--feature-gates=SchedulerAsyncAPICalls=true"]  # it goes on meanwhile
        start_preempting_scheduler(cluster, lambda text: text.replace(
            shipped, f"{late}\n  contentType: application/json\n  acceptContentTypes: application/json"))
        create_priorities(cluster, {"low": 10, "urgent": 500, "high": 1000})
        cluster.create_pods([resident(f"high-{name}-{i}", name, i, 13, priorityClassName="high")
                             for name in NODES for i in (1, 2)])
        rounds, stolen, waits = 0, [], []
        for turn in range(len(LATE_S) * TURNS):
            late_s = LATE_S[turn // TURNS]
            proxy.delay_patches(urgent_names(turn), late_s)
            took, taken = one_turn(cluster, turn, turn % 2)
            rounds += len(NODES)
            stolen += taken
            waits.append(took)
            print(f"note: {rounds} rounds, nominations {late_s} s late: all urgent pods bound after {took:.1f} s, "
                  f"lower pods in between: {len(taken)}", flush=True)
        proxy.stop()
        print(f"note: {rounds} rounds, {len(stolen)} lower pods in between, the longest wait {max(waits):.1f} s")
        check(not stolen, f"lower pods took what was freed: {stolen}")
        # kube-scheduler that asks for victims once more while they go can miss that they went.
        check(sum(took >= LIMIT_S for took in waits) <= 3, f"urgent pods wait on: {waits}")


run(body)
