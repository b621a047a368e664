# SPDX-License-Identifier: Apache-2.0
"""A program's clocks jump: tests/support/clock_shim.c reads the shifts from a file of three numbers."""

import mmap
import os
import random
import signal
import struct
import subprocess
import threading
import time

KINDS = ("clock_wall", "clock_pause", "clock_suspend")
# While the process stands still the API server carries out what it was sent: its longest delay
# before it carries out a request (faulty_api/spoil.c) is 300 ms.
STILL_S = 0.5
PAUSE_S = (2, 200)  # less and more than any time-out of the program
WALL_S = 6 * 3600


class Clocks:
    """The clocks of one process."""

    def __init__(self, path, seed=0):
        self.path, self.rng = path, random.Random(seed)
        self.shift_ns = [0, 0, 0]
        self.counts = dict.fromkeys(KINDS, 0)
        with open(path, "w+b") as out:
            out.write(bytes(24))
            out.flush()
            self.map = mmap.mmap(out.fileno(), 24)
        self.pid = self.thread = None
        self.over = threading.Event()

    def environment(self, build, program):
        """For a process that is started with these clocks."""
        shim = os.path.join(build, "tests", "libclock_shim.so")
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        first = [line.split()[2] for line in linked.splitlines()
                 if line.split()[0].startswith("libasan.")]  # insists on it
        return {"LD_PRELOAD": ":".join([*first, shim]), "GS_CLOCK_FILE": self.path}

    def put(self, at, shift_ns):
        self.shift_ns[at] = shift_ns
        struct.pack_into("=q", self.map, 8 * at, shift_ns)

    def set_wall(self, seconds):
        self.put(0, int(seconds * 1e9))

    def pass_by(self, kind, seconds):
        """So long the machine stood still, and the process with it."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            time.sleep(STILL_S)
            at = 1 if kind == "clock_pause" else 2
            self.put(at, self.shift_ns[at] + int((seconds - STILL_S) * 1e9))
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def jump(self, kind):
        if kind == "clock_wall":
            self.set_wall(self.rng.uniform(-WALL_S, WALL_S))
        else:
            self.pass_by(kind, self.rng.uniform(*PAUSE_S))
        self.counts[kind] += 1

    def start(self, kinds):
        """Jumps every now and then until stop()."""
        def run():
            while not self.over.wait(self.rng.uniform(0.05, 0.4)):
                self.jump(self.rng.choice(kinds))
        self.over.clear()
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def stop(self):
        if self.thread:
            self.over.set()
            self.thread.join()
            self.thread = None
