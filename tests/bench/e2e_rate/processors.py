# SPDX-License-Identifier: Apache-2.0
"""Processor time of programs while pods are bound."""

import os
import threading
import time

EVERY_S = 0.05
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def used_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_MS


class Processors:
    """with Processors({name: pid}) as processors: ...; processors.between(start, end) then tells
    {name: ms}."""

    def __init__(self, pids):
        self.pids = pids
        self.samples = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def sample(self):
        while not self.ended.wait(EVERY_S):
            try:
                self.samples.append((time.monotonic(),
                                     {name: used_ms(pid) for name, pid in self.pids.items()}))
            except OSError:  # one of them has ended
                return

    def between(self, start, end):
        inside = [sample for sample in self.samples if start <= sample[0] <= end]
        if len(inside) < 2:
            return {}
        (first_s, first), (last_s, last) = inside[0], inside[-1]
        whole = (end - start) / (last_s - first_s)
        return {name: (last[name] - first[name]) * whole for name in first}
