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
| `-o json` | its sums | allocated + free + not usable = total; what takes no pods counts as not usable |
| `-o json` | all that the page shows | the page's figures: sums, nodes, GPUs, pods, namespaces, who waits and why |

What is wrong is printed with the seed of its world, and the exit status is 1."""

import argparse
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))
from harness.processes import free_port  # noqa: E402

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


def tolerates(pod, taint):
    for toleration in pod["spec"].get("tolerations", []):
        if toleration.get("key") not in (None, taint["key"]):
            continue
        if toleration["operator"] == "Exists" or toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def open_to(world, pod, node):
    """May the pod use this node, whatever its GPUs have?"""
    spec, status = node["spec"], node["status"]
    cordon = {"key": "node.kubernetes.io/unschedulable"}
    taints = [t for t in spec.get("taints", []) if t["effect"] != "PreferNoSchedule"]
    if spec.get("unschedulable") and not tolerates(pod, cordon):
        return False
    if not all(tolerates(pod, taint) for taint in taints):
        return False
    if any(node["metadata"]["labels"].get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return False
    used = sum(milli(p["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for p in world["pods"]
               if p["spec"].get("nodeName") == node["metadata"]["name"])
    asked = milli(pod["spec"]["containers"][0]["resources"]["requests"].get("cpu", "0"))
    return (status["conditions"][0]["status"] == "True" and status["allocatable"][D + "gpu-mem"] != "0"
            and used + asked <= milli(status["allocatable"]["cpu"]))


# ---- the programs ----

class Programs:
    def __init__(self, build, items, policy="binpack", web=True):
        self.build, self.folder = build, tempfile.mkdtemp()
        self.kubeconfig = os.path.join(self.folder, "kubeconfig")
        load = self.file("load.json", {"apiVersion": "v1", "kind": "List", "items": items})
        self.api, self.extender, self.web = free_port(), free_port(), free_port()
        self.started = [self.start("gpushare-sim", "serve", "--listen", f"127.0.0.1:{self.api}", "--load", load,
                                   "--kubeconfig-out", self.kubeconfig)]
        until(lambda: os.path.exists(self.kubeconfig) and os.path.getsize(self.kubeconfig))
        self.started += [self.start("gpushare-extender", "--kubeconfig", self.kubeconfig, "--policy", policy,
                                    "--listen", f"127.0.0.1:{self.extender}")]
        until(lambda: request(self.extender, "GET", "/readyz")[0] == 200)
        if not web:
            return
        self.started.append(self.start("kubectl-inspect-gpushare", "web", "--server", f"http://127.0.0.1:{self.api}", "--no-token",
                                       "--listen", f"127.0.0.1:{self.web}"))
        until(lambda: request(self.web, "GET", "/rows")[0] == 200)

    def start(self, name, *args):
        with open(os.path.join(self.folder, f"{name}.log"), "w", encoding="utf-8") as log:
            return subprocess.Popen([os.path.join(self.build, name), *args], stdout=log, stderr=log,
                                    env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})

    def close(self):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            process.wait()
        shutil.rmtree(self.folder)

    def file(self, name, tree):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(tree, out)
        return path

    def inspect(self, *args):
        run = subprocess.run([os.path.join(self.build, "kubectl-inspect-gpushare"), args[0], "--server", f"http://127.0.0.1:{self.api}",
                              *args[1:]], capture_output=True, text=True, timeout=60, check=False)
        if run.returncode:
            raise RuntimeError(f"{args}: {run.stderr}")
        return run.stdout

    def verb(self, verb, tree):
        return request(self.extender, "POST", f"/gpushare-scheduler/{verb}", tree)[1]

    def filter(self, pod, names):
        answer = self.verb("filter", {"Pod": pod, "Nodes": None, "NodeNames": names})
        if "NodeNames" not in answer:
            raise RuntimeError(f"filter: {answer}")
        return answer["NodeNames"] or []


def request(port, method, path, tree=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, None if tree is None else json.dumps(tree), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read().decode()
        return answer.status, json.loads(body) if body.startswith(("{", "[")) else body
    except OSError:
        return 0, ""
    finally:
        connection.close()


def until(done):
    for _ in range(600):
        if done():
            return
        time.sleep(0.05)
    raise RuntimeError("a program did not begin to serve")


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


def table(page, name):
    """Its rows, each a dictionary of its cells by the head before its unit."""
    found = next(one for one in page["tables"] if one["id"] == name)
    return [dict(zip([column["head"].split("(")[0] for column in found["columns"]], row)) for row in found["rows"]]


def shut(node, of=None):
    """Takes no new pod (or not that one), whatever its GPUs have."""
    cordoned = node["spec"].get("unschedulable") and (not of or "node.kubernetes.io/unschedulable" not in str(of["spec"].get("tolerations")))
    return bool(cordoned or node["status"]["conditions"][0]["status"] != "True"
                or node["status"]["allocatable"][D + "gpu-mem"] == "0")


def shut_gpus(node):
    meta = node["metadata"]["annotations"]
    closed = meta.get(D + "gpu-cordon", "").split(",")
    return sum(shut(node) or not gpu.get("healthy", True) or str(gpu["idx"]) in closed or gpu["uuid"] in closed
               for gpu in json.loads(meta[D + "gpu-inventory"])["gpus"])


def ask_about_sums(world, programs, judge):
    """allocated + free + not usable = total, of each node and of all; what takes no pods has nothing free and counts."""
    told = json.loads(programs.inspect("--output=json"))
    nodes = {node["metadata"]["name"]: node for node in world["nodes"]}
    for part in told["nodes"] + [told["cluster"]]:
        name = part.get("name", "cluster")
        judge(f"{name}: allocated + free + not usable", part["usedGPU"] + part["freeGPU"] + part["unusableGPU"],
              part["totalGPU"] + part["overcommittedGPU"])
        if name in nodes and shut(nodes[name]):
            judge(f"{name} takes no pods: free", part["freeGPU"], 0)
        if "devs" in part and not any(dev["usedGPU"] > dev["totalGPU"] for dev in part["devs"]) and not part["invalidIndexPods"]:
            judge(f"{name}: given beyond what its GPUs have", part["overcommittedGPU"], 0)
    judge("the sum of the nodes", {key: sum(node[key] for node in told["nodes"]) for key in SUMMED},
          {key: told["cluster"][key] for key in SUMMED})
    judge("GPUs not usable", told["cluster"]["unusableGPUCount"], sum(map(shut_gpus, world["nodes"])))
    for wait in told["pending"]["items"]:
        if "missingGPU" in wait.get("closest", {}):
            pod = next(pod for pod in world["waiting"] if pod["metadata"]["name"] == wait["name"])
            judge(f"{wait['name']}: nearest miss is open", shut(nodes[wait["closest"]["node"]], pod), False)


SUMMED = ["totalGPU", "usedGPU", "freeGPU", "unusableGPU", "overcommittedGPU", "invalidIndexGPU"]


def owner_of(pod):
    references = pod["metadata"].get("ownerReferences")
    return "Job/" + references[0]["name"] if references else ""


def ask_about_waits(world, page, told, judge):
    """A row for pods of one owner that ask for the same and wait for the same reason, that of the oldest first."""
    owners = {pod["metadata"]["name"]: owner_of(pod) for pod in world["pods"]}
    judge("owners of who waits", {w["name"]: w.get("owner", "") for w in told["pending"]["items"]},
          {w["name"]: owners[w["name"]] for w in told["pending"]["items"]})
    groups = {}
    for w in told["pending"]["items"]:
        near, name = w.get("closest", {}), w["name"]
        key = (owners[name] or name, w["message"], near.get("node", "-"), str(near.get("missingGPU", "-")))
        groups.setdefault(key, []).append(name)
    shown = {}
    for row in table(page, "waiting"):  # what differs in priority or in what it says of nodes stands in rows of its own
        key = (owners.get(row["POD"]) or row["POD"], row["MESSAGE"], row["CLOSEST"], row["MISSING"])
        shown[key] = shown.get(key, 0) + int(row["PODS"])
    judge("page: who waits, and why", shown, {key: len(names) for key, names in groups.items()})
    judge("page: the oldest first", list(shown), list(groups))
    judge("page: sum of who waits", [page["pending"][key] for key in ("podCount", "requestedGPU")],
          [told["pending"][key] for key in ("podCount", "requestedGPU")])


def ask_about_views(world, programs, judge):
    """A filter's sums are those of -n; a namespace's and an owner's view add up its pods."""
    told = json.loads(programs.inspect("--output=json", "--namespace=team"))
    page = rows_of(programs, "?ns=team")
    team = told["namespaces"][0] if told["namespaces"] else {"usedGPU": 0, "podCount": 0}
    judge("?ns=team: figures", page["total"], told["cluster"])
    judge("?ns=team: of pods that match", page["meant"]["usedGPU"], team["usedGPU"])
    views = {"namespace=team": (team["usedGPU"], team["podCount"], told["pending"]["requestedGPU"], told["pending"]["podCount"])}
    has = {}
    for node in told["nodes"]:
        for pod in [pod for dev in node["devs"] for pod in dev["pods"]] + \
                [{**pod, "usedGPU": pod["usedGPU"] * pod["gpuCount"]} for pod in node["invalidIndexPods"]]:
            has[pod["name"]] = has.get(pod["name"], 0) + pod["usedGPU"]
    for owner in {owner_of(pod) for pod in world["pods"]} - {""}:
        names = {pod["metadata"]["name"] for pod in world["pods"] if owner_of(pod) == owner}
        waits = [w for w in told["pending"]["items"] if w["name"] in names]
        placed = [has[name] for name in names if name in has]
        if placed or waits:
            views[f"owner=team/{owner}"] = (sum(placed), len(placed), None, len(waits))
    for address, should in views.items():
        page = rows_of(programs, "?" + address)
        said = [page["meant"]["usedGPU"], page["total"]["podCount"], page["pending"]["requestedGPU"], page["pending"]["podCount"]]
        if should[2] is None:
            said[2] = None
        judge(f"?{address}", tuple(said), should)


