#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""300 random pods on 50 mixed nodes: no GPU over its size, nobody who would fit left waiting."""

from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import annotation
from harness.ledger import per_gpu
from harness.workload import random_nodes, random_pods

SEED = 20


def carries_its_gpu(pod):
    return all(annotation(pod, f"ALIYUN_COM_GPU_MEM_{name}")
               for name in ("IDX", "DEV", "POD", "ASSIGNED", "ASSUME_TIME"))


def body():
    with Cluster(nodes=random_nodes(50, SEED)) as cluster:
        cluster.create_pods(random_pods(300, SEED))
        cluster.wait_settled(timeout_s=120)
        bound = [p for p in cluster.api.pods() if p["spec"].get("nodeName") and per_gpu(p)]
        check(len(bound) > 150, f"only {len(bound)} GPU pods bound: the case shows too little")
        bare = [p["metadata"]["name"] for p in bound if not carries_its_gpu(p)]
        check(not bare, f"bound without all annotations: {bare[:5]}")
        cluster.wait_inspect_agrees()
        print(f"note: {len(bound)} of 300 bound")


run(body)
