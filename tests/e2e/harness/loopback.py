# SPDX-License-Identifier: Apache-2.0
"""Control-plane hosts as config/kube-scheduler-static-pod.yaml makes them: on each a kube-scheduler
and, beside it on loopback, an extender of its own. kube-scheduler's election decides who works."""

import datetime
import threading
import time

from harness.cluster import EXTENDER_MANIFESTS
from harness.control_plane import EXTENDER_NAMESPACE
from harness.extender import Extender
from harness.processes import on_host, wait_for
from harness.scheduler import Scheduler

FOLLOW = ("--scheduler-lease", "kube-system/kube-scheduler")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


class Host:
    """One control-plane host, known by its host name."""

    def __init__(self, cluster, kubeconfig, name, flags):
        self.cluster, self.name = cluster, name
        self.extender = Extender(cluster.processes, kubeconfig, flags, on_host(name))
        self.scheduler = Scheduler(cluster.processes, cluster.control_plane,
                                   f"kube-scheduler-{name}", host=name)

    def start_scheduler(self):
        self.scheduler.start(self.extender.url)

    def signal(self, number):
        self.scheduler.process.signal(number)


class LoopbackHosts:
    """with LoopbackHosts(cluster, ("host-a", "host-b")) as hosts: ... hosts.active()"""

    def __init__(self, cluster, names, flags=FOLLOW):
        self.cluster, self.names, self.flags = cluster, names, flags
        self.hosts = []

    def __enter__(self):
        control_plane = self.cluster.control_plane
        control_plane.apply(*EXTENDER_MANIFESTS)
        kubeconfig = control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                              "gpushare-extender")
        for name in self.names:
            host = Host(self.cluster, kubeconfig, name, self.flags)
            host.extender.start()
            host.start_scheduler()
            self.hosts.append(host)
        wait_for("a kube-scheduler leads", self.active)
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            for host in self.hosts:
                host.extender.verify_and_stop()

    def active(self):
        """The host whose kube-scheduler holds the lease; None while nobody does."""
        lease = self.cluster.api.find(LEASE) or {"spec": {}}
        holder = lease["spec"].get("holderIdentity") or ""
        return next((host for host in self.hosts if holder.startswith(f"{host.name}_")), None)

    def wait_moved(self, old, timeout_s=30):
        """The host that took over from old."""
        def probe():
            now = self.active()
            return now if now is not old else None
        return wait_for("kube-scheduler's lease moves to the other host", probe, timeout_s)


class HeldLease:
    """kube-scheduler's, held and renewed by whom the case says, as kube-scheduler would."""

    def __init__(self, api):
        self.api = api
        self.holder = None
        self.transitions = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.renew, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def give(self, host):
        self.transitions += 1
        self.holder = f"{host}_1"
        self.write()

    def write(self):
        now = f"{datetime.datetime.utcnow().isoformat(timespec='microseconds')}Z"
        spec = {"holderIdentity": self.holder, "leaseDurationSeconds": 12, "acquireTime": now,
                "renewTime": now, "leaseTransitions": self.transitions}
        if self.api.find(LEASE):
            self.api.patch(LEASE, {"spec": spec})
        else:
            self.api.create(LEASE.rsplit("/", 1)[0], {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "kube-scheduler"}, "spec": spec})

    def renew(self):
        while not self.stopping.wait(1):
            if self.holder:
                self.write()


class Stream:
    """Creates a pod every `pause_s`, so that there is always one to bind: longest_gap(watch) tells
    for how long none was."""

    def __init__(self, cluster, make, pause_s=0.1):
        self.cluster, self.make, self.pause_s = cluster, make, pause_s
        self.count = 0
        self.stopping = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.started = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        self.ended = time.monotonic()
        if self.error:
            raise self.error

    def run(self):
        try:
            while not self.stopping.wait(self.pause_s):
                self.cluster.create_pods([self.make(self.count)])
                self.count += 1
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def longest_gap(self, watch):
        """Seconds; what came before and after the stream does not count."""
        times = sorted(at for at in watch.bound_at.values() if self.started < at < self.ended)
        marks = [self.started, *times, self.ended]
        return max(after - before for before, after in zip(marks, marks[1:]))
