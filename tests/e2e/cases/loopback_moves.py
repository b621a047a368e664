#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two hosts, on each a kube-scheduler and an extender on loopback: the active kube-scheduler is
killed, frozen and woken, and stopped, each in mid-burst; the other host goes on, its ledger warm."""

import signal

from harness import ledger
from harness.case import check, run
from harness.cluster import Cluster
from harness.loopback import LoopbackHosts, Stream
from harness.objects import pod
from harness.watch import PodWatch
from harness.workload import random_nodes, random_pods

KUBE = ">=1.20"
LONG = True
SEED = 47
NODES = 60
BURST = 100
OUTAGE_S = 20


def burst(cluster, name):
    cluster.create_pods(random_pods(BURST, f"{SEED}{name}", name))


def move(cluster, hosts, watch, name, number):
    """The active kube-scheduler gets a signal while pods are being bound, and the other one takes
    over. Returns the host that worked before and the longest time without a bind."""
    old = hosts.active()
    before = len(watch.bound_at)
    with Stream(cluster, lambda i: pod(f"{name}-small-{i:03}", 1)) as stream:
        burst(cluster, name)
        check(watch.wait(lambda w: len(w.bound_at) >= before + 20, 60), "20 pods were never bound")
        old.signal(number)
        at = len(watch.bound_at)
        hosts.wait_moved(old)
        if number == signal.SIGSTOP:
            # wakes when the other one is in full swing, with what it had in hand
            burst(cluster, f"{name}-more")
            old.signal(signal.SIGCONT)
        check(watch.wait(lambda w: len(w.bound_at) >= at + 40, 60), "nothing is bound any more")
    old.scheduler.process.popen.wait(20)
    return old, stream.longest_gap(watch)


def make_room(cluster):
    """The next burst needs it."""
    for one in cluster.api.pods():
        cluster.delete_pod(one["metadata"]["name"])


def body():
    gaps = {}
    with Cluster(nodes=random_nodes(NODES, SEED), extender=False, scheduler=None) as cluster:
        with LoopbackHosts(cluster, ("host-a", "host-b")) as hosts, \
                PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())) as watch:
            for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
                old, gaps[number.name] = move(cluster, hosts, watch, number.name.lower(), number)
                cluster.wait_settled(60)
                old.start_scheduler()  # as its kubelet would
                if number != signal.SIGTERM:
                    make_room(cluster)
            for host in hosts.hosts:
                cluster.extender = host.extender
                cluster.wait_inspect_agrees(15)
            cluster.extender = None
            print("note: longest time without a bind: " +
                  ", ".join(f"{gap:.1f} s around {name}" for name, gap in gaps.items()) +
                  f"; {len(watch.bound_at)} pods bound")
            for name, gap in gaps.items():
                check(gap <= OUTAGE_S, f"{gap:.1f} s without a bind around {name}")


run(body)
