#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The device plugin as a program, on a node whose tenants and operator are both against it: records forged before
and after admission, gpu-count edited while the plugin is away, static pods (one with the UID of another), names
that come again under another UID; plugin, kubelet and API server restarted in any order; an API server that fails; a
kubelet that gives IDs twice, and whose checkpoint is torn or late; NVIDIA's plugin beside this one; cards lost and back in another order; unit,
overhead and mode of limits changed at a restart; the record's file torn, forged, deleted, put back; limits that are
lost. Limits are the kernel's, or the driver's without dmem: a mock that fails at times, that takes no
limit below use and counts where a limit is, while NVIDIA's toolkit gives containers limits of their own. Kernel,
driver and clock are a folder and files (tests/support/dmem_shim.c, fake_nvml.c, clock_shim.c).

  node_attack.py --build DIR [--seconds 60] [--seed N] [--sabotage all]

| what is so | when |
|---|---|
| what containers that started were promised on a card is at most its size | always |
| no limit of theirs on their cards is below the promise, none is a factor off | always |
| the node's unit is that of the pods that live; they have one | always |
| no container's own limit is raised | always |
| of a GPU whose word is dmem or driver, in inventory and metric, every pod that runs is limited there; the label says so of all GPUs | when all is quiet |
| a container's own limit is at most its pod's, and only lowered to below that, as it uses no more | when all is quiet |
| a pod's use is that of its cgroup and of its containers with limits other than its own | when all is quiet |
| a pod's record and the node's word name the cards that its containers were told | when all is quiet |
| who was bound where there is room is admitted | while nothing disturbs |
| who was bound where there is room starts | when all is quiet |

What a promise is, is read from the answers to the kubelet and docs/operate.md alone. A seed gives the same
events; how fast the program answers is its own."""

import json
import os
import shutil
import signal
import struct
import sys
import tempfile
import time
import urllib.request

from kubelet_messages import M
from node_world import ASSIGNED, IDX, PODS, Api, Kubelet, Plugin, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from attack import Wrong  # noqa: E402
from programs import free_port  # noqa: E402

GIB, STEPS, CALM_S = 1 << 30, 60, 60
CARDS = {"GPU-a": ("0000:41:00.0", 16), "GPU-b": ("0000:c1:00.0", 16), "GPU-c": ("0000:d1:00.0", 24)}
UNITS = {"GiB": 1024, "256MiB": 256, "MiB": 1}
COUNT, MIRROR, HASH = "aliyun.com/gpu-count", "kubernetes.io/config.mirror", "kubernetes.io/config.hash"
CLASSES = ["", "burstable/", "besteffort/"]


def region(uuid):
    return f"nvidia/{CARDS[uuid][0][:-2]}/vidmem"


class Kernel:
    """The cgroups of pods, and what the driver notes of them where the kernel has no dmem."""

    def __init__(self, root, dmem):
        self.root, self.dmem = root, dmem
        self.make("", top=True)
        if dmem:
            with open(f"{root}/dmem.capacity", "w", encoding="ascii") as out:
                out.writelines(f"{region(uuid)} {gib * GIB}\n" for uuid, (_, gib) in CARDS.items())
        for name in ("kubepods", "kubepods/burstable", "kubepods/besteffort"):
            self.make(name)

    def make(self, name, top=False):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        words = "cpu io memory pids dmem\n" if self.dmem else "cpu io memory pids\n"
        texts = {"cgroup.controllers": words, "cgroup.subtree_control": words}
        if self.dmem and not top:
            texts |= {"dmem.max": self.lines("max"), "dmem.current": self.lines("0")}
        for file, text in texts.items():
            with open(os.path.join(path, file), "w", encoding="ascii") as out:
                out.write(text)
        return path

    @staticmethod
    def lines(value):
        return "".join(f"{region(uuid)} {value}\n" for uuid in CARDS)

    def pod(self, uid, kind):
        return self.make(f"kubepods/{kind}pod{uid}")

    def limits(self, path):
        """{card: bytes, or None without a limit}"""
        if not self.dmem:
            return {uuid: self.note(path, f"limit.{uuid}") for uuid in CARDS}
        with open(f"{path}/dmem.max", encoding="ascii") as file:
            found = dict(line.split() for line in file)
        return {uuid: None if found[region(uuid)] == "max" else int(found[region(uuid)]) for uuid in CARDS}

    @staticmethod
    def note(path, name):
        """Of the driver's mock."""
        found = f"user.{name}" in os.listxattr(path) and int(os.getxattr(path, f"user.{name}"))
        return found if found and found < 1 << 63 else None

    @staticmethod
    def set_notes(path, what, values):
        for uuid, value in values.items():
            os.setxattr(path, f"user.{what}.{uuid}", str(value).encode())

    def used(self, path, uuid):
        return self.note(path, f"used.{uuid}") or 0

    def lose(self, path):
        for name in os.listxattr(path):
            os.removexattr(path, name)
        if self.dmem:
            with open(f"{path}/dmem.max.lost", "w", encoding="ascii") as out:
                out.write(self.lines("max"))
            os.rename(f"{path}/dmem.max.lost", f"{path}/dmem.max")


