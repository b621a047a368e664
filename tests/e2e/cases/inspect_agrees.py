#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inspect shows what the API says: every shape of pod, one node, all nodes, no such node."""

import json

from harness.case import check, run
from harness.cluster import Cluster
from harness.extender import PREFIX
from harness.objects import node, pod

PODS = [
    pod("one", 5),
    pod("two-containers", containers=[3, 0, 4]),
    pod("init-is-larger", 2, init=[7]),
    pod("init-is-smaller", 6, init=[3, 1]),
    pod("two-gpus", 12, gpu_count=2),
    pod("three-gpus", containers=[6, 3], gpu_count=3),
    pod("no-gpu"),
]


def body():
    nodes = [node("n1", [16] * 4), node("n2", [24, 8, 16]), node("plain")]
    with Cluster(nodes=nodes) as cluster:
        cluster.create_pods(PODS)
        for made in PODS:
            cluster.wait_bound(made["metadata"]["name"])
        cluster.wait_inspect_agrees()

        status, text = cluster.extender.ask("GET", f"{PREFIX}/inspect")
        everything = {entry["name"]: entry for entry in json.loads(text)["nodes"]}
        for name in ("n1", "n2"):
            status, text = cluster.extender.ask("GET", f"{PREFIX}/inspect/{name}")
            shown = json.loads(text)["nodes"]
            check(status == 200 and shown == [everything[name]], f"inspect/{name}: {status} {text}")
            devs = everything[name]["devs"]
            check(everything[name]["totalGPU"] == sum(d["totalGPU"] for d in devs) and
                  everything[name]["usedGPU"] == sum(d["usedGPU"] for d in devs),
                  f"{name}: the sums differ from the devices")
        status, text = cluster.extender.ask("GET", f"{PREFIX}/inspect/nobody")
        check(status == 404 and json.loads(text).get("error"), f"unknown node: {status} {text}")


run(body)
