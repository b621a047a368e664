#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A kubelet that gives one device id to two pods (kubernetes#137534): a pod ends, and a client lists
PodResources, while another pod's Allocate is open. Each of the two is on the GPU of its bind."""

import json
import os
import signal
import subprocess
import time

from harness.case import check, run
from harness.node import DEVICE_PLUGINS, NodeCluster, real_pod

KUBE = ">=1.36"
ROUNDS = 12
STUBBORN = "trap '' TERM; env; while :; do sleep 0.2; done"


def list_pod_resources(cluster):
    subprocess.run(
        ["curl", "-s", "-o", os.devnull, "-m", "2", "--http2-prior-knowledge", "--unix-socket",
         cluster.pod_resources, "-H", "Content-Type: application/grpc", "-H", "TE: trailers",
         "--data-binary", "@-", "http://localhost/v1.PodResourcesLister/List"],
        input=bytes(5), check=True)


def ids_of(cluster, pod):
    with open(f"{DEVICE_PLUGINS}/kubelet_internal_checkpoint", encoding="utf-8") as file:
        entries = json.load(file)["Data"]["PodDeviceEntries"]
    return [entry["DeviceIDs"] for entry in entries if entry["PodUID"] == pod["metadata"]["uid"]]


def meet(cluster, n):
    """True: the two that are there in the end have the same id."""
    old, first, second = (f"{name}-{n}" for name in ("old", "first", "second"))
    cluster.create_pods([real_pod(old, 1, script=STUBBORN)])
    cluster.running(old)
    cluster.delete_pod(old, grace_s=2)
    os.kill(cluster.plugin.process.pid, signal.SIGSTOP)
    try:
        cluster.create_pods([real_pod(first, 1)])
        until = time.monotonic() + 30
        while cluster.find_pod(old) and time.monotonic() < until:
            list_pod_resources(cluster)
        list_pod_resources(cluster)
    finally:
        os.kill(cluster.plugin.process.pid, signal.SIGCONT)
    cluster.running(first)
    cluster.create_pods([real_pod(second, 1)])
    places = {cluster.wait_true_record(name) for name in (first, second)}
    same = ids_of(cluster, cluster.pod(first)) == ids_of(cluster, cluster.pod(second))
    check(places == {"0", "1"}, f"round {n}: they are on {places}, with the same id: {same}")
    check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
    for name in (first, second):
        cluster.delete_pod(name)
    return same


def body():
    with NodeCluster(gpus="2x1GiB") as cluster:
        met = next((n for n in range(ROUNDS) if meet(cluster, n)), None)
        print(f"the same id was given to two pods in round {met}")
        check(met is not None, "the kubelet gave no id to two pods")


run(body)
