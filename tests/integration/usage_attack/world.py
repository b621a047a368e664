# SPDX-License-Identifier: Apache-2.0
"""Random nodes: GPUs, pods, processes in cgroups, what the driver lists, and what docs/limits.md ("By the driver's list of
processes") promises of it. Who truly has a PID is known here; the product sees /proc alone."""

import json
import os
import random
import shutil
import uuid

import objects
from objects import ASSIGNED, IDX, UNITS

D = "aliyun.com/"
GIB = 1 << 30
LISTS = ("compute", "graphics", "mps")
NOT_SUPPORTED = 3
MOST_PROCESSES = 1024
SENTINEL = 3_999_999            # the PID that says which reading a page is of
NEVER_TICKS = 1 << 40           # began in a far future
QOS = ("Guaranteed", "Burstable", "BestEffort")
COMM = (b"python3", b"a) S 1 2 3 0 -1 1 1 9 9 9 0 0 0 0 20 0 1 0 7 1", b"((", b")", b"x\ny", b"\xff\xfe (", b") R 1")


def hexes(rng, count):
    return "".join(rng.choice("0123456789abcdef") for _ in range(count))


def new_uid(rng):
    return str(uuid.UUID(int=rng.getrandbits(128)))


class Layout:
    """How a kubelet names its cgroups."""

    def __init__(self, rng):
        self.systemd = rng.random() < 0.5
        self.before = rng.choice(["", "", "", "/docker/" + hexes(rng, 64), "/kind.slice/x.scope"])
        self.root = rng.choice(["", "", "kubelet"])
        self.scope = rng.choice(["cri-containerd", "crio", "docker"])

    def pod(self, uid, qos):
        word = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}[qos]
        if not self.systemd:
            return self.before + (f"/{self.root}" if self.root else "") + "/kubepods" + (f"/{word}" if word else "") + f"/pod{uid}"
        stem = f"{self.root}-kubepods" if self.root else "kubepods"
        path = self.before + (f"/{self.root}.slice" if self.root else "") + f"/{stem}.slice"
        if word:
            stem = f"{stem}-{word}"
            path += f"/{stem}.slice"
        return path + f"/{stem}-pod{uid.replace('-', '_')}.slice"

    def container(self, rng):
        name = hexes(rng, 64)
        return f"/{self.scope}-{name}.scope" if self.systemd else f"/{name}"


def seen_from(path, root):
    """As a process in a cgroup namespace of that root reads it (cgroup_namespaces(7)); None: the host's."""
    if root is None:
        return path
    steps = os.path.relpath(path, root)
    return b"/" + steps if steps != b"." else b"/"


def hostile_tail(rng, others):
    """Cgroups that the author of a pod may make below its container's."""
    other = rng.choice(others)
    dashed, barred = other.encode(), other.replace("-", "_").encode()
    return b"/" + b"/".join(rng.choice([
        [b"kubepods", b"pod" + dashed, b"c"], [b"kubepods", b"burstable", b"pod" + dashed], [b"pod" + dashed],
        [b"kubepods.slice", b"kubepods-pod" + barred + b".slice"], [b"kubepods-besteffort-pod" + barred + b".slice", b"x.scope"],
        [b"besteffort", b"pod" + dashed], [b"init.scope"], [b"x y"], [b"0::"], [b"a:b:c"], [b"\xff\xfe\x80"], [b"%s%n"],
        [b"\x1b[2J"], [b"..."], [b"n" * 255] * 14, [b"kubepods"], [b"kubelet.slice", b"kubelet-kubepods.slice",
                                                                  b"kubelet-kubepods-pod" + barred + b".slice"]]))


class Pod:
    def __init__(self, name, uid, units, gpus, owner=None, static=False, qos="BestEffort"):
        self.name, self.uid, self.units, self.gpus, self.owner, self.static, self.qos = name, uid, units, gpus, owner, static, qos
        self.cgroup_uid = uid.replace("-", "") if static else uid
        self.peak = {}
        self.share = units * GIB

    def document(self, node):
        total = self.units * len(self.gpus)
        made = objects.Pod(self.name, total, "team", len(self.gpus)).bind(node).obj
        meta, made["status"]["qosClass"] = made["metadata"], self.qos
        meta["uid"], meta["annotations"] = self.uid, {IDX: ",".join(map(str, self.gpus)), ASSIGNED: "true", UNITS: str(total),
                                                      "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"}
        if self.static:
            meta["annotations"]["kubernetes.io/config.mirror"] = meta["annotations"]["kubernetes.io/config.hash"] = self.cgroup_uid
        if self.owner:
            meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": self.owner[0], "name": self.owner[1], "uid": "o",
                                        "controller": True}]
        return made


