#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extender and device plugin are upgraded and rolled back while pods come and go: none is lost, no
GPU is overfull at any moment, those that run are not touched."""

import itertools
import random
import threading
import time

from harness import ledger
from harness.case import check, run
from harness.deployed import DeployedCluster
from harness.install import NEXT_TAG, PLUGIN, SYSTEM, BehindService
from harness.node import real_pod
from harness.processes import Failure
from harness.watch import PodWatch

RESIDENTS = {"resident-a": 6, "resident-b": 10}
GPUS = "4x16GiB"
LONGEST_WAIT_S = 60


class Stream:
    """Pods that come, run for a moment and go, one after the other, until it is stopped."""

    def __init__(self, cluster, **spec):
        self.cluster, self.spec = cluster, spec
        self.names = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.error = None

    def __enter__(self):
        self.thread.start()
        return self

    def stop(self):
        """No new ones; the last few stay."""
        self.stopping.set()
        self.thread.join()
        if self.error:
            raise self.error

    def __exit__(self, kind, *_):
        self.stopping.set()
        self.thread.join()

    def run(self):
        rng = random.Random(9)
        try:
            for i in itertools.count():
                if self.stopping.wait(0.6):
                    return
                name = f"passing-{i:03}"
                pod = real_pod(name, rng.choice((1, 2, 3, 4)), **self.spec)
                pod["spec"]["terminationGracePeriodSeconds"] = 1
                self.cluster.create_pods([pod])
                self.names.append(name)
                if len(self.names) > 9:
                    self.cluster.delete_pod(self.names.pop(0), grace_s=None)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


class Witness:
    """Sees every change of every pod."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.failed = {}
        self.seen = set()
        self.slowest = 0
        self.created = {}

    def look(self, pods):
        over = ledger.overfull(ledger.build(self.nodes, pods.values()))
        if over:
            raise Failure("; ".join(over))
        for pod in pods.values():
            name, status = pod["metadata"]["name"], pod.get("status", {})
            if pod["metadata"]["namespace"] == SYSTEM:
                continue
            self.created.setdefault(name, time.monotonic())
            # A deleted pod whose container was killed has failed as well, says a current kubelet.
            if status.get("phase") == "Failed" and not pod["metadata"].get("deletionTimestamp"):
                self.failed[name] = status.get("message")
            if status.get("phase") == "Running" and name not in self.seen:
                self.seen.add(name)
                self.slowest = max(self.slowest, time.monotonic() - self.created[name])


def container_ids(cluster):
    return {name: [(state["containerID"], state["restartCount"])
                   for state in cluster.running(name)["status"]["containerStatuses"]]
            for name in RESIDENTS}


def images(cluster):
    pods = cluster.api.items(f"/api/v1/namespaces/{SYSTEM}/pods")
    return {container["image"].rsplit(":", 1)[1] for pod in pods
            for container in pod["spec"]["containers"] if "gpushare" in container["image"]
            if not pod["metadata"].get("deletionTimestamp")}


def upgrade(layout_of, **spec):
    """spec: of the users' pods."""
    with DeployedCluster() as cluster:
        layout = layout_of(cluster)
        cluster.install(layout, GPUS)
        cluster.create_pods([real_pod(name, size, **spec) for name, size in RESIDENTS.items()])
        for name in RESIDENTS:
            cluster.wait_true_record(name)
        before = container_ids(cluster)
        witness = Witness(cluster.api.nodes())
        with PodWatch(cluster.api, witness.look) as watch, Stream(cluster, **spec) as stream:
            time.sleep(5)
            began = time.monotonic()
            layout.apply(NEXT_TAG, GPUS)
            layout.wait_ready()
            print(f"note: upgraded in {time.monotonic() - began:.0f} s")
            check(images(cluster) == {NEXT_TAG}, f"not upgraded: {images(cluster)}")
            time.sleep(3)
            for what in (layout.deployment, PLUGIN):
                cluster.kubectl("-n", SYSTEM, "rollout", "undo", what)
            layout.wait_ready()
            check(images(cluster) == {cluster.tag}, f"not rolled back: {images(cluster)}")
            time.sleep(3)
            stream.stop()
            for name in stream.names:
                cluster.wait_true_record(name, timeout_s=60)
            check(watch.error is None, f"{watch.error}")
        print(f"note: {len(witness.seen)} pods ran, the slowest start took {witness.slowest:.1f} s")
        check(witness.slowest < LONGEST_WAIT_S, f"a pod waited {witness.slowest:.0f} s")
        check(not witness.failed, f"pods failed: {witness.failed}")
        check(container_ids(cluster) == before, "a running container was restarted")
        if cluster.extender:
            cluster.wait_inspect_agrees()


if __name__ == "__main__":
    run(lambda: upgrade(BehindService))
