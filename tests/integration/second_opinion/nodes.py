# SPDX-License-Identifier: Apache-2.0
"""What happens to nodes, and what their device plugins tell of it: the word that the extender
follows (docs/contract.md, section 4)."""

import copy
import json

from objects import (CORDON, IDX, INVENTORY, MOVED, annotation, count_of, inventory,
                     new_node, record_of, set_inventory, usable)

SIZES = [[16, 16], [16], [8, 8, 16], [24, 24, 24, 24], [15, 24], [80, 80]]
JUNK = ["{", "[]", '{"a":[0],"a":[1]}', "x" * 140000, '{"a":0}', '{"a":[0]']


class Nodes:
    def __init__(self, world):
        self.world, self.api, self.rng = world, world.api, world.rng_of("nodes")
        self.silent = set()         # nodes whose plugin does not answer

    def begin(self):
        for at, sizes in enumerate(SIZES[:5]):
            self.api.put(self.labelled(new_node(f"n{at}", sizes)))
        self.api.put(self.labelled(new_node("mig", [5, 5, 10, 20], max_pods=1)))
        self.api.put(self.labelled(new_node("many", [24, 24], max_pods=3)))
        self.api.put(self.labelled(new_node("original", [16, 16], original=True)))
        self.api.put(new_node("plain", None))

    def labelled(self, node):
        node["metadata"]["labels"]["zone"] = self.rng.choice("ab")
        return node

    def ours(self):
        return [name for name, node in self.api.nodes.items()
                if annotation(node, INVENTORY) is not None]

    def changed(self, name, takes=True):
        """takes: room is not what it was, so that binds may be excused until it is told."""
        seq = self.api.put(self.api.nodes[name])
        if takes:
            self.world.oracle.touch(name, "nodes", seq)

    # ---- the device plugins

    def tell(self, name):
        """One round of a plugin: entries for pods that are not where their object says, none for
        pods that are gone; then their records are written back."""
        node = self.api.nodes.get(name)
        if not node or name in self.world.oracle.junk or annotation(node, MOVED) is None:
            return
        entries = json.loads(annotation(node, MOVED))
        here = [(place, pod) for place, pod in self.world.oracle.standing() if place.node == name]
        alive = {pod["metadata"]["uid"] for pod in self.api.pods.values()}
        told = {uid: gpus for uid, gpus in entries.items() if uid in alive}
        wrong = [(place, pod) for place, pod in here
                 if record_of(pod) != place.gpus or count_of(pod) != len(place.gpus)]
        for place, _ in wrong:
            told[place.uid] = place.gpus
        for place, _ in here:
            if place.uid in told:
                told[place.uid] = place.gpus
        if told != entries:
            node["metadata"]["annotations"][MOVED] = json.dumps(told)
            self.changed(name, any(told[uid] != entries.get(uid) for uid in told))
        for place, pod in wrong:
            place.disputed = False
            if record_of(pod) != place.gpus:
                pod["metadata"]["annotations"][IDX] = ",".join(map(str, place.gpus))
                self.api.touch(pod)

    def tell_all(self):
        for name in list(self.api.nodes):
            if name not in self.silent:
                self.tell(name)

    def move(self, changes):
        """The plugin puts pods on other GPUs of their node: all entries in one patch."""
        node = self.api.nodes[changes[0][0].node]
        entries = json.loads(annotation(node, MOVED))
        for place, gpus in changes:
            place.gpus = gpus
            entries[place.uid] = gpus
        node["metadata"]["annotations"][MOVED] = json.dumps(entries)
        self.changed(node["metadata"]["name"])

    # ---- events

    def movable(self):
        return [(place, pod) for place, pod in self.world.oracle.standing()
                if len(place.gpus) == 1 and not place.loose and place.node in self.ours() and
                place.node not in self.world.oracle.junk and place.node not in self.silent]

    def exchange(self):
        """Two equal pods were taken for each other."""
        alike = {}
        for place, _ in self.movable():
            alike.setdefault((place.node, place.share, place.cores), []).append(place)
        pairs = [places for places in alike.values() if len(places) > 1]
        if not pairs:
            return None
        one, other = self.rng.sample(self.rng.choice(pairs), 2)
        if one.gpus == other.gpus:
            return None
        self.move([(one, other.gpus), (other, one.gpus)])
        return one.name, other.name, one.node

    def another_gpu(self):
        """A GPU went bad between bind and Allocate: the pod gets another with room."""
        used = self.world.oracle.used()
        found = self.movable()
        self.rng.shuffle(found)
        for place, _ in found:
            node = self.api.nodes[place.node]
            for gpu, has in inventory(node).items():
                units, cores, pods = used.get((place.node, gpu), (0, 0, 0))
                if [gpu] != place.gpus and usable(node, has) and cores + place.cores <= 100 and \
                        units + place.share <= has["mem"] and pods < has.get("maxPods", 99):
                    self.move([(place, [gpu])])
                    return place.name, place.node, gpu
        return None

    def one_gpu(self):
        name = self.rng.choice(self.ours() or [None])
        if name is None:
            return None, None, None
        gpus = inventory(self.api.nodes[name])
        return name, gpus, self.rng.choice(list(gpus.values()))

    def health(self):
        name, gpus, gpu = self.one_gpu()
        if not name:
            return None
        what = self.rng.choice(["healthy", "healthy", "schedulable"])
        gpu[what] = not gpu[what]
        set_inventory(self.api.nodes[name], gpus)
        self.changed(name)
        return name, gpu["idx"], what, gpu[what]

    def resize(self):
        name, gpus, gpu = self.one_gpu()
        if not name:
            return None
        gpu["mem"] = max(1, gpu["mem"] + self.rng.choice([-8, -4, -1, 1, 4, 8]))
        set_inventory(self.api.nodes[name], gpus)
        self.changed(name)
        return name, gpu["idx"], gpu["mem"]

    def max_pods(self):
        name, gpus, gpu = self.one_gpu()
        if not name:
            return None
        most = self.rng.choice([None, 1, 2, 5])
        if most:
            gpu["maxPods"] = most
        else:
            gpu.pop("maxPods", None)
        set_inventory(self.api.nodes[name], gpus)
        self.changed(name)
        return name, gpu["idx"], most

    def cordon(self):
        name, _, gpu = self.one_gpu()
        if not name:
            return None
        notes = self.api.nodes[name]["metadata"]["annotations"]
        if self.rng.random() < 0.5:
            notes.pop(CORDON, None)
        else:
            notes[CORDON] = self.rng.choice([str(gpu["idx"]), gpu["uuid"], f" {gpu['uuid']} , 99"])
        self.changed(name)
        return name, notes.get(CORDON)

    def label(self):
        """Labels, taints, cordons: kube-scheduler's, and the offers'."""
        name, rng = self.rng.choice(list(self.api.nodes)), self.rng
        node, kind = self.api.nodes[name], self.rng.random()
        if kind < 0.4:
            node["metadata"]["labels"]["zone"] = rng.choice("ab")
        elif kind < 0.7 and node["spec"].pop("taints", None) is None:
            node["spec"]["taints"] = [{"key": "dedicated", "value": "other",
                                       "effect": rng.choice(["NoSchedule", "NoExecute"])}]
        elif node["spec"].pop("unschedulable", None) is None and rng.random() < 0.5:
            node["spec"]["unschedulable"] = True
        self.changed(name, takes=False)
        return name, node["spec"].get("taints"), node["spec"].get("unschedulable")

    def vanish(self):
        """And it comes back: the same cards or others, its plugin telling where everybody is."""
        names = self.ours()
        if len(names) < 5:
            return None
        name = self.rng.choice(names)
        node = self.api.nodes[name]
        self.api.delete("nodes", name)
        self.world.oracle.junk.discard(name)
        self.world.away += 1
        self.api.later(self.rng.random() * 3, self.back, copy.deepcopy(node))
        return name

    def back(self, node):
        name = node["metadata"]["name"]
        gpus = inventory(node)
        if self.rng.random() < 0.3:
            for gpu in gpus.values():
                gpu["mem"] = max(1, gpu["mem"] + self.rng.choice([-2, 0, 0, 4]))
            set_inventory(node, gpus)
        node["metadata"]["uid"] += "+"
        here = {place.uid: place.gpus for place, _ in self.world.oracle.standing()
                if place.node == name}
        node["metadata"]["annotations"][MOVED] = json.dumps(here)
        for place, _ in self.world.oracle.standing():
            if place.node == name:
                place.disputed = False
        self.world.oracle.touch(name, "nodes", self.api.put(node))
        self.world.away -= 1

    def unreadable(self):
        """The list of moved pods cannot be read: the one before it stands."""
        name = self.rng.choice(self.ours() or [None])
        if name is None or name in self.world.oracle.junk:
            return None
        node = self.api.nodes[name]
        good = annotation(node, MOVED)
        self.world.oracle.junk.add(name)
        node["metadata"]["annotations"][MOVED] = junk = self.rng.choice(JUNK)
        self.changed(name)
        self.api.later(self.rng.random() * 3, self.readable, name, good)
        return name, junk[:20]

    def readable(self, name, good):
        self.world.oracle.junk.discard(name)
        node = self.api.nodes.get(name)
        if not node:
            return
        entries = json.loads(good)
        for place, _ in self.world.oracle.standing():
            if place.node == name and place.uid in entries:
                entries[place.uid] = place.gpus
        node["metadata"]["annotations"][MOVED] = json.dumps(entries)
        self.changed(name)

    def strangers(self):
        """Entries of pods that are gone, and of nobody: up to the list's ceiling."""
        name = self.rng.choice(self.ours() or [None])
        if name is None or name in self.world.oracle.junk:
            return None
        node = self.api.nodes[name]
        entries = json.loads(annotation(node, MOVED))
        if len(entries) < 100:
            entries.update({f"gone-{at}": [self.rng.randrange(64)]
                            for at in range(self.rng.choice([1, 50, 900]))})
        node["metadata"]["annotations"][MOVED] = json.dumps(entries)
        self.changed(name, takes=False)
        return name

    def silence(self):
        """A plugin that tells nothing for a while."""
        name = self.rng.choice(self.ours() or [None])
        if name is None:
            return None
        self.silent.add(name)
        self.api.later(self.rng.random() * 8, self.silent.discard, name)
        return name
