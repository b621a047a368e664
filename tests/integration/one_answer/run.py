#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One question, one answer: does a pod fit, and how many of its kind?

  run.py --build DIR [--seed N] [--worlds 4 | --seconds S]

Random clusters with nominated pods, models, UUID lists, compute, pods that are being deleted or whose GPU is not
known, GPUs that are not healthy or cordoned, nodes that are cordoned, tainted, not ready or without a device plugin,
and two units, on gpushare-sim's API server. Asked are the programs as users have them:

| who is asked | about | has to say |
|---|---|---|
| the extender's filter | every pod that waits | the nodes whose GPUs have room |
| `why` | the same pods | as many of these as the pod may use (open() below, which knows of no program) |
| `what-if -f` | the same, not nominated | 1 of 1 where `why` names a node |
| `defrag` | who is first in kube-scheduler's order | that it fits now, where `why` names a node |
| `what-if --gpu-mem` | sizes of 1, 2, 4, … GiB | as many as … |
| the page of `web` | the same sizes | … "would fit now" says, and more than none where a filter passes such a pod |
| filter, prioritize, bind | one of these sizes | bind so many pods, and refuse the next |
| `-o json` | what takes no pods | counts as not usable |
| `-o json` | sums, nodes, GPUs, pods and namespaces | the page's; `page_attack` judges both |

What is wrong is printed with the seed of its world, and the exit status is 1."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from objects import may_use  # noqa: E402
from programs import FATAL, HOST, PREFIX, Program, free_port, wait_for  # noqa: E402
from programs import request as ask  # noqa: E402

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
            "metadata": {"name": name, "labels": {"gpushare": "true", "pool": rng.choice("ab")}, "annotations": annotations},
            "spec": spec, "status": {"capacity": amounts, "allocatable": allocatable,
                                     "conditions": [{"type": "Ready", "status": "False" if rng.random() < 0.1 else "True"}]}}


def make_pod(rng, name, gib, nodes):
    """Asks for something, in any of the ways there are."""
    limits, labels, annotations, spec = {D + "gpu-mem": rng.randint(1, 16) * gib}, {}, {}, {}
    if rng.random() < 0.15:
        limits[D + "gpu-mem"] = 2 * rng.randint(1, 8) * gib
        labels[D + "gpu-count"] = "2"
    elif rng.random() < 0.25:
        limits[D + "gpu-core.percentage"] = rng.choice([20, 50, 100])
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
    requests = {"cpu": rng.choice(["100m", "1", "6"])}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "team", "labels": labels, "annotations": annotations},
            "spec": {**spec, "priority": rng.choice([0, 0, 10]), "schedulerName": "gpushare-scheduler",
                     "containers": [{"name": "c", "image": "x", "resources": {
                         "limits": {key: str(value) for key, value in limits.items()}, "requests": requests}}]},
            "status": {"phase": "Pending"}}


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
    pods = [make_pod(rng, f"p{i}", gib, nodes) for i in range(rng.randint(3, 13))]  # 16 are learnt from
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
    def __init__(self, build, items, policy="binpack", web=True, flags=()):
        self.build, self.folder, self.started = build, tempfile.mkdtemp(), []
        self.kubeconfig = os.path.join(self.folder, "kubeconfig")
        load = self.file("load.json", {"apiVersion": "v1", "kind": "List", "items": items})
        self.api, self.extender, self.web = free_port(), free_port(), free_port()
        self.start("gpushare-sim", "serve", "--listen", f"{HOST}:{self.api}", "--load", load, "--kubeconfig-out", self.kubeconfig)
        until(lambda: os.path.exists(self.kubeconfig) and os.path.getsize(self.kubeconfig))
        # the first bind would wait for those of a process before
        self.start("tests/extender_reconciling_often", "--kubeconfig", self.kubeconfig, "--policy", policy, "--listen", f"{HOST}:{self.extender}", *flags)
        until(lambda: request(self.extender, "GET", "/readyz")[0] == 200)
        if web:
            self.start("kubectl-inspect-gpushare", "web", "--server", f"http://{HOST}:{self.api}", "--no-token",
                       "--listen", f"{HOST}:{self.web}")
            until(lambda: request(self.web, "GET", "/rows")[0] == 200)

    def start(self, name, *args):
        self.started.append(Program([os.path.join(self.build, name), *args], os.path.join(self.folder, f"{os.path.basename(name)}.log")))
        self.started[-1].start()

    def close(self):
        for program in reversed(self.started):
            program.end()
        shutil.rmtree(self.folder)

    def file(self, name, tree):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(tree, out)
        return path

    def inspect(self, *args):
        run = subprocess.run([os.path.join(self.build, "kubectl-inspect-gpushare"), args[0], "--server", f"http://{HOST}:{self.api}",
                              *args[1:]], capture_output=True, text=True, timeout=60, check=False, env=FATAL)
        if run.returncode:
            raise RuntimeError(f"{args}: {run.stderr}")
        return run.stdout

    def verb(self, verb, tree):
        return request(self.extender, "POST", PREFIX + verb, tree)[1]

    def filter(self, pod, names):
        answer = self.verb("filter", {"Pod": pod, "Nodes": None, "NodeNames": names})
        if "NodeNames" not in answer:
            raise RuntimeError(f"filter: {answer}")
        return answer["NodeNames"] or []


