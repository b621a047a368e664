#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two API servers of one etcd, and what stands before them moves every connection to the other one,
which is three seconds behind then. No version falls for that, so that binds wait for the API server's
own answers alone; and no GPU is given twice."""

import contextlib
import socket
import threading
import time

from harness import ledger
from harness.api import Api
from harness.case import check, run
from harness.cluster import EXTENDER_MANIFESTS, Cluster
from harness.control_plane import EXTENDER_NAMESPACE, HOST
from harness.extender import Extender
from harness.gate import bind
from harness.objects import node, pod
from harness.processes import free_port, wait_for
from harness.watch import PodWatch

MOVES, BEHIND_S, BINDS = 4, 3, 12
LONG = True


class Balancer:
    """TCP on loopback. Connections go to the target of the moment, and are cut when it changes; while
    it holds back, nothing that the target says arrives."""

    def __init__(self, target):
        self.target, self.conns = target, []
        self.flows = threading.Event()
        self.flows.set()
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn = self.listener.accept()[0]
            try:
                upstream = socket.create_connection((HOST, self.target))
            except OSError:
                conn.close()
                continue
            self.conns += [conn, upstream]
            for source, sink, held in ((conn, upstream, False), (upstream, conn, True)):
                threading.Thread(target=self.pump, args=(source, sink, held), daemon=True).start()

    def pump(self, source, sink, held):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if held:
                    self.flows.wait()
                sink.sendall(data)
        self.close(source, sink)

    @staticmethod
    def close(*conns):
        for conn in conns:
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)

    def move(self, target):
        self.target, old, self.conns = target, self.conns, []
        self.close(*old)


def start_second(control_plane, to_etcd):
    """The same identities, another port; its etcd stands behind `to_etcd`."""
    first, control_plane.port = control_plane.port, free_port()
    try:
        control_plane.start_apiserver(f"http://{HOST}:{to_etcd.port}")
        second = control_plane.port
    finally:
        control_plane.port = first
    api = Api(HOST, second, control_plane.tokens["admin"], control_plane.ca_file)

    def ready():
        try:
            return api.send("GET", "/readyz")[0] == 200
        except OSError:
            return False
    wait_for("the second API server is ready", ready, 60)
    return second


def bind_until_done(cluster, extender, made):
    """Seconds until this pod was bound."""
    started = time.monotonic()
    wait_for(made["metadata"]["name"] + " is bound", lambda: bind(extender, made, "n1") == "", 30)
    return time.monotonic() - started


def body():
    with Cluster(nodes=[node("n1", [200])], extender=False, scheduler=None) as cluster, \
            PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())):
        control_plane = cluster.control_plane
        control_plane.apply(*EXTENDER_MANIFESTS)
        to_etcd = Balancer(control_plane.etcd_port)
        ports = [control_plane.port, start_second(control_plane, to_etcd)]
        front = Balancer(ports[0])
        kubeconfig = control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                              "gpushare-extender")
        with open(kubeconfig, encoding="ascii") as source:
            text = source.read().replace(f":{ports[0]}", f":{front.port}")
        with open(kubeconfig, "w", encoding="ascii") as out:
            out.write(text)
        extender = Extender(cluster.processes, kubeconfig)
        extender.start()
        waits = []
        for move in range(MOVES):
            made = cluster.create_pods([pod(f"p{move}-{i}", 1, schedulerName="nobody")
                                        for i in range(2 * BINDS)])
            if move % 2 == 0:
                to_etcd.flows.clear()   # it hears nothing of the binds that come now
            waits += [bind_until_done(cluster, extender, one) for one in made[:BINDS]]
            time.sleep(BEHIND_S)
            front.move(ports[1 - move % 2])
            threading.Timer(1, to_etcd.flows.set).start()
            waits += [bind_until_done(cluster, extender, one) for one in made[BINDS:]]
        over = ledger.overfull(ledger.build(cluster.api.nodes(), cluster.api.pods()))
        check(not over, over)
        check("older resourceVersion" not in extender.process.log_text(), "a version fell")
        extender.verify_and_stop()
        waits.sort()
        print(f"note: {len(waits)} binds, {MOVES} moves between API servers, one {BEHIND_S} s behind: the longest "
              f"{', '.join(f'{one:.2f}' for one in waits[:-4:-1])} s, "
              f"half {waits[len(waits) // 2]:.3f} s")


run(body)