class Process:
    """uid: that of the cgroup in which it truly is, None: no pod's. fault: why it cannot be read."""

    def __init__(self, uid, began, text, fault=""):
        self.uid, self.began, self.text, self.fault = uid, began, text, fault


class Gpu:
    """slot: the driver's line of it; the number that people know it by; gi: of an instance of MIG."""

    def __init__(self, number, gib, gi=None):
        self.number, self.gib, self.gi = number, gib, gi
        self.in_use = gib * GIB // 4    # as the stand-in has it
        self.entries, self.refused = [], {}


class World:
    def __init__(self, rng, boot_ticks):
        self.rng, self.boot_ticks, self.number, self.made = rng, boot_ticks, 0, 0
        self.dice = random.Random(1)    # a page that came late changes no world
        self.processes, self.swaps, self.known, self.pods = {}, {}, {}, {}
        self.above, self.told = {}, set()       # pods above their share by any reading; by one whose page was seen
        self.trace = []         # of the last readings
        self.expected, self.strange = {}, [new_uid(rng) for _ in range(2)]
        self.layout, self.v1 = Layout(rng), rng.random() < 0.4
        self.private = None
        if rng.random() < 0.5:
            self.private = (self.layout.pod(new_uid(rng), rng.choice(QOS)) + self.layout.container(rng)).encode()
        self.make_gpus()
        for _ in range(rng.randint(2, 6)):
            self.add_pod()
        self.sentinel = Pod("sentinel", new_uid(rng), 1, [self.last.number])
        self.pods[self.sentinel.uid] = self.sentinel
        self.processes[SENTINEL] = Process(self.sentinel.cgroup_uid, 1, self.cgroup(self.sentinel, b""))

    # ---- the node ----

    def make_gpus(self):
        rng = self.rng
        self.cards, self.gpus = [], []
        count = rng.randint(1, 3)
        instances = []
        for slot in range(count):
            if rng.random() < 0.25:
                mine = [Gpu(0, rng.choice([4, 8, 16]), gi) for gi in rng.sample(range(1, 7), rng.randint(1, 3))]
                instances += mine
                self.cards.append((slot, None, mine))
            else:
                self.cards.append((slot, Gpu(slot, rng.choice([8, 16, 40, 80])), []))
        self.last = Gpu(count, 16)
        self.cards.append((count, self.last, []))
        for i, gpu in enumerate(instances):
            gpu.number = count + 1 + i
        self.gpus = [card for _, card, _ in self.cards[:-1] if card] + instances

    def add_pod(self):
        rng, self.made = self.rng, self.made + 1
        numbers = [gpu.number for gpu in self.gpus]
        gpus = sorted(rng.sample(numbers, min(len(numbers), rng.choice([1, 1, 1, 2]))))
        owner = rng.choice([None, ("ReplicaSet", f"r{self.made % 2}"), ("Job", "a\"b\\c\n%s\x01"), ("StatefulSet", "x" * 253)])
        uid = new_uid(rng)
        if self.pods and rng.random() < 0.1:        # one that begins as another does
            uid = rng.choice(list(self.pods))[:-1] + hexes(rng, 1)
        if uid in self.pods:
            return None
        pod = Pod(f"p{self.made}", uid, rng.choice([1, 1, 2, 4]), gpus, owner, rng.random() < 0.1, rng.choice(QOS))
        self.pods[uid] = pod
        return pod

    def drop_pod(self):
        pods = [pod for pod in self.pods.values() if pod is not self.sentinel]
        if len(pods) < 2:
            return None
        pod = self.rng.choice(pods)
        del self.pods[pod.uid]
        return pod

    # ---- processes ----

    def cgroup(self, pod, tail):
        """/proc/PID/cgroup of a process of that pod; of the host's where that is None."""
        rng = self.rng
        if pod is None:
            path = rng.choice([b"/", b"/system.slice/x.service", b"/user.slice/user-0.slice/session-1.scope", b"/init.scope",
                               b"/machine.slice/libpod-" + hexes(rng, 64).encode() + b".scope/container",
                               b"/system.slice/kubelet.service"])
            if self.private and rng.random() < 0.3:
                path = self.private
        else:
            path = (self.layout.pod(pod.cgroup_uid, pod.qos) + self.layout.container(rng)).encode() + tail
        path = seen_from(path, self.private)
        if not self.v1:
            return b"0::" + path + rng.choice([b"", b"", b" (deleted)"] if pod is None or tail else [b"", b""]) + b"\n"
        names = [b"memory", b"cpu,cpuacct", b"devices", b"name=systemd", b"pids", b"rdma"]
        rng.shuffle(names)
        lines = [b"%d:%s:%s\n" % (12 - i, name, path if name != b"rdma" else b"/") for i, name in enumerate(names)]
        return b"".join(lines) + rng.choice([b"", b"0::/\n", b"0::/system.slice/containerd.service\n"])

    def new_process(self):
        rng = self.rng
        pods, what = list(self.pods.values()), rng.random()
        uids = [pod.cgroup_uid for pod in pods]
        began = NEVER_TICKS if rng.random() < 0.06 else rng.randint(1, self.boot_ticks)
        tail = hostile_tail(rng, uids) if rng.random() < 0.5 else b""
        if what < 0.15:
            return Process(None, began, self.cgroup(None, b""))
        if what < 0.22:         # of a pod that has no GPU memory
            uid = rng.choice(self.strange)
            return Process(uid, began, self.cgroup(Pod("-", uid, 1, [], qos=rng.choice(QOS)), tail))
        pod = rng.choice(pods)
        fault = rng.choice(["no cgroup", "no stat", "folder", "cut", "huge"]) if rng.random() < 0.08 else ""
        return Process(pod.cgroup_uid, began, self.cgroup(pod, tail), fault)

    def some_pid(self):
        return self.rng.choice([10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 1, 2, 999_999, 4_194_303])

    def step(self):
        """Something happens on the node."""
        rng = self.rng
        for _ in range(rng.randint(1, 6)):
            pid, what = self.some_pid(), rng.random()
            if what < 0.5:
                self.processes[pid] = self.new_process()
            elif what < 0.7:
                self.processes.pop(pid, None)
            elif what < 0.8 and pid in self.processes:      # moves to another cgroup
                one = self.new_process()
                self.processes[pid] = Process(one.uid, self.processes[pid].began, one.text)
        for gpu in self.gpus:
            if rng.random() < 0.6:
                gpu.entries = [one for one in gpu.entries if rng.random() < 0.8]
                gpu.entries += [self.entry(gpu) for _ in range(rng.randint(0, 4))]
            gpu.refused = {}
            if rng.random() < 0.12:
                gpu.refused[rng.choice(LISTS)] = rng.choice([NOT_SUPPORTED, 999, 15, 7])
        if rng.random() < 0.05:
            crowd = rng.choice(self.gpus)
            crowd.entries = [(rng.choice(LISTS), 100_000 + i, 1, -1) for i in range(rng.choice([MOST_PROCESSES, 1025]))]
        elif rng.random() < 0.5:
            for gpu in self.gpus:
                gpu.entries = [one for one in gpu.entries if one[1] < 100_000 or one[1] > 200_000]
        self.swaps = {}
        for pid in list(self.processes):
            if pid != SENTINEL and rng.random() < 0.05:
                self.swaps[pid] = self.new_process()

    def entry(self, gpu):
        rng = self.rng
        size = rng.choice([rng.randint(0, gpu.in_use // 3), rng.randint(0, gpu.in_use), 1, 0, GIB, GIB + 1, 2 * GIB, 2 * GIB + 1,
                           gpu.in_use, None, rng.choice([1 << 63, (1 << 64) - 2, 1 << 50])])
        instance = -1 if gpu.gi is None else rng.choice([gpu.gi, gpu.gi, -1, gpu.gi + 1])
        return rng.choice(LISTS), self.some_pid(), size, instance

    # ---- what it is on disk ----

    def write_process(self, folder, one):
        os.makedirs(folder)
        stat = b"7 (%s) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 %d 1 1" % (self.dice.choice(COMM), one.began)
        text = one.text
        if one.fault == "cut":
            stat = stat[:stat.rindex(b")") + 20]
        elif one.fault == "huge":       # more than any kernel says
            text = text * (1 + (100 << 10) // len(text))
        if one.fault != "no stat":
            put(os.path.join(folder, "stat"), stat + b"\n")
        if one.fault == "folder":
            os.makedirs(os.path.join(folder, "cgroup"))
        elif one.fault != "no cgroup":
            put(os.path.join(folder, "cgroup"), text)

    def write(self, plugin):
        """Then the driver is as it is here, and so is /proc."""
        self.number += 1
        shutil.rmtree(plugin.proc)
        for pid, one in self.processes.items():
            self.write_process(os.path.join(plugin.proc, str(pid)), one)
        for pid, one in self.swaps.items():
            self.write_process(os.path.join(plugin.proc, f"{pid}.next"), one)
        text = self.driver()
        there = {pid: (one.uid, "future" if one.began == NEVER_TICKS else one.began, one.fault, one.text[:300])
                 for pid, one in self.processes.items() if f" {pid} " in text}
        self.trace = [*self.trace[-2:], f"reading {self.number}, then {self.swaps and sorted(self.swaps)}:\n{text}{there}"]
        plugin.show(text)

    def driver(self):
        lines = []
        for slot, card, instances in self.cards:
            lines.append(f"gpu GPU-{slot} {card.gib * 1024 if card else 80 * 1024} {int(not card)} 00000000:{slot + 1:02x}:00.0")
            for gpu in [card] if card else instances:
                if gpu.gi is not None:
                    lines.append(f"mig MIG-{slot}-{gpu.gi} {gpu.gib * 1024} {gpu.gi}")
                lines += [f"process {where} {pid} {'-' if size is None else size} {gi}" for where, pid, size, gi in gpu.entries]
                lines += [f"refuse {where} {code}" for where, code in gpu.refused.items()]
        return "\n".join([*lines, f"process compute {SENTINEL} {self.number} -1"]) + "\n"

    # ---- what is promised ----

    def began_anew(self):
        """The plugin did."""
        self.known, self.expected = {}, {}
        for pod in self.pods.values():
            pod.peak = {}

    def listed(self, gpu):
        """PID → bytes, None where the driver does not say; None: nothing can be said of this GPU."""
        for i, where in enumerate(LISTS):
            code = gpu.refused.get(where, 0)
            if code and (i == 0 or code != NOT_SUPPORTED):
                return None
        sizes = {}
        for where, pid, size, gi in gpu.entries:
            if where in gpu.refused or (gpu.gi is not None and gi not in (-1, gpu.gi)):
                continue
            told = [one for one in (sizes.get(pid), size) if one is not None]
            sizes[pid] = max(told) if told else None    # once, though in two lists
        return sizes if len(sizes) <= MOST_PROCESSES else None

    def whose(self, pid, where):
        """The UID in its cgroup, of what may be known of that PID; where: the GPUs that name it."""
        known = self.known.setdefault(pid, {"began": None, "lost": False, "gpus": set()})
        known["gpus"] = where
        one = self.processes.get(pid)
        if one is None or one.fault in ("no cgroup", "no stat") or one.began == NEVER_TICKS:
            known["lost"] = True
        if known["lost"] or one.fault == "cut":
            return None
        if known["began"] not in (None, one.began):
            known["lost"] = True
            return None
        known["began"] = one.began
        return None if one.fault else one.uid

    def read(self):
        """The driver is asked: what pages say of it from now on."""
        lists = {gpu.number: self.listed(gpu) for gpu in self.gpus}
        where = {}
        for number, sizes in lists.items():
            for pid in sizes or ():
                where.setdefault(pid, set()).add(number)
        quiet = {number for number, sizes in lists.items() if sizes is None}
        for pid in list(self.known):        # a list without it; one that was refused is none
            self.known[pid]["gpus"] &= quiet | where.get(pid, set())
            if pid not in where and not self.known[pid]["gpus"]:
                del self.known[pid]
        owners = {pid: self.whose(pid, gpus | (self.known[pid]["gpus"] if pid in self.known else set())) for pid, gpus in where.items()}
        self.expected = {gpu.number: self.shares(gpu, lists[gpu.number], owners) for gpu in self.gpus}
        self.expected[self.last.number] = {self.sentinel.cgroup_uid: self.number}
        for pod in self.pods.values():
            for number in pod.gpus:
                used = self.used(pod, number)
                if used is not None:
                    pod.peak[number] = max(pod.peak.get(number, 0), used)
                    if used - pod.share > GIB:
                        self.above[pod.name] = pod
        for pid, one in self.swaps.items():
            if pid in where and self.processes[pid].fault != "gone":
                self.processes[pid] = one
        self.swaps = {}

    def seen(self):
        """The page of this reading was."""
        self.told |= {pod.name for pod in self.pods.values()
                      if any((self.used(pod, number) or 0) - pod.share > GIB for number in pod.gpus)}

    @staticmethod
    def shares(gpu, sizes, owners):
        """UID → bytes, None: not told; None: of nobody."""
        if sizes is None:
            return None
        sums = {}
        for pid, size in sizes.items():
            if owners[pid]:
                before = sums.get(owners[pid], 0)
                sums[owners[pid]] = None if size is None or before is None else before + size
        sums = {uid: None if size is not None and size >= 1 << 64 else size for uid, size in sums.items()}
        total = sum(size for size in sums.values() if size is not None)
        if total > gpu.in_use:
            sums = {uid: None if size is None else size * gpu.in_use // total for uid, size in sums.items()}
        return sums

    def used(self, pod, number):
        told = self.expected.get(number)
        return None if told is None else told.get(pod.cgroup_uid, 0)

    # ---- what is said ----

    def judge(self, page):
        """What is wrong with the page; of pods that it does not name nothing is said."""
        doc = json.loads(page)
        pods = {pod.name: pod for pod in self.pods.values()}
        by_pods, seen, over = {}, set(), 0
        for said in doc["pods"]:
            pod = pods.get(said["name"])
            if not pod:
                return f"{said['name']} is named"
            if said["name"] in seen:
                return f"{said['name']} is named twice"
            seen.add(said["name"])
            if said["uid"] != pod.uid or said["allocatedBytes"] != pod.share or [one["id"] for one in said["gpus"]] != pod.gpus:
                return f"{said} is not {pod.__dict__}"
            for one in said["gpus"]:
                used = self.used(pod, one["id"])
                wanted = (used, None if used is None else pod.peak[one["id"]])
                if (one.get("usedBytes"), one.get("peakBytes")) != wanted:
                    return f"{pod.name} ({pod.cgroup_uid}) on GPU {one['id']}: {one}, but it is {wanted}"
                if used is not None:
                    by_pods[one["id"]] = by_pods.get(one["id"], 0) + used
            over += any((self.used(pod, number) or 0) > pod.share for number in pod.gpus)
        if seen != set(pods):
            return f"{sorted(set(pods) - seen)} are not named"
        if doc["overRequestPodCount"] != over:
            return f"overRequestPodCount is {doc['overRequestPodCount']}, of {over}"
        return self.judge_gpus(doc, by_pods)

    def judge_gpus(self, doc, by_pods):
        gpus = {gpu.number: gpu for gpu in [*self.gpus, self.last]}
        if [one["id"] for one in doc["gpus"]] != sorted(gpus):
            return f"GPUs are {doc['gpus']}"
        for one in doc["gpus"]:
            in_use, pods = gpus[one["id"]].in_use, by_pods.get(one["id"])
            others = None if pods is None else in_use - pods
            if (one.get("usedBytes"), one.get("usedByPodsBytes"), one.get("usedByOthersBytes")) != (in_use, pods, others):
                return f"GPU {one}, but in use are {in_use}, by pods {pods}"
            if pods is not None and pods > in_use:
                return f"GPU {one}: more than is in use"
        return ""

    def judge_metrics(self, text):
        wanted = {}
        for pod in self.pods.values():
            owner = pod.owner and f"{pod.owner[0]}/{pod.owner[1]}" or ""
            owner = owner.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\x01", "?")
            for number in pod.gpus:
                labels = f'{{namespace="team",pod="{pod.name}",owner="{owner}",gpu="{number}"}}'
                wanted["allocated" + labels] = pod.share
                if self.used(pod, number) is not None:
                    wanted["used" + labels] = self.used(pod, number)
                    wanted["peak" + labels] = pod.peak[number]
        head, found = "gpushare_device_plugin_pod_gpu_memory_", {}
        for line in text.split("\n"):
            if line.startswith(head):
                name, _, value = line[len(head):].rpartition(" ")
                found[name.replace("_bytes{", "{", 1)] = int(value)
        wrong = sorted(set(found.items()) ^ set(wanted.items()))
        return f"metrics: {wrong[:4]} are there or here alone" if wrong else ""


def put(path, text):
    with open(path, "wb") as out:
        out.write(text)
