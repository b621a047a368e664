# SPDX-License-Identifier: Apache-2.0
"""What owners of pods do: create, edit, end, delete, make anew under a name, bind by hand."""

import copy
import uuid

import texts
from objects import (ASSIGNED, CORES, COUNT, DEV, IDX, LISTS, MEM, MOVED, SPLIT, WAKE, annotation,
                     charged, count_of, inventory, peak, record_of, usable)

PENDING_MOST = 40


class Tenants:
    def __init__(self, world):
        self.world, self.api, self.rng = world, world.api, world.rng_of("tenants")
        self.serial = 0

    # ---- pods

    def box(self, name, units, cores=0):
        limits = {"cpu": "0"} if self.rng.random() < 0.1 else {}
        if units:
            limits[MEM] = texts.amount(self.rng, units)
        if cores:
            limits[CORES] = str(cores)
        return {"name": name, "image": "i", "resources": {"limits": limits,
                                                          "requests": dict(limits)}}

    def spec(self):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.15:
            count = rng.choice([2, 2, 3, 4])
            return [self.box("c", rng.choice([1, 2, 4, 8]) * count)], [], count
        if kind < 0.35:
            return [self.box("c", rng.choice([1, 2, 4, 8]),
                             rng.choice([10, 25, 30, 50, 60, 100]))], [], None
        if kind < 0.5:
            inits = [self.box("i", rng.choice([2, 6, 10]), rng.choice([0, 0, 40, 80]))]
            if rng.random() < 0.5:
                inits.insert(0, {**self.box("s", rng.choice([1, 2]), rng.choice([0, 0, 10])),
                                 "restartPolicy": "Always"})
            return [self.box("a", rng.choice([1, 2, 4])), self.box("b", rng.choice([0, 1, 2]))], \
                inits, None
        return [self.box("c", rng.choice([1, 2, 3, 4, 6, 8, 8, 12, 16, 16, 24]))], [], None

    def make(self, name=None):
        rng = self.rng
        self.serial += 1
        containers, inits, count = self.spec()
        pod = {"kind": "Pod", "apiVersion": "v1",
               "metadata": {"name": name or f"p{self.serial}", "uid": str(uuid.UUID(
                   int=rng.getrandbits(128), version=4)),
                   "namespace": rng.choice(["team-a", "team-a", "team-b", "team-c"]),
                   "labels": {}, "annotations": {}},
               "spec": {"containers": containers, "priority": rng.choice([0, 0, 0, 5, 10, 100]),
                        "schedulerName": "default-scheduler"},
               "status": {"phase": "Pending"}}
        if inits:
            pod["spec"]["initContainers"] = inits
        if count:
            where = "labels" if rng.random() < 0.8 else "annotations"
            pod["metadata"][where][COUNT] = str(count)
        notes = pod["metadata"]["annotations"]
        if rng.random() < 0.06:
            notes["aliyun.com/gpu-model"] = rng.choice(["T4", "a100", "A100,T4"])
        if rng.random() < 0.05:
            notes[rng.choice(list(LISTS))] = rng.choice(texts.LISTS)
        if rng.random() < 0.1:
            notes["aliyun.com/gpu-placement"] = rng.choice(texts.PLACEMENTS)
        if rng.random() < 0.08:
            self.forge(notes)
        if rng.random() < 0.1:
            pod["spec"]["nodeSelector"] = {"zone": rng.choice("ab")}
        if rng.random() < 0.3:
            pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        if rng.random() < 0.05:
            pod["spec"]["preemptionPolicy"] = "Never"
        return pod

    def forge(self, notes):
        """A record on a pod that waits: it says nothing, and bind writes over it."""
        notes[IDX] = self.rng.choice(texts.RECORDS)
        notes[SPLIT] = self.rng.choice(texts.SPLITS)
        notes[DEV] = "1"
        if self.rng.random() < 0.5:
            notes[ASSIGNED] = "true"

    def waiting(self):
        return [pod for pod in self.api.pods.values() if not pod["spec"].get("nodeName")]

    def bound(self):
        return [pod for pod in self.api.pods.values() if charged(pod)]

    def pick(self, pods):
        return self.rng.choice(pods) if pods else None

    # ---- events

    def create(self):
        if len(self.waiting()) < PENDING_MOST:
            pod = self.make()
            self.api.put(pod)
            return pod["metadata"]["name"], peak(pod["spec"], MEM)
        return None

    def create_gated(self):
        pod = self.make()
        if self.rng.random() < 0.5:
            pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
        else:
            pod["spec"]["schedulerName"] = "other-scheduler"
        if sum(1 for one in self.waiting() if not self.world.scheduler.waits(one)) < 30:
            self.api.put(pod)
        return pod["metadata"]["name"]

    def open_gate(self):
        pod = self.pick([pod for pod in self.waiting() if pod["spec"].get("schedulingGates")])
        if pod:
            del pod["spec"]["schedulingGates"]
            self.api.touch(pod)

    def end(self):
        pod = self.pick(self.bound())
        if not pod:
            return None
        if self.rng.random() < 0.4:
            pod["status"]["phase"] = self.rng.choice(["Succeeded", "Failed"])
            self.api.touch(pod)
            self.api.later(self.rng.random() * 6, self.remove, pod)
        else:
            self.world.delete(pod, self.rng.random() * 4)
        return pod["metadata"]["name"]

    def remove(self, pod):
        if not charged(pod):        # it may live again by now
            self.api.del_pod(pod)

    def drop_waiting(self):
        pod = self.pick(self.waiting())
        if pod:
            self.api.del_pod(pod)
            return pod["metadata"]["name"]
        return None

    def anew(self):
        """Deleted and created again under its name, at once: another UID, other amounts."""
        pod = self.pick(self.waiting() if self.rng.random() < 0.6 else list(
            self.api.pods.values()))
        if not pod or pod["metadata"]["namespace"] == "kube-system":
            return None
        new = self.make(pod["metadata"]["name"])
        new["metadata"]["namespace"] = pod["metadata"]["namespace"]
        self.api.del_pod(pod)
        self.api.put(new)
        return pod["metadata"]["name"]

    def phase_back(self):
        """A kubelet may do so: a pod that had ended runs."""
        pod = self.pick([pod for pod in self.api.pods.values() if pod["spec"].get("nodeName") and
                         pod["status"].get("phase") == "Failed"])
        if not pod:
            return None
        pod["status"]["phase"] = "Running"
        self.world.oracle.touch(pod["spec"]["nodeName"], "pods", self.api.seq + 1)
        self.api.touch(pod)
        return pod["metadata"]["name"]

    def edit_waiting(self):
        pod, rng = self.pick(self.waiting()), self.rng
        if not pod:
            return None
        meta, kind = pod["metadata"], self.rng.random()
        if kind < 0.35:
            meta["labels"][COUNT] = rng.choice(texts.COUNTS)
        elif kind < 0.45:
            meta["labels"].pop(COUNT, None)
            meta["annotations"].pop(COUNT, None)
        elif kind < 0.6:
            meta["annotations"][rng.choice(list(LISTS))] = rng.choice(texts.LISTS)
        elif kind < 0.7:
            for key in LISTS:
                meta["annotations"].pop(key, None)
        elif kind < 0.8:
            meta["annotations"]["aliyun.com/gpu-placement"] = rng.choice(texts.PLACEMENTS)
        elif kind < 0.9:
            meta["annotations"][WAKE] = rng.choice(texts.WAKES)
        else:
            self.forge(meta["annotations"])
        self.world.edit(pod, "waiting", "")
        return meta["name"]

    def edit_bound(self):
        """The record, the count, the lists: none of it moves the charge."""
        pod, rng = self.pick(self.bound()), self.rng
        place = pod and self.world.oracle.places.get(pod["metadata"]["uid"])
        node = place and self.api.nodes.get(place.node)
        if not node or annotation(node, MOVED) is None:
            return None
        notes, kind = pod["metadata"]["annotations"], rng.random()
        if kind < 0.4:
            notes[IDX] = rng.choice(texts.RECORDS)
        elif kind < 0.5:
            notes.pop(IDX, None)
        elif kind < 0.7:
            pod["metadata"]["labels"][COUNT] = rng.choice(texts.COUNTS)
        elif kind < 0.8:
            notes[SPLIT] = rng.choice(texts.SPLITS)
        elif kind < 0.9:
            notes[rng.choice(list(LISTS))] = rng.choice(texts.LISTS)
        else:
            notes[DEV], notes[ASSIGNED] = "1", "false"
        if annotation(pod, IDX) != place.record or count_of(pod) != len(place.gpus):
            place.disputed = True
        self.api.touch(pod)
        return pod["metadata"]["name"], annotation(pod, IDX), count_of(pod)

    def edit_noise(self):
        """Deep, long and odd, where nobody of ours should look."""
        pod = self.pick(list(self.api.pods.values()))
        if not pod:
            return None
        deep = 1
        for _ in range(self.rng.choice([1, 30, 100, 1000])):
            deep = {"f:a": deep}
        if self.rng.random() < 0.3:
            pod["metadata"]["managedFields"] = [{"manager": "m\u0000\U0001f600",
                                                 "operation": "Update", "fieldsV1": deep}]
        pod["metadata"]["annotations"]['odd"\\\u2028'] = "a\u0000b\\\"{}[]" * 30
        pod["status"]["containerStatuses"] = [{"name": "c", "resources": {"limits": {MEM: "99"}},
                                               "allocatedResources": {MEM: "99"}}]
        box = pod["spec"]["containers"][0]
        box.setdefault("resources", {}).setdefault("limits", {})["cpu"] = \
            self.rng.choice(["100m", "1e-3", "9E", "1e30", "0.5"])
        self.api.touch(pod)
        return pod["metadata"]["name"]

    def by_hand(self):
        """nodeName set by its owner, or another scheduler: a record that is right, forged, or none.
        The device plugin gives it what it has, and tells; the original's does not."""
        rng = self.rng
        name = rng.choice(list(self.api.nodes) or [None])
        if name is None:
            return None
        node, pod = self.api.nodes[name], self.make()
        pod["metadata"]["labels"].pop(COUNT, None)
        pod["metadata"]["annotations"] = {}
        pod["status"]["phase"] = "Running"
        units, used = peak(pod["spec"], MEM), self.world.oracle.used()
        room = [gpu for gpu, has in inventory(node).items() if usable(node, has) and
                used.get((name, gpu), (0,))[0] + units <= has["mem"]]
        if not room:
            return None
        gpu, kind = rng.choice(room), rng.random()
        if kind < 0.4:
            pod["metadata"]["annotations"][IDX] = str(gpu)
        elif kind < 0.7:
            pod["metadata"]["annotations"][IDX] = rng.choice(texts.RECORDS)
        gpus, loose = [gpu], False
        if annotation(node, MOVED) is None and record_of(pod) != [gpu]:
            gpus, loose = sorted(inventory(node)), True
        other = self.pick([one for one in self.waiting()
                           if one["spec"]["schedulerName"] == "other-scheduler"])
        pod["spec"]["nodeName"] = name
        if other and rng.random() < 0.3:        # the other scheduler binds a pod of its own
            pod["metadata"].update(name=other["metadata"]["name"],
                                   namespace=other["metadata"]["namespace"])
            self.api.del_pod(other)
        seq = self.api.put(pod)
        self.world.oracle.add_by_hand(pod, gpus, seq, loose)
        return pod["metadata"]["name"], name, gpu, annotation(pod, IDX)

    def plain(self, units):
        """That may use every node that takes pods."""
        pod = self.probe()
        pod["metadata"].update(labels={}, annotations={})
        pod["spec"] = {"containers": [{"name": "c", "resources": {"limits": {MEM: str(units)}}}], "priority": 1000,
                       "schedulerName": "default-scheduler"}
        return pod

    def probe(self):
        """A pod for a question at a quiet moment, with nothing odd about it."""
        pod = self.make(f"probe{self.serial}")
        pod["spec"].pop("nodeSelector", None)
        return copy.deepcopy(pod)
