#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the original to this project, device plugin first, and all the way back."""

from harness.case import check, run
from harness.migration import Migration
from harness.node import NODE, real_pod
from harness.objects import INVENTORY
from harness.original import Deployment


def body():
    with Migration() as cluster:
        old = Deployment(cluster, "old", real_pod("old", 6), 2)
        names = old.pods()
        check([cluster.gpu_of(n) for n in names] == [0, 0], "the original fills one GPU first")
        before = cluster.snapshot(names)

        cluster.to_our_plugin()
        cluster.wait_capacity()
        cluster.wait_foreign(12)
        cluster.create_pods([real_pod("under-both", 5)])  # the original's extender, our plugin
        check(cluster.wait_true_record("under-both") == "1", "only GPU 1 had room")
        cluster.check_untouched(before)
        cluster.to_our_extender()
        cluster.check_counted()
        cluster.create_pods([real_pod("ours", containers=[2, 2])])  # it could start no such pod
        check(cluster.wait_true_record("ours") == "0", "binpack would have taken GPU 0")
        cluster.check_counted()
        before = cluster.snapshot([*names, "under-both", "ours"])

        # Back: first the extender, then the plugin, whose list knows none of our ids.
        cluster.schedule_with(cluster.original.url)
        check(cluster.plugin.process.stop() == 0, "the plugin did not end well")
        cluster.plugin.process = None
        cluster.original_plugin.start()
        cluster.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": {INVENTORY: None}}})
        cluster.wait_capacity()
        cluster.check_untouched(before)
        cluster.create_pods([real_pod("back", 11)])  # fits only beside under-both
        check(cluster.gpu_of("back") == 1, "the original does not count our pods")
        cluster.create_pods([real_pod("waits", 1, annotations={"note": "GPU 0 and 1 are full"})])
        cluster.wait_refused("waits")
        cluster.kubelet.stop()
        cluster.start_kubelet()
        cluster.wait_capacity()
        cluster.check_untouched(before)
        cluster.gpu_of("back")
        cluster.check_counted()


run(body)
