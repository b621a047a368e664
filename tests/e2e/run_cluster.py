#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster to play with: control plane, simulated nodes, kube-scheduler, and the extender when it
is built. Prints what to type, and runs until Ctrl-C.

    scripts/e2e.sh --cluster --nodes 10 --gpus 16,16,16,16
"""

import argparse
import os
import signal
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness.cluster import Cluster  # noqa: E402
from harness.control_plane import built_program  # noqa: E402
from harness.objects import node  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--gpus", default="16,16,16,16", help="units of each GPU of a node")
    parser.add_argument("--run-dir", default=None, help="logs and kubeconfigs")
    parser.add_argument("--no-extender", action="store_true")
    options = parser.parse_args()

    run_dir = options.run_dir or tempfile.mkdtemp(prefix="gpushare-cluster.")
    os.makedirs(run_dir, exist_ok=True)
    gpus = [int(size) for size in options.gpus.split(",")]
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with_extender = not options.no_extender and os.path.exists(built_program("gpushare-extender"))
    with Cluster([node(f"node-{i}", gpus) for i in range(options.nodes)], extender=with_extender,
                 run_dir=run_dir) as cluster:
        print(f"export KUBECONFIG={cluster.control_plane.kubeconfig('admin')}")
        print(f"logs: {run_dir}")
        print(f"extender: {cluster.extender.url if cluster.extender else 'not built, not running'}",
              flush=True)
        while not stop.wait(1):
            for process in cluster.processes.started:
                process.must_run()


if __name__ == "__main__":
    main()
