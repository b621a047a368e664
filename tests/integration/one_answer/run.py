#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One question, one answer: does a pod fit, and how many of its kind?

  run.py --build DIR [--seed N] [--worlds 4 | --seconds S]

Random clusters with nominated pods, models, UUID lists, compute, pods that are being deleted or whose GPU is not
known, GPUs that are not healthy or cordoned, nodes that are cordoned, tainted, not ready or without a device plugin,
and two units. Asked are the programs as users have them:

| who is asked | about | has to say |
|---|---|---|
| the extender's filter | every pod that waits | the nodes whose GPUs have room |
| `why` | the same pods | as many of these as the pod may use (open() below, which knows of no program) |
| `what-if -f` | the same, not nominated | 1 of 1 where `why` names a node |
| `defrag` | who is first in kube-scheduler's order | that it fits now, where `why` names a node |
| `what-if --gpu-mem` | sizes of 1, 2, 4, … GiB | as many as … |
| `-o json` | the same sizes | … "would fit now" says, and more than none where a filter passes such a pod |
| filter, prioritize, bind | one of these sizes | bind so many pods, and refuse the next |
| `-o json` | what takes no pods | counts as not usable; the page says the same (`page_attack`) |

What is wrong is printed with the seed of its world, and the exit status is 1."""

import contextlib
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from api import Served  # noqa: E402
from objects import Pod, may_use  # noqa: E402
from programs import Extender, cli  # noqa: E402

D = "aliyun.com/"
MODELS = ["A10", "V100", "A100-40"]
BINDS_MAX = 40


# ---- a cluster ----

def inventory(rng, node, unit):
    gib = 1024 if unit == "MiB" else 1
    gpus = []
    for idx in range(rng.randint(1, 4)):
        gpu = {"idx": idx, "uuid": f"GPU-{node}-{idx}", "mem": rng.choice([4, 8, 16, 24]) * gib, "model": rng.choice(MODELS)}
        if rng.random() < 0.1:
            gpu["healthy"] = False
        if rng.random() < 0.2:
            gpu["maxPods"] = rng.randint(1, 4)
        gpus.append(gpu)
    return {"v": 1, "unit": unit, "gpus": gpus, "reassignments": True}


def make_node(rng, name, unit):
    inv = inventory(rng, name, unit)
    units, count = sum(g["mem"] for g in inv["gpus"]), len(inv["gpus"])
    amounts = {"cpu": str(rng.choice([2, 8, 64])), "pods": "110", D + "gpu-mem": str(units), D + "gpu-count": str(count)}
    spec, allocatable = {}, dict(amounts)
    if rng.random() < 0.15:
        spec["unschedulable"] = True
    if rng.random() < 0.15:
        spec["taints"] = [{"key": "team", "value": "a", "effect": rng.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])}]
    if rng.random() < 0.1:
        allocatable[D + "gpu-mem"] = "0"
    annotations = {D + "gpu-inventory": json.dumps(inv)}
    if rng.random() < 0.15:
        annotations[D + "gpu-cordon"] = rng.choice(["0", f"GPU-{name}-{count - 1}"])
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": {"gpushare": "true", "pool": rng.choice("ab")}, "annotations": annotations},
            "spec": spec, "status": {"capacity": amounts, "allocatable": allocatable,
                                     "conditions": [{"type": "Ready", "status": "False" if rng.random() < 0.1 else "True"}]}}


def make_pod(rng, name, gib, nodes):
    """Asks for something, in any of the ways there are."""
    units, count, cores, annotations, spec = rng.randint(1, 16) * gib, 1, {}, {}, {}
    if rng.random() < 0.15:
        units, count = 2 * rng.randint(1, 8) * gib, 2
    elif rng.random() < 0.25:
        cores[D + "gpu-core.percentage"] = rng.choice(["20", "50", "100"])
    if rng.random() < 0.25:
        annotations[D + rng.choice(["gpu-model", "gpu-model-deny"])] = rng.choice(MODELS + ["A10,V100"])
    if rng.random() < 0.15:
        node = rng.choice(nodes)["metadata"]["name"]
        annotations[D + rng.choice(["gpu-uuid", "gpu-uuid-deny"])] = f"GPU-{node}-0,GPU-{node}-1"
    if rng.random() < 0.3:
        spec["tolerations"] = [rng.choice([{"operator": "Exists"}, {"key": "team", "operator": "Equal", "value": "a"},
                                           {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])]
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"pool": rng.choice("ab")}
    pod = Pod(name, units, "team", count, rng.choice([0, 0, 10]), schedulerName="gpushare-scheduler", **spec).obj
    pod["metadata"]["annotations"] = annotations
    resources = pod["spec"]["containers"][0]["resources"]
    resources["limits"].update(cores)
    resources["requests"] = {"cpu": rng.choice(["100m", "1", "6"])}
    return pod


def bind(rng, pod, node):
    gpus = json.loads(node["metadata"]["annotations"][D + "gpu-inventory"])["gpus"]
    pod["spec"]["nodeName"] = node["metadata"]["name"]
    pod["status"]["phase"] = "Running"
    want = int(pod["metadata"]["labels"].get(D + "gpu-count", 1))
    if rng.random() < 0.85 and want <= len(gpus):
        idx = sorted(rng.sample(range(len(gpus)), want))
        pod["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] = ",".join(map(str, idx))
    if rng.random() < 0.2:
        pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"


def make_world(rng):
    unit = rng.choice(["GiB", "GiB", "MiB"])
    gib = 1024 if unit == "MiB" else 1
    nodes = [make_node(rng, f"n{i}", unit) for i in range(rng.randint(1, 5))]
    pods = [make_pod(rng, f"p{i:02}", gib, nodes) for i in range(rng.randint(3, 13))]  # 16 are learnt from
    waiting = []
    for pod in pods:
        dice = rng.random()
        if dice * 1000 % 3 > 1:
            pod["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{int(dice * 1000) % 2}",
                                                   "uid": "job", "controller": True}]
        if dice < 0.5:
            bind(rng, pod, rng.choice(nodes))
        elif dice < 0.7:
            pod["status"]["nominatedNodeName"] = rng.choice(nodes)["metadata"]["name"]
        if "nodeName" not in pod["spec"]:
            waiting.append(pod)
    return {"nodes": nodes, "pods": pods, "waiting": waiting, "gib": gib}


# ---- what may be used, read from Kubernetes' documents ----

def milli(text):
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def open_to(world, pod, node):
    """May the pod use this node, whatever its GPUs have?"""
    status = node["status"]
    used = sum(milli(p["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for p in world["pods"]
               if p["spec"].get("nodeName") == node["metadata"]["name"])
    asked = milli(pod["spec"]["containers"][0]["resources"]["requests"].get("cpu", "0"))
    return (may_use(pod, node) and status["conditions"][0]["status"] == "True" and status["allocatable"][D + "gpu-mem"] != "0"
            and used + asked <= milli(status["allocatable"]["cpu"]))


# ---- the programs ----

class Programs:
    def __init__(self, stack, build, world, *flags, policy="binpack"):
        self.build, self.api = build, stack.enter_context(Served(world["nodes"] + world["pods"]))
        # the first bind would wait for those of a process before
        self.extender = stack.enter_context(Extender(build, self.api, "--policy", policy, *flags, program="tests/extender_reconciling_often"))

    def file(self, name, tree):
        path = os.path.join(self.api.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(tree, out)
        return path

    def inspect(self, *args):
        code, out, err = cli(self.build, self.api, *args)
        if code:
            raise RuntimeError(f"{args}: {err}")
        return out.decode()

    def verb(self, verb, tree):
        status, text = self.extender.ask(verb, tree)
        if status != 200:
            raise RuntimeError(f"{verb}: {status} {text}")
        return json.loads(text)

    def filter(self, pod, names):
        return self.verb("filter", {"Pod": pod, "Nodes": None, "NodeNames": names})["NodeNames"] or []

    def scores(self, pod, names):
        return {row["Host"]: row["Score"] for row in self.verb("prioritize", {"Pod": pod, "Nodes": None, "NodeNames": names})}

    def bind(self, pod, node):
        """Why not, or ""."""
        meta = pod["metadata"]
        return self.verb("bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}).get("Error") or ""


# ---- questions ----

def placed(text):
    return json.loads(text)["pods"][0]["scheduledReplicas"]


def turn(pod):
    """kube-scheduler's order of those that are not nominated; all are of one second."""
    return (-pod["spec"]["priority"], pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])


