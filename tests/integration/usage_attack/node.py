# SPDX-License-Identifier: Apache-2.0
"""The built device plugin beside an API server of a script, the stand-in for the driver's library, a folder in place of
/proc, and a clock that the test moves."""

import os
import shutil
import struct
import tempfile

from programs import FATAL, HOST, Program, free_port, preloads, request

NODE = "n"
LATER_NS = 100_000 * 10**9      # the machine has run for a day, also where it was just started
READ_NS = 10_500_000_000        # the driver is asked every ten seconds


class Plugin(Program):
    """One process at a time; its folders stay."""

    def __init__(self, build, api, source):
        self.build, self.api, self.source = build, api, source
        self.dir = tempfile.mkdtemp(prefix="usage_attack.")
        super().__init__([], self.path("log"))
        self.proc, self.driver = self.path("proc"), self.path("driver")
        os.makedirs(self.proc)
        os.makedirs(self.path("plugins"))
        self.shift_ns = LATER_NS
        self.put_clock()

    def path(self, name):
        return os.path.join(self.dir, name)

    def put_clock(self):
        with open(self.path("clock"), "r+b" if os.path.exists(self.path("clock")) else "wb") as out:
            out.write(struct.pack("=qqq", 0, self.shift_ns, 0))

    def jump(self, ns):
        self.shift_ns += ns
        self.put_clock()

    def show(self, text):
        """What the driver does from now on."""
        with open(self.driver + ".new", "w", encoding="ascii") as out:
            out.write(text)
        os.rename(self.driver + ".new", self.driver)

    def start(self):
        program = os.path.join(self.build, "gpushare-device-plugin")
        self.port = free_port()
        self.command = [program, f"--kubeconfig={self.api.kubeconfig}", f"--node-name={NODE}",
                        f"--nvml-library={self.build}/tests/libfake_nvml.so", f"--health-listen={HOST}:{self.port}",
                        f"--device-plugin-dir={self.path('plugins')}", "--pod-usage=on", f"--pod-usage-from={self.source}"]
        self.env = {**FATAL, "GS_FAKE_NVML": self.driver, "GS_PROC": self.proc, "LD_PRELOAD": preloads(self.build, program, "clock", "proc"),
                    "GS_CLOCK_FILE": self.path("clock")}
        super().start()

    def get(self, path):
        """None: it does not answer yet."""
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended with {self.process.returncode}: {self.said()[-1500:]}")
        try:
            status, text = request(self.port, "GET", path)
        except OSError:
            return None
        return text if status == 200 else None

    def clean(self):
        if self.process:
            self.kill()
        shutil.rmtree(self.dir)
