#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seconds and attempts until pods are bound that fit on the last of many nodes only, in clusters whose
sums would do everywhere; kube-scheduler samples as it does by default.

Started by tests/bench/e2e_sampling/run.sh."""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../e2e"))
from harness.case import run  # noqa: E402
from harness.processes import Failure  # noqa: E402
from harness.sampling import Sampling, fragmented, whole  # noqa: E402
from harness.watch import PodWatch  # noqa: E402


def measure(count, nominates, group, limit_s):
    """A cluster of its own for each group: kube-scheduler goes on where its last sample ended."""
    nodes = fragmented(count) + whole(group)
    how = "nominated" if nominates else "woken only"
    with Sampling(f"{count}-{group}-{nominates}", nodes, nominates, share=None) as cluster, \
            PodWatch(cluster.api) as watch:
        try:
            took, refused = cluster.bind_together(
                watch, [f"of-{group}-{i}" for i in range(group)], limit_s)
            said = f"{took:6.1f} s, {refused / group:.1f} times refused each"
        except Failure:
            said = f"not within {limit_s} s"
    print(f"{count:5} nodes, {group} pods, {how:10}: {said}", flush=True)


def body():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--together", type=int, nargs="+", default=[1, 2, 5])
    parser.add_argument("--limit-s", type=int, default=120)
    options = parser.parse_args()
    for count in options.nodes:
        for group in options.together:
            for nominates in (True, False):
                measure(count, nominates, group, options.limit_s)


run(body)
