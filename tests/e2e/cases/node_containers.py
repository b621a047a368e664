#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every container on a real kubelet gets the GPUs its pod is recorded on: all shapes of pods."""

from harness.case import check, run
from harness.node import NodeCluster, real_pod

GPUS = "2x16GiB,1x24GiB"


def show(cluster):
    cluster.create_pods([real_pod("single", 8)])
    environment = cluster.environment("single")["c0"]
    cluster.wait_true_record("single")
    check(environment["ALIYUN_COM_GPU_MEM_POD"] == "8", f"wrong environment: {environment}")
    check(environment["ALIYUN_COM_GPU_MEM_CONTAINER"] == "8", f"wrong: {environment}")
    check(environment["ALIYUN_COM_GPU_MEM_DEV"] in ("16", "24"), f"wrong: {environment}")
    cluster.create_pods([
        real_pod("two-containers", containers=[4, 0, 2]),
        real_pod("init", 4, init=[6, 2]),
        real_pod("two-gpus", 8, gpu_count=2),
        real_pod("plain")])
    for name in ("two-containers", "init", "two-gpus"):
        cluster.wait_true_record(name)
    spread = cluster.environment("two-gpus")["c0"]["NVIDIA_VISIBLE_DEVICES"].split(",")
    check(len(set(spread)) == 2, f"a pod on two GPUs sees {spread}")
    check("NVIDIA_VISIBLE_DEVICES" not in cluster.environment("plain")["c0"],
          "a pod that asks for nothing was given a GPU")
    cluster.wait_inspect_agrees()


def body():
    with NodeCluster(gpus=GPUS) as cluster:
        show(cluster)


if __name__ == "__main__":
    run(body)
