#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin is killed and started again, a second copy refuses, the kubelet is restarted."""

import subprocess

from harness.case import check, run
from harness.node import NodeCluster, real_pod
from harness.processes import wait_for

KUBE = ">=1.20"
GPUS = "2x16GiB"


def second_copy_refuses(cluster):
    second = subprocess.run(cluster.plugin.argv(), capture_output=True, text=True, timeout=20,
                            check=False)
    check(second.returncode == 1, f"a second copy ended with {second.returncode}")
    check("another process serves" in second.stderr or "exiting after an error" in second.stderr,
          f"a second copy says: {second.stderr}")
    check(cluster.plugin.ready(), "a second copy disturbed the first")


def all_true(cluster, names):
    for name in names:
        cluster.wait_true_record(name)
    check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
    cluster.wait_inspect_agrees()


def show(cluster):
    cluster.create_pods([real_pod("before", 10), real_pod("pair", containers=[6, 4])])
    all_true(cluster, ("before", "pair"))
    cluster.plugin.kill()
    cluster.start_plugin()
    wait_for("the kubelet offers the GPUs again", lambda: cluster.gpu_memory() == 32)
    cluster.create_pods([real_pod("after-crash", 6)])
    all_true(cluster, ("before", "pair", "after-crash"))
    started = cluster.pod("before")["status"]["containerStatuses"][0]["containerID"]
    cluster.restart_kubelet()
    cluster.create_pods([real_pod("after-restart", 6)])
    all_true(cluster, ("before", "pair", "after-crash", "after-restart"))
    check(cluster.pod("before")["status"]["containerStatuses"][0]["containerID"] == started,
          "a running container was restarted with the kubelet")


def body():
    with NodeCluster(gpus=GPUS) as cluster:
        second_copy_refuses(cluster)
        show(cluster)
        second_copy_refuses(cluster)
        all_true(cluster, ("before", "after-restart"))


if __name__ == "__main__":
    run(body)
