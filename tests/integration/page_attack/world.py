# SPDX-License-Identifier: Apache-2.0
"""A random cluster and, beside its objects, what they mean: nodes of GPUs of several models, pods that run, wait, leave or had
no place ever, of owners and none, names as long as Kubernetes lets them be, and words in annotations, labels, messages and
Events of somebody who would like to run a script. What things mean is read from docs/cli.md and docs/contract.md."""

import json
import time

from objects import IDX, new_plugin

D = "aliyun.com/"
GIB = 1 << 30
MODELS = ["NVIDIA A10", "NVIDIA A100-SXM4-80GB", "Tesla T4", "H100"]
HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "</pre><svg onload=alert(1)>", "&lt;b&gt;",
           "&#60;script&#62;", "</section></main><h1>x", "javascript:alert(1)", "<!--", "-->", "]]>", "%s%n%x", "\u202eevil",
           "\x1b[2J", "é" * 20, "${x}", "$(x)`x`", "a\tb\nc", "\u2028", "{{7*7}}", "?q=x&ns=y#z", "x=1;y", "+ +", "\\", "\U000e0041"]
KINDS = ["Job", "StatefulSet", "ReplicaSet", "RayCluster"]
ACTING = [(0, 0x1f), (0x7f, 0x9f), (0x61c, 0x61c), (0x200e, 0x200f), (0x2028, 0x202e), (0x2066, 0x2069), (0xe0000, 0xe0fff)]


def calm(text):
    """As docs/cli.md has it: `?` for every byte that could steer, and white space is a space."""
    said = ""
    for char in text:
        acts = any(first <= ord(char) <= last for first, last in ACTING)
        said += " " if char in "\t\n\v\f\r" else "?" * len(char.encode()) if acts else char
    return said


class Gpu:
    def __init__(self, node, idx, mem, model, uuid):
        self.node, self.idx, self.mem, self.model, self.uuid = node, idx, mem, model, uuid
        self.healthy = self.schedulable = True
        self.used = self.charged = 0

    def sum_up(self, pods):
        self.bytes = sum(pod.used[pod.gpus.index(self.idx)] for pod in pods if self.idx in pod.gpus)
        self.used = sum(pod.each for pod in pods if self.idx in pod.gpus)
        self.charged = sum(pod.each for pod in pods if self.idx in pod.gpus or (not pod.gpus and self.may_hold(pod)))

    def may_hold(self, pod):
        """One whose GPU nobody wrote down: on each that could hold it, on all where none could."""
        return self.mem >= pod.each or all(gpu.mem < pod.each for gpu in self.node.gpus)

    @property
    def usable(self):
        return self.healthy and self.schedulable and self.node.open

    @property
    def free(self):
        return max(0, self.mem - self.charged) if self.usable else 0


