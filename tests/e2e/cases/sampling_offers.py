#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kube-scheduler asks about 100 of 400 nodes whose sums do and whose GPUs do not: the pod is nominated
to the one node that has room, and bound when that is tried alone. A node that fits and is tainted costs
an attempt or two, then victims go. 24 s."""

import time

from harness.case import check, run
from harness.objects import bound_node, node, pod
from harness.sampling import Sampling, fragmented, whole
from harness.shapes import create_priorities, resident
from harness.watch import PodWatch

KUBE = ">=1.22"
FRAGMENTED = 400
TOGETHER = 5
TAINT = {"key": "team", "value": "other", "effect": "NoSchedule"}


def tried_alone(cluster, name):
    """kube-scheduler bound it after a look at one node."""
    return any("Successfully bound" in line and f'"default/{name}"' in line and
               "evaluatedNodes=1 " in line
               for line in cluster.scheduler.process.log_text().splitlines())


def room_outside_the_sample():
    nodes = fragmented(FRAGMENTED) + whole(1 + TOGETHER)
    with Sampling("room", nodes) as cluster, PodWatch(cluster.api) as watch:
        took, refused = cluster.bind_together(watch, ["alone"])
        # kube-scheduler may look twice before it is offered a node
        check(refused <= 2, f"refused {refused} times before it was bound")
        check(tried_alone(cluster, "alone"), "another node was looked at as well")
        print(f"note: one pod: {took:.1f} s, refused {refused} times")
        took, refused = cluster.bind_together(watch, [f"p{i}" for i in range(TOGETHER)])
        print(f"note: {TOGETHER} pods together: {took:.1f} s, refused {refused} times, "
              f"nominated {cluster.nominations():.0f} times in all")
        cluster.create_pods([pod("too-much", 12)])
        cluster.wait_refused("too-much")
        time.sleep(2)
        check(not cluster.pod("too-much")["status"].get("nominatedNodeName"),
              "nominated although no node has room")


def tainted_room():
    nodes = [*fragmented(10), node("full", [16]), node("tainted", [16])]
    nodes[-1]["spec"] = {"taints": [TAINT]}
    with Sampling("tainted", nodes) as cluster, PodWatch(cluster.api) as watch:
        create_priorities(cluster, {"low": 10, "high": 1000})
        cluster.create_pods([resident("low-victim", "full", 0, 16, priorityClassName="low",
                                      terminationGracePeriodSeconds=0)])
        cluster.wait_inspect_agrees()
        started = time.monotonic()
        cluster.create_pods([pod("urgent", 12, priorityClassName="high")])
        check(bound_node(cluster.wait_bound("urgent", 60)) == "full", "not where the victim was")
        watch.wait(lambda w: "default/urgent" in w.bound_at, 10)
        took = watch.bound_at["default/urgent"] - started
        check(cluster.find_pod("low-victim") is None, "the victim is still there")
        check(cluster.nominations() >= 1, "the tainted node was not offered")
        refused = cluster.events("urgent").get("FailedScheduling", 0)
        print(f"note: beside a tainted node: {took:.1f} s, refused {refused} times")


def body():
    room_outside_the_sample()
    tainted_room()


run(body)
