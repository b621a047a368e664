# SPDX-License-Identifier: Apache-2.0
"""Clusters full of pods with PodDisruptionBudgets of all kinds, and preempt asked about them. Which pods violate one is
read from kube-scheduler's filterPodsWithPDBViolation (pkg/scheduler/framework/preemption): no label, no budget; an empty
selector or none matches nobody; whom it says it disrupts already costs nothing."""

import json
import time

from api import Served
from attack import live
from objects import Pod, inventory, new_node
from programs import Extender, wait_for

ROUNDS = 12
SABOTAGE = ["counts none", "counts all", "spares none", "a victim more", "a proposed one stays", "no victims"]
EXPRESSIONS = [("In", ["a", "b"]), ("In", ["a"]), ("NotIn", ["a"]), ("NotIn", ["c", "d"]), ("Exists", None),
               ("DoesNotExist", None), ("Exists", [])]
JUNK = [{"spec": "x"}, {"status": []}, {"spec": {"selector": []}}, {"status": {"disruptionsAllowed": "1"}},
        {"spec": {"selector": {"matchLabels": {"app": 5}}}}, {"spec": None}, {"status": None},
        {"spec": {"selector": {"matchExpressions": {"a": 1}}}}, {"status": {"disruptionsAllowed": -1 << 31}},
        {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}}},
        {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}},
        {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]}}}, {"status": {"disruptionsAllowed": 1 << 70}},
        {"status": {"disruptedPods": ["p1"], "disruptionsAllowed": 0}}]


