#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program between a kubelet and an API server: how it leaves, and that it does not grow.

  node_limits.py BUILD"""

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import urllib.request

from node_world import ASSIGNED, IDX, Api, Kubelet, Plugin, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from programs import free_port  # noqa: E402

ENDING_S = 13       # of the 30 after which the kubelet kills; one request to a silent API server takes 15
ROUNDS, WARM, GROWTH_KIB = 1500, 300, 64


def equal(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r} instead of {wanted!r}")


class World:
    def __init__(self, build, cards, *flags):
        self.folder = tempfile.mkdtemp(prefix="node-limits-")
        os.chmod(self.folder, 0o755)
        os.mkdir(f"{self.folder}/kubelet")
        self.api = Api(self.folder, build)
        self.kubelet = Kubelet(f"{self.folder}/kubelet", random.Random(1))
        self.plugin = Plugin(self.folder, build, self.api)
        self.plugin.set_cards(cards)
        self.plugin.command += [flag.replace("{folder}", self.folder) for flag in flags]
        self.uids = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for stop in (self.plugin.kill if self.plugin.process else lambda: None, self.kubelet.stop,
                     self.api.stop):
            stop()
        if kind:
            with open(self.plugin.log, encoding="utf-8") as log:
                print(log.read()[-4000:], file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        self.plugin.start()
        wait_for("the node has an inventory", lambda: self.api.node("gpu-inventory"))

    def is_open(self):
        return any(gpu["schedulable"] for gpu in self.api.node("gpu-inventory").get("gpus", []))

    def serves(self, name):
        """A pod comes, starts and goes."""
        equal(envs(self.admit(name, 4, 0))["NVIDIA_VISIBLE_DEVICES"], "GPU-a", name)
        equal(self.start_container(name), None, f"the start of {name}")
        self.end(name)

    def leave(self):
        self.plugin.process.send_signal(signal.SIGTERM)
        return time.monotonic()

    def has_left(self, since):
        equal(self.plugin.process.wait(60), 0, "the exit code")
        if time.monotonic() - since > ENDING_S:
            raise AssertionError(f"it took {time.monotonic() - since} s to end")

    def written_kib(self):
        """What the process has written itself: pages of its files are its own or shared as other processes come and go."""
        with open(f"/proc/{self.plugin.process.pid}/smaps_rollup", encoding="ascii") as rollup:
            return sum(int(line.split()[1]) for line in rollup if line.startswith("Private_Dirty:"))

    def admit(self, name, units, idx):
        """What the container is given: an answer to Allocate."""
        uid = self.uids[name] = self.api.make_pod(
            name, units, {IDX: str(idx), ASSIGNED: "false"})
        return self.kubelet.admit(uid, units)

    def start_container(self, name):
        return self.kubelet.start_container(self.uids[name])

    def end(self, name):
        self.api.phase(name, "Succeeded")
        self.api.delete(name)
        self.kubelet.forget(self.uids[name])


def envs(answer):
    return {env.key: env.value for env in answer.envs}


class Patient(Kubelet):
    """It registers plugins, and reads their lists when it may."""
    may = threading.Event()

    def listen(self, channel):
        self.may.wait()
        super().listen(channel)


def it_leaves_without_losing_a_pod(build):
    """An upgrade: the kubelet has the next plugin's list before pods may come; on SIGTERM nothing new comes to the node, and
    what was bound just before is still served."""
    with World(build, [("GPU-a", 16)]) as world:
        world.kubelet.stop()
        world.kubelet = Patient(f"{world.folder}/kubelet", random.Random(1))
        world.plugin.start()
        wait_for("registration", lambda: world.kubelet.channel)
        time.sleep(1)
        equal(world.is_open(), False, "open before the kubelet has the list")
        world.kubelet.may.set()
        wait_for("the node is open", world.is_open)
        since = world.leave()
        wait_for("the node is closed", lambda: not world.is_open())
        world.serves("late")
        world.has_left(since)
        equal(world.is_open(), False, "open after the end")


def it_ends_in_time_while_the_api_is_silent(build):
    for record in (False, True):    # one on its way
        with World(build, [("GPU-a", 16)]) as world:
            world.start()
            wait_for("the node is open", world.is_open)
            uid = world.api.make_pod("p", 4, {IDX: "0", ASSIGNED: "false"})
            time.sleep(.3)          # the watch brings it
            world.api.hang(True)
            if record:
                world.kubelet.admit(uid, 4)
            world.has_left(world.leave())
            world.api.hang(False)


def pods_leave_nothing_behind(build):
    """While its pages are read: another thread than the one that answers the kubelet writes them."""
    port = free_port()
    with World(build, [("GPU-a", 16)], f"--health-listen=127.0.0.1:{port}") as world:
        world.start()
        pages, sizes = 0, []
        rounds = ROUNDS if not build.endswith("tsan") else 2 * WARM     # its own bookkeeping grows
        for number in range(rounds):
            world.serves(f"p{number}")
            if number % 10 == 0:
                for page, words in (("metrics", b"\ngpushare_"), ("healthz", b"ok")):
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60) as answer:
                        pages += words in answer.read()
            sizes.append(world.written_kib())
        equal(pages, rounds // 5, "pages that were whole")
        warm, end = min(sizes[WARM - 50:WARM]), min(sizes[-50:])    # a page is being written in some rounds
        print(f"memory written: {warm} KiB after {WARM} pods, {end} KiB after {rounds}")
        if rounds == ROUNDS and end > warm + GROWTH_KIB:
            raise AssertionError("it grows")


def main():
    for case in (it_leaves_without_losing_a_pod, it_ends_in_time_while_the_api_is_silent, pods_leave_nothing_behind):
        case(os.path.abspath(sys.argv[1]))
        print(f"ok    {case.__name__}", flush=True)


main()
