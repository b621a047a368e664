#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that came without the extender (nodeName by hand, forged, static) get what fits, and are
counted."""

import json
import os

from harness.case import check, run
from harness.node import NODE, NodeCluster, real_pod
from harness.objects import IDX, annotation
from harness.processes import wait_for

GPUS = "1x16GiB,1x24GiB,1x6GiB"


def static_pod(cluster, name, mem):
    made = real_pod(name, mem)
    path = os.path.join(cluster.run_dir, "static-pods", f"{name}.json")
    with open(path, "w", encoding="ascii") as out:
        json.dump(made, out)
    return f"{name}-{NODE}"


def show(cluster):
    cluster.create_pods([real_pod("proper", 10)])
    check(cluster.wait_true_record("proper") == "0", "binpack would have taken GPU 0")
    cluster.create_pods([real_pod("by-hand", 8, node_name=NODE)])
    check(cluster.wait_true_record("by-hand") == "1", "GPU 0 has no room for 8 more")
    cluster.create_pods([real_pod("forged", containers=[4, 4], node_name=NODE,
                                  annotations={IDX: "0", "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"})])
    check(cluster.wait_true_record("forged") == "1", "a forged record was believed")
    mirror = static_pod(cluster, "static", 6)
    wait_for("the mirror pod is recorded", lambda: annotation(
        cluster.find_pod(mirror) or {"metadata": {}}, IDX) == "1", 60)  # unknown when allocated: most free memory
    cluster.wait_inspect_agrees()
    check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
    cluster.create_pods([real_pod("too-much", 9, node_name=NODE)])
    failed = wait_for("a pod without room is refused for good", lambda: cluster.pod("too-much")
                      if cluster.pod("too-much")["status"]["phase"] == "Failed" else None)
    check("no GPU on this node has enough free memory" in failed["status"]["message"],
          f"the reason is: {failed['status']['message']}")


def body():
    with NodeCluster(gpus=GPUS) as cluster:
        show(cluster)


if __name__ == "__main__":
    run(body)
