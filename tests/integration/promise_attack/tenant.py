# SPDX-License-Identifier: Apache-2.0
"""One namespace does all that its users can do to a scheduler, several things at a time: pods with as many rules about
nodes, and texts as long, as an API server takes; pods on nodes by hand; budgets by the hundred; groups; webhooks that hold
Bindings and PATCHes up; an API server that answers no Event. Pods of another namespace are evaluated, bound and requeued
as alone: no answer takes longer than MOST_S, and no requeueing longer than one pass of PATCHes and a second. What filter
keeps for a member of a group ends in its time all the same."""

import asyncio
import collections
import json
import threading
import time

from api import Served
from attack import live
from objects import KEYS, Pod, new_node
from programs import Extender, wait_for

MOST_S = 2.0
KEPT_S = 5.0       # the place of a member of a group
SLACK_S = 1.5      # by which the machine may be late
KEY = "feature.node.kubernetes.io/cpu-cpuid.AVX512VNNI-%02d"
LABELS = {KEY % at: f"true-and-a-longer-value-of-a-label-{at}" for at in range(40)}


class Api(Served):
    """Webhooks hold up what is about one namespace, and Events are not answered, until it is over."""

    def __init__(self, objects):
        self.over, self.hold_s = threading.Event(), {}
        super().__init__(objects)

    async def answer(self, method, path, query, body, writer):
        held = method if "/namespaces/evil/pods/" in path else "events" if "/events" in path and method == "POST" else ""
        until = time.monotonic() + self.hold_s.get(held, 0)
        while time.monotonic() < until and not self.over.is_set():
            await asyncio.sleep(0.02)
        return await super().answer(method, path, query, body, writer)


def rules(count):
    return [{"key": KEY % (at % 40), "operator": "NotIn", "values": [f"true-and-a-longer-value-{value}" for value in range(4)]}
            for at in range(count)]


