#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The legacy Policy file of config/ works with a kube-scheduler that still takes one."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import IDX, annotation, node, pod

KUBE = "<1.23"


def body():
    with Cluster(nodes=[node("n1", [16, 16]), node("n2", [8])], scheduler="policy") as cluster:
        cluster.create_pods([pod(f"p{i}", 10) for i in range(2)])
        gpus = sorted(annotation(cluster.wait_bound(f"p{i}"), IDX) for i in range(2))
        check(gpus == ["0", "1"], f"two pods of 10 on GPUs {gpus}")
        cluster.create_pods([pod("p2", 12)])
        message = cluster.wait_refused("p2")
        check("GPU" in message, f"the message does not name the GPU as the reason: {message}")
        cluster.wait_inspect_agrees()


run(body)
