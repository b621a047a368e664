#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods per second of a real kube-scheduler on simulated nodes: alone, with an extender that decides
nothing, and with ours; alternating on one control plane, so that the ratios mean something. A ratio
is the median of those of the turns: what else the machine does changes from minute to minute, and
the runs of a turn stand next to each other. Processor time per pod depends on that less.

Started by tests/bench/e2e_rate/run.sh."""

import argparse
import contextlib
import functools
import operator
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../e2e"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cells import SETS  # noqa: E402
from harness.case import run  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.objects import node, pod  # noqa: E402
from harness.processes import Failure  # noqa: E402
from rounds import burst, noop, ours, per_pod, processor_ms, ratio  # noqa: E402

EXTENDERS = {"none": lambda _: contextlib.nullcontext(), "noop": noop, "ours": ours,
             "one": functools.partial(ours, flags=["--filter-names=one"])}
POD_MEM = 2


def one_round(cluster, cell, url, count):
    return burst(cluster, url, [pod(f"p{i}", POD_MEM) for i in range(count)], cell.edit)


def measure(options):
    nodes = [node(f"node-{i:04}", [16] * 8) for i in range(options.nodes)]
    cells = SETS[options.cells]
    rounds = {cell: [] for cell in cells}
    with Cluster(nodes=nodes, scheduler=None, extender=False) as cluster:
        one_round(cluster, cells[0], None, 100)
        for turn in range(options.rounds):
            first = turn % len(cells)
            for cell in cells[first:] + cells[:first]:
                with EXTENDERS[cell.extender](cluster) as url:
                    rounds[cell].append(one_round(cluster, cell, url, options.pods))
                print(f"{cell!s:32} {rounds[cell][-1].rate:8.1f} pods/s", flush=True)
                time.sleep(1)
    return rounds


def print_table(rounds):
    print(f"{'':32} {'pods/s':>8} {'from':>8} {'to':>8}   ms of processor per pod: "
          "scheduler  API server  etcd  extender")
    for cell, values in rounds.items():
        rates = [r.rate for r in values]
        extender = {"none": "", "noop": "noop_extender"}.get(cell.extender, "gpushare-extender")
        print(f"{cell!s:32} {statistics.median(rates):8.1f} {min(rates):8.1f} {max(rates):8.1f} "
              f"{per_pod(values, 'kube-scheduler'):>36} {per_pod(values, 'kube-apiserver'):>11} "
              f"{per_pod(values, 'etcd'):>5} {per_pod(values, extender):>9}")


def body():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000, help="pods per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cells", choices=SETS, default="shipped",
                        help="the shipped configuration, or all nodes and kube-scheduler's own sampling")
    parser.add_argument("--least", type=float, default=0.9, help="least share of the no-op")
    options = parser.parse_args()
    rounds = measure(options)
    print_table(rounds)
    none, same, shipped, one = SETS["shipped"]
    for place, cell in (("none", none), ("noop", same)):
        if cell not in rounds or shipped not in rounds:
            continue
        share = ratio(rounds, shipped, cell, operator.attrgetter("rate"))
        print(f"ours / {place}: {share:.3f} of the rate, "
              f"{ratio(rounds, shipped, cell, processor_ms):.3f} times its processor")
        if cell is same and share < options.least:
            raise Failure(f"ours reaches {share:.3f} of the no-op extender, not {options.least}")
    if one in rounds:
        print(f"one / none: {ratio(rounds, one, none, operator.attrgetter('rate')):.3f} of the rate")


run(body)
