# SPDX-License-Identifier: Apache-2.0
"""What filter's places for members of groups are, read from docs/contract.md and docs/pods.md: a slow model with
times between which something is so. It chooses no GPU: which one filter kept, inspect says."""

import itertools
import json
import time

MEM, CORES, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu-count"
INVENTORY, CORDON, IDX = "aliyun.com/gpu-inventory", "aliyun.com/gpu-cordon", "ALIYUN_COM_GPU_MEM_IDX"
KEYS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
KEPT_S, REFUSED_S = 5.0, 0.3
SLACK_S = 1.5       # by which the machine may be late
UIDS = itertools.count(1)


def node(name, sizes, labels=None, max_pods=None):
    gpus = [{"idx": at, "uuid": f"GPU-{name}-{at}", "mem": size, "memMiB": size * 1024, "healthy": True,
             "model": "NVIDIA A100-SXM4-80GB" if size > 16 else "Tesla T4", "schedulable": True,
             **({"maxPods": max_pods} if max_pods else {})} for at, size in enumerate(sizes)]
    return with_gpus({"kind": "Node", "apiVersion": "v1",
                      "metadata": {"name": name, "uid": "node-" + name, "annotations": {"aliyun.com/gpu-reassigned": "{}"},
                                   "labels": {"kubernetes.io/hostname": name, "gpushare": "true", **(labels or {})}},
                      "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, gpus)


def with_gpus(obj, gpus):
    obj["metadata"]["annotations"][INVENTORY] = json.dumps({"v": 1, "unit": "GiB", "gpus": gpus, "reassignments": True})
    total = {"cpu": "64", "memory": "256Gi", "pods": "500", MEM: str(sum(gpu["mem"] for gpu in gpus)),
             COUNT: str(len(gpus)), CORES: str(100 * len(gpus))}
    obj["status"].update({"capacity": total, "allocatable": dict(total)})
    return obj


def idx_of(obj):
    return [int(word) for word in obj["metadata"].get("annotations", {}).get(IDX, "").split(",") if word]


def gpus_of(obj):
    """Those that may take pods; all of them with their memory."""
    found = json.loads(obj["metadata"]["annotations"][INVENTORY])["gpus"]
    cordoned = (obj["metadata"]["annotations"].get(CORDON) or "").split(",")
    for gpu in found:
        gpu["usable"] = gpu["healthy"] and gpu["schedulable"] and str(gpu["idx"]) not in cordoned and \
            gpu["uuid"] not in cordoned
    return found


class Pod:
    """A pod, its object and what it asks for. groups: all that it names, the strongest first."""

    def __init__(self, name, units, namespace="default", count=1, percent=0, priority=0, spec_group=None, labels=None,
                 notes=None, selector=None):
        self.uid, self.name, self.namespace = f"uid-{next(UIDS)}-{name}", name, namespace
        self.share, self.count, self.percent, self.priority = units // count, count, percent, priority
        self.notes, self.selector = notes or {}, selector or {}
        labels = dict(labels or {})
        told = [spec_group, *(labels.get(key) for key in KEYS)]
        self.groups = [f"{namespace}/{one}" for one in told if one]
        self.group = self.groups[0] if self.groups else None
        if count > 1:
            labels[COUNT] = str(count)
        limits = {MEM: str(units), **({CORES: str(percent)} if percent else {})}
        self.obj = {"kind": "Pod", "apiVersion": "v1",
                    "metadata": {"name": name, "namespace": namespace, "uid": self.uid, "labels": labels,
                                 "annotations": dict(self.notes), "creationTimestamp": "2026-11-25T10:00:00Z"},
                    "spec": {"schedulerName": "default-scheduler", "priority": priority, "nodeSelector": self.selector,
                             "containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]},
                    "status": {"phase": "Pending"}}
        if spec_group is not None:
            self.obj["spec"]["schedulingGroup"] = {"podGroupName": spec_group}
        self.key = (namespace, name)
        self.node, self.gpus, self.hold, self.refused = None, (), None, False

    def allows(self, gpu):
        """Its lists of models and UUIDs."""
        for key, what, wanted in (("model", "model", True), ("model-deny", "model", False),
                                  ("uuid", "uuid", True), ("uuid-deny", "uuid", False)):
            words = [word for word in self.notes.get("aliyun.com/gpu-" + key, "").split(",") if word]
            if words and any(word.lower() in gpu[what].lower() for word in words) != wanted:
                return False
        return True


class Group:
    def __init__(self):
        self.asked, self.perhaps = set(), set()     # in this cycle; or in the last one, if this is another
        self.refused, self.last, self.when = False, (0, 0), {}


class Promise:
    def __init__(self, pod, node_name, asked):
        self.pod, self.node, self.gpus, self.asked = pod, node_name, (), asked
        self.group, self.unsure, self.disturbed = pod.group, False, ""


class Model:
    def __init__(self):
        self.nodes, self.pods, self.groups, self.promises = {}, {}, {}, {}     # by name, UID, key, UID

    # ---- times; a moment is (at the earliest, at the latest)

    def alive(self, promise, moment):
        """1 it is, 0 it is not, 0.5 nobody knows."""
        group = self.groups[promise.group]
        early, late = promise.asked[0] + KEPT_S, promise.asked[1] + KEPT_S + SLACK_S
        if group.refused:
            early = min(early, group.last[0] + REFUSED_S)
        if group.refused is True:
            late = min(late, group.last[1] + REFUSED_S + SLACK_S)
        if promise.unsure:
            early = 0
        return 0 if moment[0] > late else 1 if moment[1] < early else 0.5

    def living(self, moment, at_least=0.5, but=None):
        return [one for one in self.promises.values()
                if one.pod.uid != but and self.alive(one, moment) >= at_least]

    def bury(self):
        now = time.monotonic()
        for uid, one in list(self.promises.items()):
            if not self.alive(one, (now, now)):
                del self.promises[uid]

    def cycle(self, pod, moment):
        """Of its group, before it is judged: does a new cycle begin? The group."""
        group = self.groups.setdefault(pod.group, Group())
        mine = [one for one in self.promises.values() if one.group == pod.group]
        ends = [group.last[k] + (REFUSED_S if group.refused is True else KEPT_S) for k in (0, 1)]
        if group.refused == "maybe":
            ends[0] = group.last[0] + REFUSED_S
        if moment[0] > ends[1] + SLACK_S:                   # the last cycle is over
            for one in mine:
                del self.promises[one.pod.uid]
            group.asked, group.perhaps, group.refused = {pod.uid}, set(), False
        elif moment[1] >= ends[0]:                          # it may be
            group.perhaps |= group.asked
            group.asked, group.refused = {pod.uid}, group.refused and "maybe"
            for one in mine:
                one.unsure = True
        elif pod.uid in group.asked and moment[1] < group.when.get(pod.uid, (0, 0))[0] + 2 * KEPT_S:    # a new one for sure
            for one in mine:
                del self.promises[one.pod.uid]
            group.asked, group.perhaps, group.refused = {pod.uid}, set(), False
        elif pod.uid in group.asked | group.perhaps:
            group.perhaps |= group.asked
            group.asked, group.refused = {pod.uid}, group.refused and "maybe"
            for one in mine:
                one.unsure = True
        else:
            group.asked.add(pod.uid)
        group.when[pod.uid] = moment
        if pod.uid in self.promises:
            self.promises.pop(pod.uid)
        group.last = moment
        return group

    # ---- room

    def used(self, name):
        """{GPU: [units, percent, pods]} of who is bound there."""
        sums = {}
        for pod in self.pods.values():
            if pod.node == name:
                for gpu in pod.gpus:
                    self.add(sums, gpu, pod)
        return sums

    @staticmethod
    def add(sums, gpu, pod):
        account = sums.setdefault(gpu, [0, 0, 0])
        account[0] += pod.share
        account[1] += pod.percent
        account[2] += 1

    @staticmethod
    def takes(gpu, account, pod):
        return account[0] + pod.share <= gpu["mem"] and account[1] + pod.percent <= 100 and \
            account[2] + 1 <= gpu.get("maxPods", 1 << 30)

    def may_use(self, pod, name):
        obj = self.nodes.get(name)
        return bool(obj) and not obj["spec"].get("unschedulable") and all(
            obj["metadata"]["labels"].get(key) == value for key, value in pod.selector.items())

    def counts_against(self, promise, pod):
        """Of the same group whatever the priority: the next member is judged beside it."""
        return promise.pod.priority >= pod.priority or promise.group == pod.group

    def fits(self, pod, name, moment, at_least, holds):
        """Beside promises that are alive at least so surely. holds: every nominated pod counts on every GPU."""
        if name not in self.nodes:
            return False
        sums = self.used(name)
        for one in self.living(moment, at_least, pod.uid):
            if one.node == name and self.counts_against(one, pod):
                for gpu in one.gpus:
                    self.add(sums, gpu, one.pod)
        gpus = [gpu for gpu in gpus_of(self.nodes[name]) if gpu["usable"]]
        for other in self.pods.values():
            if not other.node and other.hold == name and other.uid != pod.uid and other.priority >= pod.priority:
                if holds or (len(gpus_of(self.nodes[name])) == 1 and other.count == 1 and gpus and
                             other.uid not in self.promises and other.allows(gpus[0]) and self.may_use(other, name) and
                             self.takes(gpus[0], sums.get(gpus[0]["idx"], [0, 0, 0]), other)):
                    for gpu in gpus:
                        self.add(sums, gpu["idx"], other)
        room = [gpu for gpu in gpus if pod.allows(gpu) and self.takes(gpu, sums.get(gpu["idx"], [0, 0, 0]), pod)]
        return len(room) >= pod.count

    def must_fit(self, pod, name, moment):
        return self.fits(pod, name, moment, 0.5, True)

    def can_fit(self, pod, name, moment):
        return self.fits(pod, name, moment, 1, False)

    def disturb(self, name, priority, why, group=None):
        """Who is promised a place there may lose it to another of higher priority; to one of its own group as well, where
        that one took it of others who are promised theirs still."""
        lower = [one for one in self.promises.values() if one.node == name and priority > one.pod.priority]
        for one in lower:
            if one.group != group or any(other.group != group for other in lower):
                one.disturbed = why
