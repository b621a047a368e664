# SPDX-License-Identifier: Apache-2.0
"""What is so, by the API alone: where every pod is, what each GPU is charged, and which of the
extender's acts cannot be right. It knows what each extender had been told at which moment
(api.Client), and excuses a bind only by what that process could not know yet, or by what
docs/security.md says it cannot: an edited record that it never saw otherwise, before the plugin's
word."""

import json
import time
from collections import deque

from objects import (CORES, IDX, MEM, MOVED, SPLIT, UNITS, WAKE, allowed, annotation, asked, boxes,
                     charged, count_of, ended, inventory, peak, record_of, usable)

# From the last byte of an event in the socket until a bind is sure to go by it, on a busy machine.
MARGIN_S = 2.0
# A Binding without an answer keeps its place as long as it may be under way.
OPEN_S = 75
# An offer that led nowhere is taken back after 5 s, when it is tried again after 10 at most; one of
# the node of a bind without an answer when that can take its place no more.
OFFER_S = 20
WAKES_A_MINUTE, WAKES_IN_TEN_S = 30, 600
GIB = 1 << 30


class Place:
    """Where a bound pod is: `gpus` is the truth that the plugin tells."""

    def __init__(self, pod, gpus, by, seq):
        meta = pod["metadata"]
        self.uid, self.name = meta["uid"], meta["namespace"] + "/" + meta["name"]
        self.node, self.gpus, self.by, self.seq = pod["spec"]["nodeName"], gpus, by, seq
        self.record = annotation(pod, IDX)
        self.share = peak(pod["spec"], MEM) // max(1, len(gpus))
        self.cores = peak(pod["spec"], CORES)
        self.disputed = False       # its owner wrote, and the plugin has not told yet
        self.loose = False          # nobody will ever tell


