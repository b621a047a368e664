#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""config/packing keeps pods without GPU memory off GPU nodes, binds them by kube-scheduler."""

from harness import packing
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod

KUBE = ">=1.20"
GPU_NODES = {f"gpu-{i}" for i in range(4)}


def cpu_pod(name):
    """Four of them fill a node's 64 CPUs."""
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "16"}}
    return made


def homes(cluster, prefix, count):
    """One after the other, so that each sees where the last one went."""
    found = []
    for i in range(count):
        cluster.create_pods([cpu_pod(f"{prefix}-{i}")])
        found.append(bound_node(cluster.wait_bound(f"{prefix}-{i}")))
    return found


def asked(cluster, verb):
    series = f'gpushare_request_duration_seconds_count{{verb="{verb}"}}'
    return cluster.extender.metrics()[series]


def body():
    nodes = [node(name, [16, 16]) for name in sorted(GPU_NODES)] + [node("cpu-0"), node("cpu-1")]
    with Cluster(nodes=nodes, scheduler=None, extender_flags=packing.FLAGS) as cluster:
        cluster.wait_inspect_agrees()
        packing.start_scheduler(cluster)
        where = homes(cluster, "room", 8)
        check(not GPU_NODES & set(where), f"with room elsewhere they are on {where}")
        check(asked(cluster, "prioritize") >= 8, "the second entry was not asked")
        check((asked(cluster, "filter"), asked(cluster, "bind")) == (0, 0),
              "filter or bind was asked about pods without GPU memory")
        where = homes(cluster, "full", 1)
        check(GPU_NODES >= set(where), f"without room elsewhere: {where}")
        cluster.create_pods([pod("gpu", 4)])
        cluster.wait_bound("gpu")
        check(asked(cluster, "bind") == 1, "the pod with GPU memory was bound by kube-scheduler")
        cluster.extender.kill()
        where = homes(cluster, "away", 2)
        print(f"note: with the extender away: {where}")
        cluster.extender.start()


run(body)
