#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kube-scheduler asks about 100 of 400 nodes whose sums do and whose GPUs do not: the pod is nominated
to the one node that has room, and bound when that is tried alone. 15 s."""

import time

from harness.case import check, run
from harness.objects import pod
from harness.sampling import Sampling, fragmented, whole
from harness.watch import PodWatch

KUBE = ">=1.22"
FRAGMENTED = 400
TOGETHER = 5


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


def body():
    room_outside_the_sample()


run(body)
