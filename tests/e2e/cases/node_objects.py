#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With nodeCacheCapable false, kube-scheduler sends whole Node objects: same decisions."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod
from harness.scheduler import replace_once

KUBE = ">=1.20"


def send_objects(config):
    return replace_once(config, "nodeCacheCapable: true", "nodeCacheCapable: false")


def body():
    nodes = [node("n1", [8, 8]), node("n2", [16]), node("plain")]
    with Cluster(nodes=nodes, scheduler=None) as cluster:
        cluster.scheduler.start(cluster.extender.url, edit=send_objects)
        cluster.create_pods([pod("large", 12)])
        check(bound_node(cluster.wait_bound("large")) == "n2", "12 units need the one GPU of 16")
        cluster.create_pods([pod("second", 12)])
        message = cluster.wait_refused("second")
        check("GPU" in message, f"the message does not name the GPU as the reason: {message}")
        cluster.wait_inspect_agrees()


run(body)
