#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--memory-unit is not applied while pods use units, the original's MiB included; then it is."""

import json
import time

from harness.case import check, run
from harness.migration import Migration
from harness.node import NODE, real_pod
from harness.objects import IDX, INVENTORY, annotation
from harness.processes import wait_for

WAITING = "gpushare_device_plugin_unit_change_pending"


def unit(cluster):
    return json.loads(annotation(cluster.node_object(), INVENTORY))["unit"]


def restart_plugin_with(cluster, wanted):
    check(cluster.plugin.process.stop() == 0, "the plugin did not end well")
    cluster.plugin.flags = [*cluster.plugin.flags, "--memory-unit", wanted]
    cluster.start_plugin()


def expect_refused(cluster, wanted, units, word, words="{} is not applied"):
    wait_for("the change waits", lambda: cluster.plugin.metric(WAITING) == 1)
    cluster.wait_capacity(units)
    check(unit(cluster) == word, f"the inventory is in {unit(cluster)}")
    event = wait_for("an event on the node says so", lambda: next((
        e for e in cluster.api.events("default", NODE) if e["reason"] == "GpuMemoryUnitChangePending" and
        f"--memory-unit {words.format(wanted)}" in e["message"]), None))
    check("default/" in event["message"] and word in event["message"], event["message"])
    shown = cluster.control_plane.kubectl("describe", "node", NODE)
    check("GpuMemoryUnitChangePending" in shown, "kubectl describe node does not show the event")


def expect_changed(cluster, units, word):
    cluster.wait_capacity(units)
    wait_for("the inventory follows", lambda: unit(cluster) == word)
    check(cluster.plugin.metric(WAITING) == 0, "a change still waits")


def body():
    with Migration(unit="MiB") as cluster:
        # The original counts in MiB; whoever forgets to say so must not get pods of 6,001 GiB.
        cluster.create_pods([real_pod("in-mib", 6001)])
        cluster.gpu_of("in-mib")
        cluster.to_our_extender()
        cluster.to_our_plugin()
        expect_refused(cluster, "GiB", 32768, "MiB", "is {}")
        cluster.wait_foreign(6001)
        cluster.create_pods([real_pod("meant-in-mib", 9999)])
        cluster.check_counted()
        time.sleep(5)
        check(not cluster.pod("meant-in-mib")["spec"].get("nodeName"),
              "a pod is placed while the unit is in doubt")
        cluster.delete_pod("meant-in-mib")
        cluster.delete_pod("in-mib")
        expect_changed(cluster, 32, "GiB")

        cluster.create_pods([real_pod("in-gib", 8)])
        cluster.wait_true_record("in-gib")
        before = cluster.snapshot(["in-gib"])
        restart_plugin_with(cluster, "256MiB")
        expect_refused(cluster, "256MiB", 32, "GiB")
        cluster.check_untouched(before)
        cluster.create_pods([real_pod("in-gib-too", 8)])
        check(cluster.wait_true_record("in-gib-too") == annotation(
            cluster.pod("in-gib"), IDX), "8 + 8 GiB fit one GPU of 16")
        cluster.check_counted()
        cluster.delete_pod("in-gib")
        cluster.delete_pod("in-gib-too")
        expect_changed(cluster, 128, "256MiB")
        cluster.create_pods([real_pod("in-quarters", 64)])
        cluster.wait_true_record("in-quarters")
        cluster.check_counted()


run(body)
