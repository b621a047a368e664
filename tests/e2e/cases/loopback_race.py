#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An old kube-scheduler's last bind is in flight when the other host's begins: both extenders would
choose the same GPU, unless they follow kube-scheduler's lease."""

import concurrent.futures
import signal
import time

from harness import ledger
from harness.case import check, run
from harness.cluster import EXTENDER_MANIFESTS, Cluster
from harness.control_plane import EXTENDER_NAMESPACE
from harness.extender import Extender
from harness.gate import Gate, bind, bind_at_once
from harness.loopback import FOLLOW, HeldLease
from harness.objects import bound_node, node, pod
from harness.processes import on_host, wait_for
from harness.watch import PodWatch
from harness.webhook import BindingHook

KUBE = ">=1.20"
BIND_TIMEOUT_S = 4


def start_pair(cluster, flags):
    control_plane = cluster.control_plane
    kubeconfig = control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE, "gpushare-extender")
    pair = [Extender(cluster.processes, kubeconfig, flags, on_host(name))
            for name in ("host-a", "host-b")]
    for extender in pair:
        extender.start()
    return pair


def stop_pair(pair):
    for extender in pair:
        extender.verify_and_stop()


def two_pods(cluster, prefix):
    """Each fits any of the node's two GPUs, no two of them fit one."""
    return cluster.create_pods([pod(f"{prefix}-{name}", 12, schedulerName="nobody")
                                for name in "ab"])


def overfull(cluster):
    return ledger.overfull(ledger.build(cluster.api.nodes(), cluster.api.pods()))


def without_the_lease(cluster, pool):
    """What the gate forces every time: nobody knows of the bind in flight but who sent it."""
    pair = start_pair(cluster, ())
    first, second = two_pods(cluster, "plain")
    bind_at_once(cluster.control_plane, pool, pair, (first, second), "n1")
    over = overfull(cluster)
    check(over, "both binds found a GPU of their own: the gate shows nothing")
    print(f"note: without --scheduler-lease: {over[0]}")
    wait_for("both extenders see it", lambda: all(
        e.metrics().get("gpushare_overcommitted_gpus") == 1 for e in pair))
    stop_pair(pair)
    for made in (first, second):
        cluster.delete_pod(made["metadata"]["name"])


def bound_soon(extender, made):
    """Asked until it leads, as kube-scheduler asks again. Returns the seconds that took."""
    started = time.monotonic()
    wait_for("the new holder binds", lambda: bind(extender, made, "n1") == "", 15)
    return time.monotonic() - started


def given_back_in_flight(cluster, lease, pair, pool):
    """The lease moves at once while the old holder's bind is on its way."""
    first, second = two_pods(cluster, "back")
    lease.give("host-a")
    nobody = {"metadata": {"name": "nobody", "uid": "0"}}
    wait_for("host-a leads", lambda: "standby" not in bind(pair[0], nobody, "n1"), 15)
    check("standby" in bind(pair[1], second, "n1"), "both extenders bind at the same time")
    gate = Gate("back-a")
    with BindingHook(cluster.control_plane, gate):
        in_flight = pool.submit(bind, pair[0], first, "n1")
        check(gate.reached.wait(10), "the first bind never came")
        sent = time.monotonic()
        lease.give("host-b")
        waited = bound_soon(pair[1], second)
        check(time.monotonic() - sent >= BIND_TIMEOUT_S, f"host-b binds after {waited:.1f} s")
        answer = in_flight.result()
        check(answer, "the first bind succeeded beside the second")
        gate.opened.set()
    print(f"note: with it, host-b begins {waited:.1f} s later, and host-a's bind: {answer[:70]}")
    wait_for("the API settles what is in flight", lambda: bound_node(cluster.pod("back-b")))
    for made in (first, second):
        cluster.delete_pod(made["metadata"]["name"])


def woken_host(cluster, lease, pair, pool):
    """host-b's machine is frozen, with a bind in its hands, and wakes when host-a works."""
    first, second = two_pods(cluster, "woken")
    pair[1].timeout_s = 60
    pair[1].process.freeze()
    in_flight = pool.submit(bind, pair[1], second, "n1")
    time.sleep(12)
    lease.give("host-a")
    waited = bound_soon(pair[0], first)
    pair[1].process.signal(signal.SIGCONT)
    answer = in_flight.result()
    check("standby" in answer, f"the woken extender answered {answer!r}")
    print(f"note: after a freeze the other host begins after {waited:.1f} s")


def body():
    with Cluster(nodes=[node("n1", [16, 16])], extender=False, scheduler=None) as cluster, \
            concurrent.futures.ThreadPoolExecutor() as pool:
        cluster.control_plane.apply(*EXTENDER_MANIFESTS)
        without_the_lease(cluster, pool)
        with HeldLease(cluster.api) as lease, \
                PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())):
            pair = start_pair(cluster, FOLLOW)
            given_back_in_flight(cluster, lease, pair, pool)
            woken_host(cluster, lease, pair, pool)
            for extender in pair:
                cluster.extender = extender
                cluster.wait_inspect_agrees()
            cluster.extender = None
            stop_pair(pair)


run(body)