def selects(selector, labels):
    """As kube-scheduler has it for a budget. The API server lets no other operators in, and values where they belong."""
    if not labels or selector is None:
        return False
    parts = [(key, "In", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
    parts += [(one["key"], one["operator"], one.get("values") or []) for one in selector.get("matchExpressions") or []]
    if not parts:
        return False
    return all({"In": labels.get(key) in values, "NotIn": labels.get(key) not in values, "Exists": key in labels,
                "DoesNotExist": key not in labels}[how] for key, how, values in parts)


class World:
    def __init__(self, build, rng, judge, sabotage):
        self.rng, self.judge, self.sabotage = rng, judge, sabotage
        self.pods, self.budgets, self.nodes, self.counts, self.tail = {}, {}, {}, {}, []
        self.api = Served()
        self.exact = rng.random() < 0.6         # budgets that allow none or plenty: who violates is a fact
        if (begins := rng.choice([200] * 9 + [403, 404, 500])) != 200:
            self.api.refused["poddisruptionbudgets"] = begins, "no"
        for at in range(rng.randint(1, 3)):
            self.fill(f"n{at}", rng.choice([[16], [16, 16], [16, 16, 16], [24, 16, 8, 16]]))
        self.put_node(new_node("marker", [8]))
        self.mark = Pod("marked", 8, namespace="mark", labels={"mark": "yes"})
        self.put_bound(self.mark, "marker", 0)
        self.marks = 1      # the first one is a violation: no budget counted would be none
        self.one = Extender(build, self.api, "--nominate=false")
        self.programs = [self.one]

    def wrong(self, what, *words):
        tail = [] if self.counts.get("WRONG") else ["", *self.tail[-8:]]
        self.judge(what + ": " + " ".join(str(word) for word in words) + "\n    ".join(tail))
        self.counts["WRONG"] = self.counts.get("WRONG", 0) + 1

    def trace(self, *words):
        self.tail.append(f"{time.monotonic():.3f} " + " ".join(str(word) for word in words))
        del self.tail[:-30]

    def put_node(self, obj):
        self.api.put(obj)
        self.nodes[obj["metadata"]["name"]] = obj

    def put_bound(self, pod, name, gpu):
        pod.bind(name, gpu)
        self.pods[pod.uid] = pod
        self.api.put(pod.obj)

    def labels(self):
        rng, found = self.rng, {}
        for key in ("app", "tier", "x.io/y"):
            if rng.random() < 0.6:
                found[key] = rng.choice("abcd")
        return found

    def fill(self, name, sizes):
        self.put_node(new_node(name, sizes))
        rng, equal = self.rng, self.rng.random() < 0.5
        for gpu, size in enumerate(sizes):
            left = size
            while left > 0 and (left == size or rng.random() < 0.85):
                units = min(left, rng.choice([2, 4, 4, 8, 8, 16]))
                left -= units
                self.put_bound(Pod(f"p{len(self.pods)}", units, namespace=rng.choice("ab"), labels=self.labels(),
                                   priority=0 if equal else rng.choice([0, 0, 1, 2, 9])), name, gpu)

    # ---- budgets

    def put_budget(self):
        rng = self.rng
        name = f"b{rng.randrange(14)}"
        selector = rng.choice([None, {}, {"matchLabels": None}, {"matchLabels": {}, "matchExpressions": []}]) \
            if rng.random() < 0.15 else {}
        if selector == {}:
            if rng.random() < 0.7:
                selector["matchLabels"] = {key: rng.choice("abcd") for key in rng.sample(["app", "tier", "x.io/y"],
                                                                                        rng.choice([1, 1, 2]))}
            if rng.random() < 0.4 or not selector:
                selector["matchExpressions"] = []
                for _ in range(rng.choice([1, 1, 2])):
                    how, values = rng.choice(EXPRESSIONS)
                    selector["matchExpressions"].append({"key": rng.choice(["app", "tier", "x.io/y", "none"]), "operator": how,
                                                         **({"values": values} if values is not None else {})})
        names = [pod.name for pod in self.pods.values()]
        obj = {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1",
               "metadata": {"name": name, "namespace": rng.choice("abz"), "uid": "b-" + name},
               "spec": {"selector": selector, **rng.choice([{"minAvailable": 1}, {"maxUnavailable": "50%"}, {}])},
               "status": {"expectedPods": rng.choice([0, 3]), "disruptionsAllowed":
                          rng.choice([0, 0, 0, -1, -5, 1000, (1 << 31) - 1] if self.exact else [0, 1, 1, 2, 3, -1])}}
        if rng.random() < 0.3:
            obj["status"]["disruptedPods"] = {one: "2026-11-25T10:00:00Z" for one in rng.sample(names, min(3, len(names)))}
        if rng.random() < 0.1:
            obj.pop("status")                   # its controller has not seen it: it allows none
        if rng.random() < 0.05:
            obj["spec"].pop("selector")
        self.trace("budget", json.dumps(obj))
        self.api.put(obj)
        self.budgets[(obj["metadata"]["namespace"], name)] = obj

    def put_junk(self):
        """What no API server lets in, for a while: whatever it does, it is over then."""
        obj = {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1",
               "metadata": {"name": "junk", "namespace": "z", "uid": "b-junk"}, **self.rng.choice(JUNK)}
        self.trace("junk", json.dumps(obj))
        self.api.put(obj)
        time.sleep(1.5)
        self.api.delete("poddisruptionbudgets", ("z", "junk"))

    def sync(self, seconds=40):
        """The last of the changes has been heard: a budget of its own says so."""
        self.marks += 1
        allows = self.marks % 2
        self.api.put({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {
            "name": "mark", "namespace": "mark", "uid": "b-mark"}, "spec": {"selector": {"matchLabels": {"mark": "yes"}}},
            "status": {"disruptionsAllowed": allows}})

        def heard():
            asker = Pod("asker", 8, priority=100)
            _, text = self.ask({"Pod": asker.obj, "NodeNameToMetaVictims": {"marker": {"Pods": [], "NumPDBViolations": 0}}})
            found = (json.loads(text).get("NodeNameToMetaVictims") or {}).get("marker")
            return found and found["NumPDBViolations"] == 1 - allows
        wait_for("the budgets to be heard", heard, seconds)

    def ask(self, body):
        return self.one.ask("preempt", body, 20)

    def matching(self, pod):
        return [key for key, obj in self.budgets.items() if key[0] == pod.namespace and
                selects((obj.get("spec") or {}).get("selector"), pod.obj["metadata"].get("labels")) and
                pod.name not in ((obj.get("status") or {}).get("disruptedPods") or {})]

    def allowed(self, key):
        return (self.budgets[key].get("status") or {}).get("disruptionsAllowed", 0)

    def violates(self, pod):
        """A fact where all budgets allow none or plenty."""
        return any(self.allowed(key) <= 0 for key in self.matching(pod))

    def bounds(self, victims):
        """Of how many of these violate a budget; whoever is counted first may use what one allows."""
        kinds = [self.matching(pod) for pod in victims]
        most = sum(any(self.allowed(key) < 1000 for key in keys) for keys in kinds)
        least = max([sum(key in keys for keys in kinds) - max(self.allowed(key), 0) for key in self.budgets] + [0])
        if self.exact:
            least = most = sum(map(self.violates, victims))
        return least, most

    # ---- asking and judging

    def clears(self, pod, name, gone):
        gone = {one.uid for one in gone}
        for gpu in inventory(self.nodes[name]).values():
            used = sum(one.share for one in self.pods.values() if one.node == name and one.gpus == (gpu["idx"],) and
                       one.uid not in gone)
            if used + pod.share <= gpu["mem"]:
                return True
        return False

    def preempt(self):
        rng = self.rng
        pod = Pod("asker", rng.choice([4, 8, 12, 16]), namespace=rng.choice("ab"), priority=rng.choice([5, 5, 100]))
        proposed = {}
        for name in self.nodes:
            if name == "marker":
                continue
            lower = [one for one in self.pods.values() if one.node == name and one.priority < pod.priority]
            some = rng.sample(lower, min(len(lower), rng.choice([0, 0, 0, 1, 2])))
            proposed[name] = {"Pods": [{"UID": one.uid} for one in some], "NumPDBViolations": self.bounds(some)[1]}
        self.counts["preempt"] = self.counts.get("preempt", 0) + 1
        status, text = self.ask({"Pod": pod.obj, "NodeNameToMetaVictims": proposed})
        if status != 200:
            return self.wrong("preempt answers", status, text[:200])
        answer = json.loads(text)
        self.trace("preempt", pod.share, pod.priority, json.dumps(proposed), "->", text)
        answer = answer.get("NodeNameToMetaVictims") or {}
        for name, offered in proposed.items():
            if self.sabotage == "no victims":
                answer.pop(name, None)
            self.judge_node(pod, name, [self.pods[one["UID"]] for one in offered["Pods"]], answer.get(name))
        return None

    def alter(self, name, found, pod):
        stays = [one for one in self.pods.values() if one.node == name and
                 one.uid not in {victim["UID"] for victim in found["Pods"]} and one.priority < pod.priority]
        if self.sabotage == "counts none":
            found["NumPDBViolations"] = 0
        elif self.sabotage == "counts all":
            found["NumPDBViolations"] = len(found["Pods"])
        elif self.sabotage == "a victim more" and stays:
            found["Pods"].append({"UID": stays[0].uid})
            found["NumPDBViolations"] += self.violates(stays[0])
        elif self.sabotage == "spares none" and self.exact:
            guarded = [one for one in self.pods.values() if one.node == name and one.gpus == (0,) and one.priority < pod.priority]
            if self.clears(pod, name, guarded):
                found["Pods"] = [{"UID": one.uid} for one in guarded]
                found["NumPDBViolations"] = self.bounds(guarded)[0]
        elif self.sabotage == "a proposed one stays" and found["Pods"]:
            found["Pods"].pop()

    def judge_node(self, pod, name, offered, found):
        lower = [one for one in self.pods.values() if one.node == name and one.priority < pod.priority]
        if not found:
            if self.clears(pod, name, lower) and (offered or not self.clears(pod, name, [])):
                self.wrong("a node with room for it is left out", name, pod.share, pod.priority)
            return
        self.alter(name, found, pod)
        victims = [self.pods.get(one["UID"]) for one in found["Pods"]]
        if None in victims or any(one not in lower for one in victims):
            return self.wrong("a victim of no lower priority, or of elsewhere", name, found)
        if any(one not in victims for one in offered):
            self.wrong("what kube-scheduler proposed stays", name, found, [one.uid for one in offered])
        if not self.clears(pod, name, victims):
            self.wrong("it does not fit then", name, found)
        added = [one for one in victims if one not in offered]
        for one in added:
            if self.clears(pod, name, [other for other in victims if other is not one]):
                self.wrong("a victim that is not needed", name, one.name)
        least, most = self.bounds(victims)
        if not least <= found["NumPDBViolations"] <= most:
            self.wrong("violations", found["NumPDBViolations"], f"not {least} to {most}", name,
                       [(one.name, self.matching(one), one.obj["metadata"]["labels"]) for one in victims])
        if self.exact and any(map(self.violates, added)) and \
                self.clears(pod, name, offered + [one for one in lower if not self.violates(one)]):
            self.wrong("a budget is violated, and need not be", name, [one.name for one in added if self.violates(one)])
        return None

    # ---- troubles

    def trouble(self):
        rng, what = self.rng, self.rng.choice(["410", "away", "many", "gone", "pod", "delete", *(["junk"] if self.rng.random() < 0.3 else [])])
        self.trace("trouble", what)
        if what == "410":
            self.api.expired["poddisruptionbudgets"] = rng.choice([1, 3])
            self.api.cut(lambda *_: True)
        elif what == "away":
            self.api.away = True
            time.sleep(rng.choice([0.2, 1]))
            self.api.away = False
        elif what == "junk":
            self.put_junk()
        elif what == "many":
            for at in range(200):
                self.api.put({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {
                    "name": f"many{at}", "namespace": "many", "uid": f"many{at}"},
                    "spec": {"selector": {"matchLabels": {"app": "a"}}}, "status": {"disruptionsAllowed": 0}})
        elif what == "gone" and self.budgets:
            key = rng.choice(list(self.budgets))
            del self.budgets[key]
            self.api.delete("poddisruptionbudgets", key)
        elif what in ("pod", "delete") and len(self.pods) > 3:
            pod = rng.choice([one for one in self.pods.values() if one is not self.mark])
            if what == "pod":               # its owner writes other labels
                pod.obj["metadata"]["labels"] = self.labels()
                self.api.put(pod.obj)
            else:
                del self.pods[pod.uid]
                self.api.delete("pods", pod.key)
            self.heard_pods()

    def heard_pods(self):
        """Pods' watch is another stream than the budgets'."""
        name = f"h{len(self.pods)}.{time.monotonic_ns()}"
        self.put_node(new_node("heard", [64]))
        pod = Pod(name, 1, namespace="mark")
        self.put_bound(pod, "heard", 0)
        wait_for("the pods to be heard", lambda: name in self.one.get("/gpushare-scheduler/inspect/heard")[1])
        del self.pods[pod.uid], self.nodes["heard"]
        self.api.delete("pods", pod.key)

    def run(self):
        with self.one:
            if self.api.refused:
                self.preempt_unseen()
                self.api.refused.clear()
            self.sync(90)
            for _ in range(ROUNDS):
                for _ in range(self.rng.choice([0, 1, 1, 3])):
                    self.put_budget()
                if self.rng.random() < 0.25:
                    self.trouble()
                self.sync()
                for _ in range(6):
                    self.preempt()
                if self.counts.get("WRONG", 0) >= 3 or not self.one.alive():
                    break
            self.counts["rss"] = self.one.memory_kib() if self.one.alive() else 0
        if self.one.status != 0:
            self.wrong("it ended with", self.one.status, self.one.said()[-1500:])

    def preempt_unseen(self):
        """Budgets may not be read: none counts, and the metric says so."""
        if told := self.one.metrics()["gpushare_disruption_budgets"]:
            self.wrong("budgets are counted that nobody may read", told)
        self.preempt()


def one_world(*args):
    return live(World(*args))
