# SPDX-License-Identifier: Apache-2.0
"""A cluster of one case: control plane, simulated nodes, kube-scheduler and our extender.

    with Cluster(nodes=[node("n1", [16, 16])]) as cluster:
        cluster.create_pods([pod("p", 8)])
        cluster.wait_bound("p")
"""

import os
import shutil
import subprocess

from harness import ledger
from harness.api import node_path, pod_path
from harness.control_plane import EXTENDER_NAMESPACE, ControlPlane, built_program
from harness.extender import Extender
from harness.objects import NAMESPACE, bound_node, unschedulable_message
from harness.processes import Failure, Processes, wait_for
from harness.scheduler import Scheduler

EXTENDER_MANIFESTS = ("base/namespace/namespace.yaml", "base/extender/rbac.yaml")


class Cluster:
    """scheduler="config", "policy" or None; extender=False leaves ours out."""

    def __init__(self, nodes=(), scheduler="config", extender=True, extender_flags=(),
                 run_dir=None):
        self.run_dir = run_dir or os.environ["GPUSHARE_RUN_DIR"]
        self.initial_nodes = list(nodes)
        self.scheduler_kind = scheduler
        self.extender_flags = extender_flags
        self.processes = Processes(self.run_dir)
        self.control_plane = ControlPlane(self.processes, self.run_dir)
        self.scheduler = Scheduler(self.processes, self.control_plane)
        self.extender = None
        self.with_extender = extender

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None and self.extender:
                self.extender.verify_and_stop()
        finally:
            self.stop()

    def stop(self):
        """Ends all programs. etcd's files are large and tell nothing that the logs do not."""
        self.processes.stop_all()
        shutil.rmtree(self.control_plane.path("etcd"), ignore_errors=True)

    def start(self):
        self.control_plane.start()
        self.add_nodes(self.initial_nodes)
        if self.with_extender:
            self.start_extender()
        if self.scheduler_kind == "config":
            self.scheduler.start(self.extender.url if self.extender else None)
        elif self.scheduler_kind == "policy":
            self.scheduler.start_with_policy(self.extender.url)

    def start_extender(self):
        self.control_plane.apply(*EXTENDER_MANIFESTS)
        kubeconfig = self.control_plane.service_account_kubeconfig(EXTENDER_NAMESPACE,
                                                                   "gpushare-extender")
        self.extender = Extender(self.processes, kubeconfig, self.extender_flags)
        self.extender.start()

    @property
    def api(self):
        return self.control_plane.admin

    def add_nodes(self, nodes):
        self.api.create_many((node_path(), made) for made in nodes)

    def create_pods(self, pods):
        return self.api.create_many((pod_path(p["metadata"]["namespace"]), p) for p in pods)

    def pod(self, name, namespace=NAMESPACE):
        return self.api.get(pod_path(namespace, name))

    def delete_pod(self, name, namespace=NAMESPACE, grace_s=0):
        """grace_s=0 removes the object at once, as nobody runs on simulated nodes to confirm it."""
        self.api.delete(pod_path(namespace, name), grace_s)

    def finish_pod(self, name, phase="Succeeded", namespace=NAMESPACE):
        self.api.patch(pod_path(namespace, name, "status"), {"status": {"phase": phase}})

    def find_pod(self, name, namespace=NAMESPACE):
        """The pod, or None while there is none of that name."""
        return self.api.find(pod_path(namespace, name))

    def wait_bound(self, name, timeout_s=30, namespace=NAMESPACE):
        """The pod once it has a node; the failure tells what kube-scheduler said instead."""
        def probe():
            found = self.find_pod(name, namespace)
            return found if found and bound_node(found) else None
        try:
            return wait_for(f"pod {name} is bound", probe, timeout_s)
        except Failure as failure:
            found = self.find_pod(name, namespace)
            said = unschedulable_message(found) if found else "nothing, the pod does not exist"
            raise Failure(f"{failure}; kube-scheduler says: {said or 'nothing'}") from None

    def wait_refused(self, name, timeout_s=30, namespace=NAMESPACE):
        """kube-scheduler's message on a pod it could not place."""
        def probe():
            found = self.pod(name, namespace)
            if bound_node(found):
                raise Failure(f"pod {name} was bound to {bound_node(found)}, nobody expected that")
            return unschedulable_message(found)
        return wait_for(f"pod {name} is refused", probe, timeout_s)

    def problems(self, complete=True):
        """What the independent ledger finds wrong right now; complete: also pods left behind."""
        pods = self.api.pods()
        nodes = ledger.build(self.api.nodes(), pods)
        return ledger.overfull(nodes) + (ledger.placeable(nodes, pods) if complete else [])

    def wait_settled(self, timeout_s):
        """Wait until no unbound pod would fit anywhere. A GPU over its size fails at once: nothing
        that happens later can make that right."""
        def probe():
            over = self.problems(complete=False)
            if over:
                raise Failure("; ".join(over[:5]))
            left = self.problems()
            if left:
                raise OSError(f"{len(left)} problems, the first: {left[0]}")
            return True
        wait_for("every pod that fits is bound", probe, timeout_s, interval_s=0.5)

    def inspect_difference(self):
        """Sentences about nodes where the extender's inspect differs from the API."""
        expected = ledger.as_inspect(ledger.build(self.api.nodes(), self.api.pods()))
        shown = self.extender.inspect()
        return [f"{name}: inspect shows {shown.get(name)}, the API says {expected.get(name)}"
                for name in sorted(expected.keys() | shown.keys())
                if shown.get(name) != expected.get(name)]

    def wait_inspect_agrees(self, timeout_s=10):
        def probe():
            differences = self.inspect_difference()
            if differences:
                raise OSError(f"{len(differences)} nodes differ; {differences[0]}")
            return True
        wait_for("inspect agrees with the API", probe, timeout_s, interval_s=0.5)

    def why(self, name, namespace=NAMESPACE, more=()):
        """What a user reads about a pod."""
        return subprocess.run([
            built_program("kubectl-inspect-gpushare"), "why", name, "-n", namespace, *more,
            "--kubeconfig", self.control_plane.kubeconfig("admin")],
            check=True, capture_output=True, text=True, timeout=60).stdout

    def events(self, pod_name, namespace=NAMESPACE):
        """{reason: how often} of a pod's events."""
        reasons = {}
        for event in self.api.events(namespace, pod_name):
            count = event.get("count") or (event.get("series") or {}).get("count") or 1
            reasons[event["reason"]] = reasons.get(event["reason"], 0) + count
        return reasons
