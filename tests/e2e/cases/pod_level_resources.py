#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of the pod as a whole (spec.resources): the API server takes no GPU memory there; what
its containers ask is charged as ever, and the pod's own CPU is what counts."""

from harness import ledger
from harness.api import ApiError
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import GPU_MEM, IDX, annotation, node, pod

KUBE = ">=1.34"


def whole(name, mem, cpu, **more):
    return pod(name, mem, resources={"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}, **more)


def gpu_memory_is_refused(cluster):
    made = pod("refused", 4, resources={"limits": {GPU_MEM: "4", "cpu": "1"}})
    try:
        cluster.create_pods([made])
    except ApiError as error:
        print(f"note: {error}")
        check(error.status == 422 and GPU_MEM in str(error), f"refused, but: {error}")
    else:
        check(False, "the API server took GPU memory for a pod as a whole: it would not be charged")


def body():
    with Cluster(nodes=[node("n1", [16, 16])]) as cluster:
        gpu_memory_is_refused(cluster)
        cluster.create_pods([whole("one", 10, "2"), whole("parts", 0, "2", containers=[6, 4])])
        gpus = {annotation(cluster.wait_bound(name), IDX) for name in ("one", "parts")}
        check(gpus == {"0", "1"}, f"two pods of 10 on GPUs {gpus}")
        for name in ("one", "parts"):
            shown = annotation(cluster.pod(name), "ALIYUN_COM_GPU_MEM_POD")
            check(shown == "10" and ledger.pod_peak(cluster.pod(name)) == 10, f"{name}: {shown}")
        cluster.wait_inspect_agrees()
        # 60 of 64 CPUs are free for one, though its container asks for nothing.
        cluster.create_pods([whole("cpu", 2, "61")])
        check("cpu" in cluster.wait_refused("cpu"), "refused, but not for its CPU")
        cluster.create_pods([whole("fits", 6, "60")])
        cluster.wait_bound("fits")
        cluster.wait_inspect_agrees()


run(body)