class Clock:
    def __init__(self, path):
        self.path, self.now_ns = path, 0
        self.shift(0)

    def shift(self, seconds):
        self.now_ns += int(seconds * 1e9)
        with open(self.path, "r+b" if os.path.exists(self.path) else "w+b") as file:
            file.write(struct.pack("=qqq", 0, self.now_ns, 0))


class Pod:
    def __init__(self, name, boxes, uid, count):
        self.name, self.boxes, self.uid, self.count = name, boxes, uid, count
        self.env, self.started, self.folder, self.forged = {}, set(), None, False
        self.kubelet_uid, self.bound, self.refused = uid, [], 0
        self.sure = False   # nothing has disturbed since it was bound
        self.own = {}       # container's folder -> the limit that the toolkit gave it

    def units(self):
        """The peak: an init container beside the sidecars before it, or all that stays."""
        stays = peak = 0
        for name, units in self.boxes:
            peak = max(peak, stays + units)
            stays += units if name[0] != "i" else 0
        return max(peak, stays)

    def cards(self):
        return sorted({uuid for env in self.env.values() for uuid in env["NVIDIA_VISIBLE_DEVICES"].split(",")})

    def unit_mib(self):
        """By what its containers were told: how many units their GPU has."""
        found = set()
        for env in self.env.values():
            uuid = env["NVIDIA_VISIBLE_DEVICES"].split(",")[0]
            mib = CARDS[uuid][1] * 1024 / int(env["ALIYUN_COM_GPU_MEM_DEV"])
            found.add(min(UNITS.values(), key=lambda one: abs(one - mib) if mib >= one * .9 else 1e9))
        return found

    def promise(self):
        """Bytes on each of its cards."""
        return self.units() // len(self.cards()) * min(self.unit_mib()) << 20

    def runs(self):
        return bool(self.started)


class Faulty(Api):
    server = ["tests/faulty-api", "--faults="]


class Guest(Kubelet):
    """Who also remembers what containers were told, gives IDs twice (up to 1.37, kubernetes#137534), and writes down
    with the next admission that a pod has ended."""
    twice = doubled = 0

    def draw(self, again, units):
        held = [ids[:units] for pod in self.pods.values() for ids in pod["ids"].values() if len(ids) >= units]
        if again or not held or self.random.random() >= self.twice:
            return super().draw(again, units)
        self.doubled += 1
        return self.random.choice(held)

    def forget(self, uid):
        with self.lock:
            self.pods.pop(uid, None)
            if self.random.random() < .5:
                self.write_checkpoint()

    @staticmethod
    def environment(pod, box):
        return {e.key: e.value for e in M["ContainerAnswer"].FromString(pod["answers"][box]).envs}


