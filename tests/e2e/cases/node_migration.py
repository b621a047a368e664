#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the original to this project, extender first: pods keep running and are counted, also over a
restart of the kubelet; their device ids leave the list when they end."""

import json

from harness.case import check, run
from harness.migration import UNITS, Migration, started
from harness.node import real_pod
from harness.objects import MOVED, annotation
from harness.original import ORIGINAL_ID, Deployment, assume
from harness.processes import wait_for

KUBE = ">=1.20"
NO_INVENTORY = "no inventory (the original's device plugin)"


def assumed_by_the_original(cluster):
    """Patched by the original's extender, which then failed before it could bind: nothing is held,
    and whoever schedules it next decides anew."""
    made = real_pod("assumed", 3)
    made["spec"]["schedulerName"] = "nobody"
    cluster.create_pods([made])
    assume(cluster.api, "assumed", 0, 3)


def kubelet_restarts_while_a_container_is_down(cluster, victim):
    """A kubelet that finds a pod with a container that does not run allocates its devices anew, and
    newer ones fail it when its ids are not listed."""
    with cluster.plugin_registers_again():
        cluster.kubelet.stop()
        cluster.stop_container(victim)
        cluster.start_kubelet()


def body():
    with Migration() as cluster:
        old = Deployment(cluster, "old", real_pod("old", 6), 4)
        names = old.pods()
        gpus = sorted(cluster.gpu_of(name) for name in names)
        check(gpus == [0, 0, 1, 1], f"the original put its pods on {gpus}")
        check(all(ORIGINAL_ID in i for name in names for i in cluster.ids_of(name)),
              "these are not the original's device ids")
        before = cluster.snapshot(names)
        assumed_by_the_original(cluster)

        check(NO_INVENTORY in cluster.doctor(), cluster.doctor())
        cluster.to_our_extender()
        cluster.check_counted()
        said = cluster.doctor()
        check(NO_INVENTORY in said and "ok    gpus" in said, said)
        cluster.create_pods([real_pod("by-both", 4)])  # our extender, the original's plugin
        check(cluster.gpu_of("by-both") == 0, "binpack would have taken GPU 0")
        cluster.check_untouched(before)
        before.update(cluster.snapshot(["by-both"]))

        cluster.to_our_plugin()
        cluster.wait_capacity()
        cluster.wait_foreign(28)
        cluster.check_untouched(before)
        cluster.check_counted()
        told = json.loads(annotation(cluster.node_object(), MOVED))
        check(told == {cluster.pod(name)["metadata"]["uid"]: [cluster.gpu_of(name)]
                       for name in before}, f"who was there before the plugin is not told: {told}")
        said = cluster.doctor()
        check(NO_INVENTORY not in said and "inventories and capacities match" in said and
              "ok    gpus" in said, said)
        cluster.create_pods([real_pod("ours", 4)])
        check(cluster.wait_true_record("ours") == "1", "only GPU 1 had room")
        check(not any(ORIGINAL_ID in i for i in cluster.ids_of("ours")), "it got an old id")
        cluster.create_pods([real_pod("none-left", 1)])
        cluster.wait_refused("none-left")
        before.update(cluster.snapshot(["ours"]))

        victim = names[0]
        untouched = {name: state for name, state in before.items() if name != victim}
        kubelet_restarts_while_a_container_is_down(cluster, victim)
        cluster.wait_capacity()
        wait_for("the container that was down runs again", lambda: started(
            cluster.running(victim))["c0"][1] > before[victim]["c0"][1], 60)
        cluster.check_untouched(untouched)
        check(old.pods() == names, "the Deployment had to replace pods")
        cluster.wait_foreign(28)
        cluster.check_counted()

        cluster.delete_pod("none-left")
        cluster.delete_pod("assumed")
        cluster.delete_pod("by-both")
        old.scale(2)
        cluster.wait_foreign(12)
        cluster.wait_capacity()
        old.scale(0)
        cluster.wait_foreign(0)
        cluster.wait_capacity()
        new = Deployment(cluster, "new", real_pod("new", 6), 4)
        for name in new.pods():
            cluster.wait_true_record(name)
            check(not any(ORIGINAL_ID in i for i in cluster.ids_of(name)), f"{name} has old ids")
        cluster.check_counted()
        check(cluster.gpu_memory() == UNITS, "capacity changed")


run(body)