class World:
    def __init__(self, build, rng, judge):
        self.rng, self.judge, self.serial = rng, judge, 0
        self.names = [f"n{at}" for at in range(rng.choice([20, 100, 300]))]
        self.api = Api([new_node(name, [80] * 8, labels=LABELS) for name in self.names] +
                       [new_node(name, [16]) for name in ("own", "kept", "guarded")])
        self.bound = [self.put(Pod(f"b{at}", 16, "evil", labels={"app": f"a{at}", **LABELS}), self.names[at % 20], at // 20 % 8)
                      for at in range(200)]
        for gpu in range(8):
            self.put(Pod(f"full-{gpu}", 64, "evil"), "n0", gpu)
        self.one = Extender(build, self.api)
        self.programs = [self.one]
        self.counts = collections.Counter()

    def put(self, pod, name=None, gpu=None):
        if name:
            pod.bind(name, gpu)
        self.api.put(pod.obj)
        return pod

    def new(self, units, namespace="evil", **more):
        self.serial += 1
        return Pod(f"p{self.serial}", units, namespace, **more)

    def again(self, verb, bodies):
        """Until the round is over, of a thread of its own."""
        def run():
            while not self.api.over.is_set():
                for body in bodies:
                    try:
                        self.one.ask(verb, body)
                    except OSError:
                        return
                self.api.over.wait(0.2)
        threading.Thread(target=run, daemon=True).start()

    # ---- what a namespace can do

    def deed_rules(self):
        pods = [self.new(1) for _ in range(self.rng.choice([50, 300]))]
        for pod in pods:
            pod.obj["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": rules(60), "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]}}}
            self.put(pod)
        self.again("filter", [{"Pod": pod.obj, "NodeNames": ["n0"]} for pod in pods])

    def deed_budgets(self):
        for at in range(self.rng.choice([60, 400])):
            self.api.put({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {
                "name": f"b{at}", "namespace": "evil", "uid": f"b{at}"}, "status": {"disruptionsAllowed": 1}, "spec": {"selector": {
                    "matchExpressions": rules(self.rng.choice([1, 60]))}}})
        self.again("preempt", [{"Pod": self.new(80, priority=9).obj, "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": self.bound[at].uid}]} for at, name in enumerate(self.names[:20])}}])

    def deed_texts(self):
        for size in (1_000_000, 300_000, 60_000, 4_000) * 12:
            pod = self.new(1000)
            pod.obj["spec"]["schedulerName"] = "s" * (size // 2)
            pod.obj["metadata"]["ownerReferences"] = [{"apiVersion": "x/" + "v" * (size // 2), "kind": "X", "name": "n",
                                                       "uid": "u" * 64, "controller": True}]
            self.put(pod)

    def deed_bindings(self):
        self.api.hold_s["POST"] = 20
        for pod in [self.put(self.new(1)) for _ in range(self.rng.choice([48, 120]))]:
            threading.Thread(target=self.bind, args=(pod, "n1"), daemon=True).start()

    def deed_patches(self):
        self.api.hold_s["PATCH"] = self.rng.choice([0.4, 1.5, 20])
        for pod in [self.put(self.new(1, priority=self.rng.choice([0, 9]))) for _ in range(40)]:
            self.one.ask("filter", {"Pod": pod.obj, "NodeNames": ["n0"]})

    def deed_by_hand(self):
        self.api.hold_s["events"] = 20
        for _ in range(12):
            self.put(self.new(1), "n2")

    def deed_groups(self):
        self.again("filter", [{"Pod": self.new(9, labels={KEYS[0]: f"g{at}"}).obj, "NodeNames": [self.names[at % len(self.names)]]}
                              for at in range(300)])

    def bind(self, pod, name):
        try:
            return self.one.bind(pod, name)
        except OSError:
            return 0, ""

    # ---- the other namespace

    def timed(self, what, call, *args):
        began = time.monotonic()
        found = call(*args)
        took = time.monotonic() - began
        self.counts["longest_s"] = max(self.counts["longest_s"], round(took, 2))
        self.counts[what] += 1
        if took > MOST_S + (what == "requeue"):
            self.judge(f"{self.says}: {what} took {took:.1f} s")
        return found

    def schedule(self):
        pod = self.put(self.new(1, "honest"))
        asked = {"Pod": pod.obj, "NodeNames": self.names}
        for verb in ("filter", "prioritize"):
            self.timed(verb, self.one.ask, verb, asked)
        status, text = self.timed("bind", self.bind, pod, self.rng.choice(self.names[20:] or self.names[3:]))
        if status != 200 or json.loads(text)["Error"]:
            self.judge(f"{self.says}: bind says {status} {text[:200]}")
        if (answer := self.one.ask("filter", {"Pod": "p"}))[0] != 400:
            self.judge(f"{self.says}: a broken request is answered {answer}")

    def requeue(self):
        """From when memory comes free until the pod is touched."""
        full, waiter = self.put(self.new(16, "honest"), "own", 0), self.put(self.new(16, "honest"))
        wait_for("it is bound", lambda: full.name in self.one.get("/gpushare-scheduler/inspect/own")[1])
        self.one.ask("filter", {"Pod": waiter.obj, "NodeNames": ["own"]})
        time.sleep(0.5)
        self.api.delete("pods", full.key)
        self.timed("requeue", wait_for, "it is requeued", lambda: any(key == waiter.key for _, key, *_ in self.api.patches), 8)
        self.api.delete("pods", waiter.key)

    def guard(self, asker, allows):
        """A budget counts as it stands now: of the pod on the node that asker would have."""
        self.api.put({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "b", "namespace": "honest", "uid": "b"},
                      "spec": {"selector": {"matchLabels": {"app": "v"}}}, "status": {"disruptionsAllowed": allows}})
        wait_for(f"a budget that allows {allows} counts", lambda: json.loads(self.one.ask("preempt", {
            "Pod": asker.obj, "NodeNameToMetaVictims": {"guarded": {"Pods": [], "NumPDBViolations": 0}}})[1])
            ["NodeNameToMetaVictims"]["guarded"]["NumPDBViolations"] == 1 - allows)

    def is_kept(self, pod):
        return pod.uid in self.one.get("/gpushare-scheduler/inspect/kept")[1]

    def run(self):
        self.counts["worlds of " + type(self).__module__] = 1
        with self.one:
            try:
                self.rounds()
            finally:
                self.api.over.set()

    def rounds(self):
        self.put(Pod("victim", 16, "honest", labels={"app": "v"}), "guarded", 0)
        asker = self.new(16, "honest", priority=9)
        for allows in (0, 1):
            self.guard(asker, allows)
        self.api.gone()
        self.guard(asker, 0)
        deeds = [name for name in dir(self) if name.startswith("deed_")]
        deeds = self.rng.sample(deeds, self.rng.choice([1, 2, 3, len(deeds)]))
        self.says = " ".join(deed[5:] for deed in deeds)
        for deed in deeds:
            getattr(self, deed)()
            self.counts[deed[5:]] = 1
        self.bind(self.put(self.new(1, "honest")), self.names[-1])    # the first one waits for those of a process before
        member = self.put(self.new(1, "honest", schedulingGroup={"podGroupName": "g"}))
        wait_for("a member of a group has a place, once the watch has shown it", lambda: self.one.ask(
            "filter", {"Pod": member.obj, "NodeNames": ["kept"]}) and self.is_kept(member), 5)
        end = time.monotonic() + KEPT_S + SLACK_S
        while time.monotonic() < end:
            for _ in range(10):
                self.schedule()
            self.requeue()
        if self.is_kept(member):
            self.judge(f"{self.says}: the place of a member of a group is kept for more than {KEPT_S} s")


def one_world(*args):
    return live(World(*args))
