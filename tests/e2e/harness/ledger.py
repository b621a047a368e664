# SPDX-License-Identifier: Apache-2.0
"""An independent ledger: what each GPU holds, computed from the API's nodes and pods alone.

Written from the documented rules and not from the extender's code, slowly and obviously, so that
the two can disagree. Every function here is pure."""

import json
from dataclasses import dataclass, field
from decimal import Decimal

from harness.objects import (ALLOCATION, GPU_COUNT, GPU_MEM, IDX, INVENTORY, MOVED, annotation,
                             bound_node, key)
from harness.processes import Failure


@dataclass
class Gpu:
    idx: int
    size: int
    usable: bool = True
    used: int = 0
    pods: dict = field(default_factory=dict)

    @property
    def free(self):
        return max(0, self.size - self.used)


@dataclass
class Node:
    name: str
    gpus: dict
    open: bool
    pod_slots: int
    moved: dict = field(default_factory=dict)  # UID: GPUs, by the plugin's word
    unknown: list = field(default_factory=list)


SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
            "m": Decimal("0.001"), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
            "E": 10**18}


def quantity(text):
    """A whole number as Kubernetes writes it: 8, "8", "1k", "2Ki", "1e3", "8000m"."""
    text = str(text)
    suffix = next((s for s in SUFFIXES if text.endswith(s)), None)
    value = Decimal(text.removesuffix(suffix)) * SUFFIXES[suffix] if suffix else Decimal(text)
    if value != int(value):
        raise ValueError(f"{text} is no whole number")
    return int(value)


def node_from(api_node):
    status, spec = api_node.get("status", {}), api_node.get("spec", {})
    capacity = status.get("allocatable") or status.get("capacity") or {}
    ready = any((c["type"], c["status"]) == ("Ready", "True") for c in status.get("conditions", []))
    tainted = any(t["effect"] != "PreferNoSchedule" for t in spec.get("taints") or [])
    return Node(api_node["metadata"]["name"], gpus_from(api_node, capacity),
                ready and not tainted and not spec.get("unschedulable"),
                quantity(capacity.get("pods", 110)), json.loads(annotation(api_node, MOVED) or "{}"))


