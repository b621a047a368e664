#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A card is lost and the driver counts the others anew: pods, records and the inventory stay with the
UUIDs, while the plugin runs and over its restart, and no GPU is given out twice."""

import json
import os

from harness.case import check, run
from harness.node import VISIBLE, NodeCluster, real_pod
from harness.objects import IDX, INVENTORY, annotation
from harness.processes import wait_for


class Cards:
    """What the driver lists, in its order."""

    def __init__(self, *uuids):
        self.path = os.path.join(os.environ["GPUSHARE_RUN_DIR"], "gpus.json")
        self.show(*uuids)

    def show(self, *uuids):
        gpus = [{"idx": i, "uuid": uuid, "mem": 16} for i, uuid in enumerate(uuids)]
        with open(f"{self.path}.new", "w", encoding="ascii") as out:
            json.dump({"v": 1, "unit": "GiB", "gpus": gpus}, out)
        os.rename(f"{self.path}.new", self.path)


def shown(cluster):
    gpus = json.loads(annotation(cluster.node_object(), INVENTORY))["gpus"]
    return {gpu["uuid"]: (gpu["idx"], gpu["healthy"]) for gpu in gpus}


def on_card(cluster, name, uuid, size=16):
    """Makes a pod that may only go to this card; its container must see it."""
    cluster.create_pods([real_pod(name, size, annotations={"aliyun.com/gpu-uuid": uuid})])
    cluster.wait_true_record(name)
    seen = cluster.environment(name)["c0"][VISIBLE]
    check(seen == uuid, f"{name} is on {seen}, not on {uuid}")


def stays(cluster, name, idx):
    check(cluster.wait_true_record(name) == idx, f"{name}'s record has changed")


def body():
    cards = Cards("GPU-A", "GPU-B", "GPU-C")
    with NodeCluster(plugin_flags=("--gpu-file", cards.path)) as cluster:
        on_card(cluster, "b", "GPU-B")
        cards.show("GPU-B", "GPU-C")
        wait_for("A is gone, and the others keep their numbers", lambda: shown(cluster) ==
                 {"GPU-A": (0, False), "GPU-B": (1, True), "GPU-C": (2, True)})
        stays(cluster, "b", "1")
        cluster.plugin.kill()
        cluster.plugin.start()
        wait_for("nobody was on A: it is forgotten", lambda: shown(cluster) ==
                 {"GPU-B": (1, True), "GPU-C": (2, True)})
        stays(cluster, "b", "1")
        cluster.create_pods([real_pod("c", 16)])
        check(cluster.wait_true_record("c") == "2", "c is on a GPU that is full")
        check(cluster.environment("c")["c0"][VISIBLE] == "GPU-C", "c sees another GPU")
        cards.show("GPU-N", "GPU-C")
        cluster.plugin.kill()
        cluster.plugin.start(wait=False)
        wait_for("B is replaced: its number is its own while a pod is on it", lambda: shown(cluster)
                 == {"GPU-B": (1, False), "GPU-C": (2, True), "GPU-N": (0, True)})
        on_card(cluster, "n", "GPU-N")
        stays(cluster, "c", "2")
        check(annotation(cluster.pod("b"), IDX) == "1", "b's record has changed")
        wait_for("the event names the pod", lambda: cluster.events("real").get("GpuRemoved", 0) >= 1)


run(body)