class Node:
    def __init__(self, name):
        self.name, self.gpus, self.pods = name, [], []
        self.ready, self.cordoned, self.plugin, self.inventory, self.tainted = True, False, True, True, False
        self.unit, self.address, self.told, self.limits = "GiB", "10.0.0.1", False, False

    @property
    def open(self):
        return self.ready and not self.cordoned and self.plugin and any(gpu.mem for gpu in self.gpus)     # 0 is nothing advertised

    def sum_up(self):
        for gpu in self.gpus:
            gpu.sum_up(self.pods)
        self.total = sum(gpu.mem for gpu in self.gpus)
        self.used = sum(pod.units for pod in self.pods)
        self.free = sum(gpu.free for gpu in self.gpus)
        if not self.inventory:                  # what kube-scheduler would let in
            self.free = min(self.free, max(0, self.total - self.used))
        self.largest = min(self.free, max([gpu.free for gpu in self.gpus], default=0))
        over = sum(max(0, gpu.used - gpu.mem) for gpu in self.gpus)
        self.unusable = max(0, self.total + over - self.used - self.free)       # what is missing to the total
        self.over = self.used + self.free + self.unusable - self.total
        self.shown = bool(self.pods) or self.total > 0

    def document(self):
        units = str(sum(gpu.mem for gpu in self.gpus))
        amounts = {"cpu": "64", "pods": "110", D + "gpu-mem": units, D + "gpu-count": str(len(self.gpus))}
        inventory = {"v": 1, "unit": self.unit, "gpus": [
            {"idx": gpu.idx, "uuid": gpu.uuid, "mem": gpu.mem, "model": gpu.model, "healthy": gpu.healthy, "schedulable": gpu.schedulable}
            for gpu in self.gpus], "reassignments": True}
        return {"kind": "Node", "apiVersion": "v1", "metadata": {
            "name": self.name, "uid": "node-" + self.name[:40], "labels": {"gpushare": "true"},
            "annotations": {D + "gpu-inventory": json.dumps(inventory), "note": HOSTILE[0]} if self.inventory else {}},
            "spec": {"unschedulable": self.cordoned, "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}] if self.tainted else []},
            "status": {"capacity": amounts, "allocatable": amounts if self.plugin else {**amounts, D + "gpu-mem": "0"},
                       "conditions": [{"type": "Ready", "status": "True" if self.ready else "False", "message": HOSTILE[1]}],
                       "addresses": [{"type": "InternalIP", "address": self.address}]}}


class Pod:
    def __init__(self, ns, name, uid, units, count, scale):
        self.ns, self.name, self.uid, self.units, self.count = ns, name, uid, units, count
        self.each = units // count
        self.given = self.each * GIB // scale
        self.node, self.gpus, self.owner, self.hash = None, [], "", ""
        self.created, self.message, self.phase, self.leaving = 0, "", "Running", False
        self.model, self.scheduler, self.used, self.peak, self.parts = "", "gpushare-scheduler", [], [], 1
        self.priority, self.init = 0, 0

    @property
    def asks(self):
        return f"{self.each} x{self.count}" if self.count > 1 else str(self.each)

    @property
    def known(self):
        return bool(self.node and self.node.told and self.gpus)

    def figures(self):
        """What `pods` says of it; what is not measured is not there."""
        figures = {"podCount": 1, "measuredPodCount": int(self.known), "requestedBytes": self.given * self.count, "wouldBlockPodCount": 0}
        if not self.known:
            return figures
        most = max(self.peak)
        advised = max(GIB, (most + most // 10 + GIB - 1) // GIB * GIB)
        if not self.node.limits or most < self.given:       # else a limit kept it down
            figures["recommendedBytes"] = self.count * (min(advised, self.given) if most <= self.given else advised)
        over = [(max(0, used - self.given), max(0, peak - self.given)) for used, peak in zip(self.used, self.peak)]
        return figures | {"usedBytes": sum(self.used), "peakBytes": sum(self.peak), "unusedBytes": sum(max(0, self.given - peak) for peak in self.peak),
                          "excessBytes": sum(now for now, _ in over), "peakExcessBytes": sum(ever for _, ever in over), "wouldBlockPodCount": int(most > self.given)}

    def document(self):
        main = [self.units - self.count * (self.parts - 1), *[self.count] * (self.parts - 1)]
        kind, _, owner = self.owner.partition("/")
        meta = {"name": self.name, "namespace": self.ns, "uid": self.uid, "labels": {"words": HOSTILE[2]}, "annotations": {"words": HOSTILE[3]},
                "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.created))}
        if self.count > 1:
            meta["labels"][D + "gpu-count"] = str(self.count)
        if self.gpus:
            meta["annotations"][IDX] = ",".join(map(str, self.gpus))
        if self.model:
            meta["annotations"][D + "gpu-model"] = self.model
        if self.leaving:
            meta["deletionTimestamp"] = "2026-01-02T03:04:05Z"
        if self.hash:
            meta["labels"]["pod-template-hash"] = self.hash
            kind, owner = "ReplicaSet", f"{owner}-{self.hash}"
        if self.owner:
            meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "o-" + owner, "controller": True}]
        spec = {"schedulerName": self.scheduler, "priority": self.priority, "containers": [
            {"name": f"c{i}", "resources": {"limits": {D + "gpu-mem": str(mem)}}} for i, mem in enumerate(main)]}
        if self.init:
            spec["initContainers"] = [{"name": "i", "resources": {"limits": {D + "gpu-mem": str(self.init)}}}]
        if self.node:
            spec["nodeName"] = self.node.name
        return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {
            "phase": self.phase, "conditions": [] if self.node else [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                                                       "message": self.message}],
            "containerStatuses": [{"name": "c0", "state": {"waiting": {"reason": "Err", "message": self.message}}}] if self.message and self.node else []}}