def gpus_from(api_node, capacity):
    written = (api_node["metadata"].get("annotations") or {}).get(INVENTORY)
    if written:
        return {gpu["idx"]: Gpu(gpu["idx"], gpu["mem"],
                                gpu.get("healthy", True) and gpu.get("schedulable", True))
                for gpu in json.loads(written)["gpus"]}
    count, total = quantity(capacity.get(GPU_COUNT, 0)), quantity(capacity.get(GPU_MEM, 0))
    return {idx: Gpu(idx, total // count) for idx in range(count)} if count else {}


def asks(container):
    return quantity((container.get("resources", {}).get("limits") or {}).get(GPU_MEM, 0))


def gpu_count(pod):
    labels = pod["metadata"].get("labels") or {}
    return int(labels.get(GPU_COUNT) or annotation(pod, GPU_COUNT) or 1)


def pod_peak(pod):
    """The most GPU memory the pod can hold at once, in units over all its GPUs."""
    spec = pod["spec"]
    peak = sidecars = 0
    for init in spec.get("initContainers") or []:
        if init.get("restartPolicy") == "Always":
            sidecars += asks(init)
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + asks(init))
    return max(peak, sidecars + sum(asks(c) for c in spec["containers"]))


def divisible(pod, count=None):
    every = (pod["spec"].get("initContainers") or []) + pod["spec"]["containers"]
    return all(asks(c) % (count or gpu_count(pod)) == 0 for c in every)


def per_gpu(pod):
    """What each of the pod's GPUs is charged; 0 for a pod that asks for no GPU memory."""
    return pod_peak(pod) // gpu_count(pod)


def finished(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def holds(pod):
    """A bound pod is charged until it is gone or finished; being deleted frees nothing yet."""
    return bool(bound_node(pod)) and not finished(pod)


def written_gpus(pod):
    """The GPUs that the pod's annotation names, [] when it names none. Without an index it is those
    of the allocation."""
    if annotation(pod, IDX) is None and annotation(pod, ALLOCATION):
        parts = sorted({gpu for gpus in json.loads(annotation(pod, ALLOCATION)).values()
                        for gpu in gpus})
    else:
        parts = (annotation(pod, IDX) or "").split(",")
    if not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        return []
    found = sorted({int(part) for part in parts})
    return found if len(found) == len(parts) else []


def where(node, pod):
    """[(GPU index, units)] of what a bound pod is charged: where the plugin says, else where the pod
    says, if that can be, else there and wherever it could be, else everywhere."""
    told = node.moved.get(pod["metadata"].get("uid"))
    if told:
        return [(idx, -(-pod_peak(pod) // len(told))) for idx in told]
    named = written_gpus(pod)
    written = [idx for idx in named if idx in node.gpus]
    can_be = bool(named) and divisible(pod, len(named))
    units = pod_peak(pod) // len(named) if can_be else per_gpu(pod)
    if can_be and named == written and all(node.gpus[idx].size >= units for idx in written):
        return [(idx, units) for idx in written]
    node.unknown.append(key(pod))
    least = pod_peak(pod) // max(len(named), gpu_count(pod))  # it may be spread so far
    could = [gpu.idx for gpu in node.gpus.values() if gpu.size >= least]
    return [(idx, units) for idx in sorted({*could, *written}) or node.gpus]


def charge(node, pod):
    for idx, units in where(node, pod):
        node.gpus[idx].used += units
        node.gpus[idx].pods[key(pod)] = units


def build(api_nodes, api_pods):
    """{node name: Node} with every charge on its GPU."""
    nodes = {n["metadata"]["name"]: node_from(n) for n in api_nodes}
    for pod in api_pods:
        node = nodes.get(bound_node(pod))
        if node is None or not holds(pod):
            continue
        node.pod_slots -= 1
        if per_gpu(pod) > 0:
            charge(node, pod)
    return nodes


def overfull(nodes):
    """Sentences, one per GPU that holds more than it has."""
    return [f"{node.name} GPU {gpu.idx}: {gpu.used} of {gpu.size} units used by {sorted(gpu.pods)}"
            for node in nodes.values() for gpu in node.gpus.values() if gpu.used > gpu.size]


def never_overfull(api_nodes):
    """A watcher's callback: the ledger of the moment, from scratch, at every event."""
    def look(pods):
        over = overfull(build(api_nodes, pods.values()))
        if over:
            raise Failure(over[0])
    return look


def places(nodes, pod):
    """Names of the nodes that could take this unbound pod right now."""
    units, count = per_gpu(pod), gpu_count(pod)
    if units == 0:
        return [n.name for n in nodes.values() if n.open and n.pod_slots > 0]
    if not divisible(pod):
        return []
    return [n.name for n in nodes.values() if n.open and n.pod_slots > 0 and
            sum(gpu.usable and gpu.free >= units for gpu in n.gpus.values()) >= count]


def placeable(nodes, api_pods):
    """Sentences, one per unbound pod that some node could take: nobody may be left behind."""
    found = []
    for pod in api_pods:
        if bound_node(pod) or pod["metadata"].get("deletionTimestamp") or finished(pod):
            continue
        where = places(nodes, pod)
        if where:
            found.append(f"{key(pod)} waits for {gpu_count(pod)} x {per_gpu(pod)} units, "
                         f"but {where[0]} has room ({len(where)} nodes)")
    return found


def as_inspect(nodes):
    """The same figures in the shape of the extender's inspect answer, for nodes that have GPUs."""
    return {node.name: {gpu.idx: (gpu.size, gpu.used, dict(gpu.pods)) for gpu in node.gpus.values()}
            for node in nodes.values() if node.gpus}