class World:
    def __init__(self, build, rng, deed):
        self.random, self.deed, self.events = rng, deed, []
        self.folder = tempfile.mkdtemp(prefix="node-attack.")
        os.mkdir(f"{self.folder}/kubelet")
        self.api = Faulty(self.folder, build)
        self.by, self.code = self.random.choice(["dmem", "driver"]), 0
        self.kernel = Kernel(f"{self.folder}/cgroup", self.by == "dmem")
        self.clock = Clock(f"{self.folder}/clock")
        self.plugin = Plugin(self.folder, build, self.api)
        self.base = [*self.plugin.command, "--enforce-by=dmem"]
        if self.by == "driver":
            self.base = [*self.plugin.command[:-2], f"--enforce-by={self.random.choice(['auto', 'driver'])}",
                         f"--nvml-library={build}/tests/libfake_nvml.so"]
        self.present, self.hung, self.pods, self.made, self.saved = list(CARDS), False, {}, 0, None
        self.options = {"unit": "GiB", "overhead": 0, "enforce": self.random.choice(["preferred", "required"]),
                        "foreign": self.random.random() < .5}
        self.counts = dict.fromkeys(["started", "refused", "held", "given up", "again", "plans", "torn", "beside",
                                     "own", "used", "by driver", "checks"], 0)
        self.counts["by driver"] = self.by == "driver"
        self.plan, self.beside = "", None
        self.port = free_port()
        self.put_cards()
        self.kubelet = Guest(f"{self.folder}/kubelet", self.random)
        self.kubelet.twice = self.random.choice([0, .1])
        os.environ.update(DMEM_SHIM_ROOT=f"{self.folder}/cgroup", GS_FAKE_NVML=self.plugin.cards, GS_CLOCK_FILE=f"{self.folder}/clock")
        self.build = build
        self.start_plugin()
        wait_for("the inventory", lambda: self.api.node("gpu-inventory"))

    def close(self, keep):
        if self.plugin.process.poll() is None:
            self.plugin.kill()
        self.kubelet.stop()
        self.api.stop()
        if not keep:
            shutil.rmtree(self.folder)

    # ---- programs

    def start_plugin(self):
        options = self.options
        overhead = [f"--overhead-mib={options['overhead']}", "--overhead-slots=4"] if options["overhead"] else []
        self.plugin.command = self.base + [
            f"--memory-unit={options['unit']}", f"--enforce={options['enforce']}", *overhead,
            f"--deny-unallocated-gpus={'true' if options['foreign'] else 'false'}",
            f"--cgroup-root={self.folder}/cgroup", f"--health-listen=127.0.0.1:{self.port}"]
        shims = [f"{self.build}/tests/lib{name}_shim.so" for name in ("dmem", "clock")]
        self.plugin.command = ["env", "LD_PRELOAD=" + ":".join(shims), "GPUSHARE_INVARIANTS=fatal", *self.plugin.command, "--pod-usage=on"]
        self.plugin.start()

    def alive(self):
        return self.plugin.process.poll() is None

    def put_cards(self):
        with open(f"{self.plugin.cards}.new", "w", encoding="utf-8") as file:
            if self.by == "driver":
                file.writelines(f"gpu {uuid} {CARDS[uuid][1] * 1024} 0 0000{CARDS[uuid][0]}\n" for uuid in self.present)
                file.write(f"limits {self.code} 0\n")
            else:
                json.dump({"v": 1, "unit": "GiB", "gpus": [
                    {"idx": idx, "uuid": uuid, "mem": CARDS[uuid][1], "memMiB": CARDS[uuid][1] * 1024,
                     "pci": CARDS[uuid][0]} for idx, uuid in enumerate(self.present)]}, file)
        os.rename(f"{self.plugin.cards}.new", self.plugin.cards)
        self.clock.shift(11)    # it is read again

    def settle(self, seconds=.25):
        """Real time; a plugin that ended by itself is started anew, as the kubelet does."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(.05)
            if not self.alive() and not self.hold_down:
                if self.plugin.process.returncode not in (0, 1):
                    raise Wrong(f"the plugin ended with {self.plugin.process.returncode}")
                self.start_plugin()

    hold_down = False

    # ---- the truth

    def alive_pods(self):
        return [pod for pod in self.pods.values() if pod.env]

    def running(self):
        return [pod for pod in self.pods.values() if pod.runs()]

    def inventory(self):
        return {} if self.hung else self.api.node("gpu-inventory")

    def check(self):
        """What is always so."""
        self.counts["checks"] += 1
        sums = {}
        for pod in self.running():
            if len(pod.unit_mib()) != 1:
                raise Wrong(f"{pod.name} was told of several units: {pod.env}")
            for uuid in pod.cards():
                sums[uuid] = sums.get(uuid, 0) + pod.promise() * (3 if self.deed == "overfull" else 1)
        for uuid, total in sums.items():
            if total > CARDS[uuid][1] * GIB:
                raise Wrong(f"{total / GIB} GiB are promised on {uuid}")
        units = {unit for pod in self.running() for unit in pod.unit_mib()}
        if self.deed == "unit" and units:
            units.add(1)
        if len(units) > 1:
            raise Wrong(f"pods that live have units of {units} MiB")
        told = UNITS.get(self.inventory().get("unit"))
        if told and units and told not in units:
            raise Wrong(f"the node's unit is {told} MiB, pods that live have {units}")
        for pod in self.running():
            for uuid, limit in self.kernel.limits(pod.folder).items() if pod.folder else ():
                limit = limit // 1024 if limit and self.deed == "limit" else limit
                if uuid in pod.cards() and limit is not None and not \
                        pod.promise() <= limit <= 2 * pod.promise() + 4 * GIB:
                    raise Wrong(f"the limit of {pod.name} on {uuid} is {limit}, promised were {pod.promise()}")
            for path, own in pod.own.items():
                limits = self.kernel.limits(path)
                if any(not limits[uuid] or limits[uuid] > first for uuid, first in own.items()):
                    raise Wrong(f"{path} has the limits {limits}, its own were {own}")

    def free(self):
        """As an extender sees it: {index: GiB}"""
        inventory, free = self.inventory(), {}
        unit = UNITS.get(inventory.get("unit"), 1024)
        moved = self.api.node("gpu-reassigned")
        for gpu in inventory.get("gpus", []):
            if gpu.get("healthy", True) and gpu.get("schedulable", True):
                free[gpu["idx"]] = gpu["mem"]
        uuids = {gpu["uuid"]: gpu["idx"] for gpu in inventory.get("gpus", [])}
        for pod in self.pods.values():
            if pod.env:
                # Whose start is refused, as its containers were given different cards, is charged on those, too.
                places = {*map(uuids.get, pod.cards()), *moved.get(pod.uid, ())}
                units = -(-(pod.promise() >> 20) // unit)
            else:
                places, units = moved.get(pod.uid, pod.bound), pod.units() // max(1, len(pod.bound))
            for place in places:
                if place in free:
                    free[place] -= units
        return free

    # ---- what happens

    def draw_boxes(self, count):
        size = lambda: self.random.choice([1, 2, 4, 4, 8, 12]) * count     # noqa: E731
        return self.random.choice([[("c0", size())], [("c0", size())], [("c0", size()), ("c1", size())],
                                   [("i0", size()), ("c0", size())], [("s0", count), ("c0", size())]])

    def disturb(self):
        for pod in self.pods.values():
            pod.sure = False

    def bind(self, name=None):
        count = self.random.choice([1, 1, 1, 2])
        boxes, free = self.draw_boxes(count), self.free()
        each = Pod(None, boxes, None, count).units() // count
        fits = sorted(idx for idx, units in free.items() if units >= each)
        if len(fits) < count:
            return None
        places = sorted(self.random.sample(fits, count))
        self.made += 1
        name = name or f"p{self.made}"
        notes = {IDX: ",".join(map(str, places)), ASSIGNED: "false",
                 "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(time.time_ns())}
        if count > 1:
            notes[COUNT] = str(count)
        pod = self.pods[name] = Pod(name, boxes, self.api.make_pod(name, boxes, notes), count)
        pod.bound = places
        pod.sure = not self.plan and not self.beside and len(self.present) == len(CARDS)
        return pod

    def again(self, old):
        """A StatefulSet's."""
        self.end(old)
        if pod := self.bind(old.name):
            self.counts["again"] += 1
            self.admit(pod)

    def by_hand(self):
        """A tenant's, that names its node, with a record of his own; or a static pod's mirror."""
        self.made += 1
        name, boxes = f"h{self.made}", self.draw_boxes(1)
        static = self.random.random() < .5
        notes = {IDX: self.random.choice(["0", "1", "2", "0,1", "7", "x"]), ASSIGNED: self.random.choice(["true", "false"]),
                 COUNT: self.random.choice(["1", "2", "0"])} if self.random.random() < .6 else {}
        uid = self.random.choice([f"{self.random.getrandbits(128):032x}"] * 3 +
                                 [pod.kubelet_uid for pod in self.pods.values()][:1]) if static else None
        if static:
            notes |= {MIRROR: uid, HASH: uid}
        if uid and any(pod.kubelet_uid == uid for pod in self.pods.values()):
            return      # a kubelet has one pod of a UID
        pod = self.pods[name] = Pod(name, boxes, self.api.make_pod(name, boxes, notes), 1)
        pod.kubelet_uid, pod.forged = uid or pod.uid, True

    def edit(self):
        if not self.pods:
            return
        pod, rng = self.random.choice(list(self.pods.values())), self.random
        notes = {rng.choice([IDX, COUNT, "ALIYUN_COM_GPU_MEM_POD", "ALIYUN_COM_GPU_MEM_DEV", ASSIGNED,
                              "scheduler.framework.gpushare.allocation", "aliyun.com/gpu-enforce"]):
                 rng.choice(["0", "1", "2", "3", "0,1", "64", "1024", "true", "false", "x", None, '{"0":{"1":4}}'])}
        pod.forged |= not pod.env
        self.api.patch(f"{PODS}/{pod.name}", {"metadata": {"annotations": notes}})
        if rng.random() < .3:
            self.api.patch(f"{PODS}/{pod.name}", {"metadata": {"labels": {COUNT: rng.choice(["2", "4", None])}}})

    def admit(self, pod):
        if pod.env or not self.kubelet.devices or not self.alive():
            return
        if pod.kubelet_uid in self.kubelet.pods:
            return
        early = self.random.random() < .6
        if early:
            pod.folder = self.kernel.pod(pod.kubelet_uid, self.random.choice(CLASSES))
        try:
            answer = self.kubelet.admit(pod.kubelet_uid, pod.name, pod.boxes, lambda box: self.random.random() < .04)
        except Exception as error:  # pylint: disable=broad-except    # the plugin ended meanwhile
            answer = repr(error)
        if isinstance(answer, str):
            self.counts["refused"] += 1
            pod.why = answer
            if pod.sure and "no ids" not in answer or self.deed == "lost":
                raise Wrong(f"{pod.name}, bound where there is room, is refused: {answer}")
            self.end(pod)
            return
        pod.env = answer
        pod.folder = pod.folder or self.kernel.pod(pod.kubelet_uid, self.random.choice(CLASSES))

    def start(self, pod):
        if not pod.env or not self.kubelet.devices or not self.alive():
            return
        for box, _ in pod.boxes:
            try:
                why = self.kubelet.start_container(pod.kubelet_uid, box)
            except Exception as error:  # pylint: disable=broad-except
                why = repr(error)
            pod.why = why
            if why:
                self.counts["held"] += 1
                pod.refused += 1
                return
            self.counts["started"] += not pod.started
            pod.started.add(box)
            if not self.kernel.dmem:
                self.limit_container(pod, f"{pod.folder}/{box}")
        if not self.hung:
            self.api.phase(pod.name, "Running")

    def limit_container(self, pod, path):
        """As NVIDIA's toolkit does by NVIDIA_GPU_MEMORY_LIMIT: all of its cards alike."""
        if os.path.exists(path):
            shutil.rmtree(path)     # it starts anew
        os.mkdir(path)
        pod.own[path] = {}
        if self.random.random() < .4:
            pod.own[path] = dict.fromkeys(pod.cards(), int(pod.promise() * self.random.choice([.25, .5, 2, 4])))
            self.kernel.set_notes(path, "limit", pod.own[path])
            self.counts["own"] += 1

    def use(self, pod):
        """Processes take memory, or give it back: the nearest limit allows it, and counts it."""
        for path in [pod.folder, *pod.own]:
            parts = [0, .3, .7, 1] if path == pod.folder else [0, .2, .6, .9]
            self.kernel.set_notes(path, "used", {uuid: int((limit or 0) * self.random.choice(parts))
                                                 for uuid, limit in self.kernel.limits(path).items()})
        self.counts["used"] += 1

    def end(self, pod):
        self.pods.pop(pod.name)
        self.kubelet.forget(pod.kubelet_uid)
        if pod.folder:
            shutil.rmtree(pod.folder)
        if not self.hung:
            self.api.delete(pod.name)

    def some(self, which):
        found = [pod for pod in self.pods.values() if which(pod)]
        return self.random.choice(found) if found else None

    def change_options(self):
        rng, options = self.random, self.options
        if rng.random() < .4:
            options["unit"] = rng.choice(list(UNITS))
        if rng.random() < .4:
            options["overhead"] = rng.choice([0, 300, 800])
        if rng.random() < .3:
            options["enforce"] = rng.choice(["preferred", "required"])
        if rng.random() < .3:
            options["foreign"] = not options["foreign"]

    def tamper(self):
        """With the record's file, by somebody who is no tenant: a disk, an operator, a backup."""
        path = f"{self.folder}/kubelet/gpushare-aliyun.com/record.json"
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        self.saved = self.saved or text
        made = self.random.choice([
            None, "", text[:len(text) // 2], "[]", "{}", self.saved, text.replace('"n1"', '"n2"'), "\0" * 100,
            '{"v":1,"unit":"MiB","gpus":[],"node":"n2","rev":99999}', "[" * 100000])
        if made is None:
            os.unlink(path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(made)

    def move_cards(self):
        rng = self.random
        self.present = list(CARDS) if rng.random() < .5 else rng.sample(list(CARDS), rng.randint(0, 2))
        if rng.random() < .5:
            rng.shuffle(self.present)
        self.put_cards()

    def restart(self):
        rng, inside = self.random, []
        self.hold_down = True
        if rng.random() < .5:
            self.plugin.process.send_signal(signal.SIGTERM)
            end = time.monotonic() + 1
            while self.alive() and time.monotonic() < end:
                time.sleep(.02)
        if self.alive():
            self.plugin.kill()
        self.kubelet.devices = {}
        for what in rng.sample(["edit", "tamper", "options", "cards", "kubelet", "end", "hang"], rng.randint(0, 4)):
            inside.append(what)
            if what == "edit" and not self.hung:
                self.edit()
            elif what == "tamper":
                self.tamper()
            elif what == "options":
                self.change_options()
            elif what == "cards":
                self.move_cards()
            elif what == "kubelet":
                self.kubelet.restart()
            elif what == "end" and not self.hung and (pod := self.some(lambda pod: True)):
                self.end(pod)
            elif what == "hang":
                self.hang(rng.random() < .5)
        self.hold_down = False
        self.start_plugin()
        self.settle()
        return ", ".join(inside)

    def reboot(self):
        """No process and no cgroup is left; the kubelet starts what its checkpoint names, in any order."""
        rng, self.hold_down = self.random, True
        self.plugin.kill()
        self.kubelet.stop()
        for pod in self.alive_pods():
            shutil.rmtree(pod.folder)
            pod.started, pod.folder, pod.own = set(), None, {}
        if rng.random() < .5:
            rng.shuffle(self.present)
            self.put_cards()
        if rng.random() < .3:
            self.change_options()
        for pod in rng.sample(self.alive_pods(), len(self.alive_pods())):
            pod.folder = self.kernel.pod(pod.kubelet_uid, rng.choice(CLASSES))
        first = rng.random() < .5
        if first:
            self.start_plugin()
        self.kubelet.start()
        if not first:
            self.start_plugin()
        self.hold_down = False
        self.settle()
        self.wait_devices()
        for pod in rng.sample(self.alive_pods(), len(self.alive_pods())):
            self.start(pod)

    def hang(self, hung):
        self.hung = hung
        self.api.hang(hung)

    def wait_devices(self, seconds=3):
        end = time.monotonic() + seconds
        while not self.kubelet.devices and time.monotonic() < end:
            self.settle(.1)

    def fail_requests(self):
        """Those of the plugin."""
        self.plan = self.random.choice(["", "unavailable=1000,watch_cut=1000", "drop=400,watch_cut=300", "all=60",
                                        "stall=1000,stall_ms=3000,watch_cut=1000", "old_list=500,watch_back=200",
                                        "throttle=600,lost_answer=200"])
        self.counts["plans"] += 1
        self.set_plan()

    def set_plan(self):
        text = f"agent=gpushare-device-plugin,{self.plan}" if self.plan else ""
        with urllib.request.urlopen(urllib.request.Request(f"{self.api.url}/faults", text.encode(), method="PUT")):
            pass

    def tear_checkpoint(self):
        """While the API server tells of the pods, until the kubelet writes it again."""
        path = f"{self.folder}/kubelet/kubelet_internal_checkpoint"
        if self.plan or not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            text = file.read()
        data = json.loads(text)
        data["Data"]["PodDeviceEntries"] *= 2
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.random.choice(["", text[:len(text) // 2], text, json.dumps(data)]))
        self.counts["torn"] += 1
        self.settle(self.random.choice([.05, 1]))
        if self.random.random() < .3:
            self.restart()
        self.kubelet.write_checkpoint()

    def change_beside(self):
        """NVIDIA's plugin gives out the same GPUs."""
        names = ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.5gb.shared"]
        self.beside = None if self.beside else self.random.choice(names)
        capacity = dict.fromkeys(names) | ({self.beside: "7"} if self.beside else {})
        self.api.request("PATCH", "/api/v1/nodes/n1/status", {"status": {"capacity": capacity}},
                         "application/merge-patch+json")
        self.counts["beside"] += 1

    def step(self):
        rng, hung, doubled = self.random, self.hung, self.kubelet.doubled
        what = rng.choices(
            ["bind", "hand", "admit", "start", "end", "edit", "restart", "kubelet", "hang", "cards", "lose", "time",
             "reboot", "again", "plan", "torn", "beside", "use", "code"],
            [9, 2, 12, 5, 2, 4, 3, 1, 1, 1, 1, 3, .5, 3, 2, 2, .7, 6, .7])[0]
        words = what
        if what == "bind" and not hung:
            self.bind()
        elif what == "hand" and not hung:
            self.by_hand()
        elif what == "admit" and (pod := self.some(lambda pod: not pod.env)):
            words += f" {pod.name}"
            self.admit(pod)
            if pod.env and rng.random() < .6:
                self.start(pod)
        elif what == "start" and (pod := self.some(lambda pod: pod.env)):
            words += f" {pod.name}"
            self.start(pod)
        elif what == "end" and not hung and (pod := self.some(lambda pod: True)):
            words += f" {pod.name}"
            self.end(pod)
        elif what == "edit" and not hung:
            self.edit()
        elif what == "restart":
            words += f" ({self.restart()})"
        elif what == "kubelet":
            self.kubelet.restart()
        elif what == "reboot":
            self.reboot()
        elif what == "again" and not hung and (pod := self.some(lambda pod: pod.bound)):
            words += f" {pod.name}"
            self.again(pod)
        elif what == "plan" and not hung:
            self.fail_requests()
            words += f" {self.plan}"
        elif what == "torn" and not hung:
            self.tear_checkpoint()
        elif what == "beside" and not hung:
            self.change_beside()
        elif what == "hang":
            self.hang(not hung)
        elif what == "cards":
            self.move_cards()
        elif what == "lose" and (pod := self.some(lambda pod: pod.folder)):
            self.kernel.lose(pod.folder)
        elif what == "use" and not self.kernel.dmem and (pod := self.some(Pod.runs)):
            self.use(pod)
        elif what == "code":
            self.code = rng.choice([0, 3, 4, 15])
            self.put_cards()
        elif what == "time":
            self.clock.shift(rng.choice([1, 6, 11, 11, 25]))
        if words != what or what not in ("admit", "start", "end", "bind", "hand"):
            self.events.append(words + (" hung" if hung else ""))
        if what not in ("bind", "admit", "start", "end", "again", "time", "lose", "use") or self.kubelet.doubled > doubled:
            self.disturb()
        self.settle(.06)
        self.wait_devices(.3 if self.hung else 1)
        self.check()

    # ---- when all is quiet

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            lines = [line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line.startswith(name + "{")]
        return {line[0][len(name) + 1:-1]: float(line[1]) for line in lines}

    def is_limited(self, pod, uuid):
        limit = self.kernel.limits(pod.folder)[uuid]
        most = pod.promise() + (self.options["overhead"] * len(pod.boxes) << 20)
        return limit is not None and limit <= max(most, self.kernel.used(pod.folder, uuid)) and \
            all((self.kernel.limits(path)[uuid] or 0) <= limit for path in pod.own)

    def containers(self):
        """What is not as limits and use of pods and their containers have to be."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/usage", timeout=10) as answer:
            told = {pod["uid"]: pod for pod in json.load(answer)["pods"]}
        index = {gpu["idx"]: gpu["uuid"] for gpu in self.api.node("gpu-inventory")["gpus"]}
        for pod in self.running():
            limits = self.kernel.limits(pod.folder)
            for path, own in pod.own.items():
                for uuid, first in own.items():
                    at = self.kernel.limits(path)[uuid] * (3 if self.deed == "own" else 1)
                    most = limits[uuid] or 0
                    if not min(first, pod.promise() - 4096) <= at or at > most >= self.kernel.used(path, uuid):
                        return f"{path} has {at} of its pod's {limits}, and began with {own}"
            for gpu in told.get(pod.uid, {}).get("gpus", ()):
                uuid = index[gpu["id"]]
                used = sum(self.kernel.used(path, uuid) for path in [pod.folder, *pod.own])
                if uuid in pod.cards() and gpu.get("usedBytes") != used + (self.deed == "used"):
                    return f"{pod.name} is said to use {gpu}, and uses {used}"
        return ""

    def words(self):
        """What is said and is not so; "" is the end of waiting for it."""
        inventory = self.api.node("gpu-inventory")
        gpus = {gpu["uuid"]: gpu for gpu in inventory["gpus"]}
        held = {uuid: all(self.is_limited(pod, uuid) for pod in self.running() if uuid in pod.cards()) for uuid in CARDS}
        if self.deed == "word" and self.running():
            held[self.running()[0].cards()[0]] = False
        metric = self.metric("gpushare_device_plugin_gpu_enforced")
        label = self.api.request("GET", "/api/v1/nodes/n1")["metadata"].get("labels", {}).get("aliyun.com/gpu-enforced")
        for uuid, gpu in gpus.items():
            said = gpu.get("enforced") in ("dmem", "driver")
            if said and not held[uuid] or metric.get(f'gpu="{gpu["idx"]}"') == 1 and not held[uuid]:
                return f"{uuid} is said to be held, {gpu} {metric}"
        if label and not all(held.values()):
            return f"the node has the label {label}, and {held}"
        waits = [pod for pod in self.alive_pods() if not pod.runs()]
        if all(held.values()) and not waits and label != self.by:
            return f"all is held, and the label is {label}: {inventory}"
        if set(gpus) != set(CARDS) or not all(gpu.get("healthy", True) for gpu in gpus.values()):
            return f"cards are not told: {gpus}"
        moved = self.api.node("gpu-reassigned")
        index = {uuid: gpu["idx"] for uuid, gpu in gpus.items()}
        for pod in self.running():
            mine = sorted(index[uuid] for uuid in pod.cards())
            notes = self.api.annotations(pod.name)
            if notes.get(IDX) != ",".join(map(str, mine)) or notes.get(ASSIGNED) != "true":
                return f"the record of {pod.name} says {notes}, it is on {mine}"
            if pod.uid in moved and sorted(moved[pod.uid]) != mine:
                return f"the node says that {pod.name} is on {moved[pod.uid]}, and it is on {mine}"
        if stale := set(moved) - {pod.uid for pod in self.pods.values()}:
            return f"the node names pods that have ended: {stale}"
        return self.containers()

    def quiet(self):
        self.events.append("quiet")
        self.hang(False)
        self.plan = ""
        self.set_plan()
        if self.beside:
            self.change_beside()
        self.kubelet.write_checkpoint()
        self.present, self.code = list(CARDS), 0
        self.put_cards()
        for pod in [pod for pod in self.pods.values() if not pod.env]:
            self.end(pod)
        end, why = time.monotonic() + CALM_S, "?"
        while why and time.monotonic() < end:
            self.clock.shift(11)
            self.settle(.4)
            self.wait_devices(2)
            self.check()
            for pod in self.alive_pods():
                if not pod.runs():
                    self.start(pod)
                    if pod.refused > 12:
                        self.give_up(pod)
            try:
                why = self.words()
            except OSError as error:    # it is being started
                why = repr(error)
        if why:
            raise Wrong(why)

    def give_up(self, pod):
        """Held back for good: its owner deletes it, as the Event says."""
        self.counts["given up"] += 1
        self.end(pod)

    def run(self):
        for number in range(STEPS):
            self.step()
            if number % 15 == 14:
                self.quiet()
        if not self.counts["started"]:
            raise Wrong("no container was started")

    def story(self, why):
        shown = "\n".join(f"    {pod.name} {pod.kubelet_uid[:8]} {pod.boxes} count {pod.count} bound {pod.bound} on {pod.cards() if pod.env else '-'}"
                          f" {'runs' if pod.runs() else getattr(pod, 'why', '')} {'forged' if pod.forged else ''}"
                          f" {self.kernel.limits(pod.folder) if pod.folder else ''}" for pod in self.pods.values())
        return f"{why}\n  {self.options} events {self.events[-40:]}\n{shown}\n  logs {self.folder}"


SABOTAGE = ["overfull", "unit", "limit", "word", "lost", "own", "used"]


def one_world(build, rng, wrong, deed):
    world, found = World(build, rng, deed), ""
    try:
        world.run()
    except (Wrong, AssertionError) as why:
        found = world.story(why)
        wrong(found)
    finally:
        world.close(found and not deed)
    return world.counts


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {"node": sys.modules[__name__]}))
