#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""k9s itself with share/k9s/plugins.yaml, in a terminal: its keys are pressed, and the pager gets what
each command says of the pod or node in the selected line."""

import fcntl
import os
import pty
import shutil
import signal
import struct
import termios
import threading
import time

from harness.case import run
from harness.cluster import Cluster
from harness.control_plane import ROOT, built_by, built_program, kube_program
from harness.objects import node, pod
from harness.processes import wait_for

KUBE = ">=1.34"
NEEDS = "k9s_build.sh"
PRESSED = [("pods", "W", "default/small is on node n1"), ("nodes", "W", "n1: 8 of 32 GiB"),
           ("nodes", "Y", "no pod of the DaemonSet")]


class Terminal:
    """k9s as its user has it, with a home and programs of the case's own."""

    def __init__(self, cluster):
        path = cluster.control_plane.path
        self.paged = path("paged")
        os.makedirs(path("home/.config/k9s/plugins"))
        os.makedirs(path("bin"))
        shutil.copy(os.path.join(ROOT, "share/k9s/plugins.yaml"), path("home/.config/k9s/plugins/gpushare.yaml"))
        with open(path("home/.config/k9s/config.yaml"), "w", encoding="ascii") as out:
            out.write("k9s: {skipLatestRevCheck: true}\n")
        for program in (kube_program("kubectl"), built_program("kubectl-inspect-gpushare")):
            os.symlink(program, path(f"bin/{os.path.basename(program)}"))
        with open(path("bin/less"), "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o755)) as out:
            out.write(f"#!/bin/sh\nexec cat >>{self.paged}\n")
        environment = {"HOME": path("home"), "PATH": f"{path('bin')}:{os.environ['PATH']}", "TERM": "xterm-256color",
                       "KUBECONFIG": cluster.control_plane.kubeconfig("admin")}
        program = f"{built_by(NEEDS)}/k9s"
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            os.execvpe("setpriv", ["setpriv", "--pdeathsig", "KILL", program, "--command", "pods"], environment)
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 180, 0, 0))
        self.shown = path("screen.log")
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with open(self.shown, "wb") as out:
            try:
                while True:
                    out.write(os.read(self.screen, 65536))
                    out.flush()
            except OSError:
                pass  # it has ended

    def press(self, view, key, words):
        """Again and again, as a key in a view that is not drawn yet is nobody's."""
        def probe():
            os.write(self.screen, f":{view}\r".encode())
            time.sleep(1)
            os.write(self.screen, key.encode())
            time.sleep(1)
            with open(self.paged, encoding="utf-8") as text:
                return words in text.read()
        wait_for(f"{key} in {view} says {words!r}", probe, 60)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def body():
    with Cluster(nodes=[node("n1", [16, 16])]) as cluster:
        cluster.create_pods([pod("small", 8)])
        cluster.wait_bound("small")
        terminal = Terminal(cluster)
        try:
            for view, key, words in PRESSED:
                terminal.press(view, key, words)
        finally:
            terminal.close()


run(body)