def ask_about_pods(world, programs, names, judge):
    """Filter, why, what-if -f and defrag."""
    answers = {}
    for pod in world["waiting"]:
        name = pod["metadata"]["name"]
        passed = programs.filter(pod, names)
        fits = sum(open_to(world, pod, n) for n in world["nodes"] if n["metadata"]["name"] in passed)
        why = json.loads(programs.inspect("why", "-n", "team", "-o", "json", name))
        answers[name] = fits
        judge(f"why {name}: nodes that the filter passes and the pod may use", why["fittingNodeCount"], fits)
        if pod["status"].get("nominatedNodeName"):
            continue
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]}
        judge(f"what-if -f {name}", placed(programs.inspect("what-if", "--ignore-pending", "-o", "json",
                                                          "-f", programs.file("pod.json", manifest))),
              int(fits > 0))
    queue = sorted((p for p in world["waiting"] if not p["status"].get("nominatedNodeName")), key=turn)
    if queue:
        first = queue[0]["metadata"]["name"]
        told = programs.inspect("defrag", "--max-moves", "1")
        judge(f"defrag, {first} first: it fits now", bool(re.search(rf"^team +{first} .* fits now$", told, re.M)),
              answers[first] > 0)


def sized(name, units):
    return Pod(name, units, "team", schedulerName="gpushare-scheduler", tolerations=[{"key": "team", "operator": "Exists"}]).obj


