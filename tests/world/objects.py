# SPDX-License-Identifier: Apache-2.0
"""Pods and nodes as tenants, device plugins and administrators write them, and which node a pod may use: read from
docs/contract.md and Kubernetes' documents a second time."""

import itertools
import json

MEM, COUNT, INVENTORY = "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "aliyun.com/gpu-inventory"
IDX, ASSIGNED, UNITS = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_POD"
PLUGIN = "gpushare-device-plugin"
KEYS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")     # of a pod group
UIDS = itertools.count(1)


def new_node(name, sizes, labels=None):
    """Of GiB."""
    gpus = [{"idx": idx, "uuid": f"GPU-{name}-{idx}", "mem": size, "memMiB": size * 1024, "model": "Tesla T4", "healthy": True,
             "schedulable": True} for idx, size in enumerate(sizes)]
    has = {"cpu": "64", "memory": "256Gi", "pods": "500", MEM: str(sum(sizes)), COUNT: str(len(sizes))}
    return {"kind": "Node", "apiVersion": "v1",
            "metadata": {"name": name, "uid": "node-" + name,
                         "labels": {"kubernetes.io/hostname": name, "gpushare": "true", **(labels or {})},
                         "annotations": {"aliyun.com/gpu-reassigned": "{}", INVENTORY: json.dumps(
                             {"v": 1, "unit": "GiB", "gpus": gpus, "reassignments": True})}},
            "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": has, "allocatable": has}}


def new_plugin(name, node):
    """The pod of a device plugin."""
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {
        "name": name, "namespace": "gpushare-system", "uid": name, "labels": {"app.kubernetes.io/name": PLUGIN},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": PLUGIN, "uid": "d", "controller": True}]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 29997}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


class Pod:
    """A pod, its object and what it asks for, all in one container."""

    def __init__(self, name, units, namespace="default", count=1, priority=0, labels=None, **spec):
        self.uid, self.name, self.namespace, self.key = f"uid-{next(UIDS)}-{name}", name, namespace, (namespace, name)
        self.priority = priority
        self.obj = {"kind": "Pod", "apiVersion": "v1",
                    "metadata": {"name": name, "namespace": namespace, "uid": self.uid,
                                 "labels": {**(labels or {}), **({COUNT: str(count)} if count > 1 else {})},
                                 "annotations": {}, "creationTimestamp": "2026-11-25T10:00:00Z"},
                    "spec": {"schedulerName": "default-scheduler", "priority": priority, "containers": [
                        {"name": "c", "image": "i", "resources": {"limits": {MEM: str(units)}}}], **spec},
                    "status": {"phase": "Pending"}}

    def bind(self, name, gpu=None):
        """By hand; gpu None: without a record."""
        self.obj["spec"]["nodeName"], self.obj["status"]["phase"] = name, "Running"
        if gpu is not None:
            self.obj["metadata"]["annotations"][IDX] = str(gpu)
        return self


# ---- which node a pod may use, read from Kubernetes' documents; None: an operator that nobody knows decides

CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def tolerates(one, taint):
    operator = one.get("operator") or "Equal"
    if operator not in ("Equal", "Exists"):
        return None
    if one.get("effect") and one["effect"] != taint["effect"]:
        return False
    if one.get("key") and one["key"] != taint["key"]:
        return False
    if operator == "Exists":
        return True
    return bool(one.get("key")) and one.get("value", "") == taint.get("value", "")


def whole(text):
    try:
        return int(text) if text.strip() == text and text else None
    except ValueError:
        return None


def holds(rule, have):
    """A requirement, of what a node has under that key, or None. None: an operator that nobody knows."""
    operator, values = rule["operator"], rule.get("values") or []
    if operator == "In":
        return have is not None and have in values
    if operator == "NotIn":
        return have is None or have not in values
    if operator == "Exists":
        return have is not None
    if operator == "DoesNotExist":
        return have is None
    if operator in ("Gt", "Lt"):
        mine, wanted = whole(have or ""), whole(values[0])
        return mine is not None and (mine > wanted if operator == "Gt" else mine < wanted)
    return None


def may_use(pod, node):
    spec, labels, unknown = pod["spec"], node["metadata"].get("labels") or {}, False
    taints = list(node["spec"].get("taints") or [])
    if node["spec"].get("unschedulable"):
        taints.append(CORDONED)
    for taint in taints:
        if taint["effect"] == "PreferNoSchedule":
            continue
        verdicts = [tolerates(one, taint) for one in spec.get("tolerations") or []]
        if True not in verdicts:
            if None not in verdicts:
                return False
            unknown = True
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    terms = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution")
    if terms is not None:
        verdicts = []
        for term in terms["nodeSelectorTerms"]:
            rules = [holds(rule, labels.get(rule["key"])) for rule in term.get("matchExpressions") or []]
            rules += [holds(rule, node["metadata"]["name"]) for rule in term.get("matchFields") or []]
            verdicts.append(bool(rules) and (False if False in rules else None if None in rules else True))
        if True not in verdicts:
            if None not in verdicts:
                return False
            unknown = True
    return None if unknown else True
