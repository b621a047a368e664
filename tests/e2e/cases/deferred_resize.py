#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A running pod whose CPU resize is deferred (KEP-5836) is filtered again: its own node fits, and pods of lower priority there are
evicted for its CPU. Its GPU memory stays as it was."""

from harness.api import pod_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, bound_node, node, pod
from harness.processes import wait_for
from harness.shapes import create_priorities, resident

KUBE = ">=1.37"
GATE = "InPlacePodVerticalScalingSchedulerPreemption"
# 1.37.2 then tries to assume it on its node; by the KEP it is parked until the kubelet has carried the resize out.
FITS = ("waiting for Kubelet actuation", "so can't be assumed")
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "the node has no CPU left"}


def with_cpu(made, cpu):
    made["spec"]["containers"][0]["resources"].setdefault("requests", {})["cpu"] = cpu
    return made


def defer_resize(cluster, name, cpu):
    """As the kubelet marks it."""
    containers = with_cpu(cluster.pod(name), cpu)["spec"]["containers"]
    cluster.api.patch(pod_path(NAMESPACE, name, "resize"), {"spec": {"containers": containers}})
    cluster.api.patch(pod_path(NAMESPACE, name, "status"), {"status": {"conditions": [DEFERRED]}})


def body():
    small = node("n1", [16])
    for side in ("capacity", "allocatable"):
        small["status"][side] = {**small["status"][side], "cpu": "8"}
    with Cluster(nodes=[small, node("n2", [16])], scheduler=None) as cluster:
        create_priorities(cluster, {"low": 10, "urgent": 500})
        cluster.create_pods([
            with_cpu(resident("grows", "n1", 0, 12, priorityClassName="urgent"), "2"),
            with_cpu(resident("victim", "n1", 0, 4, priorityClassName="low", terminationGracePeriodSeconds=0), "5")])
        for name in ("grows", "victim"):
            cluster.finish_pod(name, "Running")
        cluster.scheduler.flags = [f"--feature-gates={GATE}=true"]
        cluster.scheduler.start(cluster.extender.url)
        cluster.wait_inspect_agrees()
        defer_resize(cluster, "grows", "6")
        wait_for("the pod of lower priority is evicted", lambda: not cluster.find_pod("victim"))
        wait_for("its own node fits", lambda: any(text in cluster.scheduler.process.log_text() for text in FITS))
        check(bound_node(cluster.pod("grows")) == "n1", "it was moved")
        cluster.wait_inspect_agrees()
        cluster.create_pods([pod("next", 4)])
        cluster.wait_bound("next")


run(body)
