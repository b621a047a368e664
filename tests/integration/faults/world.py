# SPDX-License-Identifier: Apache-2.0
"""The programs, the objects and the requests of the fault test."""

import contextlib
import glob
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))
from harness.processes import free_port  # noqa: E402

HOST = "127.0.0.1"
PREFIX = "/gpushare-scheduler"
NODES = {"n1": [16, 16, 24, 8], "n2": [16, 16], "n3": [32], "n4": [8, 8, 8, 8]}


class Failure(Exception):
    """Says why the test failed to somebody who reads only that."""


def last_words(folder):
    for path in glob.glob(f"{folder}/**/*.log", recursive=True):
        if not path.endswith("watch.log"):
            with open(path, encoding="utf-8", errors="replace") as log:
                print(f"--- {path}\n{log.read()[-3000:]}", file=sys.stderr)


def exit_status(name, body, keep=None):
    """Of body(folder), which says by a Failure what went wrong. The folder goes; keep names one that
    stays."""
    with tempfile.TemporaryDirectory(prefix=f"gpushare-{name}.") as own:
        if keep:
            os.makedirs(keep, exist_ok=True)
        try:
            body(keep or own)
        except Failure as failure:
            print(f"failed: {failure}", file=sys.stderr)
            last_words(keep or own)
            return 1
    return 0


def wait_until(what, probe, timeout_s):
    """Call probe() until it returns None; any text it returns says what is still missing."""
    deadline = time.monotonic() + timeout_s
    while True:
        missing = probe()
        if missing is None:
            return
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {timeout_s} s: {missing}")
        time.sleep(0.05)


class Http:
    """JSON over one kept connection per thread."""

    def __init__(self, url):
        self.netloc = urllib.parse.urlsplit(url).netloc
        self.local = threading.local()

    def ask(self, method, path, body=None, kind="application/json"):
        """(status, text)"""
        data = body if isinstance(body, (str, type(None))) else json.dumps(body)
        for last in (False, True):
            conn = getattr(self.local, "conn", None)
            if conn is None:
                conn = self.local.conn = http.client.HTTPConnection(self.netloc, timeout=120)
            try:
                conn.request(method, path, data, {"Content-Type": kind, "User-Agent": "fault-test"})
                answer = conn.getresponse()
                return answer.status, answer.read().decode()
            except (OSError, http.client.HTTPException):
                conn.close()
                self.local.conn = None
                if last:
                    raise
        return None

    def json(self, method, path, body=None, kind="application/json"):
        status, text = self.ask(method, path, body, kind)
        if status >= 300:
            raise Failure(f"{method} {path}: {status} {text[:300]}")
        return json.loads(text)


def node(name, sizes):
    gpus = [{"idx": i, "mem": mem, "healthy": True, "schedulable": True}
            for i, mem in enumerate(sizes)]
    return {"metadata": {"name": name, "annotations": {
                "aliyun.com/gpu-inventory": json.dumps({"v": 1, "unit": "GiB", "gpus": gpus})}},
            "status": {"allocatable": {"aliyun.com/gpu-mem": str(sum(sizes)), "cpu": "64",
                                       "aliyun.com/gpu-count": str(len(sizes)), "pods": "500"},
                       "capacity": {"aliyun.com/gpu-mem": str(sum(sizes)),
                                    "aliyun.com/gpu-count": str(len(sizes))}}}


def pod(name, units, gpus):
    labels = {"aliyun.com/gpu-count": str(gpus)} if gpus > 1 else {}
    return {"metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {
                "limits": {"aliyun.com/gpu-mem": str(units * gpus)}}}]}}


class Log:
    """Copies the pods' watch into a file, from the first pod on."""

    def __init__(self, url, path):
        self.path = path
        self.conn = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
        self.conn.request("GET", "/api/v1/pods?watch=1&resourceVersion=1&timeoutSeconds=86400",
                          headers={"User-Agent": "fault-test-log"})
        self.answer = self.conn.getresponse()
        self.version = 0
        self.thread = threading.Thread(target=self.copy, daemon=True)
        self.thread.start()

    def copy(self):
        with open(self.path, "wb") as out, contextlib.suppress(OSError, ValueError,
                                                               http.client.HTTPException):
            for line in self.answer:
                out.write(line)
                out.flush()
                self.version = int(json.loads(line)["object"]["metadata"]["resourceVersion"])


