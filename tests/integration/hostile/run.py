#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, against the built extender: slow ones, thousands of connections, huge
heads and bodies, deep nesting, pipelining, broken requests. Its memory stays bounded, and a client
that asks on a kept connection, as kube-scheduler does, is served all the while.

    run.py BUILD_DIR [--connections N] [--seconds N]
"""

import argparse
import contextlib
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
from world import HOST, NODES, PREFIX, Failure, Http, World, pod  # noqa: E402

# What the server may hold in bodies all together (256 MiB), heads of 1,000 connections, and slack.
GROWTH_MIB_MAX = 400
RATIO_MAX = 100  # generous: this machine may be busy with other things; the figure is printed


def head(length, extra=b"", path=f"{PREFIX}/filter"):
    return (b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s"
            b"Content-Length: %d\r\n\r\n" % (path.encode(), extra, length))


DEEP = b"[" * 200000
ATTACKS = {
    "slow head": [b"POST /gpushare-scheduler/filter HTTP/1.1\r\n"] + [b"X: y\r\n"] * 50,
    "slow body": [head(1000)] + [b" "] * 50,
    "huge head": [b"GET / HTTP/1.1\r\n" + b"X-Long: " + b"x" * (4 << 20)],
    "many headers": [b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200000],
    "huge body told": [head(1 << 40)],
    "huge body sent": [head(64 << 20)] + [b" " * (1 << 20)] * 64,
    "endless chunks": [b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: x\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n"] + [b"10000\r\n" + b" " * 65536 +
                                                                 b"\r\n"] * 600,
    "deep nesting": [head(len(DEEP)) + DEEP],
    "nested in the pod": [head(len(DEEP) + 7) + b'{"Pod":' + DEEP],
    "pipelining": [(head(2) + b"{}") * 2000],
    "pipelined and never read": [b"GET /gpushare-scheduler/inspect HTTP/1.1\r\nHost: x\r\n\r\n"
                                 * 5000],
    "two lengths": [b"POST /gpushare-scheduler/bind HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                    b"Content-Length: 7\r\n\r\n{}{}{}{}"],
    "no protocol": [bytes(range(256)) * 64],
}
SLOW = ("slow head", "slow body")


def attack(port, name, until):
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 2) as conn:
            conn.settimeout(2)
            for part in ATTACKS[name]:
                conn.sendall(part)
                if name in SLOW:
                    time.sleep(0.2)
                if time.monotonic() > until:
                    return
            if "never read" not in name:
                while conn.recv(65536):
                    pass
        time.sleep(0.02)


def crowd(port, count):
    """Connections that say nothing; those that are refused are not counted."""
    held = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            held.append(socket.create_connection((HOST, port), 1))
    return held


def good_client(url, seconds):
    """A process of its own, so that it does not wait for the attackers' interpreter."""
    client, times = Http(url), []
    until = time.monotonic() + seconds
    body = {"Pod": pod("good", 4, 1), "NodeNames": list(NODES)}
    body["Pod"]["metadata"]["uid"] = "good"
    while time.monotonic() < until:
        began = time.monotonic()
        answer = client.json("POST", f"{PREFIX}/filter", body)
        times.append(time.monotonic() - began)
        if answer.get("Error") or not answer["NodeNames"]:
            raise Failure(f"a good client was answered {answer}")
        time.sleep(0.002)
    times.sort()
    print(1000 * times[len(times) * 99 // 100], len(times))


class GoodClient:
    """Begins at once; result() waits: (p99 in ms, how many requests)."""

    def __init__(self, world, seconds):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--good",
             f"http://{HOST}:{world.port}", "--seconds", str(seconds), "-"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        out, err = self.process.communicate(timeout=120)
        if self.process.returncode:
            raise Failure(f"the good client: {err.strip()[-300:]}")
        p99, count = out.split()
        return float(p99), int(count)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) >> 10


class Memory:
    """The largest resident size while it watches."""

    def __init__(self, pid):
        self.pid, self.peak, self.stopping = pid, 0, False
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.stopping:
            self.peak = max(self.peak, resident_mib(self.pid))
            time.sleep(0.05)

    def stop(self):
        self.stopping = True
        self.thread.join()
        return self.peak


def body(options, folder):
    with World(options.build, folder, 1) as world:
        process = dict(world.running)["gpushare-extender"]
        quiet, asked = GoodClient(world, options.seconds).result()
        before = resident_mib(process.pid)
        memory = Memory(process.pid)
        good = GoodClient(world, options.seconds + 2)
        time.sleep(1)
        held = crowd(world.port, options.connections)
        until = time.monotonic() + options.seconds
        threads = [threading.Thread(target=attack, args=(world.port, name, until), daemon=True)
                   for name in ATTACKS for _ in range(3)]
        for thread in threads:
            thread.start()
        loud, served = good.result()
        for thread in threads:
            thread.join()
        peak = memory.stop()
        for conn in held:
            conn.close()
        after, _ = GoodClient(world, 1).result()
        print(f"{len(held)} idle connections and {len(threads)} attackers of {len(ATTACKS)} kinds: "
              f"p99 of a good client {quiet:.2f} ms before ({asked} requests), {loud:.2f} ms during "
              f"({served}), ratio {loud / quiet:.1f}, {after:.2f} ms after; memory {before} MiB, "
              f"at most {peak} MiB")
        if peak - before > GROWTH_MIB_MAX:
            raise Failure(f"memory grew by {peak - before} MiB")
        if loud > RATIO_MAX * quiet:
            raise Failure(f"a good client waited {loud:.1f} ms instead of {quiet:.1f} ms")
        if world.metrics()["gpushare_ledger_drift"]:
            raise Failure("the ledger drifted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--connections", type=int, default=2500)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--good", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.good:
        good_client(options.good, options.seconds)
        return 0
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="gpushare-hostile.") as folder:
        try:
            body(options, folder)
        except Failure as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
