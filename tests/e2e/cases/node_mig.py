#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MIG instances beside a whole card on one node: real containers get NVIDIA_VISIBLE_DEVICES=MIG-…, the word is
mig for a pod alone in its instance and none as soon as two share it; an instance that is gone is unhealthy,
takes nobody, and one of another UUID in its place is another GPU (15 to 25 s)."""

import json
import os
import subprocess

from harness.case import check, run
from harness.control_plane import built_program
from harness.node import VISIBLE, NodeCluster, real_pod
from harness.objects import IDX, INVENTORY, NAMESPACE, annotation
from harness.processes import wait_for

CARD, WHOLE, SHARED, LATER = "GPU-card", "MIG-whole", "MIG-shared", "MIG-later"
SIZES = {CARD: 40, WHOLE: 20, SHARED: 10, LATER: 20}
NO_LIMIT = "this GPU is a MIG instance, and the driver does not limit its memory"


class Cards:
    """GPU 0 without MIG, and a card whose instances the operator makes and removes."""

    def __init__(self):
        self.path = os.path.join(os.environ["GPUSHARE_RUN_DIR"], "gpus.json")
        self.write(CARD, WHOLE, SHARED)

    def write(self, *uuids):
        gpus = [{"idx": idx, "uuid": uuid, "mem": SIZES[uuid], "memMiB": SIZES[uuid] * 1024,
                 "model": "A100 MIG" if uuid.startswith("MIG-") else "A100"}
                for idx, uuid in enumerate(uuids)]
        with open(f"{self.path}.new", "w", encoding="ascii") as out:
            json.dump({"v": 1, "unit": "GiB", "gpus": gpus}, out)
        os.rename(f"{self.path}.new", self.path)


def gpu(cluster, uuid):
    found = json.loads(annotation(cluster.node_object(), INVENTORY))["gpus"]
    return {one["uuid"]: one for one in found}.get(uuid)


def inspect(cluster, *words):
    return subprocess.run([built_program("kubectl-inspect-gpushare"), "--kubeconfig",
                           cluster.control_plane.kubeconfig("admin"), *words],
                          check=True, capture_output=True, text=True).stdout


def inspected(cluster, uuid):
    nodes = json.loads(inspect(cluster, "-o", "json"))["nodes"]
    return next(one["enforced"] for one in nodes[0]["devs"] if one["uuid"] == uuid)


def word_is(cluster, uuid, word):
    wait_for(f"{uuid} is {word}", lambda: gpu(cluster, uuid)["enforced"] == word)
    check(inspected(cluster, uuid) == word, f"inspect says another word of {uuid}")


def mig_pod(name, units, uuid):
    return real_pod(name, units, annotations={"aliyun.com/gpu-uuid": uuid})


def given(cluster, name):
    """UUID of the pod's GPU, which its container was told."""
    cluster.wait_true_record(name)
    return cluster.environment(name)["c0"][VISIBLE]


def body():
    cards = Cards()
    with NodeCluster(plugin_flags=("--gpu-file", cards.path)) as cluster:
        for uuid, word in ((CARD, "none"), (WHOLE, "mig"), (SHARED, "mig")):
            word_is(cluster, uuid, word)
        cluster.create_pods([mig_pod("whole", 20, WHOLE), mig_pod("one", 5, SHARED),
                             mig_pod("card", 8, CARD)])
        for name, uuid in (("whole", WHOLE), ("one", SHARED), ("card", CARD)):
            check(given(cluster, name) == uuid, f"{name} was given {given(cluster, name)}")
        word_is(cluster, SHARED, "mig")
        cluster.create_pods([mig_pod("two", 5, SHARED)])
        check(given(cluster, "two") == SHARED, "two is elsewhere")
        word_is(cluster, SHARED, "none")
        check(gpu(cluster, SHARED)["enforcedReason"] == "instance", "another reason")
        word_is(cluster, WHOLE, "mig")
        check("  mig  " in inspect(cluster, "why", f"{NAMESPACE}/whole"), "why of whole")
        check(NO_LIMIT in inspect(cluster, "why", f"{NAMESPACE}/two"), "why of two")
        cluster.delete_pod("one")
        word_is(cluster, SHARED, "mig")

        index = annotation(cluster.pod("whole"), IDX)
        cards.write(CARD, LATER, SHARED)
        wait_for("the instance is gone", lambda: not gpu(cluster, WHOLE)["healthy"])
        wait_for("the new one is there", lambda: gpu(cluster, LATER))
        check(str(gpu(cluster, LATER)["idx"]) != index, "the new instance has the old one's index")
        cluster.delete_pod("whole")
        cluster.create_pods([mig_pod("gone", 20, WHOLE), mig_pod("later", 20, LATER)])
        cluster.wait_refused("gone")
        check(given(cluster, "later") == LATER, "later is elsewhere")
        word_is(cluster, LATER, "mig")
        cluster.wait_inspect_agrees()


run(body)
