#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sidecars (restartable init containers) with GPU memory: they keep theirs beside the others, the
charge is the pod's peak, and a restart of kubelet and sidecar changes nothing."""

from harness import ledger
from harness.case import check, run
from harness.node import NodeCluster, real_container, real_pod
from harness.objects import IDX, annotation, container
from harness.processes import wait_for

KUBE = ">=1.29"
STAY = "env; exec sleep 1000000"


def with_init(made, *init):
    """init: (units, is a sidecar); the sidecars stay, the others print their environment and end."""
    made["spec"]["initContainers"] = []
    for place, (units, sidecar) in enumerate(init):
        one = container(f"i{place}", units, "Always" if sidecar else None)
        real_container(one, STAY if sidecar else "env")
        made["spec"]["initContainers"].append(one)
    return made


def sidecar_status(cluster, name):
    return cluster.pod(name)["status"]["initContainerStatuses"][0]


def charged(cluster, name, units):
    cluster.wait_true_record(name)
    made = cluster.pod(name)
    check(ledger.pod_peak(made) == units, f"{name} should be charged {units}")
    shown = annotation(made, "ALIYUN_COM_GPU_MEM_POD")
    check(shown == str(units), f"{name} was charged {shown}, not {units}")


def survives_restarts(cluster, name):
    before = sidecar_status(cluster, name)
    idx = annotation(cluster.pod(name), IDX)
    cluster.restart_kubelet()
    cluster.wait_true_record(name)
    check(sidecar_status(cluster, name)["containerID"] == before["containerID"],
          "the sidecar was restarted with the kubelet")
    cluster.containerd.ctr("tasks", "kill", "-s", "SIGKILL",
                           before["containerID"].removeprefix("containerd://"))
    wait_for("the sidecar was started again", lambda: sidecar_status(cluster, name).get(
        "restartCount", 0) == 1 and "running" in sidecar_status(cluster, name)["state"], 60)
    cluster.wait_true_record(name)
    check(annotation(cluster.pod(name), IDX) == idx, "the pod's GPU changed")


def body():
    with NodeCluster(gpus="2x16GiB") as cluster:
        # The sidecar beside the main container is more than either init container at its time.
        cluster.create_pods([with_init(real_pod("beside", 6), (4, True), (5, False))])
        charged(cluster, "beside", 10)
        # An init container that runs beside the sidecar started before it is the peak.
        cluster.create_pods([with_init(real_pod("peak", 1), (3, True), (9, False), (2, True))])
        charged(cluster, "peak", 12)
        # What is left, to the unit: 6 on one GPU, 4 on the other.
        cluster.create_pods([with_init(real_pod("rest", 4), (2, True)),
                             with_init(real_pod("only", 0), (4, True))])
        charged(cluster, "rest", 6)
        charged(cluster, "only", 4)
        check(not cluster.problems(), f"{cluster.problems()}")
        cluster.wait_inspect_agrees()
        survives_restarts(cluster, "beside")
        cluster.create_pods([real_pod("too-much", 1)])
        cluster.wait_refused("too-much")


run(body)
