# SPDX-License-Identifier: Apache-2.0
"""A kube-scheduler: sums of nodes, taints and selectors are its own, GPUs the extender's. It tries
refused pods again when something of theirs changed, or after a while; it samples nodes, evicts,
nominates, forgets, and asks everything twice."""

import asyncio
import time

from api import key_of
from objects import MEM, asked, boxes, charged, may_use, peak
from texts import COUNTS

WORKERS = 5
FAR = 30            # seconds: the flush of pods that wait


class Scheduler:
    def __init__(self, world):
        self.world, self.api, self.rng = world, world.api, world.rng_of("scheduler")
        self.busy, self.next, self.version = set(), {}, {}
        self.refused = {}           # UID -> when filter last named no node
        self.bound = self.failed = self.evicted = 0

    async def work(self):
        while True:
            await asyncio.sleep(self.rng.random() * 0.05)
            if self.world.quiet:
                continue
            pods = self.ready()
            if not pods:
                continue
            if self.rng.random() < 0.1:
                await self.gang(self.rng.sample(pods, min(len(pods), 6)))
            else:
                pods.sort(key=lambda pod: -pod["spec"].get("priority", 0))
                await self.guarded(self.rng.choice(pods[:8]))

    def waits(self, pod):
        return not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates") and \
            pod["spec"].get("schedulerName") == "default-scheduler" and \
            not pod["metadata"].get("deletionTimestamp")

    def ready(self):
        now, found = time.monotonic(), []
        for pod in self.api.pods.values():
            meta = pod["metadata"]
            if meta["uid"] in self.busy or not self.waits(pod):
                continue
            changed = self.version.get(meta["uid"]) != meta["resourceVersion"]
            if now >= self.next.get(meta["uid"], 0) or changed and self.rng.random() < 0.2:
                found.append(pod)
        return found

    def later(self, pod, seconds):
        meta = pod["metadata"]
        self.next[meta["uid"]] = time.monotonic() + seconds
        self.version[meta["uid"]] = meta["resourceVersion"]

    async def guarded(self, pod):
        uid = pod["metadata"]["uid"]
        self.busy.add(uid)
        try:
            await self.schedule(pod)
        finally:
            self.busy.discard(uid)

    async def gang(self, pods):
        """Everybody is filtered and scored before anybody is bound."""
        uids = {pod["metadata"]["uid"] for pod in pods}
        self.busy |= uids
        try:
            chosen = []
            for pod in pods:
                if names := await self.filter(pod, self.fitting(pod)):
                    await self.scores(pod, names)
                    chosen.append((pod, names))
                elif names is not None:
                    self.later(pod, self.rng.random() * FAR)
            self.rng.shuffle(chosen)
            for pod, names in chosen:
                await self.bind(pod, self.rng.choice(names))
        finally:
            self.busy -= uids

    def burst(self):
        """Binds by the dozen, of nobody who asked filter: they wait for one of --bind-workers; some clients go away."""
        pods = [self.world.tenants.probe() for _ in range(self.rng.choice([3, 20, 60]))]
        for pod in pods:
            self.api.put(pod)
            self.busy.add(pod["metadata"]["uid"])
            self.api.spawn(self.burst_one(pod))
        return len(pods)

    async def burst_one(self, pod):
        for _ in range(self.rng.choice([1, 1, 1, 2, 3])):
            name = self.rng.choice(list(self.api.nodes))
            answer = await self.bind_once(pod, name, self.rng.choice([12] * 8 + [0.01, 0.5]))
            if answer is not None and not answer["Error"]:
                self.done(pod, name)
        self.busy.discard(pod["metadata"]["uid"])
        if not pod["spec"].get("nodeName"):
            self.api.del_pod(pod)

    async def bind_once(self, pod, name, seconds=12):
        meta = pod["metadata"]
        return await self.world.service.verb("bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"],
                                                      "PodUID": meta["uid"], "Node": name}, seconds)

    def free(self, name):
        node = self.api.nodes[name]
        return int(node["status"]["allocatable"].get(MEM, 0)) - sum(
            peak(pod["spec"], MEM) for pod in self.api.pods.values()
            if pod["spec"].get("nodeName") == name and charged(pod))

    def fitting(self, pod, names=None):
        needs = peak(pod["spec"], MEM)
        return [name for name in names or self.api.nodes
                if name in self.api.nodes and may_use(pod, self.api.nodes[name]) and
                (not needs or self.free(name) >= needs)]

    async def filter(self, pod, names, objects=None):
        """The nodes that it names; None if nobody answered."""
        if not names:
            return []
        if objects is None:
            objects = self.rng.random() < 0.1
        body = {"Pod": pod, "NodeNames": None if objects else names,
                "Nodes": {"items": [self.api.nodes[name] for name in names]} if objects else None}
        answer = await self.world.service.verb("filter", body)
        if answer is None:
            return None
        if objects:
            named = [node["metadata"]["name"]
                     for node in (answer.get("Nodes") or {}).get("items") or []]
        else:
            named = answer.get("NodeNames") or []
        if answer.get("Error"):
            self.world.trace("filter error", pod["metadata"]["name"], answer["Error"])
            return None
        if named != [name for name in names if name in set(named)]:
            self.world.oracle.wrong("filter names others, or in another order",
                                    f"{names} {named}")
        failed = set(answer.get("FailedNodes") or {}) | \
            set(answer.get("FailedAndUnresolvableNodes") or {})
        of_one = self.world.one and len(named) == 1 and peak(pod["spec"], MEM)
        if failed | set(named) != set(names) and not of_one or failed & set(named):
            self.world.oracle.wrong("filter does not say of every node, once",
                                    f"{names}: {named}, {sorted(failed)}")
        self.reasons = {**(answer.get("FailedNodes") or {}),
                        **(answer.get("FailedAndUnresolvableNodes") or {})}
        return named

    async def scores(self, pod, names):
        answer = await self.world.service.verb("prioritize", {"Pod": pod, "Nodes": None,
                                                              "NodeNames": names})
        if answer is not None and (
                not {one["Host"] for one in answer} <= set(names) or
                any(not 0 <= one["Score"] <= 10 for one in answer)):
            self.world.oracle.wrong("odd scores", answer)

    async def schedule(self, pod):
        nominated = pod["status"].get("nominatedNodeName")
        if nominated and self.rng.random() < 0.9:
            names = await self.filter(pod, self.fitting(pod, [nominated]))
            if names:
                await self.bind(pod, nominated)
                return
        names = self.fitting(pod)
        if self.rng.random() < 0.3:
            names = [name for name in names if self.rng.random() < 0.4]
        asked_about = names
        names = await self.filter(pod, names)
        if names is None:
            self.later(pod, self.rng.random())
            return
        if names:
            if self.rng.random() < 0.4:
                await self.scores(pod, names)
            await self.bind(pod, self.rng.choice(names))
            return
        if asked_about:
            self.refused[pod["metadata"]["uid"]] = time.monotonic()
        self.later(pod, self.rng.choice([0.3, 1, 3, FAR]))
        if pod["spec"].get("priority") and self.rng.random() < 0.5:
            await self.preempt(pod)
        elif self.rng.random() < 0.1:
            self.forget(pod)

    def forget(self, pod):
        """It clears nominations of its own alone, when it looks for victims and finds none."""
        uid = pod["metadata"]["uid"]
        if uid in self.world.oracle.nominated:
            del self.world.oracle.nominated[uid]
            pod["status"].pop("nominatedNodeName", None)
            self.api.touch(pod)

    async def bind(self, pod, name):
        meta, rng = pod["metadata"], self.rng
        for attempt in range(3):
            asks = [self.bind_once(pod, name) for _ in range(2 if rng.random() < 0.05 else 1)]
            answer = (await asyncio.gather(*asks))[0]
            if answer is not None and not answer["Error"]:
                self.bound += 1
                self.done(pod, name)
                return
            self.failed += 1
            self.world.trace("bind fails", meta["name"], name, answer and answer["Error"][:90])
            if rng.random() < 0.4 or pod["spec"].get("nodeName"):
                break
            if rng.random() < 0.5:
                self.owner_edits(pod)
            await asyncio.sleep(rng.random() * 3)
            if rng.random() < 0.3:
                name = rng.choice(self.fitting(pod) or [name])
        self.later(pod, rng.choice([0.1, 1, 5]))

    def done(self, pod, name):
        """bind said yes: then it is so, or it is gone."""
        if self.api.pods.get(key_of(pod)) is pod and pod["spec"].get("nodeName") != name and \
                not pod["metadata"].get("deletionTimestamp"):
            self.world.oracle.wrong("bind says yes, and it is not so",
                                    f"{pod['metadata']['name']} {name} {pod['spec'].get('nodeName')}")

    def owner_edits(self, pod):
        """Between a bind that failed and its repetition."""
        if pod["spec"].get("nodeName"):
            return
        labels = pod["metadata"]["labels"]
        count = self.rng.choice(COUNTS[:5])
        units = [asked(box, MEM) for box in boxes(pod["spec"])]
        if any(value % int(count) for value in units):
            count = "1"
        labels["aliyun.com/gpu-count"] = count
        self.world.edit(pod, "gpu-count between two binds", count)

    async def preempt(self, pod):
        mine, candidates = pod["spec"]["priority"], {}
        for name, node in self.api.nodes.items():
            if not may_use(pod, node):
                continue
            lower = [one for one in self.api.pods.values()
                     if one["spec"].get("nodeName") == name and charged(one) and
                     one["spec"].get("priority", 0) < mine]
            self.rng.shuffle(lower)
            if lower:
                victims = lower[:self.rng.choice([1, 1, 2, 3])]
                candidates[name] = {"Pods": [{"UID": one["metadata"]["uid"]} for one in victims],
                                    "NumPDBViolations": 0}
        if not candidates:
            return
        answer = await self.world.service.verb("preempt", {"Pod": pod,
                                                           "NodeNameToMetaVictims": candidates})
        found = (answer or {}).get("NodeNameToMetaVictims") or {}
        by_uid = {one["metadata"]["uid"]: one for one in self.api.pods.values()}
        for name, victims in found.items():
            if name not in candidates:
                self.world.oracle.wrong("preempt names a node that was not proposed", name)
            for victim in victims["Pods"]:
                one = by_uid.get(victim["UID"])
                if one and one["spec"].get("priority", 0) >= mine:
                    self.world.oracle.wrong("a victim of no lower priority",
                                            f"{one['metadata']['name']} for "
                                            f"{pod['metadata']['name']}")
                if one and one["spec"].get("nodeName", name) != name:
                    self.world.oracle.wrong("a victim on another node", one["metadata"]["name"])
        if not found or not self.waits(pod):
            return
        name = self.rng.choice(list(found))
        self.world.trace("preempt", pod["metadata"]["name"], name, len(found[name]["Pods"]))
        for victim in found[name]["Pods"]:
            if one := by_uid.get(victim["UID"]):
                self.evicted += 1
                self.world.delete(one, self.rng.random() * 3)
        if self.rng.random() < 0.9:
            if await asyncio.sleep(self.rng.random() * 0.2) is None and self.waits(pod):
                pod["status"]["nominatedNodeName"] = name
                if self.api.touch(pod):
                    self.world.oracle.nominated[pod["metadata"]["uid"]] = name
                    self.world.oracle.offers.pop(pod["metadata"]["uid"], None)
