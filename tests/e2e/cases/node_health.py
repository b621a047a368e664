#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unhealthy or cordoned GPU gets no new pod, nor one that is gone; a recovery wakes a waiting pod
within 5 s; no device id ever turns Unhealthy."""

import json
import os
import time

from harness.case import check, run
from harness.node import NODE, NodeCluster, real_pod
from harness.objects import IDX, annotation, inventory
from harness.processes import wait_for

KUBE = ">=1.20"
CORDON = "aliyun.com/gpu-cordon"


class GpuFile:
    """GPUs that change when the case says so."""

    def __init__(self):
        self.path = os.path.join(os.environ["GPUSHARE_RUN_DIR"], "gpus.json")
        self.write([16, 16])

    def write(self, sizes, **per_gpu):
        with open(f"{self.path}.new", "w", encoding="ascii") as out:
            out.write(inventory(sizes, "file", **per_gpu))
        os.rename(f"{self.path}.new", self.path)


def shown(cluster):
    return json.loads(annotation(cluster.node_object(), "aliyun.com/gpu-inventory"))["gpus"]


def waits_until(cluster, name, recover):
    """A pod that only GPU 0 could take waits, and is bound within 5 s of what recover() does."""
    cluster.create_pods([real_pod(name, 8)])
    cluster.wait_refused(name)
    time.sleep(2)
    began = time.monotonic()
    recover()
    cluster.wait_bound(name, timeout_s=5)
    print(f"note: {name}: bound {time.monotonic() - began:.1f} s after the recovery")
    check(annotation(cluster.pod(name), IDX) == "0", f"{name} is not on GPU 0")
    cluster.wait_true_record(name)
    cluster.delete_pod(name)


def body():
    gpus = GpuFile()
    with NodeCluster(plugin_flags=("--gpu-file", gpus.path)) as cluster:
        cluster.create_pods([real_pod("early", 4)])
        cluster.wait_true_record("early")
        gpus.write([16, 16], healthy=[False, True])
        wait_for("the inventory shows it", lambda: not shown(cluster)[0]["healthy"])
        check(cluster.gpu_memory() == 32, "the kubelet's list lost a GPU that is only sick")
        cluster.create_pods([real_pod(f"on-1-{i}", 8) for i in range(2)])
        for name in ("on-1-0", "on-1-1"):
            check(cluster.wait_true_record(name) == "1", f"{name} is on a sick GPU")
        waits_until(cluster, "recovery", lambda: gpus.write([16, 16]))

        cluster.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": {CORDON: "0"}}})
        waits_until(cluster, "uncordon", lambda: cluster.api.patch(
            f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": {CORDON: None}}}))

        cluster.delete_pod("on-1-0")
        cluster.delete_pod("on-1-1")
        gpus.write([16])
        wait_for("the inventory shows it", lambda: not shown(cluster)[1]["healthy"])
        wait_for("the number of GPUs follows", lambda: cluster.node_object()[
            "status"]["capacity"]["aliyun.com/gpu-count"] == "1")
        check(cluster.gpu_memory() == 32, "the kubelet's list lost a GPU that is gone")
        cluster.create_pods([real_pod("on-0", 12)])
        check(cluster.wait_true_record("on-0") == "0", "on-0 is on a GPU that is gone")
        gpus.write([16, 16])
        wait_for("it is back", lambda: shown(cluster)[1]["healthy"])
        cluster.wait_true_record("early")
        told = {"GpuUnhealthy": 1, "GpuHealthy": 2, "GpuRemoved": 1}
        wait_for("the node's events tell all that", lambda: told.items() <=
                 cluster.events(NODE).items())


run(body)
