# SPDX-License-Identifier: Apache-2.0
"""Kubernetes objects as the cases need them: nodes with GPUs, pods that ask for a share."""

import json

GPU_MEM = "aliyun.com/gpu-mem"
GPU_COUNT = "aliyun.com/gpu-count"
GPU_CORES = "aliyun.com/gpu-core.percentage"
INVENTORY = "aliyun.com/gpu-inventory"
MOVED = "aliyun.com/gpu-reassigned"
IDX = "ALIYUN_COM_GPU_MEM_IDX"
ALLOCATION = "scheduler.framework.gpushare.allocation"
NAMESPACE = "default"
PAUSE_IMAGE = "gpushare-e2e/none"
MIB_PER_UNIT = {"MiB": 1, "64MiB": 64, "256MiB": 256, "GiB": 1024}


def inventory(gpu_sizes, node_name, unit="GiB", **per_gpu):
    """The device plugin's annotation for GPUs of these sizes; per_gpu: healthy=[...], and so on."""
    gpus = [{"idx": idx, "uuid": f"GPU-{node_name}-{idx}", "mem": size,
             "memMiB": size * MIB_PER_UNIT[unit], "model": "Fake GPU", "healthy": True, "numa": 0,
             "schedulable": True} for idx, size in enumerate(gpu_sizes)]
    for key, values in per_gpu.items():
        for gpu, value in zip(gpus, values):
            gpu[key] = value
    return json.dumps({"v": 1, "unit": unit, "gpus": gpus})


def node(name, gpu_sizes=(), with_inventory=True, unit="GiB", pods=110):
    """A node object with these GPUs (in units); without inventory as the original's plugin."""
    capacity = {"cpu": "64", "memory": "256Gi", "pods": str(pods)}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    if gpu_sizes:
        capacity[GPU_MEM] = str(sum(gpu_sizes))
        capacity[GPU_COUNT] = str(len(gpu_sizes))
        capacity[GPU_CORES] = str(100 * len(gpu_sizes))
        metadata["labels"]["gpushare"] = "true"
        if with_inventory:
            metadata["annotations"] = {INVENTORY: inventory(gpu_sizes, name, unit)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {
        "capacity": capacity, "allocatable": capacity,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Simulated"}],
        "addresses": [{"type": "Hostname", "address": name}]}}


def container(name, mem=0, restart_policy=None):
    made = {"name": name, "image": PAUSE_IMAGE}
    if mem:
        made["resources"] = {"limits": {GPU_MEM: str(mem)}}
    if restart_policy:
        made["restartPolicy"] = restart_policy
    return made


def pod(name, mem=0, gpu_count=None, containers=None, init=(), namespace=NAMESPACE, node_name=None,
        annotations=None, **spec):
    """A pod that asks for mem units, in one container or, with containers=[4, 0, 2], in several."""
    sizes = [mem] if containers is None else containers
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    if gpu_count:
        metadata["labels"] = {GPU_COUNT: str(gpu_count)}
    made = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 30,
            "containers": [container(f"c{i}", size) for i, size in enumerate(sizes)], **spec}
    if init:
        made["initContainers"] = [container(f"i{i}", size) for i, size in enumerate(init)]
    if node_name:
        made["nodeName"] = node_name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made}


def with_cores(made, percent):
    """The pod, whose first container asks for so much of a GPU's compute, too."""
    limits = made["spec"]["containers"][0].setdefault("resources", {}).setdefault("limits", {})
    limits[GPU_CORES] = str(percent)
    return made


def original_annotations(gpu_idx, pod_mem, gpu_mem):
    """What the original's extender wrote on a pod when it bound it, and its plugin thereafter."""
    return {IDX: str(gpu_idx), "ALIYUN_COM_GPU_MEM_POD": str(pod_mem),
            "ALIYUN_COM_GPU_MEM_DEV": str(gpu_mem), "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
            "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1600000000000000000"}


def successor_annotations(*gpu_and_units):
    """What the original's successor wrote: (GPU, units) per container, and no index."""
    return {ALLOCATION: json.dumps({str(i): {str(gpu): units}
                                    for i, (gpu, units) in enumerate(gpu_and_units)}),
            "scheduler.framework.gpushare.assigned": "true",
            "scheduler.framework.gpushare.assume-time": "1600000000000000000"}


def key(pod_object):
    meta = pod_object["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def bound_node(pod_object):
    return pod_object["spec"].get("nodeName", "")


def annotation(pod_object, name):
    return (pod_object["metadata"].get("annotations") or {}).get(name)


def node_ready(node_object):
    conditions = (node_object or {}).get("status", {}).get("conditions") or []
    return any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)


def unschedulable_message(pod_object):
    """What kube-scheduler says about a pod it could not place; "" when it said nothing yet."""
    for condition in pod_object.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message", "")
    return ""