class World:
    """API server with faults, extender, and the log of everything that the API told."""

    def __init__(self, build, folder, seed, extender_flags=(), clocks=None, often=False):
        """often: the extender compares its ledger with the API each second."""
        self.build, self.folder, self.seed, self.clocks = build, folder, seed, clocks
        self.flags = list(extender_flags)
        self.paths = {"gpushare-extender": "tests/extender_reconciling_often"} if often else {}
        self.running = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, program, *args, clocks=None):
        path = os.path.join(self.build, self.paths.get(program, program))
        program = os.path.basename(program)
        env = {**os.environ, **(clocks.environment(self.build, path) if clocks else {})}
        with open(self.path(f"{program}.log"), "ab") as log:
            process = subprocess.Popen([path, *args], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=env)
        if clocks:
            clocks.pid = process.pid
        self.running.append((program, process))
        return process

    def __enter__(self):
        try:
            self.start_api()
            self.start_extender()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        failed = self.stop()
        if kind is None and failed:
            raise Failure(failed)

    def start_api(self):
        config = self.path("kubeconfig")
        for old in ("kubeconfig", "faulty-api.log", "gpushare-extender.log"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path(old))
        self.start("tests/faulty-api", "--listen", f"{HOST}:0", "--faults", "", "--fault-seed",
                   str(self.seed), "--history", "2000000", "--kubeconfig-out", config)
        wait_until("the API server", lambda: None if os.path.exists(config) else "no file", 30)
        with open(config, encoding="utf-8") as source:
            url = next(line.split()[1] for line in source if "server:" in line)
        self.api = Http(url)
        for name, sizes in NODES.items():
            self.api.json("POST", "/api/v1/nodes", node(name, sizes))
        with open(self.path("nodes.json"), "w", encoding="utf-8") as out:
            json.dump(self.api.json("GET", "/api/v1/nodes"), out)
        self.log = Log(url, self.path("watch.log"))

    def start_extender(self):
        log = self.path("gpushare-extender.log")
        self.start("gpushare-extender", "--kubeconfig", self.path("kubeconfig"), "--listen",
                   f"{HOST}:{self.free_port()}", "--log-level", "info", *self.flags,
                   clocks=self.clocks)
        self.extender = Http(f"http://{HOST}:{self.port}")

        def probe():
            try:
                status, text = self.extender.ask("GET", "/readyz")
                return None if status == 200 else text
            except OSError as error:
                with open(log, encoding="utf-8") as source:
                    return f"{error}: {source.read()[-500:]}"
        wait_until("the extender", probe, 30)

    def free_port(self):
        self.port = free_port()
        return self.port

    def stop(self):
        """What went wrong at the end, or ""."""
        failed = ""
        for program, process in reversed(self.running):
            process.terminate()
            try:
                status = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
            if status:
                failed += f"{program} ended with {status}; "
        self.running.clear()
        return failed

    def plan(self, text):
        """Sets the faults; returns how often each was injected before."""
        counts = self.counts()
        self.api.json("PUT", "/faults", text, "text/plain")
        return counts

    def counts(self):
        return {**self.api.json("GET", "/faults"), **(self.clocks.counts if self.clocks else {})}

    def metrics(self):
        lines = self.extender.ask("GET", "/metrics")[1].splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")
        return {series: float(value) for series, value in pairs}

    def verb(self, name, body):
        return self.extender.json("POST", f"{PREFIX}/{name}", body)

    def inspect(self):
        """{(node, gpu): {pod uid: units}}"""
        return {(n["name"], dev["id"]): {p["uid"]: p["usedGPU"] for p in dev["pods"]}
                for n in self.extender.json("GET", f"{PREFIX}/inspect")["nodes"]
                for dev in n["devs"]}

    def pods(self):
        return self.api.json("GET", "/api/v1/pods")["items"]
