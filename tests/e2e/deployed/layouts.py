#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layout kubeadm is asked over loopback, the layout original-nodeport where the original was; one
takes the other's place while pods run, and counts them."""

import http.client
import os
import signal

from harness import release, seclusion
from harness.case import check, run
from harness.control_plane import HOST
from harness.deployed import DeployedCluster
from harness.extender import Extender
from harness.install import SYSTEM, Layout, pids_of
from harness.node import NODE, real_pod
from harness.processes import ask, wait_for

GPUS = "2x16GiB"
SCHEDULING, HEALTH, NODE_PORT = 29999, 29998, 32766


class LocalExtender(Extender):
    """On a port of the node's loopback."""

    def __init__(self, port):  # pylint: disable=super-init-not-called
        self.port, self.timeout_s = port, 10


class Kubeadm(Layout):
    """kube-scheduler is no pod here, but runs on the node whose loopback the extender's pod shares,
    with the shipped configuration as it is."""

    overlay = "kubeadm"
    deployment = "daemonset/gpushare-extender"

    def install(self, tag, gpus):
        self.cluster.kubectl("label", "node", NODE, "node-role.kubernetes.io/control-plane=")
        self.apply(tag, gpus)
        self.cluster.scheduler.start(f"http://{HOST}:{SCHEDULING}")
        self.extender = LocalExtender(SCHEDULING)


class OriginalNodePort(Layout):
    """kube-scheduler asks where the original's policy file sends it."""

    overlay = "original-nodeport"
    deployment = "deployment/gpushare-extender"

    def install(self, tag, gpus):
        self.apply(tag, gpus)
        url = f"http://{HOST}:{NODE_PORT}"
        if release.MINOR < 23:
            self.cluster.scheduler.start_with_policy(url)
        else:
            self.cluster.scheduler.start(url)
        self.extender = LocalExtender(NODE_PORT)

    def wait_ready(self, timeout_s=120):
        super().wait_ready(timeout_s)
        wait_for("the leader is reached through the NodePort",
                 lambda: self.extender.ask("GET", "/version")[0] == 200)


def answers(address, port, path):
    try:
        return ask(http.client.HTTPConnection(address, port, timeout=5), "GET", path)[0] == 200
    except OSError:
        return False


def used(cluster):
    return sum(used for _, used, _ in cluster.extender.inspect()[NODE].values())


def run_pod(cluster, name, units):
    cluster.create_pods([real_pod(name, units)])
    cluster.wait_bound(name, 60)
    cluster.wait_true_record(name)


def show_kubeadm(cluster):
    run_pod(cluster, "first", 8)
    run_pod(cluster, "second", 12)
    address = seclusion.ADDRESS
    check(not answers(address, SCHEDULING, "/version"), "others reach the scheduling port")
    check(answers(address, HEALTH, "/metrics"), "metrics are not on the node's address")
    for pid in pids_of("/usr/bin/gpushare-extender"):
        os.kill(pid, signal.SIGKILL)
    run_pod(cluster, "third", 4)
    check(used(cluster) == 24, f"{used(cluster)} units are charged, not 24")


def change_layout(cluster, layout):
    """As docs/install.md says: never two extenders that bind."""
    cluster.scheduler.stop()
    cluster.kubectl("-n", SYSTEM, "delete", cluster.layout.deployment)
    cluster.install(layout, GPUS)


def show_node_port(cluster):
    wait_for("what runs is counted", lambda: used(cluster) == 24)
    run_pod(cluster, "fourth", 4)
    check(used(cluster) == 28, f"{used(cluster)} units are charged, not 28")


def body():
    with DeployedCluster() as cluster:
        cluster.install(Kubeadm(cluster), GPUS)
        show_kubeadm(cluster)
        change_layout(cluster, OriginalNodePort(cluster))
        show_node_port(cluster)


run(body)
