#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a device plugin to ask the driver what pods use (--pod-usage-from=nvml): processor and memory beside a
plugin that does not, on two like nodes at the same time. 250 pods with a process each in a cgroup of its pod, 8 GPUs of
a stand-in for the driver's library; 40 pods are above their share, so they and their ReplicaSets have Events.

    usage_cost.py BUILD [SECONDS]       as root; 120 seconds unless said
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

GPUS, PODS, ABOVE = 8, 250, 40
GIB, MIB = 1 << 30, 1 << 20
UNIFIED = "/sys/fs/cgroup/unified"
CGROUPS = UNIFIED if os.path.isdir(UNIFIED) else "/sys/fs/cgroup"
FOLDER = f"{CGROUPS}/kubepods"


def uid(number):
    return f"{number:08x}-0000-4000-8000-000000000000"


def pod(number):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"r{number}", "uid": f"rs-{number}", "controller": True}
    annotations = {"ALIYUN_COM_GPU_MEM_IDX": str(number % GPUS), "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
                   "ALIYUN_COM_GPU_MEM_POD": "1", "ALIYUN_COM_GPU_MEM_DEV": "80", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1"}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "default", "uid": uid(number), "annotations": annotations,
                         "ownerReferences": [owner]},
            "spec": {"nodeName": "n", "containers": [
                {"name": "main", "image": "i", "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}]},
            "status": {"phase": "Running"}}


def objects():
    size = {"aliyun.com/gpu-mem": str(80 * GPUS), "aliyun.com/gpu-count": str(GPUS), "cpu": "64", "pods": "500"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"gpushare": "true"}},
            "status": {"capacity": size, "allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}}
    return [node, *map(pod, range(PODS))]


def driver(pids):
    """What the stand-in shows: ABOVE pods have 2.25 GiB of the 1 that they were given."""
    lines = []
    for gpu in range(GPUS):
        lines.append(f"gpu GPU-{gpu} {80 * 1024} 0 00000000:{gpu + 1:02x}:00.0")
        lines += [f"process compute {pids[number]} {(2304 if number < ABOVE else 256) * MIB} -1"
                  for number in range(gpu, PODS, GPUS)]
    return "\n".join(lines) + "\n"


class World:
    def __init__(self, build):
        self.build, self.dir, self.processes, self.pids = build, tempfile.mkdtemp(), [], []

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, name, *words, **environment):
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=open(self.path(f"{name}.log"), "wb"), env={**os.environ, **environment})
        self.processes.append(process)
        return process

    def users(self):
        for number in range(PODS):
            folder = f"{FOLDER}/besteffort/pod{uid(number)}/c"
            os.makedirs(folder, exist_ok=True)
            self.pids.append(self.start("user", "sleep", "100000").pid)
            with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as procs:
                procs.write(str(self.pids[-1]))
        with open(self.path("driver"), "w", encoding="ascii") as out:
            out.write(driver(self.pids))

    def node(self, name, *flags):
        """(its log, the plugin)"""
        config = self.path(f"{name}.kubeconfig")
        self.start(f"{name}-api", f"{self.build}/gpushare-sim", "serve", "--listen=127.0.0.1:0",
                   f"--load={self.path('objects.json')}", f"--kubeconfig-out={config}")
        until("the API server serves", lambda: os.path.getsize(config))
        os.makedirs(self.path(f"{name}.plugins"))
        log = self.path(f"{name}.log")
        plugin = self.start(name, f"{self.build}/gpushare-device-plugin", f"--kubeconfig={config}", "--node-name=n",
                            f"--nvml-library={self.build}/tests/libfake_nvml.so", "--health-listen=127.0.0.1:0",
                            f"--device-plugin-dir={self.path(name)}.plugins", "--log-format=json", "--pod-usage=on",
                            *flags, GS_FAKE_NVML=self.path("driver"))
        return log, plugin

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()
        time.sleep(0.5)
        for number in range(PODS):  # a kubelet's may be beside them
            os.rmdir(f"{FOLDER}/besteffort/pod{uid(number)}/c")
            os.rmdir(f"{FOLDER}/besteffort/pod{uid(number)}")
        shutil.rmtree(self.dir)


def until(what, probe, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := probe():
                return found
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"not within {seconds} s: {what}")


def processor_s(process):
    total_ns = 0
    for task in os.listdir(f"/proc/{process.pid}/task"):
        with open(f"/proc/{process.pid}/task/{task}/schedstat", encoding="ascii") as text:
            total_ns += int(text.read().split()[0])
    return total_ns / 1e9


def own_mb(process):
    with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as text:
        return sum(int(line.split()[1]) for line in text if line.startswith(("Private_Dirty", "Private_Clean"))) / 1024


def written(log, what):
    with open(log, encoding="utf-8") as text:
        return sum(what in line and '"written to' in line for line in text)


def main(build, seconds):
    world = World(os.path.abspath(build))
    try:
        with open(world.path("objects.json"), "w", encoding="ascii") as out:
            json.dump({"apiVersion": "v1", "kind": "List", "items": objects()}, out)
        world.users()
        rows = {"without": world.node("without"), "with": world.node("with", "--pod-usage-from=nvml")}
        log = rows["with"][0]
        until("who is above its share is told", lambda: written(log, "GpuMemoryOverRequest") >= 2 * ABOVE, 120)
        before = {name: processor_s(plugin) for name, (_, plugin) in rows.items()}
        time.sleep(seconds)
        for name, (log, plugin) in rows.items():
            print(f"{name:8} {processor_s(plugin) - before[name]:6.2f} s of a processor in {seconds} s; since its start "
                  f"{processor_s(plugin):5.2f} s; {own_mb(plugin):.1f} MB of its own; "
                  f"{written(log, 'GpuMemoryOverRequest')} Events")
    finally:
        world.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 120)