def long_name(rng, head, length):
    """A DNS subdomain of so many bytes."""
    name = head
    while len(name) < length - 1:
        name += rng.choice("abcdefghijklmnopqrstuvwxyz0123456789") if len(name) % 60 else "."
    return (name[:length - 1] + "z").replace("..", ".a").replace("-.", "-a")


class World:
    """nodes, GPUs of each at most, pods; many: of namespaces, owners and models more than a page has room for; scale: units of a GiB."""

    def __init__(self, rng, nodes, gpus, pods, plugins=False, many=False, scale=1):
        self.rng, self.nodes, self.pods, self.events, self.usage = rng, [], [], [], {}
        self.now, self.number, self.scale, self.many = int(time.time()), 0, scale, many
        self.model_names = rng.sample(MODELS, rng.randint(1, 3)) + [self.word("M")[:60] for _ in range(rng.randint(0, 2))]
        self.namespaces = [f"team-{i}" for i in range(rng.randint(1, 14))] + [long_name(rng, "ns-", 63).replace(".", "x")]
        if rng.random() < 0.3:
            self.namespaces.append("waits-only")
        if many:
            self.model_names += [f"model {i}" for i in range(40)]
            self.namespaces += [f"space-{i}" for i in range(260)]
        self.templates = [self.template(i) for i in range(200 if many else rng.randint(2, 8))]
        self.bare = Node("bare")        # no GPU
        for i in range(nodes):
            self.nodes.append(self.make_node(i, gpus))
        for _ in range(pods):
            self.pods.append(self.make_pod())
        for node in self.nodes:
            if plugins and rng.random() < 0.8 and node.open:
                node.told, node.limits = True, rng.random() < 0.5
            self.tell_events("Node", node.name)
        self.sum_up()

    def word(self, head=""):
        rng = self.rng
        return (head + (rng.choice(HOSTILE) if rng.random() < 0.7 else "") + rng.choice(["", " ", "x"])).strip("\x00")

    def make_node(self, i, most):
        rng = self.rng
        node = Node(rng.choice([f"n{i}", f"gpu-node-{i}.example", f"n{i:05d}"]) if rng.random() < 0.93 else long_name(rng, f"long-{i}-", 253))
        node.unit = "GiB" if self.scale == 1 else "MiB"
        model = rng.choice(self.model_names)
        gap = rng.choice([0, 0, 1, 2]) if most < 63 else 0     # where GPUs were removed
        for at in range(rng.randint(max(1, most // 2), most)):
            idx = at + (gap if at else 0)
            if rng.random() < 0.08:
                model = rng.choice(self.model_names)
            gpu = Gpu(node, idx, rng.choice([8, 16, 24, 80]) * self.scale if rng.random() < 0.98 else 0, calm(model), f"GPU-{i}-{idx}" + (rng.choice(HOSTILE)[:20] if rng.random() < 0.1 else ""))
            gpu.healthy, gpu.schedulable = rng.random() > 0.08, rng.random() > 0.08
            node.gpus.append(gpu)
        dice = rng.random()
        node.ready, node.cordoned, node.plugin, node.tainted = dice > 0.06, 0.06 < dice < 0.14, not 0.14 < dice < 0.18, rng.random() < 0.1
        node.address = self.word("10.0.0.") if rng.random() < 0.3 else f"10.0.0.{i % 250}"
        if not gap and rng.random() < 0.12 and node.gpus[0].mem and self.scale == 1:         # the original's plugin: no inventory, all GPUs alike
            node.inventory = False
            for gpu in node.gpus:
                gpu.mem, gpu.model, gpu.uuid, gpu.healthy, gpu.schedulable = node.gpus[0].mem, "", "", True, True
        return node

    def template(self, i):
        """Pods of one owner are alike."""
        rng, count = self.rng, self.rng.choice([1, 1, 1, 2])
        kind = rng.choice(KINDS + ["Deployment"])
        owner = f"{kind}/{rng.choice(['web', 'train', 'db'])}-{i}"
        if rng.random() < 0.2:
            owner = f"{rng.choice(KINDS)}/{self.word('o')[:200]}" if rng.random() < 0.5 else f"{'K' * 63}/{long_name(rng, 'o', 253)}"
        if rng.random() < 0.1:
            owner = ""
        return {"ns": rng.choice(self.namespaces), "owner": owner, "count": count, "units": count * rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 80, 200]) * self.scale,
                "parts": rng.choice([1, 1, 2]), "model": rng.choice(MODELS) if rng.random() < 0.2 else "", "priority": rng.choice([0, 0, 7]),
                "scheduler": "other" if rng.random() < 0.05 else "gpushare-scheduler", "init": rng.random() < 0.1}

    def make_pod(self):
        rng, how = self.rng, self.rng.choice(self.templates)
        self.number += 1
        units = max(how["units"], how["count"] * how["parts"])
        name = f"{rng.choice(['web', 'train', 'nb', 'job'])}-{self.number}"
        pod = Pod(how["ns"], name if rng.random() < 0.95 else long_name(rng, name + "-", 253), f"uid-{self.number}", units, how["count"], self.scale)
        pod.parts, pod.model, pod.scheduler, pod.priority = how["parts"], how["model"], how["scheduler"], how["priority"]
        pod.owner = calm(how["owner"])
        if how["owner"].startswith("Deployment/"):
            pod.hash = "7d9f"
        pod.raw_owner = how["owner"]
        pod.created = self.now - rng.choice([5, 100, 200, 5000, 20000, 100000, 300000]) - rng.randrange(5)
        pod.message = self.word("0/3 nodes are available: ") if rng.random() < 0.7 else ""
        if how["init"]:
            pod.init = pod.units
        room = [node for node in self.nodes if len(node.gpus) >= pod.count]
        if room and rng.random() < 0.6 and pod.ns != "waits-only":
            self.place(pod, rng.choice(room))
        else:
            pod.phase = "Pending"
        pod.leaving = rng.random() < 0.1
        if rng.random() < 0.05:
            pod.phase = rng.choice(["Succeeded", "Failed"])
        if rng.random() < 0.2:
            self.tell_events("Pod", pod.name)
        return pod

    def place(self, pod, node):
        rng = self.rng
        pod.node = node
        fits = [gpu.idx for gpu in node.gpus if gpu.mem >= pod.each]
        if len(fits) >= pod.count and rng.random() < 0.9:
            pod.gpus = sorted(rng.sample(fits, pod.count))
        most = rng.choice([pod.given, rng.randrange(1, int(pod.given * 1.3)) >> 20 << 20])
        pod.peak = [most, most // 2][:pod.count][::rng.choice([1, -1])]
        pod.used = [peak // rng.choice([1, 3]) for peak in pod.peak]

    def tell_events(self, kind, name):
        for i in range(self.rng.choice([0, 0, 1, 12])):
            self.events.append({"involvedObject": {"kind": kind, "name": name}, "reason": "GpuRemoved", "type": "Warning", "source": {"component": "gpushare-device-plugin" if i % 3 else "kubelet"},
                                "lastTimestamp": f"2026-01-02T00:00:{i:02d}Z", "message": self.word(f"event {i} ")})

    @property
    def live(self):
        return [pod for pod in self.pods if pod.phase not in ("Succeeded", "Failed")]

    @property
    def bound(self):
        known = set(map(id, self.nodes))
        return [pod for pod in self.live if pod.node and id(pod.node) in known]

    @property
    def waiting(self):
        return [pod for pod in self.live if not pod.node]

    @property
    def shown(self):
        return [node for node in self.nodes if node.shown]

    def sum_up(self):
        for node in self.nodes:
            node.pods = []
        for pod in self.bound:
            pod.node.pods.append(pod)
        for node in self.nodes:
            node.sum_up()
        self.usage.clear()
        for node in self.nodes:
            if node.told:
                self.usage[self.plugin_name(node)] = self.told_by(node)

    @staticmethod
    def plugin_name(node):
        return f"plugin-{node.name}"[:250]

    def told_by(self, node):
        return {"v": 1, "gpus": [{"id": gpu.idx, "usedBytes": gpu.bytes} for gpu in node.gpus], "pods": [
            {"namespace": pod.ns, "name": pod.name, "uid": pod.uid, "owner": pod.owner, "enforced": "dmem" if node.limits else "none",
             "enforcedMessage": self.word("r"), "allocatedBytes": pod.given,
             "gpus": [{"id": idx, "usedBytes": used, "peakBytes": peak} for idx, used, peak in zip(pod.gpus, pod.used, pod.peak)]}
            for pod in node.pods if pod.known]}

    def objects(self):
        yield self.bare_document()
        for node in self.nodes:
            yield node.document()
            if node.told:
                yield new_plugin(self.plugin_name(node), node.name)
        for pod in self.pods:
            yield self.pod_document(pod)
        yield {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "no-gpu", "namespace": "team-0", "uid": "no-gpu"},
               "spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending"}}

    @staticmethod
    def pod_document(pod):
        document = pod.document()
        if pod.raw_owner != pod.owner:          # as its author wrote it
            document["metadata"]["ownerReferences"][0]["name"] = pod.raw_owner.partition("/")[2]
        return document

    @staticmethod
    def bare_document():
        return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "bare", "uid": "bare"}, "spec": {},
                "status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]}}