def ask_about_page(world, programs, judge):
    """Every figure of the page is one of -o json's."""
    page, told = rows_of(programs), json.loads(programs.inspect("--output=json"))
    judge("page: figures", page["total"], told["cluster"])
    judge("page: unit", page["unit"], told["unit"])
    judge("page: namespaces", [(ns["name"], ns["usedGPU"], ns["podCount"]) for ns in page["shares"]],
          [(ns["name"], ns["usedGPU"], ns["podCount"]) for ns in told["namespaces"]])
    ask_about_waits(world, page, told, judge)
    judge("page: nodes", page["nodes"], told["nodes"])


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


def one_world(build, seed, wrong):
    rng = random.Random(seed)
    world = make_world(rng)
    programs = Programs(build, world["nodes"] + world["pods"])
    asked = 0

    def judge(question, said, should):
        nonlocal asked
        asked += 1
        if said != should:
            wrong.append(f"seed {seed}: {question}: {said}, not {should}")
            print("WRONG", wrong[-1], flush=True)

    try:
        listed = request(programs.api, "GET", "/api/v1/namespaces/team/pods")[1]["items"]
        of = {pod["metadata"]["name"]: pod for pod in listed}  # with UIDs and times
        world["waiting"] = [of[pod["metadata"]["name"]] for pod in world["waiting"]]
        ask_about_pods(world, programs, [n["metadata"]["name"] for n in world["nodes"]], judge)
        ask_about_sums(world, programs, judge)
        ask_about_page(world, programs, judge)
        ask_about_views(world, programs, judge)
        ask_about_sizes(world, programs, rng, judge)
    finally:
        programs.close()
    return asked


def main(one_world, worlds):
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=worlds)
    parser.add_argument("--seconds", type=int, default=0)
    args = parser.parse_args()
    wrong, asked, number, end = [], 0, 0, time.monotonic() + args.seconds
    while number < args.worlds or time.monotonic() < end:
        asked += one_world(args.build, args.seed * 1000000 + number, wrong)
        number += 1
    print(f"note: seed {args.seed}, {number} worlds, {asked} questions, {len(wrong)} wrong")
    return 1 if wrong or not asked else 0


if __name__ == "__main__":
    sys.exit(main(one_world, worlds=4))
