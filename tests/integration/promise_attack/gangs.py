# SPDX-License-Identifier: Apache-2.0
"""One after the other, what kube-scheduler, tenants and operators do about groups of pods, in every wrong order, and
after each step what model.py says of it. The API server does what it is told; watches are waited for."""

import copy
import json
import signal
import time

import model
from api import Served
from attack import live
from model import KEYS, Model, Pod, Promise
from objects import CORDON, IDX, inventory, new_node, record_of, set_inventory
from programs import NOT_NOW, PREFIX, Extender, wait_for

STEPS = 90
SIZES = [[8], [16], [24], [8, 8], [16, 6], [16, 16], [24, 24, 8], [16, 16, 16, 16]]
HELD = "reserved for a nominated pod"
SABOTAGE = ["names two", "outlives", "forgets", "uncounted", "refuses", "over-books", "steals", "starves",
            "double", "plain differs", "objects keep"]


class World:
    def __init__(self, build, rng, judge, sabotage):
        self.rng, self.judge, self.sabotage = rng, judge, sabotage
        self.model, self.tail, self.serial, self.counts = Model(), [], 0, {}
        self.nominates = rng.random() < 0.3
        self.api = Served()
        self.api.on_apply = self.judge_binding
        for at in range(rng.randint(1, 5)):
            self.put_node(new_node(f"n{at}", rng.choice(SIZES), labels={"zone": rng.choice("ab")},
                                   max_pods=3 if rng.random() < 0.1 else None))
        self.api.put(new_node("marker", [1000]))
        self.marker, self.marks = None, 0
        flags = [] if self.nominates else ["--nominate=false"]
        if rng.random() < 0.5:
            flags += ["--policy", rng.choice(["binpack", "spread", "rollout"])]
        self.single = rng.random() < 0.3        # each pod without a group is one by itself
        self.one = Extender(build, self.api, *flags, "--filter-names", "one" if self.single else "all")
        self.control = Extender(build, self.api, "--nominate=false", *[f for f in flags if "nominate" not in f])
        self.inspected, self.programs = {}, [self.one, self.control]

    # ---- saying

    def trace(self, *words):
        self.tail.append(f"{time.monotonic():.3f} " + " ".join(str(word) for word in words))
        del self.tail[:-60]

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def wrong(self, what, *words):
        tail = [] if self.counts.get("WRONG") else ["", *self.tail[-25:]]
        self.judge(what + ": " + " ".join(str(word) for word in words) + "\n    ".join(tail))
        self.count("WRONG")

    # ---- the API

    def put_node(self, obj):
        self.api.put(obj)
        self.model.nodes[obj["metadata"]["name"]] = obj

    def put_pod(self, pod):
        if self.single and not pod.group:
            pod.group, pod.groups = pod.uid, [""]
        self.api.put(pod.obj)
        self.model.pods[pod.uid] = pod

    def judge_binding(self, obj):
        """Under the API's lock: the object is as it will be."""
        if self.sabotage == "over-books" and record_of(obj) == [1]:
            obj["metadata"]["annotations"][IDX] = "0"
        if self.sabotage == "steals" and (theirs := self.model.living((time.monotonic(),) * 2, 1, obj["metadata"]["uid"])):
            for one in theirs:
                if one.node == obj["spec"]["nodeName"] and len(record_of(obj)) == 1:
                    obj["metadata"]["annotations"][IDX] = str(one.gpus[0])
        pod, name = self.model.pods.get(obj["metadata"]["uid"]), obj["spec"]["nodeName"]
        if not pod or name not in self.model.nodes:
            return self.wrong("a Binding of nobody's", obj["metadata"], name)
        sums = self.model.used(name)
        gpus = {gpu["idx"]: gpu for gpu in model.gpus_of(self.model.nodes[name])}
        if len(record_of(obj)) != pod.count:
            self.wrong("another number of GPUs", pod.name, record_of(obj))
        for gpu in record_of(obj):
            if gpu not in gpus or not self.model.takes(gpus[gpu], sums.get(gpu, [0, 0, 0]), pod):
                self.wrong("OVER-BOOKED", pod.name, name, gpu, sums.get(gpu), gpus.get(gpu))
        pod.node, pod.gpus, pod.obj = name, record_of(obj), obj
        return None

    def sync(self):
        """Both extenders have heard all that was so far."""
        self.marks += 1
        if self.marker:
            self.api.delete("pods", ("default", "marker"))
        self.marker = Pod("marker", self.marks % 900 + 1).bind("marker", 0).obj
        self.api.put(self.marker)
        size = 1000 + self.marks
        self.api.put(new_node("marker", [size]))
        for one in (self.one, self.control):
            def heard():
                status, text = one.get(PREFIX + "inspect/marker")
                dev = json.loads(text)["nodes"][0]["devs"] if status == 200 else []
                return dev and dev[0]["totalGPU"] == size and dev[0]["usedGPU"] == self.marks % 900 + 1
            wait_for("the watch to be heard", heard)

    # ---- asking

    def ask(self, verb, body, who=None):
        self.count(verb)
        began = time.monotonic()
        status, text = (who or self.one).ask(verb, body, 12)
        moment = (began, time.monotonic())
        if status != 200:
            self.wrong(f"{verb} answers {status}", text[:300])
        return moment, text

    def names(self):
        return sorted(self.model.nodes)

    def filter(self, pod, names=None, objects=False):
        """Asked and judged; the nodes that it names."""
        names = [name for name in names or self.names() if self.model.may_use(pod, name)]
        if not names:
            return []
        body = {"Pod": copy.deepcopy(pod.obj), "NodeNames": None if objects else names,
                "Nodes": {"items": [self.model.nodes[name] for name in names]} if objects else None}
        if self.sabotage == "objects keep" and objects:
            body.update(NodeNames=names, Nodes=None)
        moment, text = self.ask("filter", body)
        answer = json.loads(text)
        if self.sabotage == "double" and pod.group and not objects and answer.get("FailedNodes") and \
                not answer.get("NodeNames"):
            answer["NodeNames"] = [next(iter(answer["FailedNodes"]))]
        if self.sabotage == "names two" and pod.group and not objects and answer.get("NodeNames"):
            answer["NodeNames"] = names[:2]
        if objects and not answer.get("NodeNames"):
            named = [one["metadata"]["name"] for one in (answer.get("Nodes") or {}).get("items") or []]
        else:
            named = answer.get("NodeNames") or []
        failed = {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
        self.trace("filter", pod.name, pod.group, "prio", pod.priority, pod.share, "x", pod.count, f"{pod.percent}%",
                   "objects" if objects else "", names, "->", named, {n: r[:40] for n, r in failed.items()})
        if answer.get("Error"):
            if not any(word in answer["Error"] for word in NOT_NOW):
                self.wrong("filter's Error", answer["Error"])
            return []
        if not set(named) <= set(names):
            self.wrong("filter names what nobody asked about", named)
        member = pod.group and not objects
        group = self.model.cycle(pod, moment) if member else None
        if member and len(named) > 1:
            self.wrong("a member gets several nodes", pod.name, named)
        if objects:         # they are judged by the objects, and the ledger: no more is known here
            self.inspect()
            return named
        for name in named:
            if not self.model.can_fit(pod, name, moment):
                self.wrong("filter says yes, and it does not fit", pod.name, name, self.model.used(name))
        for name in failed if not (member and named) else ():
            if self.nominates and HELD in failed[name]:
                continue        # perhaps for a pod that it nominates this very moment
            if name in names and not pod.node and self.model.must_fit(pod, name, moment):
                self.wrong("filter says no, and it fits", pod.name, name, failed[name], self.model.used(name))
        if set(failed) | set(named) != set(names) and not (member and named):
            self.wrong("not a word about some nodes", names, named, failed)
        pod.refused = not named
        if member:
            group.refused = True if not named else group.refused
            if named:
                self.model.promises[pod.uid] = Promise(pod, named[0], moment)
                self.model.disturb(named[0], pod.priority, "promised to " + pod.name, pod.group)
            self.inspect()
        return named

    def inspect(self):
        """What it says is kept is what the model says; the metric counts them."""
        began = time.monotonic()
        doc = self.one.inspect()
        moment = (began, time.monotonic())
        shown = {}
        for node in doc["nodes"]:
            for one in node.get("reservations") or []:
                shown[one["uid"]] = {**one, "node": node["name"]}
            if node["name"] != "marker" and node["name"] in self.model.nodes:
                used = self.model.used(node["name"])
                for dev in node["devs"]:
                    if dev["usedGPU"] != used.get(dev["id"], [0])[0]:
                        self.wrong("inspect's usedGPU", node["name"], dev, used)
        self.alter(shown)
        self.inspected = shown
        for uid, one in shown.items():
            known = self.model.promises.get(uid)
            if known and not self.model.alive(known, moment) and one["millisecondsLeft"] == 0:
                self.count("ended late")        # by the machine's fault; late.py asks for more
            elif not known or not self.model.alive(known, moment):
                self.wrong("a place is kept that is over", one, known and vars(self.model.groups[known.group]))
                continue
            if one["node"] != known.node or len(one["gpus"]) != known.pod.count or \
                    one["requestedGPU"] != known.pod.share:
                self.wrong("another place than filter said", one, known.node, known.pod.share, known.pod.count)
            if one["group"] not in known.pod.groups:
                self.wrong("a group of nobody's", one, known.pod.groups)
            if known.gpus and list(known.gpus) != one["gpus"]:
                self.wrong("it moved", one, known.gpus)
            known.gpus = one["gpus"]
            if not 0 <= one["millisecondsLeft"] <= 5000:
                self.wrong("time that nobody has", one)
        for uid, known in list(self.model.promises.items()):
            if uid not in shown:
                if self.model.alive(known, moment) == 1:
                    self.wrong("a place was promised and is not kept", known.pod.name, known.node, known.group)
                del self.model.promises[uid]
        for one in self.model.living(moment, 1):
            self.over_promised(one)
        told = self.one.metrics()["gpushare_reserved_pods"] if self.sabotage != "uncounted" else len(shown) + 1
        now = time.monotonic()
        sure = len([one for one in self.model.promises.values() if self.model.alive(one, (began, now)) == 1])
        if not sure <= told <= len(shown):
            self.wrong("gpushare_reserved_pods", told, len(shown), sure)

    def alter(self, shown):
        now = (time.monotonic(),) * 2
        if self.sabotage == "outlives":
            for uid, one in self.inspected.items():
                shown.setdefault(uid, one)
        elif self.sabotage == "forgets" and self.model.living(now, 1):
            shown.pop(self.model.living(now, 1)[0].pod.uid, None)

    def over_promised(self, one):
        """Its GPUs hold it, who is bound there, and every other that counts against it."""
        sums = self.model.used(one.node)
        for other in self.model.living((time.monotonic(),) * 2, 1):
            if other.node == one.node and (other is one or not other.disturbed and
                                           self.model.counts_against(other, one.pod)):
                for gpu in other.gpus:
                    self.model.add(sums, gpu, other.pod)
        for gpu in model.gpus_of(self.model.nodes[one.node]) if one.node in self.model.nodes else ():
            left = sums.get(gpu["idx"], [0, 0, 0])
            if gpu["idx"] in one.gpus and not one.disturbed and (left[0] > gpu["mem"] or left[1] > 100 or
                                                                left[2] > gpu.get("maxPods", 1 << 30)):
                self.wrong("PROMISED TWICE", one.pod.name, one.node, gpu["idx"], left, gpu["mem"])

    def bind(self, pod, name):
        known = self.model.promises.get(pod.uid)
        fitted = self.model.must_fit(pod, name, (time.monotonic(),) * 2)
        moment, text = self.ask("bind", {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": name})
        error = json.loads(text)["Error"]
        if self.sabotage == "refuses" and known and not error:
            error = "no"
        self.trace("bind", pod.name, name, "promised" if known else "", known and known.node, "->", error[:100] or pod.gpus)
        kept = known and known.node == name and self.model.alive(known, moment) == 1 and not known.disturbed
        may = self.model.may_use(pod, name)
        if error:
            if any(word in error for word in NOT_NOW) or pod.node:
                return False
            if kept and may:
                self.wrong("a promised member is refused", pod.name, name, error)
            elif fitted and may and self.model.must_fit(pod, name, moment) and not (self.nominates and HELD in error):
                self.wrong("bind says no, and it fits", pod.name, name, error)
            if known:
                known.unsure = True
            return False
        if pod.node != name:
            self.wrong("bind says yes, and it is not so", pod.name, name, pod.node)
        if kept and sorted(known.gpus) != sorted(pod.gpus):
            self.count("bound to other GPUs than promised")
        self.model.promises.pop(pod.uid, None)
        self.model.disturb(name, pod.priority, "bound " + pod.name, pod.group)
        for one in self.model.living(moment, 1):
            if one.node == name and self.model.counts_against(one, pod):
                self.over_promised(one)
        self.count("bound")
        return True

    # ---- steps

    def new_pod(self, group=None, **more):
        self.serial += 1
        rng = self.rng
        units = rng.choice([2, 4, 6, 8, 10, 12, 16])
        count = 2 if rng.random() < 0.12 and units % 2 == 0 else 1
        more.setdefault("priority", rng.choice([0, 0, 0, 5, 10]))
        words = {}
        if rng.random() < 0.1:
            words = rng.choice([{"aliyun.com/gpu-model": "a100"}, {"aliyun.com/gpu-model-deny": "T4"},
                                {"aliyun.com/gpu-uuid": "GPU-n0-0,GPU-n1-1"}, {"aliyun.com/gpu-uuid-deny": "GPU-n0-0"}])
        labels = {}
        if group:
            how = rng.random()
            if how < 0.4:
                more["spec_group"] = group
            elif how < 0.75:
                labels[rng.choice(KEYS)] = group
            else:
                more["spec_group"] = group
                labels[rng.choice(KEYS)] = rng.choice([group, group, "", "other"])
        elif rng.random() < 0.2:
            labels[rng.choice(KEYS)] = ""
        pod = Pod(f"p{self.serial}", more.pop("units", units), namespace=more.pop("namespace", rng.choice("ab")), count=count,
                  percent=rng.choice([0, 0, 30, 60]) if count == 1 else 0, labels=labels, notes=words,
                  nodeSelector={"zone": rng.choice("ab")} if rng.random() < 0.1 else {}, **more)
        self.put_pod(pod)
        return pod

    def gang(self):
        """Of one namespace; half the time of one size."""
        rng = self.rng
        name = rng.choice(["g0", "g1", "g2", "x" * 63 if rng.random() < 0.2 else "g3", f"g{self.serial}"])
        more = {"namespace": rng.choice("ab")}
        if rng.random() < 0.7:
            more["priority"] = rng.choice([0, 5, 10])
        if rng.random() < 0.6:
            more["units"] = rng.choice([4, 8, 10, 12])
        return [self.new_pod(name, **more) for _ in range(rng.choice([2, 2, 3, 4, 6, 12]))]

    def waiting(self, members=None):
        return [pod for pod in self.model.pods.values()
                if not pod.node and (members is None or bool(pod.group) == members)]

    def step_gang(self):
        """A cycle of a whole gang as kube-scheduler plays it, with others in between."""
        rng = self.rng
        groups = sorted({pod.group for pod in self.waiting(True)})
        if groups and rng.random() < 0.5:
            chosen = rng.choice(groups)
            members = [pod for pod in self.waiting(True) if pod.group == chosen]
        else:
            members = self.gang()
            self.sync()
        if rng.random() < 0.5:
            rng.shuffle(members)
        for dry in range(rng.choice([1, 1, 2, 3])):
            named = []
            names = self.names() if not dry or rng.random() < 0.5 else \
                rng.sample(self.names(), rng.randint(1, len(self.names())))
            for pod in members:
                where = self.filter(pod, names)
                if where:
                    named.append((pod, where[0]))
                elif rng.random() < 0.5:
                    break
                if rng.random() < 0.1:
                    self.step_plain()
                if rng.random() < 0.05:
                    self.step_pause()
        if rng.random() < 0.75:
            rng.shuffle(named)
            for pod, name in named:
                if rng.random() < 0.1:
                    self.step_plain()
                if rng.random() < 0.93 and pod.uid in self.model.pods and not pod.node:
                    self.bind(pod, name)

    def step_member(self):
        if found := self.waiting(True):
            pod = self.rng.choice(found)
            named = self.filter(pod)
            if self.rng.random() < 0.3:
                self.bind(pod, self.rng.choice(named or self.names()))

    def step_plain(self):
        found = self.waiting(False)
        if len(found) < 6 or self.rng.random() < 0.3:
            pod = self.new_pod()
            self.sync()
        else:
            pod = self.rng.choice(found)
        named = self.filter(pod)
        if self.rng.random() < 0.6:
            self.bind(pod, self.rng.choice(named or self.names()))

    def step_elsewhere(self):
        """A bind to a node of nobody's advice."""
        if found := self.waiting():
            self.bind(self.rng.choice(found), self.rng.choice(self.names()))

    def step_objects(self):
        if found := self.waiting(True):
            self.filter(self.rng.choice(found), objects=True)

    def step_prioritize(self):
        if found := self.waiting():
            pod = self.rng.choice(found)
            _, text = self.ask("prioritize", {"Pod": pod.obj, "Nodes": None, "NodeNames": self.names()})
            if any(not 0 <= one["Score"] <= 10 for one in json.loads(text)):
                self.wrong("scores", text)
            self.inspect()

    def step_preempt(self):
        if not (found := self.waiting()):
            return
        pod, proposed = self.rng.choice(found), {}
        for name in self.names():
            lower = [one for one in self.model.pods.values() if one.node == name and one.priority < pod.priority]
            if lower:
                proposed[name] = {"Pods": [{"UID": one.uid} for one in self.rng.sample(lower, 1)], "NumPDBViolations": 0}
        asks = {**pod.obj, "metadata": {**pod.obj["metadata"], "uid": "unknown"}}   # what victims free is `freed`'s part
        _, text = self.ask("preempt", {"Pod": asks, "NodeNameToMetaVictims": proposed})
        for name, victims in (json.loads(text).get("NodeNameToMetaVictims") or {}).items():
            for victim in victims["Pods"]:
                one = self.model.pods.get(victim["UID"])
                if not one or one.node != name or one.priority >= pod.priority:
                    self.wrong("a victim", victim, name, one and vars(one))
        self.inspect()

    def step_end(self):
        """Deleted, or its phase says so; sometimes the same name comes anew at once."""
        if not self.model.pods:
            return
        waits = self.waiting()
        pod = self.rng.choice(waits if waits and self.rng.random() < 0.4 else list(self.model.pods.values()))
        self.trace("end", pod.name, pod.uid)
        del self.model.pods[pod.uid]
        self.model.promises.pop(pod.uid, None)
        if self.rng.random() < 0.3 and pod.node:
            pod.obj["status"]["phase"] = "Succeeded"
            self.api.put(pod.obj)
            self.sync()
            self.api.delete("pods", pod.key)
        else:
            self.api.delete("pods", pod.key)
            if self.rng.random() < 0.3 and pod.groups:
                again = Pod(pod.name, pod.share * pod.count, pod.namespace, count=pod.count, percent=pod.percent, priority=pod.priority,
                            spec_group=pod.groups[0].partition("/")[2], notes=pod.obj["metadata"]["annotations"], nodeSelector=pod.obj["spec"].get("nodeSelector"))
                self.put_pod(again)
                self.trace("anew", again.uid)
        self.sync()
        self.inspect()

    def step_hold(self):
        """kube-scheduler nominates, and takes back."""
        if not (found := self.waiting()):
            return
        pod = self.rng.choice(found)
        pod.hold = self.rng.choice([*self.names(), None])
        self.trace("nominate", pod.name, pod.hold)
        with self.api.lock:
            pod.obj["status"].pop("nominatedNodeName", None)
            if pod.hold:
                pod.obj["status"]["nominatedNodeName"] = pod.hold
            self.api.put(pod.obj)
        if pod.hold:
            self.model.disturb(pod.hold, pod.priority, "nominated " + pod.name)
        self.sync()

    def step_node(self):
        rng, name = self.rng, self.rng.choice(self.names())
        obj, what = self.model.nodes[name], rng.choice(["cordon", "ill", "gpu", "size", "anew"])
        self.trace("node", name, what)
        for one in self.model.promises.values():
            if one.node == name:
                one.disturbed = one.unsure = f"node {what}"
        if what == "anew":
            self.api.delete("nodes", name)
            if rng.random() < 0.5:
                self.sync()
        elif what == "cordon":
            obj["spec"]["unschedulable"] = not obj["spec"].get("unschedulable")
        elif what == "gpu":
            obj["metadata"]["annotations"][CORDON] = rng.choice(["", "0", "1", f"GPU-{name}-0"])
        else:
            gpus = inventory(obj)
            gpu = rng.choice(list(gpus.values()))
            if what == "ill":
                gpu["healthy"] = not gpu["healthy"]
            else:
                least = max([pod.share for pod in self.model.pods.values() if pod.node == name and gpu["idx"] in pod.gpus],
                            default=6)      # a pod larger than its GPU is charged on others, too
                gpu["mem"] = rng.choice([size for size in (6, 8, 16, 24) if size >= least])
            set_inventory(obj, gpus)
        self.api.put(obj)
        self.sync()
        self.inspect()

    def step_well(self):
        """All nodes are as they should be."""
        for name, obj in self.model.nodes.items():
            gpus = inventory(obj)
            for gpu in gpus.values():
                gpu["healthy"] = True
            set_inventory(obj, gpus)
            obj["spec"].pop("unschedulable", None)
            obj["metadata"]["annotations"].pop(CORDON, None)
            self.api.put(obj)
            for one in self.model.promises.values():
                if one.node == name:
                    one.disturbed = one.unsure = "node well"
        self.sync()

    def step_pause(self):
        time.sleep(self.rng.choice([0.02, 0.1, 0.25, 0.35, 0.6]))
        self.inspect()

    def step_long(self):
        self.trace("long pause")
        time.sleep(self.rng.choice([1, 2, model.KEPT_S + 0.2, model.KEPT_S + model.SLACK_S]))
        self.inspect()

    def step_restart(self):
        self.trace("restart")
        self.one.end(signal.SIGKILL if self.rng.random() < 0.5 else signal.SIGTERM)
        self.model.promises.clear()
        self.model.groups.clear()
        self.one.start()
        self.one.__enter__()
        self.sync()
        self.inspect()

    def step_room(self):
        """Many end, so that something fits again."""
        bound = [pod for pod in self.model.pods.values() if pod.node]
        for pod in self.rng.sample(bound, len(bound) // 2):
            del self.model.pods[pod.uid]
            self.api.delete("pods", pod.key)
        for pod in self.waiting():
            if self.rng.random() < 0.5:
                del self.model.pods[pod.uid]
                self.model.promises.pop(pod.uid, None)
                self.api.delete("pods", pod.key)
        self.sync()
        self.inspect()

    def step_control(self):
        """Whoever is in no group, and outranks all that is promised, hears the same as where nobody is promised anything."""
        if self.nominates or self.single:       # what it is about to nominate or to take back, the other has not heard yet
            return
        living = self.model.living((time.monotonic(),) * 2)
        top = max([one.pod.priority for one in living], default=-1) + 1
        self.serial += 1
        pod = Pod(f"c{self.serial}", self.rng.choice([1, 4, 8, 16]), priority=max(top, self.rng.choice([0, 5, 10])))
        if any(other.uid in self.model.promises and other.hold and other.priority >= pod.priority
               for other in self.model.pods.values()):
            return              # a nomination rests while its pod is promised a place
        objects = self.rng.random() < 0.2
        body = {"Pod": pod.obj, "NodeNames": None if objects else self.names(),
                "Nodes": {"items": list(self.model.nodes.values())} if objects else None}
        self.sync()
        _, mine = self.ask("filter", body)
        _, other = self.ask("filter", body, self.control)
        if self.sabotage == "plain differs":
            mine += " "
        self.trace("control", pod.priority, mine[:200])
        if mine != other:
            self.wrong("whoever is in no group is answered otherwise", mine, other)

    def step_wake(self):
        """Who was refused for a group's sake alone is woken when it is over, and bound."""
        name = self.rng.choice(self.names())
        used, now = self.model.used(name), (time.monotonic(),) * 2
        room = max([gpu["mem"] - used.get(gpu["idx"], [0])[0] for gpu in model.gpus_of(self.model.nodes[name])
                    if gpu["usable"]], default=0)
        if room <= 0 or self.model.living(now) or any(pod.hold == name for pod in self.waiting()):
            return
        self.serial += 1
        here = {"nodeSelector": {"kubernetes.io/hostname": name}}
        member = Pod(f"m{self.serial}", room, spec_group=f"w{self.serial}", **here)
        pod = Pod(f"w{self.serial}", room, **here)
        for one in (member, pod):
            self.put_pod(one)
        self.sync()
        if not self.filter(member, [name]) or self.filter(pod, [name]):
            return
        until = time.monotonic() + model.KEPT_S + 2 * model.SLACK_S
        while time.monotonic() < until and self.model.living((time.monotonic(),) * 2):
            time.sleep(0.05)
            self.inspect()
        nodes = [name] if self.model.must_fit(pod, name, (time.monotonic(),) * 2) else []
        if not nodes:
            return
        self.count("waiters")

        def woken():
            with self.api.lock:
                now = self.api.objects["pods"][pod.key]
                return self.sabotage != "starves" and ("aliyun.com/gpu-requeue" in now["metadata"]["annotations"] or
                                                       now["status"].get("nominatedNodeName"))
        try:
            wait_for("the wake", woken, 10)
        except TimeoutError:
            self.wrong("nobody woke it", pod.name, nodes)
        if named := self.filter(pod):
            self.bind(pod, named[0])

    STEPS = {"gang": 30, "member": 10, "plain": 12, "elsewhere": 5, "objects": 4, "prioritize": 3, "preempt": 3, "end": 9,
             "hold": 5, "node": 6, "well": 4, "pause": 6, "long": 1.2, "restart": 0.8, "room": 4, "control": 10, "wake": 6}

    def fetch(self):
        """The model's nominations where the extender makes some of its own."""
        if self.nominates:
            with self.api.lock:
                for pod in self.model.pods.values():
                    now = self.api.objects["pods"].get(pod.key)
                    pod.hold = (now or {}).get("status", {}).get("nominatedNodeName") if not pod.node else None

    def run(self):
        with self.one, self.control:
            self.sync()
            for _ in range(STEPS):
                if not self.one.alive() or not self.control.alive():
                    self.wrong("the extender ended", self.one.process.poll(), self.one.said()[-1500:])
                    break
                self.model.bury()
                self.fetch()
                what = self.rng.choices(list(self.STEPS), list(self.STEPS.values()))[0]
                getattr(self, "step_" + what)()
                if self.counts.get("WRONG", 0) >= 3:
                    break
            if self.one.alive():
                for group in {pod.group for pod in self.model.pods.values() if pod.group}:
                    self.model.groups.setdefault(group, model.Group())
                self.counts["rss"] = self.one.memory_kib()
        for one in (self.one, self.control):
            if one.status != 0:
                self.wrong("it ended with", one.status, one.said()[-1500:])


def one_world(*args):
    return live(World(*args))