def request(port, method, path, tree=None):
    """(status, document or text); (0, "") while nobody answers."""
    try:
        status, body = ask(port, method, path, tree)
    except OSError:
        return 0, ""
    return status, json.loads(body) if body.startswith(("{", "[")) else body


def until(done):
    wait_for("a program to serve", done)


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
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team"},
            "spec": {"schedulerName": "gpushare-scheduler", "tolerations": [{"key": "team", "operator": "Exists"}],
                     "containers": [{"name": "c", "image": "x", "resources": {"limits": {D + "gpu-mem": str(units)}}}]},
            "status": {"phase": "Pending"}}


def open_names(world):
    return [n["metadata"]["name"] for n in world["nodes"] if n["status"]["conditions"][0]["status"] == "True"
            and not n["spec"].get("unschedulable") and n["status"]["allocatable"][D + "gpu-mem"] != "0"]


def bind_many(world, programs, units, count, judge):
    """What was counted comes true: so many are bound, and no more."""
    names, bound = open_names(world), 0
    while bound <= count:
        made = request(programs.api, "POST", "/api/v1/namespaces/team/pods", sized(f"new-{bound}", units))[1]
        passed = programs.filter(made, names)
        if not passed:
            break
        scores = programs.verb("prioritize", {"Pod": made, "Nodes": None, "NodeNames": passed})
        best = max(scores, key=lambda s: s["Score"], default={"Host": passed[0]})["Host"]
        error = programs.verb("bind", {"PodName": made["metadata"]["name"], "PodNamespace": "team",
                                       "PodUID": made["metadata"]["uid"], "Node": best}).get("Error")
        if error:
            judge(f"bind of pod {bound} of {units} units", error, "")
            break
        bound += 1
    judge(f"pods of {units} units that are bound, of those that what-if counts", bound, count)


def rows_of(programs, query=""):
    return request(programs.web, "GET", "/rows" + query)[1]


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


def ask_about_page(world, programs, judge):
    """What takes no pods counts as not usable; the closest candidate takes some; every figure of the page is -o json's."""
    page, told = rows_of(programs), json.loads(programs.inspect("--output=json"))
    nodes = {node["metadata"]["name"]: node for node in world["nodes"]}
    judge("GPUs not usable", told["cluster"]["unusableGPUCount"], sum(map(shut_gpus, world["nodes"])))
    for wait in told["pending"]["items"]:
        if "missingGPU" in wait.get("closest", {}):
            pod = next(pod for pod in world["waiting"] if pod["metadata"]["name"] == wait["name"])
            judge(f"{wait['name']}: nearest miss is open", shut(nodes[wait["closest"]["node"]], pod), False)
    judge("page: figures", page["total"], told["cluster"])
    judge("page: unit", page["unit"], told["unit"])
    judge("page: namespaces", [(ns["name"], ns["usedGPU"], ns["podCount"]) for ns in page["shares"]],
          [(ns["name"], ns["usedGPU"], ns["podCount"]) for ns in told["namespaces"]])
    judge("page: nodes", page["nodes"], told["nodes"])
    judge("?ns=team: figures", rows_of(programs, "?ns=team")["total"],
          json.loads(programs.inspect("--output=json", "--namespace=team"))["cluster"])


def ask_about_sizes(world, programs, rng, judge):
    """What-if, the page and filter; then bind."""
    counts = {}
    for fit in rows_of(programs)["total"]["wouldFit"]:
        units, count = fit["requestedGPU"], fit["podCount"]
        size = units // world["gib"]
        text = programs.inspect("what-if", "--ignore-pending", "--policy", "binpack", "-o", "json", "--gpu-mem", f"{units}x100000")
        counts[units] = placed(text)
        judge(f"page: pods of {size} GiB that would fit", count, counts[units])
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


def one_world(build, rng, wrong, _):
    world, judge = make_world(rng), Judge(wrong)
    flags = []
    if rng.random() < 0.4:      # filter names one node to whom nothing is preferred: to those that are bound
        flags = ["--filter-names=one"]
        for pod in world["pods"]:
            pod["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "pool", "whenUnsatisfiable": "ScheduleAnyway"}]
    programs = Programs(build, world["nodes"] + world["pods"], flags=flags)
    try:
        listed = request(programs.api, "GET", "/api/v1/namespaces/team/pods")[1]["items"]
        of = {pod["metadata"]["name"]: pod for pod in listed}  # with UIDs and times
        world["waiting"] = [of[pod["metadata"]["name"]] for pod in world["waiting"]]
        ask_about_pods(world, programs, [n["metadata"]["name"] for n in world["nodes"]], judge)
        ask_about_page(world, programs, judge)
        ask_about_sizes(world, programs, rng, judge)
    finally:
        programs.close()
    return {"questions": judge.asked}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"answers": sys.modules[__name__]}))