class Oracle:
    def __init__(self, api, trace, by_name):
        self.api, self.trace, self.by_name = api, trace, by_name
        self.places, self.touches, self.edited = {}, {}, {}
        self.junk = set()           # nodes whose gpu-reassigned cannot be read
        self.offers = {}            # UID -> (time, client) of a nomination by the extender
        self.nominated = {}         # UID -> node, by kube-scheduler
        self.unanswered = {}        # UID -> (when, where) of its last Binding without a sure outcome
        self.wakes, self.all_wakes = {}, deque()
        self.bad, self.binds, self.excuses, self.compared = [], 0, 0, 0
        self.last_kill = 0
        self.lease_key = None       # with --leader-elect
        api.on_binding, api.on_fate = self.on_binding, self.on_fate
        api.on_bound, api.on_patch = self.on_bound, self.on_patch

    def wrong(self, what, about=""):
        text = f"{what}: {about}"
        self.bad.append(text)
        self.trace("WRONG", text)

    # ---- truth

    def pod_of(self, place):
        pod = self.api.pods.get(tuple(place.name.split("/")))
        return pod if pod and pod["metadata"]["uid"] == place.uid else None

    def by_uid(self, uid):
        return next((pod for pod in self.api.pods.values() if pod["metadata"]["uid"] == uid), None)

    def standing(self):
        """(place, pod) of all that are charged; those whose pods are gone are forgotten."""
        found = []
        for uid, place in list(self.places.items()):
            pod = self.pod_of(place)
            if not pod:
                del self.places[uid]
            elif charged(pod):
                found.append((place, pod))
        return found

    def used(self):
        sums = {}
        for place, _ in self.standing():
            for gpu in place.gpus:
                entry = sums.setdefault((place.node, gpu), [0, 0, 0])
                entry[0] += place.share
                entry[1] += place.cores
                entry[2] += 1
        return sums

    def touch(self, node, kind, seq):
        """From here on the node is not what it was, in a way that takes room."""
        self.touches.setdefault(node, deque(maxlen=400)).append((kind, seq))

    def add_by_hand(self, pod, gpus, seq, loose=False):
        place = Place(pod, gpus, None, seq)
        place.loose = loose
        place.disputed = place.record is None or record_of(pod) != gpus
        self.places[place.uid] = place
        self.touch(place.node, "pods", seq)
        return place

    # ---- what a process could know

    def excuse(self, node, moment, process):
        pods = process.told_at("pods", moment - MARGIN_S)
        nodes = process.told_at("nodes", moment - MARGIN_S)
        for kind, seq in self.touches.get(node, ()):
            if seq > (pods if kind == "pods" else nodes):
                return f"{kind} {seq} not told"
        if node in self.junk:
            return "gpu-reassigned cannot be read"
        for place, _ in self.standing():
            if place.node == node and (place.loose or place.disputed and
                                       process.seen.get(place.uid, place.record) != place.record):
                return f"{place.name} was edited"
            if place.node == node and place.disputed and place.by is None:
                return f"{place.name} was bound by hand"
        return None

    # ---- hooks

    def on_fate(self, key, node):
        if pod := self.api.pods.get(key):
            self.unanswered[pod["metadata"]["uid"]] = time.monotonic(), node

    def on_binding(self, client, key):
        lease = self.api.leases.get(self.lease_key)
        if lease:
            holder = lease["spec"].get("holderIdentity") or ""
            if holder and not holder.startswith(client.name):
                self.wrong("a Binding of a replica that does not lead",
                           f"{client.name} binds {key[1]}, the Lease is {holder}'s")

    def on_bound(self, client, pod, before, arrived, seq, other):
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        moment, process = arrived
        self.offers.pop(uid, None)
        self.nominated.pop(uid, None)
        if not peak(pod["spec"], MEM):
            return
        self.binds += 1
        gpus = record_of(pod)
        node = self.api.nodes.get(pod["spec"]["nodeName"])
        about = (f"{name} of {peak(pod['spec'], MEM)} to {pod['spec']['nodeName']} GPU "
                 f"{annotation(pod, IDX)} by {client.name}")
        if not gpus:
            self.wrong("a bind without a record", about)
            return
        sums = self.used()
        place = self.places[uid] = Place(pod, gpus, client.name, seq)
        self.trace("bound", about, place.share)
        if other:
            self.touch(place.node, "pods", seq)
        if not node:
            return
        edited = self.edited.get(uid, 0) > process.told_at("pods", moment - MARGIN_S)
        if not other and not edited:
            self.judge_record(pod, before, gpus, place, about)
        for gpu in gpus:
            fault = self.judge_gpu(node, before, gpu, place, sums, other or edited)
            if not fault:
                continue
            why = "bound to another UID" if other else self.excuse(place.node, moment, process)
            self.trace("excused" if why else "fault", about, fault, why or "")
            if why:
                self.excuses += 1
            else:
                self.wrong(fault, about + "; there: " + self.who(place.node, gpu))

    def who(self, node, gpu):
        return ", ".join(f"{place.name} {place.share}" for place, _ in self.standing()
                         if place.node == node and gpu in place.gpus)

    def judge_gpu(self, node, pod, gpu, place, sums, edited):
        has = inventory(node).get(gpu)
        if not has:
            return f"GPU {gpu} does not exist"
        units, cores, pods = sums.get((place.node, gpu), (0, 0, 0))
        if units + place.share > has["mem"]:
            return f"OVER-BOOKED: {units} + {place.share} of {has['mem']} units"
        if place.cores and cores + place.cores > 100:
            return f"compute over-booked: {cores} + {place.cores}"
        if has.get("maxPods") and pods + 1 > has["maxPods"]:
            return f"{pods + 1} pods of {has['maxPods']}"
        if not usable(node, has):
            return "the GPU takes no pods"
        if not edited and not allowed(pod, has):
            return "the GPU is not one that the pod's lists allow"
        return None

    def judge_record(self, pod, before, gpus, place, about):
        if len(gpus) != count_of(before):
            self.wrong("the record names another number of GPUs than was asked for", about)
        if annotation(pod, UNITS) != str(peak(pod["spec"], MEM)):
            self.wrong("other units", f"{about}: {annotation(pod, UNITS)}")
        if any(asked(box, MEM) % len(gpus) for box in boxes(pod["spec"])):
            self.wrong("it does not divide", about)
        try:
            split = json.loads(annotation(pod, SPLIT))
            named = {int(gpu) for part in split.values() for gpu in part}
            fine = named == set(gpus)
            for at, box in enumerate(pod["spec"]["containers"]):
                units = (split.get(str(at)) or {}).values()
                fine = fine and sum(units) == asked(box, MEM)
        except (TypeError, ValueError, AttributeError):
            fine = False
        if not fine:
            self.wrong("the allocation is not the record's", f"{about}: {annotation(pod, SPLIT)}")

    def on_patch(self, client, pod, sub, sent):
        now, uid = time.monotonic(), pod["metadata"]["uid"]
        name = pod["metadata"]["name"]
        notes = (sent.get("metadata") or {}).get("annotations") or {}
        if strange := [key for key in notes if not key.startswith(("aliyun.com/", "gpushare/"))]:
            self.wrong("a patch of foreign annotations", f"{name}: {strange}")
        if WAKE in notes and notes[WAKE] is not None:
            self.woken(client, pod, now)
        status = sent.get("status") or {}
        if strange := [key for key in status if key != "nominatedNodeName"]:
            self.wrong("a patch of foreign status", f"{name}: {strange}")
        if "nominatedNodeName" not in status:
            return
        to, was = status["nominatedNodeName"] or None, pod["status"].get("nominatedNodeName")
        self.trace("offer", client.name, name, was, to)
        # that preempt named the node of an offer is known to who offered it, and dies with it
        stranger = uid in self.offers and self.offers[uid][2] is not client.process
        if was and was == self.nominated.get(uid) and to != was and not stranger:
            self.wrong("kube-scheduler's nomination is overwritten", f"{name}: {was} by {to}")
        if to and pod["spec"].get("nodeName"):
            self.wrong("a bound pod is nominated", name)
        if to:
            self.offers[uid] = (now, client, client.process)
        else:
            self.offers.pop(uid, None)

    def woken(self, client, pod, now):
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        self.trace("wake", client.name, name)
        if pod["spec"].get("schedulingGates"):
            self.wrong("a pod with scheduling gates is woken", name)
        if self.by_name and pod["spec"].get("schedulerName") != "default-scheduler":
            self.wrong("another scheduler's pod is woken", name)
        mine = self.wakes.setdefault(uid, deque())
        for times, seconds, most in ((mine, 60, WAKES_A_MINUTE), (self.all_wakes, 10,
                                                                  WAKES_IN_TEN_S)):
            times.append(now)
            while times[0] < now - seconds:
                times.popleft()
            if len(times) == most + 1:
                self.wrong(f"more than {most} wakes in {seconds} s", name)

    # ---- when all is quiet

    def expected(self):
        """name -> (node, GPUs, units on each, exactly?)"""
        want = {}
        for place, _ in self.standing():
            node = self.api.nodes.get(place.node)
            if not node:
                continue
            gpus = inventory(node)
            told = place.uid in json.loads(annotation(node, MOVED) or "{}")
            exact = not place.loose and (told or all(
                gpu in gpus and gpus[gpu]["mem"] >= place.share for gpu in place.gpus))
            want[place.name] = (place.node, set(place.gpus), place.share, exact)
        return want

    def compare(self, client, inspect, metrics):
        """What differs between a ledger and the API, in words."""
        self.compared += 1
        told, sums, differ = {}, {}, []
        for node in inspect["nodes"]:
            for gpu in node.get("devs") or []:
                sums[(node["name"], int(gpu["id"]))] = gpu["usedGPU"]
                for pod in gpu.get("pods") or []:
                    entry = told.setdefault(f"{pod['namespace']}/{pod['name']}",
                                            (node["name"], {}))
                    entry[1][int(gpu["id"])] = pod["usedGPU"]
        want, loose = self.expected(), set()
        for name, (node, gpus, share, exact) in want.items():
            at, has = told.pop(name, (None, {}))
            if not exact:
                loose.update((node, gpu) for gpu in gpus.union(has))
                continue
            if at != node or has != dict.fromkeys(gpus, share):
                differ.append(f"{name} is on {node} {sorted(gpus)} with {share} each, the ledger "
                              f"says {at} {has}")
        for name, (node, has) in told.items():
            pod = self.api.pods.get(tuple(name.split("/")))
            uid = pod and pod["metadata"]["uid"]
            if pod and not pod["spec"].get("nodeName") and self.open_at(uid):
                loose.update((node, gpu) for gpu in has)
            elif node in self.api.nodes:
                state = "is not in the API" if not pod else \
                    "is not bound" if not pod["spec"].get("nodeName") else \
                    "has ended" if ended(pod) else "is elsewhere"
                differ.append(f"{name} {state}, the ledger has it on {node} {has}")
        overfull = 0
        truth = self.used()
        for name, node in self.api.nodes.items():
            for gpu, has in inventory(node).items():
                units = truth.get((name, gpu), (0,))[0]
                overfull += units > has["mem"]
                if (name, gpu) in loose or not has["mem"]:
                    continue
                if sums.get((name, gpu), 0) != units:
                    differ.append(f"{name} GPU {gpu}: {units} by the API, "
                                  f"{sums.get((name, gpu))} by inspect")
                for key, value in metrics.items():
                    if key.startswith("gpushare_gpu_memory_allocated_bytes{") and \
                            f'node="{name}"' in key and f'gpu="{gpu}"' in key and \
                            value != units * GIB:
                        differ.append(f"{key} is {value}, not {units} GiB")
        if not loose:
            for key, right in (("gpushare_overcommitted_gpus", overfull),
                               ("gpushare_binding_pods", 0), ("gpushare_allocated_pods", len(want))):
                if metrics.get(key) != right:
                    differ.append(f"{key} is {metrics.get(key)}, not {right}")
        return differ

    def open_at(self, uid):
        """The node to which a Binding without a sure outcome may bind it yet."""
        when, node = self.unanswered.get(uid, (0, None))
        return node if time.monotonic() - when < OPEN_S else None

    def old_offers(self):
        now = time.monotonic()
        found = []
        for uid, (since, client, _) in list(self.offers.items()):
            pod = self.by_uid(uid)
            node = pod and pod["status"].get("nominatedNodeName")
            if not node:
                del self.offers[uid]
            elif now - max(since, self.last_kill, self.api.back_at) > OFFER_S and \
                    self.open_at(uid) != node:
                found.append(f"{pod['metadata']['name']} to {pod['status']['nominatedNodeName']} "
                             f"by {client.name}, {now - since:.0f} s ago")
        return found
