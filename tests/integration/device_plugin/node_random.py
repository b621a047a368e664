#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The device plugin on a node where everything happens: pods of one to three containers, init
containers and sidecars, taken in as they were bound; a kubelet that is restarted, or dies before it
wrote an answer down; a plugin that is killed; an API server that hangs; names
that come again; owners who write their records over; cards that vanish and come back in another
order. When all is quiet, every pod runs on the card that its record and the node's word name, and
no card is overfull.

  node_random.py BUILD [--seconds 25] [--seed N]

A pod that is failed or held back for good although nobody was silent is lost. Where the kubelet or
the API did not answer in time (a loaded machine), pods are matched by guess: they may be held back,
which is counted, but nothing may be wrong."""

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time

from node_world import ASSIGNED, IDX, PODS, Api, Kubelet, Plugin, wait_for

CARDS = [("GPU-a", 16), ("GPU-b", 16), ("MIG-c", 24)]
START_S, QUIET_S = 20, 40


class Pod:
    def __init__(self, name, boxes, uid, bound):
        self.name, self.boxes, self.uid, self.bound = name, boxes, uid, bound
        self.cards, self.runs, self.sure = {}, False, True

    def charge(self):
        """The peak: the largest init container beside the sidecars before it, or all that stays."""
        stays = peak = 0
        for name, units in self.boxes:
            if name[0] == "i":
                peak = max(peak, stays + units)
            else:
                stays += units
        return max(peak, stays)


class World:
    def __init__(self, build, seed):
        self.random = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="gpushare-node.")
        os.mkdir(f"{self.folder}/kubelet")
        self.api = Api(self.folder, build)
        self.plugin = Plugin(self.folder, build, self.api)
        self.cards = list(CARDS)
        self.plugin.set_cards(self.cards)
        self.kubelet = Kubelet(f"{self.folder}/kubelet", self.random)
        self.plugin.start()
        self.pods, self.made, self.happened = {}, 0, []
        self.counts = {"pods": 0, "wrong": 0, "lost": 0, "guessed": 0}
        wait_for("the inventory", lambda: self.api.node("gpu-inventory"))

    def close(self, failed):
        self.plugin.kill()
        self.kubelet.stop()
        self.api.stop()
        if failed:
            print(f"logs: {self.folder}")
        else:
            shutil.rmtree(self.folder)

    # ---- the extender's part: the node's word, then the bind

    def indices(self):
        return {gpu["uuid"]: gpu["idx"] for gpu in self.api.node("gpu-inventory")["gpus"]}

    def free(self):
        uuids = {idx: uuid for uuid, idx in self.indices().items()}
        moved = self.api.node("gpu-reassigned")
        free = {uuid: units for uuid, units in self.cards if uuid in uuids.values()}
        for pod in self.pods.values():
            place = moved.get(pod.uid, [pod.bound])[0]
            if place is not None and uuids.get(place) in free:
                free[uuids[place]] -= pod.charge()
        return free

    def bind(self, name, boxes, by_hand=False):
        pod = Pod(name, boxes, None, None)
        fits = [uuid for uuid, units in self.free().items() if units >= pod.charge()]
        if not fits:
            return None
        pod.bound = None if by_hand else self.indices()[self.random.choice(fits)]
        pod.uid = self.api.make_pod(name, boxes, pod.bound)
        self.pods[name] = pod
        self.counts["pods"] += 1
        return pod

    def draw_boxes(self):
        size = lambda: self.random.choice([2, 4, 4, 6, 8])
        return self.random.choice([
            [("c0", size())], [("c0", size())], [("c0", size()), ("c1", size())],
            [("c0", 2), ("c1", 2), ("c2", 4)], [("i0", size()), ("c0", size())],
            [("i0", 4), ("c0", 4), ("c1", 2)], [("s0", 4), ("c0", 4)],
            [("i0", 4), ("s0", 2), ("c0", 4)]])

    # ---- what happens

    def kill_plugin(self):
        """The API may be away just then."""
        timer = self.hang_api() if self.random.random() < .3 else None
        self.happened.append("plugin killed")
        self.plugin.kill()
        self.kubelet.devices = {}
        self.plugin.start()
        wait_for("the plugin is back", lambda: self.kubelet.devices)
        if timer:
            timer.join()

    def restart_kubelet(self):
        self.happened.append("kubelet restarted")
        self.kubelet.restart()
        wait_for("the plugin registers again", lambda: self.kubelet.devices)

    def hang_api(self):
        """For a while."""
        self.happened.append("API hangs")
        self.api.hang(True)
        timer = threading.Timer(self.random.choice([.2, 1, 3]), self.api.hang, [False])
        timer.start()
        return timer

    def move_cards(self):
        """One goes, or all are there again; in another order."""
        busy = {uuid for pod in self.pods.values() for uuid in pod.cards.values()}
        idle = [card for card in self.cards if card[0] not in busy]
        if len(self.cards) == len(CARDS) and idle:
            self.cards.remove(self.random.choice(idle))
        else:
            self.cards = list(CARDS)
        self.random.shuffle(self.cards)
        self.happened.append(f"cards {self.cards}")
        self.plugin.set_cards(self.cards)
        here = {uuid for uuid, _ in self.cards}
        wait_for("the cards are told", lambda: {
            gpu["uuid"] for gpu in self.api.node("gpu-inventory")["gpus"]
            if gpu.get("healthy", True)} == here)

    def write_over(self):
        """A pod's owner names another GPU."""
        pod = self.random.choice(list(self.pods.values()))
        self.happened.append(f"{pod.name} written over")
        self.api.patch(f"{PODS}/{pod.name}", {"metadata": {"annotations": {
            IDX: self.random.choice(["0", "1", "2", "0,1", "x", None])}}})

    def end(self, pod, phase=None):
        if phase:
            self.api.phase(pod.name, phase)
        if self.random.random() < .5:
            self.kubelet.forget(pod.uid)
        self.api.delete(pod.name)
        self.kubelet.forget(pod.uid)
        self.pods.pop(pod.name)

    def silent(self):
        return self.plugin.silences() > self.silences

    def guessed(self):
        """What was guessed for init containers, which no kubelet lists, is checked by nobody."""
        for pod in self.pods.values():
            pod.sure = pod.sure and pod.runs

    def lose(self, pod, why):
        silent = self.silent()
        self.counts["guessed" if silent else "lost"] += 1
        if not silent:
            print(f"LOST {pod.name} {pod.boxes} {pod.cards} {why}: {self.happened}", flush=True)
        self.end(pod, "Failed")

    # ---- a round

    def take_in(self, pod):
        timer = None
        if self.random.random() < .05:
            self.restart_kubelet()
        if self.random.random() < .05:
            self.kill_plugin()
        if self.random.random() < .06:
            timer = self.hang_api()
        answer = self.kubelet.admit(pod.uid, pod.name, pod.boxes,
                                    lambda box: self.random.random() < .03)
        if timer:
            timer.join()
        if self.silent():
            self.guessed()
        if isinstance(answer, str):
            self.lose(pod, answer)
        else:
            pod.cards = answer

    def start(self, pod):
        end = time.monotonic() + START_S
        for box, _ in pod.boxes:
            why = self.kubelet.start_container(pod.uid, box)
            while why and time.monotonic() < end:
                time.sleep(.5)
                why = self.kubelet.start_container(pod.uid, box)
            if why:
                self.lose(pod, why)
                return
        self.api.phase(pod.name, "Running")
        pod.runs = True

    def wrongs(self):
        uuids = {gpu["idx"]: gpu["uuid"] for gpu in self.api.node("gpu-inventory")["gpus"]}
        moved, full, wrong = self.api.node("gpu-reassigned"), {}, []
        for pod in self.pods.values():
            notes = self.api.annotations(pod.name)
            cards = {card for box, card in pod.cards.items() if pod.sure or box[0] != "i"}
            recorded = {uuids.get(int(i)) if i.isdigit() else i
                        for i in notes.get(IDX, "").split(",")}
            told = {uuids.get(i) for i in moved.get(pod.uid, [pod.bound])}
            if not cards == recorded == told or notes.get(ASSIGNED) != "true":
                wrong.append((pod.name, pod.boxes, pod.cards, recorded, told, notes.get(ASSIGNED)))
            for uuid in cards:
                full[uuid] = full.get(uuid, 0) + pod.charge()
        wrong += [(uuid, full.get(uuid, 0)) for uuid, units in CARDS if full.get(uuid, 0) > units]
        stale = set(moved) - {pod.uid for pod in self.pods.values()}
        return wrong + [("stale entry", uid) for uid in stale]

    def check(self):
        end = time.monotonic() + QUIET_S
        wrong = self.wrongs()
        while wrong and time.monotonic() < end:
            time.sleep(.25)
            wrong = self.wrongs()
        if wrong:
            self.counts["wrong"] += len(wrong)
            print(f"WRONG {wrong}: {self.happened}", flush=True)
            for pod in list(self.pods.values()):
                self.end(pod)

    def round(self):
        self.happened, self.silences = [], self.plugin.silences()
        if self.random.random() < .2:
            self.move_cards()
        batch = []
        for _ in range(self.random.randint(1, 4)):
            self.made += 1
            batch.append(self.bind(f"p{self.made}", self.draw_boxes()))
        if self.pods and self.random.random() < .2:  # a StatefulSet's, deleted and made anew
            old = self.random.choice(list(self.pods.values()))
            if old.runs:
                self.end(old)
                batch.append(self.bind(old.name, old.boxes))
        if self.random.random() < .2:  # the last: an extender would not know of it
            self.made += 1
            batch.append(self.bind(f"p{self.made}", self.draw_boxes(), by_hand=True))
        batch = [pod for pod in batch if pod]
        for pod in batch:
            self.take_in(pod)
        if self.pods and self.random.random() < .2:
            self.write_over()
        if self.random.random() < .1:
            self.kill_plugin()
        for pod in self.random.sample(batch, len(batch)):
            if pod.name in self.pods and self.pods[pod.name] is pod:
                self.start(pod)
        self.check()
        for pod in [p for p in self.pods.values() if self.random.random() < .45]:
            self.end(pod, self.random.choice([None, "Succeeded"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    world = World(os.path.abspath(options.build), options.seed)
    end, rounds, failed = time.monotonic() + options.seconds, 0, True
    try:
        while time.monotonic() < end:
            world.round()
            rounds += 1
        failed = world.counts["wrong"] + world.counts["lost"] > 0
    finally:
        world.close(failed)
    print(f"seed {options.seed}: {rounds} rounds, " +
          ", ".join(f"{count} {what}" for what, count in world.counts.items()))
    sys.exit(1 if failed or not world.counts["pods"] else 0)


main()
