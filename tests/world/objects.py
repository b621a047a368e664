# SPDX-License-Identifier: Apache-2.0
"""Pods and nodes as tenants, device plugins and administrators write them, and what they come to:
read from docs/contract.md and Kubernetes' documents a second time."""

import decimal
import itertools
import json

MEM, CORES = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
COUNT, INVENTORY, MOVED = "aliyun.com/gpu-count", "aliyun.com/gpu-inventory", "aliyun.com/gpu-reassigned"
CORDON, WAKE = "aliyun.com/gpu-cordon", "aliyun.com/gpu-requeue"
IDX, SPLIT = "ALIYUN_COM_GPU_MEM_IDX", "scheduler.framework.gpushare.allocation"
DEV, ASSIGNED = "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_ASSIGNED"
UNITS = "ALIYUN_COM_GPU_MEM_POD"
LISTS = {"aliyun.com/gpu-model": (True, "model"), "aliyun.com/gpu-model-deny": (False, "model"),
         "aliyun.com/gpu-uuid": (True, "uuid"), "aliyun.com/gpu-uuid-deny": (False, "uuid")}
PLUGIN = "gpushare-device-plugin"
KEYS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")     # of a pod group
UIDS = itertools.count(1)
SUFFIX = {"": 1, "k": 1000, "M": 10**6, "Ki": 1024, "Mi": 1 << 20, "m": decimal.Decimal("1e-3"),
          "u": decimal.Decimal("1e-6")}


def quantity(value):
    text = str(value).lstrip("+")
    digits = text.rstrip("kMKium")
    return int(decimal.Decimal(digits) * SUFFIX[text[len(digits):]])


def asked(container, resource):
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        if resource in (resources.get(part) or {}):
            return quantity(resources[part][resource])
    return 0


def peak(spec, resource):
    """Contract, section 1: the most of the init phase and of the main phase."""
    stays = most = 0
    for box in spec.get("initContainers") or []:
        if box.get("restartPolicy") == "Always":
            stays += asked(box, resource)
            most = max(most, stays)
        else:
            most = max(most, stays + asked(box, resource))
    return max(most, stays + sum(asked(box, resource) for box in spec["containers"]))


def boxes(spec):
    return (spec.get("initContainers") or []) + spec["containers"]


def annotation(obj, key):
    return (obj["metadata"].get("annotations") or {}).get(key)


def count_of(pod):
    """How many GPUs it asks for; None if label or annotation is no such number, or they differ."""
    texts = ((pod["metadata"].get("labels") or {}).get(COUNT), annotation(pod, COUNT))
    # zeros before it are no harm, as for the original's strconv.Atoi
    counts = {int(text) if text.isascii() and text.isdecimal() and 1 <= int(text) <= 64 else None
              for text in texts if text is not None} or {1}
    return counts.pop() if len(counts) == 1 else None


def record_of(pod):
    """The GPUs that its record names; None if it names none that can be."""
    text = annotation(pod, IDX) or ""
    parts = text.split(",")
    if not all(part.isdecimal() and part.isascii() and len(part) < 4 for part in parts):
        return None
    gpus = [int(part) for part in parts]
    return sorted(gpus) if len(set(gpus)) == len(gpus) else None


def ended(pod):
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def charged(pod):
    return bool(pod["spec"].get("nodeName")) and not ended(pod) and peak(pod["spec"], MEM) > 0


def entries(text):
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def allowed(pod, gpu):
    for key, (allow, what) in LISTS.items():
        if not annotation(pod, key):
            continue
        words = entries(annotation(pod, key))
        if what == "model":
            hit = any(word.lower() in gpu.get("model", "").lower() for word in words)
        else:
            hit = gpu.get("uuid") in words
        if hit != allow:
            return False
    return True


# ---- nodes

def inventory(node):
    """Its GPUs by index, with or without an inventory."""
    text = annotation(node, INVENTORY)
    if text is not None:
        return {gpu["idx"]: gpu for gpu in json.loads(text)["gpus"]}
    capacity = node["status"]["capacity"]
    count = int(capacity.get(COUNT, 0))
    each = int(capacity.get(MEM, 0)) // count if count else 0
    return {idx: {"idx": idx, "mem": each, "healthy": True, "schedulable": True}
            for idx in range(count)}


def set_inventory(node, gpus):
    value = {"v": 1, "unit": "GiB", "gpus": [gpus[idx] for idx in sorted(gpus)], "reassignments": True}
    node["metadata"]["annotations"][INVENTORY] = json.dumps(value)
    total = str(sum(gpu["mem"] for gpu in gpus.values()))
    for part in ("capacity", "allocatable"):
        node["status"][part].update({MEM: total, COUNT: str(len(gpus)),
                                     CORES: str(100 * len(gpus))})


def usable(node, gpu):
    cordoned = entries(annotation(node, CORDON))
    return gpu.get("healthy", True) and gpu.get("schedulable", True) and \
        str(gpu["idx"]) not in cordoned and gpu.get("uuid") not in cordoned


def new_node(name, sizes, original=False, max_pods=None, labels=None):
    """Of GiB; sizes None: without a GPU."""
    node = {"kind": "Node", "apiVersion": "v1",
            "metadata": {"name": name, "uid": "node-" + name, "annotations": {},
                         "labels": {"kubernetes.io/hostname": name, "gpushare": "true", **(labels or {})}},
            "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    plain = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    node["status"]["capacity"], node["status"]["allocatable"] = dict(plain), dict(plain)
    if sizes is None:
        return node
    if original:
        for part in ("capacity", "allocatable"):
            node["status"][part].update({MEM: str(sum(sizes)), COUNT: str(len(sizes))})
        return node
    gpus = {idx: {"idx": idx, "uuid": f"GPU-{name}-{idx}", "mem": size, "memMiB": size * 1024,
                  "model": "NVIDIA A100-SXM4-80GB" if size > 16 else "Tesla T4", "healthy": True,
                  "schedulable": True} for idx, size in enumerate(sizes)}
    if max_pods:
        for gpu in gpus.values():
            gpu["maxPods"] = max_pods
    set_inventory(node, gpus)
    node["metadata"]["annotations"][MOVED] = "{}"
    return node


def new_plugin(name, node):
    """The pod of a device plugin."""
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {
        "name": name, "namespace": "gpushare-system", "uid": name, "labels": {"app.kubernetes.io/name": PLUGIN},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": PLUGIN, "uid": "d", "controller": True}]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 29997}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


class Pod:
    """A pod, its object and what it asks for, all in one container."""

    def __init__(self, name, units, namespace="default", count=1, percent=0, priority=0, labels=None, notes=None, **spec):
        self.uid, self.name, self.namespace, self.key = f"uid-{next(UIDS)}-{name}", name, namespace, (namespace, name)
        self.share, self.count, self.percent, self.priority = units // count, count, percent, priority
        self.node, self.gpus = None, ()
        limits = {MEM: str(units), **({CORES: str(percent)} if percent else {})}
        self.obj = {"kind": "Pod", "apiVersion": "v1",
                    "metadata": {"name": name, "namespace": namespace, "uid": self.uid,
                                 "labels": {**(labels or {}), **({COUNT: str(count)} if count > 1 else {})},
                                 "annotations": dict(notes or {}), "creationTimestamp": "2026-11-25T10:00:00Z"},
                    "spec": {"schedulerName": "default-scheduler", "priority": priority,
                             "containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}], **spec},
                    "status": {"phase": "Pending"}}

    def bind(self, name, gpu=None):
        """By hand; gpu None: without a record."""
        self.node, self.gpus = name, () if gpu is None else (gpu,)
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
