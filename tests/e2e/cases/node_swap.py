#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two equal pods that the plugin took for each other: their records are exchanged, and no bind in
between or afterwards overfills a GPU."""

from harness.case import check, run
from harness.delays import DelayedCluster
from harness.node import real_pod
from harness.objects import IDX, annotation
from harness.processes import wait_for

KUBE = ">=1.20"
METRIC = "gpushare_device_plugin_"
CALLS = f"{METRIC}allocate_duration_seconds_count"


def recorded(cluster, name):
    return annotation(cluster.pod(name), IDX)


def mix_up(cluster):
    """The kubelet sees "a" first, the plugin sees "b" first."""
    cluster.plugin_api.hide("a")
    cluster.kubelet_api.hide("b")
    cluster.create_pods([real_pod("b", 12)])
    cluster.wait_bound("b")
    cluster.create_pods([real_pod("a", 12)])
    cluster.wait_bound("a")
    check((recorded(cluster, "a"), recorded(cluster, "b")) == ("1", "0"), "not bound as expected")
    wait_for("a is allocated", lambda: cluster.plugin.metric(CALLS) == 1)
    cluster.plugin_api.show("a")
    wait_for("the plugin sees a", lambda: cluster.plugin.metric(f"{METRIC}pods") == 2)
    cluster.kubelet_api.show("b")
    wait_for("b is allocated", lambda: cluster.plugin.metric(CALLS) == 2)


def body():
    with DelayedCluster(gpus="1x16GiB,1x24GiB") as cluster:
        cluster.plugin_api.hold_patches("b")
        mix_up(cluster)
        # An earlier patch of b may be held too, for the plugin's 15 s, and others wait behind it.
        wait_for("the first of the two patches", lambda: recorded(cluster, "a") == "0", 60)
        check(recorded(cluster, "b") == "0", "the second patch did not wait")
        # To a naive ledger GPU 1 is empty now; in truth it holds b.
        cluster.create_pods([real_pod("between", 12)])
        cluster.wait_bound("between")
        check(recorded(cluster, "between") == "1", "a bind between the patches overfills GPU 0")
        cluster.plugin_api.let_patches("b")
        for name, gpu in (("a", "0"), ("b", "1"), ("between", "1")):
            check(cluster.wait_true_record(name) == gpu, f"{name} should be on GPU {gpu}")
        check(cluster.plugin.metric(f"{METRIC}allocation_swaps_total") == 1, "there was no swap")
        check(cluster.plugin.metric(f"{METRIC}blocked_starts_total") == 0, "a start was blocked")
        check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
        cluster.wait_inspect_agrees()
        for name in ("a", "b"):
            wait_for(f"{name} has an event that says so",
                     lambda name=name: "GpuAllocationSwapped" in cluster.events(name))
        cluster.delete_pod("b")
        cluster.create_pods([real_pod("next", 12)])
        cluster.wait_bound("next")
        check(cluster.wait_true_record("next") == "1", "the free GPU is the one that b was on")
        cluster.wait_inspect_agrees()


if __name__ == "__main__":
    run(body)
