#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster to look at, as a list of Kubernetes objects: a few teams, three kinds of nodes, pods that
wait for every reason that there is.

    cluster.py >cluster.json
"""

import datetime
import json
import random
import sys
import uuid


def node(name, model, gpus, mem, address, **more):
    units = more.get("mems", [mem] * gpus)
    inventory = {"v": 1, "unit": "GiB", "gpus": [
        {"idx": i, "uuid": f"GPU-{name}-{i}", "mem": size, "model": model,
         "healthy": i not in more.get("sick", ()), "schedulable": True}
        for i, size in enumerate(units)]}
    annotations = {"aliyun.com/gpu-inventory": json.dumps(inventory)}
    if "cordon" in more:
        annotations["aliyun.com/gpu-cordon"] = more["cordon"]
    has = {"cpu": "64", "memory": "256Gi", "aliyun.com/gpu-mem": str(sum(units)),
           "aliyun.com/gpu-count": str(len(units))}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"gpushare": "true"}, "annotations": annotations},
            "spec": {"unschedulable": True} if more.get("shut") else {},
            "status": {"capacity": has, "allocatable": has,
                       "conditions": [{"type": "Ready",
                                       "status": "False" if more.get("down") else "True"}],
                       "addresses": [{"type": "InternalIP", "address": address}]}}


def pod(full, mem, at=None, gpus="0", created="2026-01-02T02:59:05Z", **more):
    ns, name = full.split("/")
    meta = {"name": name, "namespace": ns, "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, full)), "creationTimestamp": created,
            "labels": {}, "annotations": dict(more.get("annotations", {}))}
    if "count" in more:
        meta["labels"]["aliyun.com/gpu-count"] = more["count"]
    spec = {"schedulerName": more.get("scheduler", "gpushare-scheduler"), "containers": [
        {"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": str(mem)}}}]}
    if at:
        spec["nodeName"] = at
        if gpus is not None:
            meta["annotations"] |= {"ALIYUN_COM_GPU_MEM_IDX": gpus,
                                    "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec,
            "status": {"phase": "Running" if at else "Pending"}}


def objects():
    yield node("a100-1", "NVIDIA A100-SXM4-80GB", 4, 80, "10.0.0.1")
    yield node("a100-2", "NVIDIA A100-SXM4-80GB", 4, 80, "10.0.0.2", sick=(3,))
    yield node("a10-1", "NVIDIA A10", 4, 24, "10.0.1.1", cordon="2")
    yield node("a10-2", "NVIDIA A10", 4, 24, "10.0.1.2")
    yield node("t4-1", "Tesla T4", 2, 16, "10.0.2.1")
    yield node("t4-2", "Tesla T4", 2, 16, "10.0.2.2", shut=True)
    placed = [
        ("chat/llama-70b-0", 140, "a100-1", "0,1", "2"), ("chat/llama-8b-0", 24, "a100-1", "2"),
        ("chat/llama-8b-1", 24, "a100-1", "2"), ("search/embed-0", 12, "a100-1", "2"),
        ("search/embed-1", 12, "a100-1", "2"), ("vision/train-resnet", 60, "a100-1", "3"),
        ("vision/train-vit", 48, "a100-2", "0"), ("search/rerank-0", 20, "a100-2", "0"),
        ("chat/mixtral-0", 52, "a100-2", "1"), ("research/notebook-ada", 16, "a100-2", "1"),
        ("research/notebook-lin", 16, "a100-2", "2"), ("research/sweep-17", 30, "a100-2", "2"),
        ("search/embed-2", 12, "a10-1", "0"), ("search/embed-3", 10, "a10-1", "0"),
        ("vision/detect-0", 8, "a10-1", "1"), ("vision/detect-1", 8, "a10-1", "1"),
        ("vision/detect-2", 6, "a10-1", "1"), ("research/notebook-eve", 16, "a10-1", "3"),
        ("speech/whisper-0", 10, "a10-2", "0"), ("speech/whisper-1", 10, "a10-2", "0"),
        ("speech/whisper-2", 10, "a10-2", "1"), ("speech/tts-0", 6, "a10-2", "1"),
        ("vision/detect-3", 8, "a10-2", "2"), ("research/notebook-kim", 12, "a10-2", "3"),
        ("speech/tts-1", 6, "t4-1", "0"), ("speech/tts-2", 6, "t4-1", "0"),
        ("research/test", 4, "t4-1", "1"),
    ]
    for full, mem, at, gpus, *count in placed:
        yield pod(full, mem, at, gpus, **({"count": count[0]} if count else {}))
    yield pod("research/by-hand", 4, "t4-1", None, scheduler="default-scheduler")
    yield pod("chat/llama-405b", 400, created="2026-01-01T09:00:00Z")
    yield pod("vision/train-sam", 44, created="2026-01-02T01:10:00Z")
    yield pod("chat/llama-70b-1", 140, created="2026-01-02T02:00:00Z", count="2")
    yield pod("research/notebook-max", 8, created="2026-01-02T03:00:00Z",
              scheduler="default-scheduler")


MODELS = [("NVIDIA H100 80GB HBM3", 8, 80), ("NVIDIA A100-SXM4-80GB", 8, 80), ("NVIDIA L40S", 4, 48), ("NVIDIA A10G", 4, 24),
          ("NVIDIA RTX 6000 Ada Generation", 4, 48), ("Tesla T4", 2, 16)]


def owned(made, kind, name):
    made["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}",
                                            "controller": True}]
    return made


def many(nodes, seed=1):
    """That many nodes with long names, of six models and 40 namespaces, and a Deployment of which 30 pods wait."""
    rng = random.Random(seed)
    teams = [f"{team}-{part}" for team in ("fraud-scoring", "recommendations", "speech-to-text", "computer-vision", "foundation-models",
                                           "search-ranking", "robotics", "chat") for part in ("production", "staging", "research",
                                                                                           "nightly-evaluation", "notebooks")]
    for i in range(nodes):
        model, gpus, mem = MODELS[i * len(MODELS) // nodes if nodes > len(MODELS) else i]
        name = f"ip-10-{42 + i // 256}-{i % 256}-{i * 37 % 251}.eu-central-1.compute.internal"
        more = {"down": True} if i % 97 == 5 else {"shut": True} if i % 61 == 7 else {"sick": (1,)} if i % 41 == 3 else {}
        yield node(name, model, gpus, mem, f"10.0.{i // 256}.{i % 256}", **more)
        for gpu in range(gpus):
            left = mem if rng.random() < 0.9 else 0
            while left >= 4 and rng.random() < 0.85:
                size = min(left, rng.choice([4, 6, 8, 12, 16, 24, 40]))
                left -= size
                team = teams[int(len(teams) * rng.random() ** 2)]
                app = f"{team.split('-')[0]}-inference-server-{rng.randrange(6)}"
                made = pod(f"{team}/{app}-{i}-{gpu}-{left}", size, name, str(gpu))
                yield owned(made, "StatefulSet", app)
    for i in range(30):
        yield owned(pod(f"foundation-models-research/llama-405b-pretraining-worker-{i:02}", 40, created=f"2026-01-01T09:{i:02}:00Z",
                        count="16"), "StatefulSet", "llama-405b-pretraining-worker")
    for i in range(4):
        yield owned(pod(f"robotics-notebooks/jupyter-{i}", 78, created=f"2026-01-02T0{i}:00:00Z"), "StatefulSet", f"jupyter-{i}")
    yield pod("chat-staging/by-hand", 400, created="2026-01-02T01:00:00Z")


def listed(items):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


def text(recent=False):
    """recent: as old as if they had been created some days before now."""
    items = list(objects())
    for item in items:
        created = item["metadata"].get("creationTimestamp")
        if recent and created:
            ago = datetime.datetime.fromisoformat("2026-01-02T03:04:05") - \
                datetime.datetime.fromisoformat(created[:-1])
            then = datetime.datetime.now(datetime.timezone.utc) - ago
            item["metadata"]["creationTimestamp"] = then.strftime("%Y-%m-%dT%H:%M:%SZ")
    return listed(items)


if __name__ == "__main__":
    sys.stdout.write(text() + "\n")
