#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may create and patch pods in his namespace blocks more than what his pods ask for by what he
writes on them, and no longer than 10 s: the device plugin tells where they are (40 s)."""

import threading
import time

from harness.api import pod_path
from harness.case import check, run
from harness.node import NODE, NodeCluster, real_pod
from harness.objects import ALLOCATION, GPU_COUNT, IDX, NAMESPACE
from harness.policies import user_of
from harness.processes import wait_for

LONGEST_S = 10
GPUS = "4x8GiB"

# What he writes on pods as he creates them, past every scheduler.
CREATED = (
    ("an index that is not there", {IDX: "99"}),
    ("more GPUs than he asks for", {IDX: "0,1,2"}),
    ("no index at all", {IDX: "x", ALLOCATION: "{"}),
)

# What he writes on the pod "two", which asks for two GPUs, while it runs.
EDITS = (
    ("label", {GPU_COUNT: None}), ("label", {GPU_COUNT: "1"}), ("label", {GPU_COUNT: "4"}),
    ("annotation", {IDX: "3"}), ("annotation", {IDX: "0,1,2,3"}), ("annotation", {IDX: None}),
    ("label", {GPU_COUNT: "2"}),
)


class Blocked:
    """How long the extender charged more than it should, at a stretch."""

    def __init__(self, extender):
        self.extender, self.owed, self.longest_s = extender, 0, 0.0
        self.since = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def charged(self):
        return sum(used for _, used, _ in self.extender.inspect().get(NODE, {}).values())

    def watch(self):
        while not self.stop.wait(0.02):
            if self.charged() <= self.owed:
                self.since = None
                continue
            self.since = self.since or time.monotonic()
            self.longest_s = max(self.longest_s, time.monotonic() - self.since)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def body():
    with NodeCluster(gpus=GPUS) as cluster:
        tenant = user_of(cluster, "tenant")
        with Blocked(cluster.extender) as blocked:
            blocked.owed = 8
            cluster.create_pods([real_pod("two", 8, gpu_count=2)])
            before = cluster.wait_true_record("two")
            for kind, notes in EDITS:
                tenant.patch(pod_path(NAMESPACE, "two"), {"metadata": {f"{kind}s": notes}})
                time.sleep(0.3)
            for i, (_, notes) in enumerate(CREATED):
                blocked.owed += 2
                tenant.create(f"/api/v1/namespaces/{NAMESPACE}/pods",
                              real_pod(f"p{i}", 2, node_name=NODE, annotations=notes))
            wait_for("nothing is charged beyond what is asked for",
                     lambda: blocked.charged() == blocked.owed, 2 * LONGEST_S)
            check(cluster.wait_true_record("two") == before, "an edit moved a running pod")
            for i in range(len(CREATED)):
                cluster.wait_true_record(f"p{i}")
        check(blocked.longest_s < LONGEST_S, f"blocked for {blocked.longest_s:.1f} s")
        check(blocked.longest_s > 0, "nothing was ever blocked: this case shows nothing")
        check(not cluster.problems(complete=False), f"{cluster.problems(complete=False)}")
        cluster.wait_inspect_agrees()
        print(f"note: blocked for {blocked.longest_s:.2f} s at most")


run(body)
