# SPDX-License-Identifier: Apache-2.0
"""The extender's processes, and how kube-scheduler asks them."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time

from api import Client

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))
from harness.processes import free_port  # noqa: E402

PREFIX = "/gpushare-scheduler/"
NAMESPACE = "kube-system"
METRIC = re.compile(r"^(gpushare_[^ ]+) ([0-9.e+-]+)$", re.M)
# Whoever was told SIGTERM has ten seconds for requests under way.
END_S, START_S = 25, 40


class Extender:
    def __init__(self, world, number, program, flags):
        self.world, self.number, self.program = world, number, program
        self.name, self.port, api_port = f"ext-{number}", free_port(), free_port()
        self.client = Client(self.name, api_port)
        self.flags, self.process, self.frozen, self.ending = flags, None, False, False
        self.log = open(os.path.join(world.folder, self.name + ".log"), "ab")
        self.kubeconfig = os.path.join(world.folder, self.name + ".kubeconfig")
        with open(self.kubeconfig, "w", encoding="utf-8") as out:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                       "clusters": [{"name": "c", "cluster": {
                           "server": f"http://127.0.0.1:{api_port}"}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "users": [{"name": "u", "user": {"token": "t"}}]}, out)

    def start(self):
        self.ending = False
        self.client.begin(self.world.api.seq)
        command = [self.program, "--kubeconfig", self.kubeconfig, "--pod-name", self.name,
                   "--pod-namespace", NAMESPACE, "--listen", f"127.0.0.1:{self.port}",
                   "--log-level", "info", *self.flags]
        if self.world.way == "scheduler":       # each on a host of its own name
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"',
                       f"host-{self.number}", *command]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL,
                                        env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})
        self.world.trace("start", self.name, self.process.pid)

    def stop(self):
        self.frozen = True
        self.client.process.stop()
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.frozen = False
        self.process.send_signal(signal.SIGCONT)
        self.client.process.go_on()

    async def end(self, how):
        """Its exit status; None if it does not end at SIGTERM."""
        self.ending = True
        if self.frozen:
            self.go_on()
        self.process.send_signal(how)
        until = time.monotonic() + END_S
        while self.process.poll() is None and time.monotonic() < until:
            await asyncio.sleep(0.05)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            return None
        return self.process.returncode

    async def ask(self, method, path, body=None, seconds=5):
        """(status, text); OSError or TimeoutError if there is no answer."""
        async def exchange():
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
            try:
                data = b"" if body is None else json.dumps(body).encode()
                writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                             "Content-Type: application/json\r\n"
                             f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
                answer = await reader.read()
            finally:
                writer.close()
            head, _, rest = answer.partition(b"\r\n\r\n")
            if not head:
                raise ConnectionError("no answer")
            return int(head.split()[1]), rest.decode()
        return await asyncio.wait_for(exchange(), seconds)

    async def get(self, path):
        try:
            status, text = await self.ask("GET", path)
        except (OSError, asyncio.TimeoutError):
            return 0, ""
        return status, text

    async def inspect(self):
        status, text = await self.get(PREFIX + "inspect")
        return json.loads(text) if status == 200 else None

    async def metrics(self):
        return {name: float(value)
                for name, value in METRIC.findall((await self.get("/metrics"))[1])}


class Service:
    """Finds the replica that leads, as a Service or a kube-scheduler on its host does."""

    def __init__(self, world):
        self.world, self.last, self.asked = world, 0, {}

    async def verb(self, name, body, seconds=5):
        """The answer of whoever leads; None if nobody does, or no answer came."""
        world, count = self.world, len(self.world.extenders)
        order = [(self.last + k) % count for k in range(count)]
        if world.way == "scheduler":
            order = [world.host]
        for at in order:
            one = world.extenders[at]
            if one.frozen and world.rng.random() < 0.9:
                continue
            try:
                status, text = await one.ask("POST", PREFIX + name, body, seconds)
            except (OSError, asyncio.TimeoutError):
                continue
            if status != 200:
                if status < 500:
                    world.oracle.wrong(f"{name} answers {status}", text[:200])
                continue
            answer = json.loads(text)
            error = answer.get("Error") or "" if isinstance(answer, dict) else ""
            if "%" in error:
                world.oracle.wrong("an error with a %", error)
            if "standby" in error or "not ready" in error or "does not lead" in error:
                continue
            self.last = at
            self.asked[name] = self.asked.get(name, 0) + 1
            return answer
        return None
