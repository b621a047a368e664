#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that others make as large as the API server lets them, and the kubelet's checkpoint of such pods: how
much memory they take in the device plugin, the most that it ever had resident. The DaemonSet gives it 64 MiB;
half of that is kept.

  node_memory.py BUILD"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from api import Served  # noqa: E402

MOST_KIB = 32 << 10
ROWS = [("10,000 pods of 60 kB", 10000, 60000, "x"), ("100 pods of 1.5 MB", 100, 1500000, "x"),
        ("110 pods of 600 kB", 110, 600000, "x"),
        ("30 pods of 1.5 MB, which Go's JSON writes in six times as many bytes", 30, 1500000, r"\u003c"),
        ("3 pods above 16 MiB: passed over", 3, 3000000, r"\u003c"),
        ("250 pods of 2,000 init containers with GPU memory", 250, 99, "x", 2000),
        ("a checkpoint of 120 containers with all of a node's ids", 0, 99, "x", 0, 120)]


class Api(Served):
    def __init__(self, pods, size, letter, inits=0):
        super().__init__()
        self.count, self.size, self.letter, self.pages = pods, size, letter, []
        self.inits = [{"name": f"{'i' * 57}{i}", "image": "i", "resources": {"limits": {"aliyun.com/gpu-mem": 1}}}
                      for i in range(inits)]
        self.whole = threading.Event()

    def pod(self, number):
        value = "x" * (self.size // 4)
        owner = {"apiVersion": value, "kind": "X", "name": "n", "uid": value, "controller": True}
        return json.dumps({
            "metadata": {"name": f"p{number}", "namespace": "mallory", "uid": f"u-{number}",
                         "resourceVersion": "5", "ownerReferences": [owner]},
            "spec": {"nodeName": "n1", "schedulerName": value, "initContainers": self.inits,
                     "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": value}]}]},
            "status": {"phase": "Pending"}}).replace("x" * 99, self.letter * 99)

    async def answer(self, method, path, query, body, writer):
        if method != "GET":
            return 200, {}
        if "watch" in query:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            self.whole.set()
            await asyncio.sleep(60)
        elif path == "/api/v1/pods":
            limit, at = int(query.get("limit", 500)), int(query.get("continue", 0))
            end = min(self.count, at + limit)
            self.pages.append(limit)
            more = f',"continue":"{end}"' if end < self.count else ""
            items = ",".join(self.pod(n) for n in range(at, end))
            return 200, (f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":'
                         f'"7"{more}}},"items":[{items}]}}')
        elif path == "/api/v1/nodes/n1":
            return 200, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        return self.failure(404, "NotFound", "no")


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def write_checkpoint(folder, containers):
    ids = [f"6e1a0b2c-{i}" for i in range(16384)]
    entries = [{"PodUID": "u", "ContainerName": f"c{i}", "ResourceName": "aliyun.com/gpu-mem",
                "DeviceIDs": {"-1": ids}, "AllocResp": ""} for i in range(containers)]
    with open(f"{folder}/kubelet_internal_checkpoint", "w", encoding="ascii") as file:
        json.dump({"Data": {"PodDeviceEntries": entries}, "Checksum": 1}, file)


def run(build, what, pods, size, letter, inits=0, containers=0):
    server = Api(pods, size, letter, inits)
    folder = tempfile.mkdtemp(prefix="node-memory-")
    if containers:
        write_checkpoint(folder, containers)
    with open(f"{folder}/log", "w", encoding="ascii") as log:
        plugin = subprocess.Popen(
            [f"{build}/gpushare-device-plugin", "--kubeconfig", server.kubeconfig, "--node-name", "n1",
             "--fake-gpus", "1x16GiB", "--device-plugin-dir", folder, "--health-listen", "127.0.0.1:0"], stderr=log)
    try:
        whole = server.whole.wait(120)
        time.sleep(1)
        if plugin.poll() is not None or not whole:
            with open(f"{folder}/log", encoding="utf-8") as log:
                print(log.read()[-2000:], file=sys.stderr)
            raise AssertionError(f"{what}: ended {plugin.poll()}, list whole: {whole}")
        with open(f"{folder}/log", encoding="utf-8") as log:
            ignored = log.read().count("is larger than 16 MiB")
        if ignored != (pods if "passed over" in what else 0):
            raise AssertionError(f"{what}: {ignored} pods are named as too large")
        kib = resident_kib(plugin.pid)
        print(f"{what}: at most {kib / 1024:.1f} MiB resident, {len(server.pages)} pages")
        if kib > MOST_KIB:
            raise AssertionError(f"{what}: {kib} KiB are above {MOST_KIB}")
    finally:
        plugin.kill()
        plugin.wait()
        server.end()
        shutil.rmtree(folder)


for row in ROWS:
    run(sys.argv[1], *row)
