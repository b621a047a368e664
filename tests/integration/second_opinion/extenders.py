# SPDX-License-Identifier: Apache-2.0
"""The extender's processes, and how kube-scheduler asks them."""

import asyncio
import http.client
import json
import signal
import subprocess

from api import Client
from programs import HOST, METRIC, NOT_NOW, PREFIX, Program, free_port, request, write_kubeconfig

NAMESPACE = "kube-system"
END_S = 25      # whoever was told SIGTERM has ten seconds for requests under way


class Extender(Program):
    def __init__(self, world, number, program, flags):
        self.world, self.name, self.port = world, f"ext-{number}", free_port()
        self.client = Client(self.name, free_port())
        self.frozen = self.ending = False
        account = write_kubeconfig(f"{world.folder}/{self.name}.kubeconfig", self.client.port)
        command = [program, "--kubeconfig", account, "--pod-name", self.name, "--pod-namespace", NAMESPACE, "--listen",
                   f"{HOST}:{self.port}", "--log-level", "info", *flags]
        if world.way == "scheduler":        # each on a host of its own name
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', f"host-{number}", *command]
        super().__init__(command, f"{world.folder}/{self.name}.log")

    def start(self):
        self.ending = False
        self.client.begin(self.world.api.seq)
        super().start()
        self.world.trace("start", self.name, self.process.pid)

    def stop(self):
        self.frozen = True
        self.client.process.stop()
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.frozen = False
        self.process.send_signal(signal.SIGCONT)
        self.client.process.go_on()

    async def ends(self, how):
        """Its exit status; None if it does not end at SIGTERM."""
        self.ending = True
        if self.frozen:
            self.go_on()
        try:
            return await asyncio.to_thread(self.end, how, END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    async def ask(self, method, path, body=None, seconds=5):
        """(status, text); OSError if there is no answer."""
        try:
            return await asyncio.to_thread(request, self.port, method, path, body, seconds)
        except http.client.HTTPException as why:
            raise ConnectionError("no answer") from why

    async def get(self, path):
        try:
            return await self.ask("GET", path)
        except OSError:
            return 0, ""

    async def inspect(self):
        status, text = await self.get(PREFIX + "inspect")
        return json.loads(text) if status == 200 else None

    async def metrics(self):
        return {name: float(value) for name, value in METRIC.findall((await self.get("/metrics"))[1])}


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
            except OSError:
                continue
            if status != 200:
                if status < 500:
                    world.oracle.wrong(f"{name} answers {status}", text[:200])
                continue
            answer = json.loads(text)
            error = answer.get("Error") or "" if isinstance(answer, dict) else ""
            if "%" in error:
                world.oracle.wrong("an error with a %", error)
            if any(words in error for words in NOT_NOW):
                continue
            self.last = at
            self.asked[name] = self.asked.get(name, 0) + 1
            return answer
        return None
