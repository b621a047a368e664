#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ResourceQuota on requests.aliyun.com/gpu-mem limits a namespace, as of any resource."""

from harness.api import ApiError, pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import GPU_MEM, node, pod
from harness.processes import wait_for

KUBE = ">=1.20"
TEAM = "team-a"
RESOURCE = f"requests.{GPU_MEM}"
QUOTAS = f"/api/v1/namespaces/{TEAM}/resourcequotas"


def used(cluster):
    return (cluster.api.get(f"{QUOTAS}/gpu").get("status", {}).get("used") or {}).get(RESOURCE)


def wait_used(cluster, expected):
    wait_for(f"the quota counts {expected}", lambda: used(cluster) == expected, 60)


def refused(cluster, made):
    try:
        cluster.create_pods([made])
    except ApiError as error:
        check(error.status == 403 and "exceeded quota" in str(error) and RESOURCE in str(error),
              f"refused, but: {error}")
        return
    check(False, f"{made['metadata']['name']} was let in over the quota")


def body():
    with Cluster(nodes=[node("n1", [16, 16])]) as cluster:
        # The API server refuses by itself; the controller counts again when pods have gone. Every
        # 2 s besides: a count that it began before the first pod was stored may be written after
        # the API server's, and would stand for five minutes.
        cluster.control_plane.start_controllers("resourcequota", "--resource-quota-sync-period=2s")
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": TEAM}})
        cluster.api.create(QUOTAS, {"metadata": {"name": "gpu"}, "spec": {"hard": {RESOURCE: 10}}})
        wait_used(cluster, "0")
        cluster.create_pods([pod("first", containers=[4, 2], namespace=TEAM)])
        cluster.wait_bound("first", namespace=TEAM)
        wait_used(cluster, "6")
        refused(cluster, pod("second", 6, namespace=TEAM))
        refused(cluster, pod("two-gpus", 8, gpu_count=2, namespace=TEAM))
        cluster.create_pods([pod("third", 4, namespace=TEAM), pod("elsewhere", 12)])
        cluster.wait_bound("third", namespace=TEAM)
        cluster.wait_bound("elsewhere")
        wait_used(cluster, "10")
        cluster.api.delete(pod_path(TEAM, "first"), 0)
        wait_used(cluster, "4")
        cluster.create_pods([pod("second", 6, namespace=TEAM)])
        cluster.wait_bound("second", namespace=TEAM)
        cluster.wait_inspect_agrees()


run(body)
