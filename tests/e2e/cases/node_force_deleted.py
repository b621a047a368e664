#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods of a full node are force-deleted, deaf ones too, while they start and while the plugin cannot
ask the API server: whoever is given their place runs there."""

from harness.case import check, run
from harness.delays import DelayedCluster
from harness.node import real_pod
from harness.objects import annotation
from harness.processes import wait_for

KUBE = ">=1.20"
METRIC = "gpushare_device_plugin_"
CALLS = f"{METRIC}allocate_duration_seconds_count"
DEAF = "trap '' TERM; env; while :; do sleep 1; done"
ROUNDS = 8


def waits_for_place(cluster, made):
    cluster.create_pods([made])
    cluster.wait_refused(made["metadata"]["name"])


def runs_in_its_place(cluster, name, gpu="0"):
    check(cluster.wait_true_record(name) == gpu, f"{name} is not in its predecessor's place")


def deaf_ones(cluster):
    """They have 30 s to end, and do not listen."""
    made = real_pod("deaf", 16, script=DEAF)
    made["spec"]["terminationGracePeriodSeconds"] = 30
    cluster.create_pods([made])
    cluster.wait_true_record("deaf")
    waits_for_place(cluster, real_pod("after-deaf", 16, script=DEAF))
    cluster.delete_pod("deaf", grace_s=0)
    runs_in_its_place(cluster, "after-deaf")


def of_the_same_name(cluster):
    """As a StatefulSet does it."""
    cluster.delete_pod("after-deaf", grace_s=0)
    cluster.create_pods([real_pod("web-0", 16, script=DEAF)])
    runs_in_its_place(cluster, "web-0")
    cluster.delete_pod("web-0", grace_s=0)
    cluster.create_pods([real_pod("web-0", 16, script=DEAF)])
    runs_in_its_place(cluster, "web-0")


def unseen(cluster):
    """The plugin learns of neither the old pod's end nor the new one, and asks until it does."""
    waits_for_place(cluster, real_pod("unseen", 8))
    calls = cluster.plugin.metric(CALLS)
    cluster.plugin_api.set_away(True)
    cluster.delete_pod("web-0", grace_s=0)
    cluster.wait_bound("unseen")
    wait_for("the plugin has asked in vain", lambda: "did not list this node's pods" in
             cluster.plugin.process.log_text())
    check(cluster.plugin.metric(CALLS) == calls, "it was answered blindly")
    cluster.plugin_api.set_away(False)
    runs_in_its_place(cluster, "unseen")


def start_one(name):
    return real_pod(name, containers=[0, 0, 8])


def wait_allocated(cluster, name):
    """A kubelet before 1.24 that allocates anew for a pod while it admits another may panic
    (kubernetes/kubernetes#103838). On a host systemd starts it again, and a pod that it then admits before
    the plugin has registered fails; its owner makes another."""
    def allocated():
        if not cluster.kubelet.running():
            check("removeContainerAllocatedResources" in cluster.kubelet.log_text(), "the kubelet has ended")
            print("note: the kubelet panicked and was started again")
            with cluster.plugin_registers_again():
                cluster.start_kubelet()
            if cluster.pod(name)["status"].get("reason") == "UnexpectedAdmissionError":
                cluster.delete_pod(name, grace_s=0)
                cluster.create_pods([start_one(name)])
        return annotation(cluster.pod(name), "ALIYUN_COM_GPU_MEM_ASSIGNED") == "true"
    wait_for(f"{name} is allocated", allocated, 90)


def while_they_start(cluster):
    """Kubelets up to 1.20 allocate anew for such a pod, from what is free on other GPUs."""
    names = [f"start-{turn}" for turn in range(ROUNDS + 1)]
    for before, name in zip([None, *names], names):
        cluster.create_pods([start_one(name)])
        if before:
            cluster.delete_pod(before, grace_s=0)
        cluster.wait_bound(name)
        wait_allocated(cluster, name)
    runs_in_its_place(cluster, names[-1])


def body():
    # Of GPUs 1 and 2 together 8 units are free, and on none of them alone.
    with DelayedCluster(gpus="1x16GiB,2x12GiB") as cluster:
        cluster.create_pods([real_pod(f"small-{i}", 8) for i in range(2)])
        for i in range(2):
            cluster.wait_true_record(f"small-{i}")
        for part in (deaf_ones, of_the_same_name, unseen, while_they_start):
            part(cluster)
            check(cluster.plugin.metric(f"{METRIC}blocked_starts_total") == 0,
                  f"{part.__name__}: a start was blocked")
            check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
            cluster.wait_inspect_agrees()


run(body)
