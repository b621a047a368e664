#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twenty equal pods at once on four GPUs, then pods whose containers ask in different sequences."""

from harness.case import check, run
from harness.node import NodeCluster, real_pod
from harness.objects import IDX, annotation

GPUS = "4x16GiB"


def show(cluster):
    equal = [f"equal-{i:02}" for i in range(20)]
    cluster.create_pods([real_pod(name, 3) for name in equal])
    for name in equal:
        cluster.wait_true_record(name, timeout_s=120)
    used = [annotation(cluster.pod(name), IDX) for name in equal]
    check(max(used.count(idx) for idx in set(used)) == 5, f"not five a GPU: {used}")
    check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
    cluster.wait_inspect_agrees()
    for name in equal:
        cluster.delete_pod(name)
    shapes = ([4], [4, 2], [4], [4, 2], [2, 4], [4, 2])
    mixed = {f"mixed-{i}": shape for i, shape in enumerate(shapes)}
    cluster.create_pods([real_pod(name, containers=shape) for name, shape in mixed.items()])
    for name in mixed:
        cluster.wait_true_record(name, timeout_s=120)
    check(cluster.plugin.metric("gpushare_device_plugin_blocked_starts_total") == 0,
          "a start was held")
    check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
    cluster.wait_inspect_agrees()


def body():
    with NodeCluster(gpus=GPUS) as cluster:
        show(cluster)


if __name__ == "__main__":
    run(body)
