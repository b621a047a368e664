#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the start of gpushare-extender until it is ready, and curl's download of the same two lists,
alternating on one real API server. Ratios of neighbours, median of the rounds.

Started by tests/bench/e2e_start/run.sh."""

import argparse
import operator
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../e2e"))
from harness.case import run  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.control_plane import HOST  # noqa: E402
from harness.objects import node, pod  # noqa: E402
from harness.processes import wait_for  # noqa: E402

LISTS = ("/api/v1/nodes", "/api/v1/pods")


def download(plane):
    """Whole lists, each in one request: no way to read them is quicker."""
    started = time.monotonic()
    for path in LISTS:
        subprocess.run(["curl", "--silent", "--fail", "--output", "/dev/null",
                        "--cacert", plane.ca_file,
                        "--header", f"Authorization: Bearer {plane.tokens['admin']}",
                        f"https://{HOST}:{plane.port}{path}"], check=True)
    return time.monotonic() - started


def ready(extender):
    started = time.monotonic()
    extender.start(wait=False)
    wait_for("the extender is ready", extender.ready, interval_s=0.002)
    took = time.monotonic() - started
    extender.verify_and_stop()
    return took


def measure(options):
    nodes = [node(f"node-{i:04}", [16] * 8) for i in range(options.nodes)]
    mine, curls = [], []
    with Cluster(nodes=nodes, scheduler=None) as cluster:
        extender, cluster.extender = cluster.extender, None
        extender.verify_and_stop()
        cluster.create_pods([pod(f"p{i}", 2) for i in range(options.pods)])
        for _ in range(options.rounds):
            curls.append(download(cluster.control_plane))
            mine.append(ready(extender))
            print(f"curl {curls[-1]:.3f} s  ready {mine[-1]:.3f} s", flush=True)
    return mine, curls


def body():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    mine, curls = measure(options)
    print(f"curl  median {statistics.median(curls):.3f} s")
    print(f"ready median {statistics.median(mine):.3f} s")
    print(f"ready / curl: {statistics.median(map(operator.truediv, mine, curls)):.3f}")


run(body)
