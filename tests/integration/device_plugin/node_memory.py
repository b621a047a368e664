#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that others make as large as the API server lets them, and the kubelet's checkpoint of such pods: how
much memory they take in the device plugin, the most that it ever had resident. The DaemonSet gives it 64 MiB;
half of that is kept.

  node_memory.py BUILD"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile_surface"))
import fake  # noqa: E402

MOST_KIB = 32 << 10
ROWS = [("10,000 pods of 60 kB", 10000, 60000, "x"), ("100 pods of 1.5 MB", 100, 1500000, "x"),
        ("110 pods of 600 kB", 110, 600000, "x"),
        ("30 pods of 1.5 MB, which Go's JSON writes in six times as many bytes", 30, 1500000, r"\u003c"),
        ("3 pods above 16 MiB: passed over", 3, 3000000, r"\u003c"),
        ("250 pods of 2,000 init containers with GPU memory", 250, 99, "x", 2000),
        ("a checkpoint of 120 containers with all of a node's ids", 0, 99, "x", 0, 120)]


class Server(fake.Server):
    def __init__(self, pods, size, letter, inits=0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pods, self.size, self.letter, self.pages = pods, size, letter, []
        self.inits = [{"name": f"{'i' * 57}{i}", "image": "i", "resources": {"limits": {"aliyun.com/gpu-mem": 1}}}
                      for i in range(inits)]
        self.whole = threading.Event()


class Handler(fake.Handler):
    def pod(self, number):
        value = "x" * (self.server.size // 4)
        owner = {"apiVersion": value, "kind": "X", "name": "n", "uid": value, "controller": True}
        return json.dumps({
            "metadata": {"name": f"p{number}", "namespace": "mallory", "uid": f"u-{number}",
                         "resourceVersion": "5", "ownerReferences": [owner]},
            "spec": {"nodeName": "n1", "schedulerName": value, "initContainers": self.server.inits,
                     "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": value}]}]},
            "status": {"phase": "Pending"}}).replace("x" * 99, self.server.letter * 99)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        if "watch" in query:
            self.server.whole.set()
            self.send_response(200)
            self.end_headers()
            time.sleep(60)
        elif url.path == "/api/v1/pods":
            limit, at = int(query.get("limit", ["500"])[0]), int(query.get("continue", ["0"])[0])
            end = min(self.server.pods, at + limit)
            self.server.pages.append(limit)
            more = f',"continue":"{end}"' if end < self.server.pods else ""
            items = ",".join(self.pod(n) for n in range(at, end))
            self.say(200, (f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":'
                              f'"7"{more}}},"items":[{items}]}}').encode())
        elif url.path == "/api/v1/nodes/n1":
            self.say(200, b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}')
        else:
            self.say(404, b'{"kind":"Status","code":404}')

    def do_PATCH(self):
        self.read_body()
        self.say(200, b"{}")

    do_POST = do_PUT = do_PATCH


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
    server = Server(pods, size, letter, inits)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = tempfile.mkdtemp(prefix="node-memory-")
    if containers:
        write_checkpoint(folder, containers)
    with open(f"{folder}/kubeconfig", "w", encoding="ascii") as file:
        file.write(f"""apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{server.server_port}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
""")
    with open(f"{folder}/log", "w", encoding="ascii") as log:
        plugin = subprocess.Popen(
            [f"{build}/gpushare-device-plugin", "--kubeconfig", f"{folder}/kubeconfig", "--node-name", "n1",
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
        server.shutdown()
        shutil.rmtree(folder)


for row in ROWS:
    run(sys.argv[1], *row)