def open_names(world):
    return [n["metadata"]["name"] for n in world["nodes"] if n["status"]["conditions"][0]["status"] == "True"
            and not n["spec"].get("unschedulable") and n["status"]["allocatable"][D + "gpu-mem"] != "0"]


def bind_many(world, programs, units, count, judge):
    """What was counted comes true: so many are bound, and no more."""
    names, bound = open_names(world), 0
    while bound <= count:
        made = sized(f"new-{bound}", units)
        programs.api.put(made)
        passed = programs.filter(made, names)
        if not passed:
            break
        scores = programs.scores(made, passed)
        if error := programs.bind(made, max(passed, key=lambda name: scores.get(name, 0))):
            judge(f"bind of pod {bound} of {units} units", error, "")
            break
        bound += 1
    judge(f"pods of {units} units that are bound, of those that what-if counts", bound, count)


def shut(node, of=None):
    """Takes no new pod (or not that one), whatever its GPUs have."""
    tolerated = [one.get("key", "any") for one in of["spec"].get("tolerations", [])] if of else []
    cordoned = node["spec"].get("unschedulable") and not {"any", "node.kubernetes.io/unschedulable"} & {*tolerated}
    return bool(cordoned or node["status"]["conditions"][0]["status"] != "True"
                or node["status"]["allocatable"][D + "gpu-mem"] == "0")


def shut_gpus(node):
    meta = node["metadata"]["annotations"]
    closed = meta.get(D + "gpu-cordon", "").split(",")
    return sum(shut(node) or not gpu.get("healthy", True) or str(gpu["idx"]) in closed or gpu["uuid"] in closed
               for gpu in json.loads(meta[D + "gpu-inventory"])["gpus"])


def ask_about_sums(world, told, judge):
    """What takes no pods counts as not usable; the closest candidate takes some."""
    nodes = {node["metadata"]["name"]: node for node in world["nodes"]}
    judge("GPUs not usable", told["cluster"]["unusableGPUCount"], sum(map(shut_gpus, world["nodes"])))
    for wait in told["pending"]["items"]:
        if "missingGPU" in wait.get("closest", {}):
            pod = next(pod for pod in world["waiting"] if pod["metadata"]["name"] == wait["name"])
            judge(f"{wait['name']}: nearest miss is open", shut(nodes[wait["closest"]["node"]], pod), False)


def ask_about_sizes(world, programs, told, rng, judge):
    """What-if, -o json and filter; then bind."""
    counts = {}
    for fit in told["cluster"]["wouldFit"]:
        units, count = fit["requestedGPU"], fit["podCount"]
        size = units // world["gib"]
        text = programs.inspect("what-if", "--ignore-pending", "--policy", "binpack", "-o", "json", "--gpu-mem", f"{units}x100000")
        counts[units] = placed(text)
        judge(f"-o json: pods of {size} GiB that would fit", count, counts[units])
        passed = programs.filter(sized("bare", units), open_names(world))
        judge(f"a filter passes a pod of {size} GiB", bool(passed), counts[units] > 0)
    few = [units for units, count in counts.items() if count <= BINDS_MAX]
    if few:
        units = rng.choice(few)
        bind_many(world, programs, units, counts[units], judge)
    return sum(counts.values())


class Judge:
    """Counts what was asked."""

    def __init__(self, wrong):
        self.wrong, self.asked = wrong, 0

    def __call__(self, question, said, should):
        self.asked += 1
        if said != should:
            self.wrong(f"{question}: {said}, not {should}")


def seed_of(seed, number):
    return seed * 1000000 + number


def one_world(build, rng, wrong):
    world, judge = make_world(rng), Judge(wrong)
    flags = []
    if rng.random() < 0.4:      # filter names one node to whom nothing is preferred: to those that are bound
        flags = ["--filter-names=one"]
        for pod in world["pods"]:
            pod["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "pool", "whenUnsatisfiable": "ScheduleAnyway"}]
    with contextlib.ExitStack() as stack:
        programs = Programs(stack, build, world, *flags)
        told = json.loads(programs.inspect("-o", "json"))
        ask_about_pods(world, programs, [n["metadata"]["name"] for n in world["nodes"]], judge)
        ask_about_sums(world, told, judge)
        ask_about_sizes(world, programs, told, rng, judge)
    return {"questions": judge.asked}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"answers": sys.modules[__name__]}))
