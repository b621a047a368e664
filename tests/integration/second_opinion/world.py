# SPDX-License-Identifier: Apache-2.0
"""The world: events at random for a while, then a quiet moment in which everything is judged."""

import asyncio
import collections
import concurrent.futures
import json
import os
import random
import signal
import time

from api import KINDS, Api
from extenders import Extender, Service
from faults import Faults
from nodes import Nodes
from objects import (CORES, COUNT, MEM, WAKE, allowed, annotation, asked, boxes, count_of,
                     inventory, may_use, peak, usable)
from oracle import OPEN_S, Oracle
from sabotage import QUIET_MOMENTS
from scheduler import WORKERS, Scheduler
from tenants import Tenants

NAMESPACE = "kube-system"
BACK_S = 60         # watches that failed again and again wait 30 s at most
QUIET_S = 5
TAIL = 60           # lines of the trace that a failure prints


class World:
    def __init__(self, args, folder):
        self.args, self.folder, self.seed = args, folder, args.seed
        self.rng = random.Random(f"{args.seed} world")
        self.way = "alone" if args.replicas == 1 else args.election
        self.began, self.quiet, self.away, self.bursting = time.monotonic(), True, 0, False
        self.trouble = ""                           # the one that takes its time
        self.host, self.away_until, self.orderly, self.last_change = 0, 0, False, 0
        self.expected = ""              # of a sabotage
        self.trace_file = open(os.path.join(folder, "trace"), "w", encoding="utf-8")
        self.tail, self.events = collections.deque(maxlen=TAIL), collections.Counter()
        # what differs from world to world
        old = args.seed % 5 == 4        # a release whose Bindings ignore the UID
        by_name = args.seed % 2 == 0
        self.api = Api(self.rng_of("api"), "1.20.2" if old else "1.36.3", checks_uid=not old)
        self.api.trace = self.trace
        self.oracle = Oracle(self.api, self.trace, by_name)
        flags = ["--kube-api-qps", "1000", "--bind-workers", self.rng.choice(["1", "2", "16"])]
        flags += ["--scheduler-name", "default-scheduler"] if by_name else []
        flags += self.rng.choice([[], [], ["--policy", "binpack"],
                                  ["--policy", "spread"], ["--nominate=false"]])
        if self.way == "leader":
            flags.append("--leader-elect")
            self.oracle.lease_key = (NAMESPACE, "gpushare-extender")
        elif self.way == "scheduler":
            flags += ["--scheduler-lease", NAMESPACE + "/kube-scheduler"]
        self.one = args.seed % 3 == 2   # filter names one node and reserves it
        flags += ["--filter-names", "one" if self.one else "all"] + args.flag
        self.trace("world", args.seed, self.way, self.api.release, *flags)
        self.extenders = [Extender(self, at, args.program, flags)
                          for at in range(args.replicas)]
        self.service, self.scheduler = Service(self), Scheduler(self)
        self.tenants, self.nodes, self.faults = Tenants(self), Nodes(self), Faults(self)
        t, n, f = self.tenants, self.nodes, self.faults
        self.table = [
            (t.create, 390), (t.create_gated, 15), (t.open_gate, 10),
            (t.end, 170), (t.drop_waiting, 25), (t.anew, 15), (t.phase_back, 8),
            (t.edit_waiting, 50), (t.edit_bound, 40), (t.edit_noise, 15), (t.by_hand, 40),
            (n.exchange, 25), (n.another_gpu, 15), (n.health, 12), (n.resize, 6), (n.max_pods, 4),
            (n.cordon, 8), (n.label, 10), (n.vanish, 6), (n.unreadable, 4), (n.strangers, 4),
            (n.silence, 8), (self.scheduler.burst, 3)]
        self.troubles = [
            (f.cut, 6), (f.expire, 3), (f.error_event, 6), (f.freeze, 8), (f.lag, 6), (f.down, 4),
            (f.stale_list, 3), (f.restore, 3), (f.binds, 14), (f.slow, 6), (f.kill, 7), (f.stop, 5),
            (f.restore_and_kill, 2 if self.way == "leader" else 0),
            (f.hand_over, 6 if self.way == "scheduler" else 0)]
        if self.way == "leader":
            self.troubles += [(f.lease_trouble, 4), (f.lease_deleted, 3)]
        if args.only:
            self.troubles = [one for one in self.troubles if one[0].__name__ in args.only]
        if args.without:
            self.table, self.troubles = ([one for one in table if one[0].__name__ not in
                                          args.without] for table in (self.table, self.troubles))

    def rng_of(self, name):
        """Each has its own, so that what one draws depends on no other's moments."""
        return random.Random(f"{self.seed} {name}")

    def trace(self, *words):
        line = f"{time.monotonic() - self.began:8.2f} " + " ".join(map(str, words))
        self.tail.append(line)
        self.trace_file.write(line + "\n")
        if words[0] == "WRONG":
            self.trace_file.flush()
            if not self.args.sabotage:
                print(line, flush=True)

    def edit(self, pod, why, value):
        """An owner's edit of what a pod asks for."""
        self.oracle.edited[pod["metadata"]["uid"]] = self.api.seq + 1
        self.api.touch(pod)
        self.trace("edit", pod["metadata"]["name"], why, value)

    def delete(self, pod, seconds):
        if not pod["metadata"].get("deletionTimestamp"):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.api.touch(pod)
            self.api.later(seconds, self.api.del_pod, pod)

    # ---- loops

    async def events_at_random(self):
        rng = self.rng_of("events")
        while True:
            await asyncio.sleep(rng.expovariate(self.args.rate))
            if self.quiet:
                continue
            event = rng.choices([one for one, _ in self.table], [w for _, w in self.table])[0]
            self.happened(event.__name__, event())

    async def troubles_at_random(self):
        rng = self.rng_of("troubles")
        while True:
            await asyncio.sleep(rng.expovariate(self.args.trouble))
            if self.quiet or not self.troubles:
                continue
            what = rng.choices([one for one, _ in self.troubles],
                               [w for _, w in self.troubles])[0]
            self.trace("trouble", what.__name__)
            result = what()
            if asyncio.iscoroutine(result):
                self.trouble = what.__name__
                result = await result
                self.trouble = ""
            self.happened(what.__name__, result)

    def happened(self, name, result):
        if result is not None or name in ("expire", "open_gate"):
            self.events[name] += 1
            self.trace("event", name, result)

    async def plugins(self):
        ticks = 0
        while True:
            await asyncio.sleep(0.5)
            self.nodes.tell_all()
            ticks += 1
            if ticks % 4 == 0:
                self.api.snapshot()

    async def watch_processes(self):
        while True:
            await asyncio.sleep(0.2)
            for one in self.extenders:
                if one.process and one.process.returncode is None and \
                        one.process.poll() is not None and not one.ending:
                    self.oracle.wrong("the process died", f"{one.name} {one.process.returncode}")
                    one.start()

    async def run(self):
        asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(100))
        self.nodes.begin()
        for at in range(self.args.replicas):
            self.api.put({"kind": "Pod", "apiVersion": "v1", "metadata": {
                "name": f"ext-{at}", "namespace": NAMESPACE, "uid": f"ext-{at}", "annotations": {},
                "labels": {}}, "spec": {"containers": [{"name": "c"}], "nodeName": "plain"},
                "status": {"phase": "Running"}})
        for one in self.extenders:
            await self.api.listen(one.client)
            one.start()
        loops = [self.events_at_random(), self.troubles_at_random(), self.plugins(),
                 self.faults.renew(), self.watch_processes(),
                 *(self.scheduler.work() for _ in range(WORKERS))]
        tasks = [self.api.spawn(loop) for loop in loops]
        until, round_number = time.monotonic() + self.args.seconds, 0
        rounds = float("inf")
        if self.args.sabotage:
            until, rounds = rounds, QUIET_MOMENTS
        rng = self.rng_of("rounds")
        while time.monotonic() < until and round_number < rounds and not self.enough():
            round_number += 1
            self.quiet = False
            await self.sleep(tasks, min(rng.choice([5, 10, 15, 25]),
                                        max(5, until - time.monotonic() - 10)))
            await self.judge(tasks, last=self.args.seconds > OPEN_S and
                             time.monotonic() + 15 > until)
            if round_number % 20 == 0:
                print(self.sums(), flush=True)
        await self.finish()

    def enough(self):
        if self.args.sabotage:
            return any(self.expected in text for text in self.oracle.bad)
        return bool(self.oracle.bad) and not self.args.go_on

    async def sleep(self, tasks, seconds):
        until = time.monotonic() + seconds
        while True:
            for task in tasks:
                if task.done() and task.exception():
                    raise task.exception()
            if time.monotonic() >= until or self.enough():
                break
            await asyncio.sleep(0.2)

    # ---- quiet moments

    async def judge(self, tasks, last):
        self.quiet = True
        self.trace("quiet")
        self.faults.calm()
        self.nodes.silent.clear()
        if self.enough() or not await self.settled(tasks):
            return
        await self.sleep(tasks, QUIET_S)
        await self.compare_all("after 5 s")
        if not self.enough():
            await self.questions()
        if self.rng.random() < 0.5 and not self.enough() and not await self.open_binds():
            await self.burst()
        if last and not self.enough():
            await self.all_answers_known(tasks)

    async def settled(self, tasks):
        """Nothing is under way, and every watch has shown everything."""
        until, why = time.monotonic() + BACK_S, ""
        while time.monotonic() < until:
            await self.sleep(tasks, 0.3)
            self.nodes.tell_all()
            why = self.under_way()
            if not why:
                return True
        self.oracle.wrong("not quiet after a minute", why)
        return False

    def under_way(self):
        if self.trouble or self.api.away:
            return f"{self.trouble}, the API server is {'' if self.api.away else 'not '}away"
        if self.away or self.api.late or self.scheduler.busy or self.oracle.junk:
            return f"{self.away} {self.api.late} {self.scheduler.busy} {self.oracle.junk}"
        if self.way == "scheduler" and self.away_until:
            return "no kube-scheduler leads"
        if any(pod["metadata"].get("deletionTimestamp") for pod in self.api.pods.values()):
            return "pods are being deleted"
        for one in self.extenders:
            if one.frozen or one.ending or one.process.poll() is not None:
                return one.name + " does not run"
            for kind in KINDS:
                if not one.client.process.up_to_date(kind, self.api.last[kind]):
                    return f"{one.name} was not told of {kind}"
        return ""

    async def compare_all(self, when):
        for one in self.extenders:
            seq, inspect = self.api.seq, await one.inspect()
            metrics = await one.metrics()
            if inspect is None or not metrics:
                self.oracle.wrong("no answer at a quiet moment", one.name)
                continue
            if differ := self.oracle.compare(one.client, inspect, metrics):
                if seq != self.api.seq:     # an offer, a wake: it concerns no charge
                    self.trace("changed meanwhile", self.api.seq - seq)
                self.oracle.wrong(f"the ledger of {one.name} is not the API's {when}",
                                  "; ".join(differ[:6]))
        if old := self.oracle.old_offers():
            self.oracle.wrong("offers that are not taken back", "; ".join(old))

    async def all_answers_known(self, tasks):
        """Binds without an answer are settled in the end, either way."""
        until = time.monotonic() + OPEN_S
        while time.monotonic() < until and not self.enough():
            await self.sleep(tasks, 1)
            if not await self.open_binds():
                break
        else:
            self.oracle.wrong("binds stay open", await self.open_binds())
        await self.sleep(tasks, 1)
        self.oracle.unanswered.clear()
        await self.compare_all("at the end")

    async def questions(self):
        """filter by names and by objects agree; its yes is bind's; its no is right."""
        names = list(self.api.nodes)
        waiting = [pod for pod in self.api.pods.values() if self.scheduler.waits(pod)]
        pods = self.rng.sample(waiting, min(5, len(waiting)))
        for _ in range(3):
            pods.append(self.tenants.probe())
            self.api.put(pods[-1])
        await asyncio.sleep(1)
        for pod in pods:
            if self.enough() or await self.open_binds():
                return
            await self.question(pod, names)

    async def open_binds(self):
        return sum([(await one.metrics()).get("gpushare_unresolved_binds", 0)
                    for one in self.extenders])

    async def question(self, pod, names):
        ask = self.scheduler.filter
        first = await ask(pod, names, objects=False)
        by_object = await ask(pod, names, objects=True)
        again = await ask(pod, names, objects=False)
        if None in (first, by_object, again) or first != again:
            self.trace("question", pod["metadata"]["name"], "no answer twice the same")
            await asyncio.sleep(6 if self.one else 0)   # until nothing is reserved
            return
        name = f"{pod['metadata']['name']} of {peak(pod['spec'], MEM)}"
        if by_object != first and not (self.one and len(first) == 1 and first[0] in by_object):
            self.oracle.wrong("filter by names and by objects differ",
                              f"{name}: {first} {by_object}")
        self.oracle_says(pod, name, names, by_object)
        if not first:
            return
        node = self.rng.choice(first)
        for _ in range(2):
            answer = await self.scheduler.bind_once(pod, node)
            if answer is None:
                return
            may = may_use(pod, self.api.nodes[node])
            if may == (not answer["Error"]):
                return
            if not may:
                break
            if node not in (await ask(pod, names, objects=False) or []):
                return      # an offer holds the room by now
        self.oracle.wrong("filter says yes, bind says no" if may else
                          "bind goes where the pod may not", f"{name}: {node} {answer}")

    def bursts(self):
        """(node, units) of pods that surely fit together, each wherever the others are."""
        used, sizes = self.oracle.used(), []
        held = {pod["status"].get("nominatedNodeName") for pod in self.api.pods.values()} | {
            node for node, _, _, exact in self.oracle.expected().values() if not exact}
        for name in self.rng.sample(list(self.api.nodes), len(self.api.nodes)):
            node = self.api.nodes[name]
            gpus = [has for has in inventory(node).values() if usable(node, has)]
            if name in held or not gpus or any(has.get("maxPods") for has in gpus) or not may_use(self.tenants.plain(1), node):
                continue
            free = [has["mem"] - used.get((name, has["idx"]), (0,))[0] for has in gpus]

            def fit(units, free=free):
                return all(sum(max(0, left - one + 1) for left in free) > sum(units) - one for one in units)
            while len(sizes) < 6 and fit(more := [*sizes, self.rng.choice([1, 2, 4, max(free)])]):
                sizes = more
            if len(sizes) > 1:
                return name, sizes, sum(max(0, left) for left in free) - sum(sizes)
        return None, [], 0

    async def burst(self):
        """Binds that wait for one of --bind-workers: what they hold is nobody else's, and all of them fit."""
        name, sizes, left = self.bursts()
        if not name:
            return
        pods, other = [self.tenants.plain(units) for units in sizes], self.tenants.plain(left + 1)
        for pod in [*pods, other]:
            self.api.put(pod)
        for one in self.extenders:
            one.client.slow["bind"] = 1
        await asyncio.sleep(1)
        self.bursting, before = True, self.oracle.binds
        binds = asyncio.gather(*(self.scheduler.bind_once(pod, name, 40) for pod in pods))
        await asyncio.sleep(1)
        named = await self.scheduler.filter(other, [name], objects=False)
        answers = await binds
        self.bursting = False
        self.faults.calm()
        self.trace("burst", name, sizes, self.oracle.binds - before, named, answers)
        for pod, answer in zip(pods, answers):
            if answer and answer["Error"]:
                self.oracle.wrong("refused, though it fits wherever the others are", f"{name} {sizes}: {answer}")
        if named and all(answer and not answer["Error"] for answer in answers):
            self.oracle.wrong("filter names a node whose memory binds hold", f"{name} {sizes} and {left + 1}")
        self.api.del_pod(other)

    def oracle_says(self, pod, name, names, named):
        """What fits by the API alone, where nobody holds a place and no bind is open."""
        used, count = self.oracle.used(), count_of(pod)
        said = f"gpu-count {pod['metadata']['labels'].get(COUNT)!r} {annotation(pod, COUNT)!r}"
        if count is None or any(asked(box, MEM) % count for box in boxes(pod["spec"])):
            return
        units, cores = peak(pod["spec"], MEM) // count, peak(pod["spec"], CORES)
        for node_name in names:
            node = self.api.nodes[node_name]
            fits = 0
            for gpu, has in inventory(node).items():
                charged_units, charged_cores, pods = used.get((node_name, gpu), (0, 0, 0))
                fits += usable(node, has) and charged_units + units <= has["mem"] and \
                    (not cores or charged_cores + cores <= 100) and \
                    pods < has.get("maxPods", 1 << 20) and \
                    allowed(pod, has)
            held = any(one["status"].get("nominatedNodeName") == node_name
                       for one in self.api.pods.values())
            loose = any(node == node_name and not exact
                        for node, _, _, exact in self.oracle.expected().values())
            odd = any(key.startswith("aliyun.com/") and key not in (WAKE, COUNT)
                      for key in pod["metadata"]["annotations"]) or cores and (
                          cores > 100 or count > 1) or any(
                              asked(box, CORES) and not asked(box, MEM)
                              for box in boxes(pod["spec"]))
            if node_name in named and units and fits < count:
                self.oracle.wrong("filter says yes, and it does not fit", f"{name}: {node_name}: "
                                  f"{said}, {units} on {fits} of {count}: {used}")
            if node_name not in named and fits >= count and not (held or loose or odd):
                self.oracle.wrong("filter says no, and it fits", f"{name}: {node_name}: "
                                  f"{said}: {self.scheduler.reasons.get(node_name)}")

    # ---- the end

    async def finish(self):
        self.quiet = True
        for one in self.extenders:
            one.ending = True
            if one.alive() and await one.ends(signal.SIGTERM) != 0:
                self.oracle.wrong("SIGTERM at the end", f"{one.name} {one.process.returncode}")
        self.trace_file.flush()

    def sums(self):
        requests = {f"{method} {path}{' watch' if watch else ''}": count
                    for (method, path, watch), count in sorted(self.api.calls.items())}
        return json.dumps({
            "seconds": round(time.monotonic() - self.began), "events": sum(self.events.values()),
            "by event": dict(self.events), "asked": self.service.asked,
            "Bindings by an extender": self.oracle.binds, "excused": self.oracle.excuses,
            "ledgers compared": self.oracle.compared, "kills": self.faults.kills,
            "evicted": self.scheduler.evicted, "requests": requests,
            "wrong": len(self.oracle.bad)})
