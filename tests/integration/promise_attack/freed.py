# SPDX-License-Identifier: Apache-2.0
"""Memory that was freed for an urgent pod. Between preempt's answer and the victim's end others ask preempt: by the dozen, about
a pod that the watch has not shown, about the same pod again after ten seconds; the table of pending pods is filled; the victim
goes while the watch lists again. Whoever is of the same or lower priority is not named the node, the urgent pod is, and what it
does not take in ten seconds is free."""

import collections
import json
import time

import tenant
from attack import live
from objects import new_node
from programs import Extender, wait_for
from tenant import SLACK_S

HELD_S = 10.0
ROUNDS, TABLE = 6, 1 << 16


class World(tenant.World):
    def __init__(self, build, rng, judge):   # pylint: disable=super-init-not-called
        self.rng, self.judge, self.serial = rng, judge, 0
        self.names = [f"n{at}" for at in range(ROUNDS)]
        self.api = tenant.Api([new_node(name, [16]) for name in [*self.names, "busy", "heard"]])
        self.victims = {name: self.put(self.new(16), name, 0) for name in [*self.names, "busy"]}
        self.counts, self.later = collections.Counter(), []
        self.one = Extender(build, self.api, "--nominate=false")
        self.programs = [self.one]

    def heard(self):
        mark = self.put(self.new(1), "heard", 0)
        wait_for("the watch to be heard", lambda: mark.name in self.one.get("/gpushare-scheduler/inspect/heard")[1])
        self.api.delete("pods", mark.key)

    def fits(self, pod, name):
        return name in (json.loads(self.one.ask("filter", {"Pod": pod.obj, "NodeNames": [name]})[1])["NodeNames"] or [])

    def preempt(self, pod, name="busy"):
        return name in json.loads(self.one.ask("preempt", {"Pod": pod.obj, "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": self.victims[name].uid}]}}})[1])["NodeNameToMetaVictims"]

    def others(self, count):
        pods = [self.put(self.new(16, priority=50)) for _ in range(count)]
        self.heard()
        for pod in pods:
            self.preempt(pod)

    def crowd(self, count, namespace="evil"):
        for _ in range(count):
            self.put(self.new(16, namespace))
        self.heard()

    def between(self, what, urgent, name):
        if what == "others":
            self.others(self.rng.choice([1, 20, 70]))
        elif what == "unshown":
            self.preempt(self.new(16, priority=100), name)
        elif what == "again":
            self.others(62)
            time.sleep(HELD_S)
            self.preempt(urgent, name)
            self.others(self.rng.choice([1, 20]))
        elif what == "full":
            self.crowd(TABLE)

    def goes(self, name, in_a_list):
        if not in_a_list:
            return self.api.delete("pods", self.victims[name].key)
        self.api.hold["pods"] = True
        self.api.forget("pods", self.victims[name].key)
        self.api.gone()
        time.sleep(0.6)     # the watches before end, and say nothing
        self.api.calm()

    def one_freed(self, name, what):
        before = self.serial + 1
        in_a_list = self.rng.random() < 0.3 and what != "full"
        urgent = self.new(16, "evil" if what == "full" else "honest", priority=100)
        says = f"{what}{', in a list' * in_a_list}"
        self.counts[says] += 1
        self.put(urgent)
        self.heard()
        if self.fits(urgent, name) or not self.preempt(urgent, name):
            self.judge(f"{says}: preempt does not name the node")
        self.between(what, urgent, name)
        went = time.monotonic()
        self.goes(name, in_a_list)
        self.heard()
        if what == "full":
            self.crowd(before, "honest")    # as many make room, the oldest
        lower = self.new(self.rng.choice([1, 16]), priority=self.rng.choice([0, 50, 100]))
        if self.fits(lower, name) and time.monotonic() - went < HELD_S:  # a full table takes long on a busy machine
            self.judge(f"{says}: a pod of priority {lower.priority} is named the node")
        if not self.fits(urgent, name):
            self.judge(f"{says}: the urgent pod is not named the node")
        self.later.append((time.monotonic() + HELD_S + SLACK_S, name, says))

    def rounds(self):
        for name in self.names:
            self.one_freed(name, "full" if name == self.names[-1] and self.rng.random() < 0.2 else
                           self.rng.choice(["nothing", "others", "unshown", "again"]))
        for due, name, says in self.later:
            time.sleep(max(0, due - time.monotonic()))
            if not self.fits(self.new(16), name):
                self.judge(f"{says}: what was freed is kept from others for more than {HELD_S} s")


def one_world(*args):
    return live(World(*args))
