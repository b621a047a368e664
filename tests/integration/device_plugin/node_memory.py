#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods that others make as large as the API server lets them: how much memory the device plugin's list of
its node's pods takes, the most that it ever had resident. The DaemonSet gives it 64 MiB; half of that is kept.
With --cgroup FOLDER (memory, as root) it runs in a cgroup of that size, as there.

  node_memory.py BUILD [--cgroup /sys/fs/cgroup/memory/gpushare-node-memory]"""

import argparse
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

MOST_KIB = 32 << 10
LIMIT = 64 << 20
ROWS = [("10,000 pods of 60 kB", 10000, 60000), ("100 pods of 1.5 MB", 100, 1500000),
        ("110 pods of 600 kB", 110, 600000), ("a few of each", 40, 1000)]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pods, size):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pods, self.size, self.pages = pods, size, []
        self.whole = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def pod(self, number):
        value = "x" * (self.server.size // 4)
        env = [{"name": f"E{n}", "value": value} for n in range(4)]
        return json.dumps({
            "metadata": {"name": f"p{number}", "namespace": "mallory", "uid": f"u-{number}",
                         "resourceVersion": "5"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "env": env}]},
            "status": {"phase": "Pending"}})

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
            self.answer(200, (f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":'
                              f'"7"{more}}},"items":[{items}]}}').encode())
        elif url.path == "/api/v1/nodes/n1":
            self.answer(200, b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}')
        else:
            self.answer(404, b'{"kind":"Status","code":404}')

    def do_PATCH(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(200, b"{}")

    do_POST = do_PATCH


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def run(build, cgroup, what, pods, size):
    server = Server(pods, size)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = tempfile.mkdtemp(prefix="node-memory-")
    with open(f"{folder}/kubeconfig", "w", encoding="ascii") as file:
        file.write(f"""apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{server.server_port}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
""")
    enter = f"echo $$ > {cgroup}/cgroup.procs; " if cgroup else ""
    with open(f"{folder}/log", "w", encoding="ascii") as log:
        plugin = subprocess.Popen(
            ["sh", "-c", f'{enter}exec "$@"', "sh", f"{build}/gpushare-device-plugin", "--kubeconfig",
             f"{folder}/kubeconfig", "--node-name", "n1", "--fake-gpus", "1x16GiB",
             "--device-plugin-dir", folder, "--pod-resources-socket", f"{folder}/none.sock",
             "--http-listen", "127.0.0.1:0"], stderr=log)
    try:
        whole = server.whole.wait(120)
        time.sleep(1)
        if plugin.poll() is not None or not whole:
            with open(f"{folder}/log", encoding="utf-8") as log:
                print(log.read()[-2000:], file=sys.stderr)
            raise AssertionError(f"{what}: ended {plugin.poll()}, list whole: {whole}")
        kib = resident_kib(plugin.pid)
        print(f"{what}: at most {kib / 1024:.1f} MiB resident, {len(server.pages)} pages")
        if kib > MOST_KIB:
            raise AssertionError(f"{what}: {kib} KiB are above {MOST_KIB}")
    finally:
        plugin.kill()
        plugin.wait()
        server.shutdown()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--cgroup")
    options = parser.parse_args()
    if options.cgroup:
        os.makedirs(options.cgroup, exist_ok=True)
        with open(f"{options.cgroup}/memory.limit_in_bytes", "w", encoding="ascii") as file:
            file.write(str(LIMIT))
    for what, pods, size in ROWS:
        run(options.build, options.cgroup, what, pods, size)
    if options.cgroup:
        os.rmdir(options.cgroup)


main()
