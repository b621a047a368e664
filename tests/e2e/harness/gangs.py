# SPDX-License-Identifier: Apache-2.0
"""Groups of pods that kube-scheduler schedules as a whole or not at all (PodGroup, GenericWorkload)."""

import itertools

from harness import release
from harness.api import pod_path
from harness.cluster import Cluster
from harness.objects import NAMESPACE, bound_node, node, pod, unschedulable_message
from harness.processes import Failure, wait_for

GROUPS = f"/apis/scheduling.k8s.io/{release.GANG_API}/namespaces/{NAMESPACE}/podgroups"
REFUSED = 'gpushare_bind_attempts_total{outcome="rejected"}'
PROMISED = "gpushare_reserved_pods"


class GangCluster(Cluster):
    """nodes: lists of the GPUs of each."""

    def __init__(self, nodes, **options):
        super().__init__(nodes=[node(f"n{i}", gpus) for i, gpus in enumerate(nodes)], **options)
        self.control_plane.flags, self.scheduler.flags = release.gang_flags()

    def create_gang(self, name, sizes):
        self.api.create(GROUPS, gang(name, len(sizes)))
        self.create_pods(members(name, sizes))

    def members(self, name):
        return [p for p in self.api.pods() if p["metadata"]["name"].startswith(f"{name}-")]

    def bound(self, name):
        """How many of the gang run."""
        return sum(bool(bound_node(p)) for p in self.members(name))

    def wait_judged(self, name, size, timeout_s=30):
        """Until it is whole, or kube-scheduler says of a member why it is not."""
        def probe():
            pods = self.members(name)
            bound = sum(bool(bound_node(p)) for p in pods)
            return bound == size or any(unschedulable_message(p) for p in pods)
        wait_for(f"gang {name} is judged", probe, timeout_s)

    def wait_whole(self, name, size, timeout_s=30):
        try:
            wait_for(f"gang {name} is whole", lambda: self.bound(name) == size, timeout_s)
        except Failure as failure:
            said = {unschedulable_message(p) for p in self.members(name)}
            raise Failure(f"{failure}: {self.bound(name)} of {size}; {said}") from None

    def remove(self, name):
        pods = self.members(name)
        for made in pods:
            self.api.delete(pod_path(NAMESPACE, made["metadata"]["name"]), 0)
        found = self.api.find(f"{GROUPS}/{name}")
        if found and found["metadata"].get("finalizers"):  # nobody runs who would take it off
            self.api.patch(f"{GROUPS}/{name}", {"metadata": {"finalizers": None}})
        self.api.delete(f"{GROUPS}/{name}", 0)

    def refused_members(self):
        """Lines of the extender's log: binds that it refused to pods of gangs, for want of room."""
        return [line for line in self.extender.process.log_text().splitlines()
                if 'msg="pod not bound"' in line and " pod=g" in line]


def gang(name, count):
    return {"apiVersion": f"scheduling.k8s.io/{release.GANG_API}", "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"schedulingPolicy": {"gang": {"minCount": count}}}}


def members(name, sizes):
    return [pod(f"{name}-{i}", size, schedulingGroup={"podGroupName": name})
            for i, size in enumerate(sizes)]


def fits(gpus, sizes):
    """Whether there is a GPU for each, all at once: every way is tried."""
    return any(fits_so(list(gpus), order) for order in set(itertools.permutations(sizes)))


def fits_so(gpus, sizes):
    if not sizes:
        return True
    return any(fits_so(gpus[:i] + [gpu - sizes[0]] + gpus[i + 1:], sizes[1:])
               for i, gpu in enumerate(gpus) if gpu >= sizes[0])
