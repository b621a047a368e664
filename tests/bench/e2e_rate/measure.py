#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods per second of a real kube-scheduler on simulated nodes: alone, with an extender that decides
nothing, and with ours; alternating on one control plane, so that the ratios mean something. A ratio
is the median of those of the turns: what else the machine does changes from minute to minute, and
the runs of a turn stand next to each other.

Started by tests/bench/e2e_rate/run.sh."""

import argparse
import contextlib
import operator
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../e2e"))
from harness.case import run  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.control_plane import HOST, built_program  # noqa: E402
from harness.objects import node, pod  # noqa: E402
from harness.processes import Failure, free_port  # noqa: E402
from harness.scheduler import replace_once  # noqa: E402
from harness.watch import PodWatch  # noqa: E402

PLACES = ("none", "noop", "ours")
SHIPPED_PERCENTAGE = "percentageOfNodesToScore: 100"


class Noop:
    """The no-op extender, which binds with the administrator's token."""

    def __init__(self, cluster):
        self.port = free_port()
        plane = cluster.control_plane
        self.process = cluster.processes.start("noop_extender", [
            built_program("tests/noop_extender"), self.port,
            f"https://{HOST}:{plane.port}", plane.tokens["admin"], plane.ca_file])

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"


def delete_all(cluster, watch):
    cluster.api.call("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
    if not watch.wait(lambda w: not w.pods, 60):
        raise Failure("the pods of the last round are still there")
    watch.bound_at.clear()


def one_round(cluster, url, count, options):
    """Pods wait first, then kube-scheduler starts: the rate is its own, not that of their creation.
    From the first binding to the last, as the watch sees them."""
    def edit(config):
        return replace_once(config, SHIPPED_PERCENTAGE,
                            f"percentageOfNodesToScore: {options.percentage}")
    with PodWatch(cluster.api) as watch:
        cluster.create_pods([pod(f"p{i}", options.mem) for i in range(count)])
        cluster.scheduler.start(url, fast_client=True, edit=edit)
        try:
            if not watch.wait(lambda w: len(w.bound_at) == count, 300):
                raise Failure(f"only {len(watch.bound_at)} of {count} pods were bound")
            times = sorted(watch.bound_at.values())
        finally:
            cluster.scheduler.stop()
        delete_all(cluster, watch)
    return (count - 1) / (times[-1] - times[0])


@contextlib.contextmanager
def ours(cluster):
    """Our extender as shipped. It runs in its own rounds only, so that its watches slow nobody."""
    cluster.start_extender()
    try:
        yield cluster.extender.url
        cluster.wait_inspect_agrees(60)
        cluster.extender.verify_and_stop()
    finally:
        cluster.extender = None


def measure(options):
    nodes = [node(f"node-{i:04}", [16] * 8) for i in range(options.nodes)]
    rates = {place: [] for place in PLACES}
    with Cluster(nodes=nodes, scheduler=None, extender=False) as cluster:
        peers = {"none": contextlib.nullcontext(), "ours": None,
                 "noop": contextlib.nullcontext(Noop(cluster).url)}
        one_round(cluster, None, 100, options)
        for turn in range(options.rounds):
            for place in PLACES[turn % 3:] + PLACES[:turn % 3]:
                with peers[place] or ours(cluster) as url:
                    rates[place].append(one_round(cluster, url, options.pods, options))
                print(f"{place:5} {rates[place][-1]:8.1f} pods/s", flush=True)
                time.sleep(1)
    return rates


def body():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000, help="pods per round")
    parser.add_argument("--mem", type=int, default=2, help="units of GPU memory per pod")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--percentage", type=int, default=100,
                        help="kube-scheduler's percentageOfNodesToScore; 0: its own default")
    parser.add_argument("--least", type=float, default=0.9, help="least share of the no-op")
    options = parser.parse_args()
    rates = measure(options)
    for place, values in rates.items():
        print(f"{place:5} median {statistics.median(values):8.1f} pods/s "
              f"({min(values):.1f} to {max(values):.1f})")
    share = {place: statistics.median(map(operator.truediv, rates["ours"], rates[place]))
             for place in ("noop", "none")}
    for place, ratio in share.items():
        print(f"ours / {place}: {ratio:.3f}")
    if share["noop"] < options.least:
        raise Failure(f"ours reaches {share['noop']:.3f} of the no-op extender, less than "
                      f"{options.least}")


run(body)
