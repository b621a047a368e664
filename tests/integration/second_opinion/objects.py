# SPDX-License-Identifier: Apache-2.0
"""Pods and nodes as tenants, device plugins and administrators write them, and what they come to:
read from docs/contract.md a second time."""

import decimal
import json

MEM, CORES = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
COUNT, INVENTORY, MOVED = "aliyun.com/gpu-count", "aliyun.com/gpu-inventory", "aliyun.com/gpu-reassigned"
CORDON, WAKE = "aliyun.com/gpu-cordon", "aliyun.com/gpu-requeue"
IDX, SPLIT = "ALIYUN_COM_GPU_MEM_IDX", "scheduler.framework.gpushare.allocation"
DEV, ASSIGNED = "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_ASSIGNED"
LISTS = {"aliyun.com/gpu-model": (True, "model"), "aliyun.com/gpu-model-deny": (False, "model"),
         "aliyun.com/gpu-uuid": (True, "uuid"), "aliyun.com/gpu-uuid-deny": (False, "uuid")}
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


def new_node(name, sizes, original=False, max_pods=None):
    node = {"kind": "Node", "apiVersion": "v1",
            "metadata": {"name": name, "uid": "node-" + name, "annotations": {},
                         "labels": {"kubernetes.io/hostname": name, "gpushare": "true"}},
            "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    plain = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    node["status"]["capacity"], node["status"]["allocatable"] = dict(plain), dict(plain)
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


CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def tolerates(pod, taint):
    for one in pod["spec"].get("tolerations") or []:
        same = one.get("key") in (None, taint["key"])
        if same and one.get("effect") in (None, taint["effect"]) and (
                one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", "")):
            return True
    return False


def may_use(pod, node):
    """What kube-scheduler's own filters say, as far as this world plays them."""
    if node["spec"].get("unschedulable") and not tolerates(pod, CORDONED):
        return False
    labels = node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(tolerates(pod, taint) for taint in node["spec"].get("taints") or []
               if taint["effect"] != "PreferNoSchedule")
