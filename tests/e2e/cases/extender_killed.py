#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The extender is killed (SIGKILL) in mid-burst, twice, and restarted: same end condition."""

import time

from harness.case import check, run
from harness.cluster import Cluster
from harness.watch import PodWatch
from harness.workload import random_nodes, random_pods

SEED = 21


def crash_after(cluster, watch, bound):
    check(watch.wait(lambda w: len(w.bound_at) >= bound, 60), f"{bound} pods were never bound")
    cluster.extender.kill()
    time.sleep(1)
    cluster.extender.start()


def body():
    with Cluster(nodes=random_nodes(50, SEED)) as cluster:
        with PodWatch(cluster.api) as watch:
            cluster.create_pods(random_pods(300, SEED))
            crash_after(cluster, watch, 60)
            crash_after(cluster, watch, 120)
        started = time.monotonic()
        # kube-scheduler parks pods whose scheduling failed with an error for up to a minute and a
        # half, unless something wakes them.
        cluster.wait_settled(timeout_s=150)
        cluster.wait_inspect_agrees()
        print(f"note: settled {time.monotonic() - started:.0f} s after the last restart")


run(body)