def random_world(rng):
    size = rng.choice(["small"] * 6 + ["empty", "wide", "wide", "waits", "many", "MiB", "huge"])
    nodes, gpus, pods = {"small": (rng.randint(1, 6), 4, rng.randint(3, 40)), "empty": (rng.randint(0, 1), 2, 0),
                         "wide": (rng.randint(51, 130), 3, rng.randint(20, 150)), "waits": (2, 2, rng.randint(150, 500)),
                         "many": (rng.randint(60, 90), 2, rng.randint(600, 900)), "MiB": (rng.randint(1, 60), 4, rng.randint(3, 90)),
                         "huge": (70, 64, rng.randint(50, 200))}[size]
    if size == "huge":
        world = World(rng, 0, 64, 0)
        for i in range(nodes):
            node = world.make_node(i, 64)
            while len(node.gpus) < 62:
                idx = node.gpus[-1].idx + 1
                node.gpus.append(Gpu(node, idx, node.gpus[0].mem, node.gpus[0].model, f"GPU-{i}-x{idx}" if node.inventory else ""))
            world.nodes.append(node)
        world.pods = [world.make_pod() for _ in range(pods)]
        world.sum_up()
        return world
    return World(rng, nodes, gpus, pods, size in ("small", "MiB", "wide") and rng.random() < 0.7, size == "many", 1024 if size == "MiB" else 1)
