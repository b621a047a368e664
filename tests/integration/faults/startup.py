#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The extender starts, loads its lists, answers and ends, and its n-th allocation fails, for every
n. It says why it cannot start and exits with 1, or it goes on and answers as if nothing had
happened; it never crashes, hangs or charges wrongly.

    startup.py BUILD_DIR [--from N] [--every N]
"""

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

from run import truth
from world import HOST, PREFIX, Failure, Http, World, exit_status, free_port, pod

AT_ONCE = 12
READY_S = 30


class Start:
    """One start with one failure."""

    def __init__(self, world, n, program):
        self.world, self.n, self.program = world, n, program
        self.port = free_port()
        self.http = Http(f"http://{HOST}:{self.port}")
        self.process = None

    def state(self):
        """"ready", "ended", or what it says so far."""
        deadline = time.monotonic() + READY_S
        seen = "nothing"
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return "ended"
            try:
                status, seen = self.http.ask("GET", "/readyz")
                if status == 200:
                    return "ready"
            except OSError:
                pass
            time.sleep(0.01)
        return seen

    def check(self):
        """It answers, and knows what the API knows."""
        deadline = time.monotonic() + READY_S
        status, text = self.http.ask("GET", f"{PREFIX}/inspect")
        while status != 200 and time.monotonic() < deadline:  # this one failed: the next may not
            time.sleep(0.01)
            status, text = self.http.ask("GET", f"{PREFIX}/inspect")
        if status != 200:
            raise Failure(f"allocation {self.n}: it answers {status}: {text[:200]}")
        shown = {(n["name"], dev["id"]): {p["uid"]: p["usedGPU"] for p in dev["pods"]}
                 for n in json.loads(text)["nodes"] for dev in n["devs"]}
        if shown != truth(self.world.pods()):
            raise Failure(f"allocation {self.n}: the ledger is {shown}")

    def run(self):
        """(how it ended, was there an n-th allocation)"""
        with tempfile.TemporaryFile() as log:
            self.process = subprocess.Popen(
                [self.program, "--kubeconfig", self.world.path("kubeconfig"), "--listen",
                 f"{HOST}:{self.port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "GS_FAIL_ALLOC": str(self.n)})
            try:
                state = self.state()
                if state == "ready":
                    self.check()
                    self.process.terminate()
                if state in ("ready", "ended"):
                    self.process.wait(30)
            finally:
                self.process.kill()
                status = self.process.wait()
            log.seek(0)
            text = log.read().decode()
        if state not in ("ready", "ended") or status != (0 if state == "ready" else 1):
            raise Failure(f"allocation {self.n}: {state}, exit status {status}:\n{text[-2000:]}")
        if state == "ended" and "memory" not in text:
            raise Failure(f"allocation {self.n}: it does not say why it ended:\n{text[-2000:]}")
        return state, "allocation failed" in text


def body(options, folder):
    program = os.path.join(options.build, "tests", "extender_out_of_memory")
    with World(options.build, folder, 1) as world:
        for n in range(6):
            made = world.api.json("POST", "/api/v1/namespaces/default/pods", pod(f"p{n}", 4, 1))
            error = world.verb("bind", {"PodName": f"p{n}", "PodNamespace": "default",
                                        "PodUID": made["metadata"]["uid"], "Node": "n1"})["Error"]
            if error:
                raise Failure(error)
        ends, n, began = collections.Counter(), options.first, time.monotonic()
        reached = True
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            while reached:
                batch = range(n, n + AT_ONCE * options.every, options.every)
                for state, reached in pool.map(lambda k: Start(world, k, program).run(), batch):
                    ends[state] += reached
                n = batch.stop
        if not ends["ready"] or not ends["ended"]:
            raise Failure(f"too few allocations failed: {dict(ends)}")
        print(f"{sum(ends.values())} failed allocations: {ends['ended']} times it could not start "
              f"and said so, {ends['ready']} times it went on; {time.monotonic() - began:.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    return exit_status("startup", lambda folder: body(options, folder))


if __name__ == "__main__":
    sys.exit(main())
