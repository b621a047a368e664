# SPDX-License-Identifier: Apache-2.0
"""A program's clocks jump: tests/support/clock_shim.c reads the shifts from a file of three numbers."""

import mmap
import os
import signal
import struct
import threading
import time

from programs import preloads

KINDS = ("clock_wall", "clock_pause", "clock_suspend")
# While the process stands still the API server carries out what it was sent: its longest delay
# before it carries out a request (faulty.py) is 300 ms.
STILL_S = 0.5
PAUSE_S = (2, 200)  # less and more than any time-out of the program
WALL_S = 6 * 3600


class Clocks:
    """The clocks of one process, whose pid is set once it is started."""

    def __init__(self, folder, rng):
        self.path, self.rng = os.path.join(folder, f"clocks-{id(self)}"), rng
        self.shift_ns, self.counts, self.pid = [0, 0, 0], dict.fromkeys(KINDS, 0), None
        with open(self.path, "w+b") as out:
            out.write(bytes(24))
            out.flush()
            self.map = mmap.mmap(out.fileno(), 24)

    def environment(self, build, program):
        """For a process that is started with these clocks."""
        return {"LD_PRELOAD": preloads(build, os.path.join(build, program), "clock"), "GS_CLOCK_FILE": self.path}

    def shift(self, at, seconds):
        self.shift_ns[at] += int(seconds * 1e9)
        struct.pack_into("=q", self.map, 8 * at, self.shift_ns[at])

    def set_wall(self, seconds):
        self.shift(0, seconds - self.shift_ns[0] / 1e9)

    def pass_by(self, kind, seconds):
        """So long the machine stood still, and the process with it."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            time.sleep(STILL_S)
            self.shift(KINDS.index(kind), seconds - STILL_S)
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def jump(self, kind):
        if kind == "clock_wall":
            self.set_wall(self.rng.uniform(-WALL_S, WALL_S))
        else:
            self.pass_by(kind, self.rng.uniform(*PAUSE_S))
        self.counts[kind] += 1

    def start(self, kinds):
        """Jumps every now and then; what it returns ends that."""
        def run():
            while not over.wait(self.rng.uniform(0.05, 0.4)):
                self.jump(self.rng.choice(kinds))

        def stop():
            over.set()
            thread.join()
        over, thread = threading.Event(), threading.Thread(target=run, daemon=True)
        thread.start()
        return stop
