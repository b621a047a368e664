# SPDX-License-Identifier: Apache-2.0
"""The built device plugin beside an API server of a script, the stand-in for the driver's library, a folder in place of
/proc, and a clock that the test moves."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "hostile_surface"))
import fake  # noqa: E402

NODE = "n"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LATER_NS = 100_000 * 10**9      # the machine has run for a day, also where it was just started
READ_NS = 10_500_000_000        # the driver is asked every ten seconds


class Handler(fake.Handler):
    """Keeps Events, and lets lists of pods wait."""

    def answer(self):
        api = self.server.api
        path = self.path.partition("?")[0]
        if self.command == "POST" and path.endswith("/events"):
            body = self.read_body()
            with api.lock:
                api.events.append(json.loads(body))
            return self.say(201, body)
        if self.command == "GET" and path.endswith("/pods") and "watch" not in self.path:
            while api.held and not api.ended:
                time.sleep(0.01)
        return super().answer()

    do_GET = do_POST = do_PATCH = do_PUT = answer


class Api(fake.Api):
    handler = Handler

    def __init__(self, objects):
        self.events, self.held = [], False
        super().__init__(objects)


class Plugin:
    """flags: more of them. One process at a time; its folders stay."""

    def __init__(self, build, api, source):
        self.build, self.api, self.source = build, api, source
        self.dir = tempfile.mkdtemp(prefix="usage_attack.")
        self.proc, self.driver = self.path("proc"), self.path("driver")
        os.makedirs(self.proc)
        os.makedirs(self.path("plugins"))
        self.process, self.shift_ns, self.starts = None, LATER_NS, 0
        self.put_clock()

    def path(self, name):
        return os.path.join(self.dir, name)

    def put_clock(self):
        with open(self.path("clock"), "r+b" if os.path.exists(self.path("clock")) else "wb") as out:
            out.write(struct.pack("=qqq", 0, self.shift_ns, 0))

    def jump(self, ns):
        self.shift_ns += ns
        self.put_clock()

    def ticks(self):
        """Since the boot, as the plugin sees it."""
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) + self.shift_ns) * TICKS_PER_S // 10**9

    def show(self, text):
        """What the driver does from now on."""
        with open(self.driver + ".new", "w", encoding="ascii") as out:
            out.write(text)
        os.rename(self.driver + ".new", self.driver)

    def preloads(self, program):
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        first = [line.split()[2] for line in linked.splitlines() if line.split()[0].startswith("libasan.")]
        return ":".join(first + [os.path.join(self.build, "tests", f"lib{name}_shim.so") for name in ("clock", "proc")])

    def start(self):
        program = os.path.join(self.build, "gpushare-device-plugin")
        self.starts += 1
        self.port = fake.free_port()
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(
                [program, f"--kubeconfig={self.api.kubeconfig}", f"--node-name={NODE}",
                 f"--nvml-library={self.build}/tests/libfake_nvml.so", f"--health-listen=127.0.0.1:{self.port}",
                 f"--device-plugin-dir={self.path('plugins')}", "--pod-usage=on", f"--pod-usage-from={self.source}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={
                    **os.environ, "GS_FAKE_NVML": self.driver, "GS_PROC": self.proc, "LD_PRELOAD": self.preloads(program),
                    "GS_CLOCK_FILE": self.path("clock"), "GPUSHARE_INVARIANTS": "fatal"})

    def stop(self, kill=False):
        """Its exit status."""
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        status = self.process.wait(30)
        self.process = None
        return 0 if kill else status

    def get(self, path):
        """None: it does not answer yet."""
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended with {self.process.returncode}: {self.said()[-1500:]}")
        try:
            status, text = fake.request(self.port, "GET", path)
        except OSError:
            return None
        return text if status == 200 else None

    def said(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir)
