#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a pod without GPU memory waits for a real kube-scheduler on 80 nodes of 8 GPUs, while
pods wait whose gpu-model-deny is a list of 250 kB, as large as an API server takes one: whoever may
create pods in one namespace can have them. With an extender that decides nothing and with ours, by
turns on one control plane.

Started by tests/bench/e2e_hostile/run.sh."""

import argparse
import contextlib
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../e2e"))
from harness.case import run  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.control_plane import HOST, built_program  # noqa: E402
from harness.objects import INVENTORY, NAMESPACE, node, pod  # noqa: E402
from harness.processes import Failure, free_port  # noqa: E402
from harness.watch import PodWatch  # noqa: E402

MODEL = "NVIDIA A100-SXM4-80GB"
LIST = ",".join(["q"] * 125000)


def gpu_node(name):
    made = node(name, [16] * 8)
    annotations = made["metadata"]["annotations"]
    annotations[INVENTORY] = annotations[INVENTORY].replace("Fake GPU", MODEL)
    return made


def noop_extender(cluster):
    port, plane = free_port(), cluster.control_plane
    cluster.processes.start("noop_extender", [
        built_program("tests/noop_extender"), port, f"https://{HOST}:{plane.port}",
        plane.tokens["admin"], plane.ca_file])
    return f"http://{HOST}:{port}"


@contextlib.contextmanager
def ours(cluster):
    cluster.start_extender()
    try:
        yield cluster.extender.url
        cluster.extender.verify_and_stop()
    finally:
        cluster.extender = None


def waits(cluster, url, hostile, count):
    with PodWatch(cluster.api) as watch:
        cluster.scheduler.start(url, fast_client=True)
        try:
            cluster.create_pods([pod(f"hostile-{i}", 1, annotations={
                "aliyun.com/gpu-model-deny": LIST}) for i in range(hostile)])
            times = []
            for i in range(count):
                began, name = time.monotonic(), f"plain-{i}"
                cluster.create_pods([pod(name)])
                key = f"{NAMESPACE}/{name}"
                if not watch.wait(lambda w, key=key: key in w.bound_at, 300):
                    raise Failure(f"{name} was not bound")
                times.append(watch.bound_at[key] - began)
        finally:
            cluster.scheduler.stop()
        cluster.api.call("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
        if not watch.wait(lambda w: not w.pods, 60):
            raise Failure("the pods of the last round are still there")
    return times


def body():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--hostile", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pods", type=int, default=10, help="per round")
    options = parser.parse_args()
    found = {"noop": [], "ours": []}
    nodes = [gpu_node(f"n{i}") for i in range(80)] + [node("cpu")]
    with Cluster(nodes=nodes, scheduler=None, extender=False) as cluster:
        noop = noop_extender(cluster)
        for _ in range(options.rounds):
            found["noop"] += waits(cluster, noop, options.hostile, options.pods)
            with ours(cluster) as url:
                found["ours"] += waits(cluster, url, options.hostile, options.pods)
    for name, times in found.items():
        print(f"{name}: median of {len(times)} {statistics.median(times):.3f} s, "
              f"longest {max(times):.3f} s")
    ratio = statistics.median(found["ours"]) / statistics.median(found["noop"])
    print(f"ours / noop: {ratio:.2f}")


run(body)
