#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replica takes the lead over while its watch of pods stands still, as one from an API server's
cache that is stuck: it must not bind before it has seen what the leader before it bound."""

import time

from harness import ledger
from harness.api import pod_path
from harness.case import check, run
from harness.cluster import EXTENDER_MANIFESTS, Cluster
from harness.control_plane import EXTENDER_NAMESPACE
from harness.delays import ApiProxy, through
from harness.extender import Extender
from harness.gate import bind
from harness.loopback import FOLLOW, HeldLease
from harness.objects import node, pod
from harness.processes import on_host, wait_for
from harness.replicas import pod_of
from harness.watch import PodWatch

KUBE = ">=1.20"
TAKEOVER_S = 25


def lead_and_bind(extender, made):
    wait_for("the first replica leads and binds", lambda: bind(extender, made, "n1") == "", 20)


def asked_until_it_leads(extender, made):
    """Its first answer that is no standby's, and the seconds until then."""
    started = time.monotonic()
    answers = []

    def probe():
        answers.append(bind(extender, made, "n1"))
        return "standby" not in answers[-1]
    wait_for("the second replica leads", probe, TAKEOVER_S)
    return answers[-1], time.monotonic() - started


def take_over(cluster, proxy, pair, name, lose):
    """Each pod takes the whole GPU. lose() ends the lead of the first replica."""
    first, second = cluster.create_pods([pod(f"{name}-{i}", 16, schedulerName="nobody")
                                         for i in range(2)])
    wait_for("the second replica stands by", lambda: "standby" in bind(pair[1], second, "n1"))
    proxy.freeze_pods(True)
    lead_and_bind(pair[0], first)
    lose()
    answer, waited = asked_until_it_leads(pair[1], second)
    check(answer, "the GPU was given twice")
    over = ledger.overfull(ledger.build(cluster.api.nodes(), cluster.api.pods()))
    check(not over, over)
    cluster.delete_pod(first["metadata"]["name"])
    proxy.freeze_pods(False)
    wait_for("the watch goes on", lambda: bind(pair[1], second, "n1") == "", 15)
    print(f"note: {name}: leads {waited:.1f} s after the loss, and then says: {answer[:60]}")
    cluster.delete_pod(second["metadata"]["name"])


def own_lease(cluster, proxy, kubeconfigs):
    pair = []
    for index, kubeconfig in enumerate(kubeconfigs):
        name = f"extender-{index}"
        cluster.api.create(pod_path(EXTENDER_NAMESPACE), pod_of(name))
        pair.append(Extender(cluster.processes, kubeconfig, [
            "--leader-elect", "--pod-name", name, "--pod-namespace", EXTENDER_NAMESPACE]))
        pair[-1].start()
        if index == 0:
            wait_for("the first one leads", lambda: cluster.api.pods(
                labelSelector="gpushare/leader=true"))
    take_over(cluster, proxy, pair, "own-lease", pair[0].verify_and_stop)
    pair[1].verify_and_stop()


def schedulers_lease(cluster, proxy, kubeconfigs):
    """No pod of their own is known here."""
    pair = [Extender(cluster.processes, kubeconfig, FOLLOW, on_host(host))
            for kubeconfig, host in zip(kubeconfigs, ("host-a", "host-b"))]
    for extender in pair:
        extender.start()
    with HeldLease(cluster.api) as lease:
        lease.give("host-a")
        take_over(cluster, proxy, pair, "followed", lambda: lease.give("host-b"))
    for extender in pair:
        extender.verify_and_stop()


def body():
    started = time.monotonic()
    with Cluster(nodes=[node("n1", [16])], extender=False, scheduler=None) as cluster, \
            PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())):
        control_plane = cluster.control_plane
        control_plane.apply(*EXTENDER_MANIFESTS)
        kubeconfig = control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                              "gpushare-extender")
        proxy = ApiProxy(control_plane)
        kubeconfigs = (kubeconfig, through(kubeconfig, proxy))
        own_lease(cluster, proxy, kubeconfigs)
        schedulers_lease(cluster, proxy, kubeconfigs)
        proxy.stop()
    print(f"note: {time.monotonic() - started:.0f} s")


run(body)
