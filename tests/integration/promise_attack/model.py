# SPDX-License-Identifier: Apache-2.0
"""What filter's places for members of groups are, read from docs/contract.md and docs/pods.md: a slow model with
times between which something is so. It chooses no GPU: which one filter kept, inspect says."""

import time

import objects
from objects import KEYS, allowed, inventory, may_use, usable

KEPT_S, REFUSED_S = 5.0, 0.3
SLACK_S = 1.5       # by which the machine may be late


def gpus_of(obj):
    """Those that may take pods; all of them with their memory."""
    return [{**gpu, "usable": usable(obj, gpu)} for gpu in inventory(obj).values()]


class Pod(objects.Pod):
    """groups: all that it names, the strongest first."""

    def __init__(self, name, units, namespace="default", spec_group=None, labels=None, **more):
        spec = {} if spec_group is None else {"schedulingGroup": {"podGroupName": spec_group}}
        super().__init__(name, units, namespace, labels=labels, **more, **spec)
        told = [spec_group, *((labels or {}).get(key) for key in KEYS)]
        self.groups = [f"{namespace}/{one}" for one in told if one]
        self.group = self.groups[0] if self.groups else None
        self.hold, self.refused = None, False


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
        return name in self.nodes and may_use(pod.obj, self.nodes[name])

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
                             other.uid not in self.promises and allowed(other.obj, gpus[0]) and self.may_use(other, name) and
                             self.takes(gpus[0], sums.get(gpus[0]["idx"], [0, 0, 0]), other)):
                    for gpu in gpus:
                        self.add(sums, gpu["idx"], other)
        room = [gpu for gpu in gpus if allowed(pod.obj, gpu) and self.takes(gpu, sums.get(gpu["idx"], [0, 0, 0]), pod)]
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
