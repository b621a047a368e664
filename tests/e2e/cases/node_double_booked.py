#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two pods are bound to one GPU that has room for one (no --scheduler-lease): the device
plugin gives one of them another GPU, or fails it."""

import concurrent.futures

from harness.case import check, run
from harness.extender import Extender
from harness.gate import bind_at_once
from harness.node import NODE, NodeCluster, real_pod
from harness.objects import IDX, annotation, bound_node
from harness.processes import wait_for
from harness.watch import PodWatch

BINPACK = ("--policy", "binpack")


class FirstRecords:
    """The GPU that each pod was bound with, before the plugin has looked at it."""

    def __init__(self):
        self.of = {}

    def __call__(self, pods):
        for made in pods.values():
            if bound_node(made) and annotation(made, IDX):
                self.of.setdefault(made["metadata"]["name"], annotation(made, IDX))


def book_twice(cluster, pool, pair, names):
    """Both are bound to the same GPU, which has room for one."""
    first = FirstRecords()
    with PodWatch(cluster.api, first) as watch:
        pods = cluster.create_pods([real_pod(name, 10, schedulerName="nobody") for name in names])
        bind_at_once(cluster.control_plane, pool, pair, pods, NODE)
        check(watch.wait(lambda _: set(names) <= set(first.of), 10), f"bound: {first.of}")
    check(len({first.of[name] for name in names}) == 1, f"bound to {first.of}: nothing is shown")


def body():
    with NodeCluster(gpus="2x16GiB", extender_flags=BINPACK, scheduler=None) as cluster, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        other = Extender(cluster.processes, cluster.extender.kubeconfig, BINPACK)
        other.start()
        pair = (cluster.extender, other)
        wait_for("both know the node", lambda: all(NODE in e.inspect() for e in pair))

        book_twice(cluster, pool, pair, ("one", "two"))
        places = {cluster.wait_true_record(name) for name in ("one", "two")}
        check(places == {"0", "1"}, f"they run on {places}")

        cluster.delete_pod("two" if annotation(cluster.pod("two"), IDX) == "1" else "one")
        wait_for("a GPU is free again", lambda: not cluster.problems(complete=False))
        cluster.wait_inspect_agrees()
        book_twice(cluster, pool, pair, ("three", "four"))
        failed = wait_for("one of them fails", lambda: next(
            (p for p in cluster.api.pods() if p["status"].get("phase") == "Failed"), None), 30)
        check("no GPU on this node has enough free memory" in failed["status"]["message"],
              f"the reason is: {failed['status']['message']}")
        name = ({"three", "four"} - {failed["metadata"]["name"]}).pop()
        check(cluster.wait_true_record(name) == "1", "the other runs on the GPU that was free")
        print(f"note: without room: {failed['status']['message'][:80]}")

        for extender in pair:
            cluster.extender = extender
            cluster.wait_inspect_agrees()
        check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
        other.verify_and_stop()
        cluster.extender = pair[0]


run(body)
