#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin is killed after it gave two equal pods each other's GPUs and before their records were
exchanged: the next one knows from the kubelet's checkpoint, and exchanges them."""

from cases.node_swap import METRIC, mix_up, recorded
from harness.case import check, run
from harness.delays import DelayedCluster
from harness.node import real_pod

PODS = ("a", "b")


def body():
    with DelayedCluster(gpus="1x16GiB,1x24GiB") as cluster:
        for name in PODS:
            cluster.plugin_api.hold_patches(name)
        mix_up(cluster)
        cluster.plugin.kill()
        for name in PODS:
            cluster.plugin_api.lose_patches(name)
        check(tuple(recorded(cluster, name) for name in PODS) == ("1", "0"),
              "a record was written before the plugin was killed")
        cluster.start_plugin()
        for name, gpu in (("a", "0"), ("b", "1")):
            check(cluster.wait_true_record(name) == gpu, f"{name} should be on GPU {gpu}")
        check(cluster.plugin.metric(f"{METRIC}blocked_starts_total") == 0, "a start was blocked")
        cluster.create_pods([real_pod("next", 12)])
        cluster.wait_bound("next")
        check(cluster.wait_true_record("next") == "1", "the GPU with room is the one that b is on")
        check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
        cluster.wait_inspect_agrees()


run(body)
