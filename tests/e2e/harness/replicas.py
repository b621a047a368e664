# SPDX-License-Identifier: Apache-2.0
"""Several replicas of the extender with leader election, and a TCP forwarder that stands for their
Service: it follows the pod label of the leader, and readiness as a kubelet would probe it."""

import contextlib
import selectors
import socket
import threading
import time

from harness.api import pod_path
from harness.cluster import EXTENDER_MANIFESTS
from harness.control_plane import EXTENDER_NAMESPACE, HOST
from harness.extender import Extender
from harness.processes import Failure, wait_for

LEADER = "gpushare/leader"


class Forwarder:
    """Accepts on a port of its own and hands each connection to one of targets(), a list of ports.
    Connections stay where they are, as a Service's do, until one of their ends closes."""

    def __init__(self, targets):
        self.targets = targets
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        self.stopping = False
        self.turn = 0
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"

    def stop(self):
        self.stopping = True
        self.listener.close()

    def accept(self):
        while not self.stopping:
            with contextlib.suppress(OSError):
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        ports = self.targets()
        self.turn += 1
        with client, contextlib.suppress(OSError):
            if not ports:
                return
            with socket.create_connection((HOST, ports[self.turn % len(ports)]), 2) as server:
                server.settimeout(None)
                self.copy(client, server)

    def copy(self, client, server):
        other = {client: server, server: client}
        with selectors.DefaultSelector() as ready:
            for end in other:
                ready.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(65536)
                    if not data:
                        return
                    other[key.fileobj].sendall(data)


class Replicas:
    """with Replicas(cluster, 3) as replicas: ... cluster.scheduler.start(replicas.service.url)"""

    def __init__(self, cluster, count):
        self.cluster = cluster
        self.names = [f"extender-{i}" for i in range(count)]
        self.replicas = {}
        self.endpoints = []
        self.stopping = False
        self.service = Forwarder(lambda: self.endpoints)

    def __enter__(self):
        control_plane = self.cluster.control_plane
        control_plane.apply(*EXTENDER_MANIFESTS)
        kubeconfig = control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                              "gpushare-extender")
        for name in self.names:
            self.cluster.api.create(pod_path(EXTENDER_NAMESPACE), pod_of(name))
            self.replicas[name] = Extender(self.cluster.processes, kubeconfig, [
                "--leader-elect", "--pod-name", name, "--pod-namespace", EXTENDER_NAMESPACE])
            self.replicas[name].start()
        threading.Thread(target=self.follow_labels, daemon=True).start()
        wait_for("one replica leads and is reached", lambda: len(self.endpoints) == 1, 30)
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.service.stop()

    def labelled(self):
        """Names of the replicas whose pod says that they lead."""
        pods = self.cluster.api.pods(labelSelector=f"{LEADER}=true")
        return [pod["metadata"]["name"] for pod in pods]

    def follow_labels(self):
        """What the endpoint controller and the kubelets' probes do."""
        while not self.stopping:
            with contextlib.suppress(OSError):
                self.endpoints = [self.replicas[name].port for name in self.labelled()
                                  if is_ready(self.replicas[name])]
            time.sleep(0.2)

    def leader(self):
        names = self.labelled()
        if len(names) != 1:
            raise Failure(f"leaders by label: {names}")
        return self.replicas[names[0]]


def is_ready(replica):
    """One probe of a second, as the manifest's."""
    try:
        with socket.create_connection((HOST, replica.health_port), 1) as conn:
            conn.settimeout(1)
            conn.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            return b" 200 " in conn.recv(64)
    except OSError:
        return False


def pod_of(name):
    """A replica's pod: an object on a node that is none, because its program runs already."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "gpushare-extender"}},
            "spec": {"nodeName": "control-plane", "automountServiceAccountToken": False,
                     "containers": [{"name": "c", "image": "gpushare-e2e/none"}]}}


class Outage:
    """Asks the service a few times a second; longest is the longest time without an answer of a
    leader, in seconds."""

    def __init__(self, service, body):
        self.service, self.body = service, body
        self.longest = 0
        self.answers = 0
        self.stopping = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.last = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()
        self.longest = max(self.longest, time.monotonic() - self.last)

    def served(self):
        try:
            with socket.create_connection((HOST, self.service.port), 1) as conn:
                conn.settimeout(1)
                conn.sendall(b"POST /gpushare-scheduler/filter HTTP/1.0\r\nContent-Type: "
                             b"application/json\r\nContent-Length: %d\r\n\r\n%s"
                             % (len(self.body), self.body))
                answer = b""
                while chunk := conn.recv(65536):
                    answer += chunk
                return b" 200 " in answer[:32] and b'"Error":""' in answer
        except OSError:
            return False

    def run(self):
        while not self.stopping:
            if self.served():
                now = time.monotonic()
                self.longest = max(self.longest, now - self.last)
                self.last = now
                self.answers += 1
            time.sleep(0.2)
