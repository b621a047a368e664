# SPDX-License-Identifier: Apache-2.0
"""The built programs on ports of loopback, and how one asks them."""

import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from harness.processes import free_port  # noqa: E402

HOST = "127.0.0.1"
PREFIX = "/gpushare-scheduler/"
MEMORY_MAX = 1 << 30     # address space of the CLI: 32 threads, 32 answers of 1 MiB
FATAL = {**os.environ, "GPUSHARE_INVARIANTS": "fatal"}


def write_kubeconfig(path, port):
    with open(path, "w", encoding="ascii") as out:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                   "clusters": [{"name": "c", "cluster": {"server": f"http://{HOST}:{port}"}}],
                   "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                   "users": [{"name": "u", "user": {"token": "t"}}]}, out)
    return path


def wait_for(what, question, seconds=30):
    until = time.monotonic() + seconds
    while not (found := question()):
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.02)
    return found


def ask(port, method, path, data=None, headers=None, seconds=30):
    """(status, headers, bytes)"""
    conn = http.client.HTTPConnection(HOST, port, timeout=seconds)
    try:
        conn.connect()
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": f"{HOST}:{port}", **(headers or {}), "Content-Length": len(data or b"")}.items():
            conn.putheader(name, value)
        conn.endheaders(data)
        answer = conn.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        conn.close()


def request(port, method, path, body=None, seconds=30):
    """(status, text)"""
    status, _, text = ask(port, method, path, None if body is None else json.dumps(body).encode(), seconds=seconds)
    return status, text.decode("utf-8", "surrogateescape")


class Program:
    """A process, that may begin anew; its log stays."""

    def __init__(self, command, log, env=None):
        self.command, self.log, self.env, self.process = command, log, env or FATAL, None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)

    def alive(self):
        return bool(self.process) and self.process.poll() is None

    def said(self):
        with open(self.log, encoding="utf-8", errors="surrogateescape") as log:
            return log.read()

    def end(self, how=signal.SIGTERM, seconds=30):
        """Its exit status."""
        if self.alive():
            self.process.send_signal(how)
        return self.process.wait(seconds)

    def kill(self):
        if self.alive():
            self.end(signal.SIGKILL)


def preloads(build, program, *shims):
    """What LD_PRELOAD has to be, for shims of tests/support."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    first = [line.split()[2] for line in linked.splitlines() if line.split()[0].startswith("libasan.")]     # insists on it
    return ":".join([*first, *(os.path.join(build, "tests", f"lib{shim}_shim.so") for shim in shims)])


class Extender(Program):
    """with Extender(build, api) as one: ready inside, ended after with one.status."""

    def __init__(self, build, api, *flags, log="info", program="gpushare-extender", env=None):
        self.port = free_port()
        super().__init__([os.path.join(build, program), "--kubeconfig", api.kubeconfig, "--listen",
                          f"{HOST}:{self.port}", "--log-level", log, *flags],
                         os.path.join(api.folder, f"extender-{self.port}.log"), {**FATAL, **(env or {})})
        self.start()

    def ready(self):
        if not self.alive():
            raise RuntimeError(f"it ended: {self.said()[-2000:]}")
        try:
            return self.get("/readyz")[0] == 200
        except OSError:
            return False

    def __enter__(self):
        wait_for("the extender is ready", self.ready)
        return self

    def __exit__(self, *_):
        self.status = self.end()

    def get(self, path):
        return request(self.port, "GET", path)

    def ask(self, verb, said, seconds=30):
        return request(self.port, "POST", PREFIX + verb, said, seconds)

    def bind(self, pod, node):
        """(status, text), of a pod with name, namespace and uid."""
        return self.ask("bind", {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node})


class Web(Program):
    """The page of the CLI."""

    def __init__(self, build, api, *flags):
        self.build, self.api = build, api
        super().__init__([os.path.join(build, "kubectl-inspect-gpushare"), "web", "--server", f"http://{HOST}:{api.port}", *flags],
                         os.path.join(api.folder, "web.log"))
        self.start()
        found = wait_for("the page's address", lambda: re.search(r"^http://127\.0\.0\.1:(\d+)/(.*)\n", self.said(), re.M) or
                         not self.alive())
        if found is True:
            raise RuntimeError(f"said {self.said()!r}")
        self.port, self.root = int(found[1]), "/" + found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.status = self.end(seconds=60)

    def get(self, path, headers=None, seconds=40):
        """(status, headers, bytes) of a path below its root."""
        return ask(self.port, "GET", self.root + path, headers=headers, seconds=seconds)


def limit_memory(build):
    """A sanitizer maps more than any program may take."""
    if not re.search(r"build-(asan|tsan)", build):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


def cli(build, api, *words):
    """(exit status, stdout, stderr) of kubectl inspect gpushare."""
    done = subprocess.run(
        [os.path.join(build, "kubectl-inspect-gpushare"), *words, "--server", f"http://{HOST}:{api.port}"],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False, preexec_fn=lambda: limit_memory(build), env=FATAL)
    return done.returncode, done.stdout, done.stderr
