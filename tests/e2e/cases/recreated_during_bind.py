#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pod is deleted and re-created under its name during its bind: charged once, as it is."""

import threading

from harness import ledger, release
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, bound_node, node, pod
from harness.processes import wait_for
from harness.webhook import BindingHook

KUBE = ">=1.20"
ROUNDS = 10


def stale_binding_must_win(name):
    """Nobody schedules every other new pod, so that only the old pod's binding can reach it."""
    return not release.BINDING_CHECKS_UID and int(name[1:]) % 2 == 0


class Swap:
    """Replaces each pod once, by a pod of another size, when its binding reaches the API server."""

    def __init__(self, cluster, new_size):
        self.cluster = cluster
        self.new_size = new_size
        self.done = set()
        self.lock = threading.Lock()

    def __call__(self, _namespace, name):
        with self.lock:
            if name in self.done:
                return
            self.cluster.delete_pod(name)
            scheduler = "nobody" if stale_binding_must_win(name) else "default-scheduler"
            self.cluster.create_pods([pod(name, self.new_size, schedulerName=scheduler)])
            self.done.add(name)


def stale_uid_is_refused(cluster):
    """kube-scheduler's bind may name a pod that is gone, while another one has its name."""
    cluster.create_pods([pod("stale", 2, schedulerName="nobody")])
    old_uid = cluster.pod("stale")["metadata"]["uid"]
    cluster.delete_pod("stale")
    cluster.create_pods([pod("stale", 2, schedulerName="nobody")])
    answer = cluster.extender.verb("bind", {"PodName": "stale", "PodNamespace": NAMESPACE,
                                            "PodUID": old_uid, "Node": "n1"})
    check(answer.get("Error"), "a bind that names a vanished UID did not fail")
    check(not bound_node(cluster.pod("stale")), "the new pod was bound by the old one's request")
    cluster.wait_inspect_agrees()
    cluster.delete_pod("stale")


def all_that_is_left_can_be_used(cluster):
    """Asks the extender itself: kube-scheduler keeps its own memory of the old pods for 30 s."""
    for state in ledger.build(cluster.api.nodes(), cluster.api.pods()).values():
        free = state.gpus[0].free
        for units, expected in ((free, [state.name]), (free + 1, [])):
            answer = cluster.extender.verb("filter", {"Pod": pod("probe", units),
                                                      "NodeNames": [state.name]})
            check((answer.get("NodeNames") or []) == expected,
                  f"{free} units are free on {state.name}, filter for {units}: {answer}")


def body():
    with Cluster(nodes=[node("n1", [64]), node("n2", [64])]) as cluster:
        stale_uid_is_refused(cluster)
        swap = Swap(cluster, new_size=6)
        with BindingHook(cluster.control_plane, swap):
            for turn in range(ROUNDS):
                cluster.create_pods([pod(f"p{turn}", 4)])
                wait_for("the binding passes the hook", lambda name=f"p{turn}": name in swap.done)
                cluster.wait_bound(f"p{turn}", timeout_s=60)
            sizes = {ledger.per_gpu(p) for p in cluster.api.pods()}
            check(sizes == {6}, f"the pods are of {sizes}, not the new ones")
        check(not cluster.problems(complete=False), "a GPU is over its size")
        cluster.wait_inspect_agrees()
        all_that_is_left_can_be_used(cluster)


run(body)
