# SPDX-License-Identifier: Apache-2.0
"""The programs a case starts: each has its own log and is stopped by its pid, whatever happens."""

import collections
import contextlib
import glob
import json
import os
import random
import re
import signal
import socket
import subprocess
import time


FATAL = re.compile(r"^(F\d{4} |panic: |fatal error: )")


class Failure(Exception):
    """The case failed, and the message says why to somebody who reads only that."""


PORTS = range(12000, 30000)  # below those from which the kernel takes those of connections
claims = collections.deque(maxlen=256)  # of ports that were chosen, and perhaps not listened on yet


def free_port():
    """A loopback port nobody listens on now, each once only: of all cases that run beside each other,
    too. An abstract socket of its name is held until this process ends, or has chosen 256 others."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        claim = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.socket() as sock:
            claim.bind(f"\0gpushare-e2e-port-{port}")
            sock.bind(("127.0.0.1", port))
            claims.append(claim)
            return port
        claim.close()


def wait_for(what, probe, timeout_s=30, interval_s=0.1):
    """Call probe() until it returns something true, and return that. OSErrors mean "not yet"."""
    deadline = time.monotonic() + timeout_s
    last = None
    while True:
        try:
            last = probe()
            if last:
                return last
        except OSError as error:
            last = error
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {timeout_s} s (last: {last})")
        time.sleep(interval_s)


def ask(connection, method, path, body=None):
    """One request to a program, on a connection of its own: (status, body text)."""
    with contextlib.closing(connection):
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()


def on_host(name):
    """Words before a command, with which it sees this host name; [] for the machine's own."""
    if name is None:
        return []
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]


class Process:
    """One running program. setpriv has the kernel end it should this harness be killed itself."""

    def __init__(self, name, argv, log_path, env=None):
        self.name = name
        self.argv = [str(arg) for arg in argv]
        self.log_path = log_path
        with open(log_path, "ab") as log:
            log.write(f"--- {' '.join(self.argv)}\n".encode())
            log.flush()
            self.popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.argv],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(env or {})})

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def must_run(self):
        if not self.running():
            raise Failure(f"{self.name} ended with {self.popen.returncode}: {self.log_tail()}")

    def signal(self, number):
        if self.running():
            self.popen.send_signal(number)

    def freeze(self):
        """SIGSTOP; none of its threads runs any more when this returns."""
        self.signal(signal.SIGSTOP)
        wait_for(f"{self.name} stands still", lambda: set(self.thread_states()) == {"T"})

    def thread_states(self):
        for path in glob.glob(f"/proc/{self.popen.pid}/task/*/stat"):
            with open(path, encoding="utf-8") as stat:
                yield stat.read().rpartition(")")[2].split()[0]

    def kill(self):
        """SIGKILL, as a crash would be."""
        self.signal(signal.SIGKILL)
        self.popen.wait()

    def stop(self, timeout_s=10):
        """SIGTERM, and SIGKILL for those who do not listen. Returns the exit status."""
        self.signal(signal.SIGTERM)
        try:
            self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        return self.popen.returncode

    def log_text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def log_tail(self, lines=15):
        """The last words. A Go program that gives up writes one line why, then its goroutines."""
        log = self.log_text().splitlines()
        why = [line for line in log[:-lines] if FATAL.match(line)]
        return "\n".join(why[-1:] + log[-lines:])


class Processes:
    """All programs of one case, stopped in reverse order of their start."""

    def __init__(self, log_dir):
        self.log_dir = log_dir
        self.started = []

    def start(self, name, argv, env=None):
        process = Process(name, argv, os.path.join(self.log_dir, f"{name}.log"), env)
        self.started.append(process)
        return process

    def stop_all(self):
        for process in reversed(self.started):
            process.stop()
        self.started.clear()
