# SPDX-License-Identifier: Apache-2.0
"""More shapes of nodes and pods: priorities, GPUs of several models, pods that run already."""

from harness import release
from harness.objects import INVENTORY, inventory, node, original_annotations, pod


def create_priorities(cluster, priorities):
    """One PriorityClass for each {name: value}."""
    for name, value in priorities.items():
        cluster.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value})


def start_preempting_scheduler(cluster, edit=lambda text: text):
    """For Cluster(scheduler=None)."""
    cluster.scheduler.program = release.PREEMPTING_SCHEDULER
    cluster.scheduler.start(cluster.extender.url, edit=edit)


def node_of(name, gpu_sizes, **per_gpu):
    """A node whose inventory says more of each GPU: model=["A100", "T4"], numa=[0, 1]."""
    made = node(name, gpu_sizes)
    made["metadata"]["annotations"][INVENTORY] = inventory(gpu_sizes, name, **per_gpu)
    return made


def resident(name, node_name, gpu_idx, units, gpu_size=16, **spec):
    """A pod that runs already, on this GPU."""
    return pod(name, units, node_name=node_name,
               annotations=original_annotations(gpu_idx, units, gpu_size), **spec)


def only_on(*node_names):
    """spec fields of a pod that may run on these nodes only."""
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{
            "key": "kubernetes.io/hostname", "operator": "In", "values": list(node_names)}]}]}}}}
