# SPDX-License-Identifier: Apache-2.0
"""gpushare-extender as a process: start, crash, ask."""

import http.client
import json
import os

from harness.control_plane import HOST, built_program, token_in
from harness.processes import Failure, ask, free_port, wait_for

PREFIX = "/gpushare-scheduler"


def shown_nodes(text):
    """An inspect answer, the extender's or that of the CLI with -o json, in the shape of ledger.as_inspect."""
    return {node["name"]: {int(dev["id"]): shown_device(dev) for dev in node["devs"]}
            for node in json.loads(text)["nodes"] if node.get("devs")}


def shown_device(dev):
    pods = {f"{p['namespace']}/{p['name']}": p["usedGPU"] for p in dev.get("pods") or []}
    return dev["totalGPU"], dev["usedGPU"], pods


class Extender:
    """Runs with the ServiceAccount of the shipped manifest. Keeps its ports over a restart."""

    def __init__(self, processes, kubeconfig, flags=(), before=()):
        self.processes = processes
        self.kubeconfig = kubeconfig
        self.flags = list(flags)
        self.before = list(before)  # words that start the program: another host name, a profile
        self.timeout_s = 10
        self.port, self.health_port = free_port(), free_port()
        self.process = None

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"

    def start(self, wait=True):
        sampling = ["--nominate=false"] if "GPUSHARE_ALL_NODES" in os.environ else []
        names = os.environ.get("GPUSHARE_FILTER_NAMES", "all")
        self.process = self.processes.start("gpushare-extender", [*self.before,
            built_program("gpushare-extender"), "--kubeconfig", self.kubeconfig,
            "--listen", f"{HOST}:{self.port}",
            "--health-listen", f"{HOST}:{self.health_port}", "--log-level", "info",
            *sampling, "--filter-names", names, *self.flags])
        if wait:
            wait_for("gpushare-extender is ready", self.ready)

    def ready(self):
        self.process.must_run()
        return self.ask("GET", "/readyz", port=self.health_port)[0] == 200

    def kill(self):
        self.process.kill()

    def connection(self, port):
        return http.client.HTTPConnection(HOST, port or self.port, timeout=self.timeout_s)

    def ask(self, method, path, body=None, port=None):
        """(status, body text)"""
        return ask(self.connection(port), method, path, body)

    def verb(self, name, body):
        """A scheduling verb as kube-scheduler asks it; the decoded answer."""
        status, text = self.ask("POST", f"{PREFIX}/{name}", body)
        if status != 200:
            raise Failure(f"{name} answered {status}: {text}")
        return json.loads(text)

    def metrics(self):
        """{series with labels: value} of the metrics page."""
        lines = self.ask("GET", "/metrics", port=self.health_port)[1].splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {series: float(value) for series, value in pairs}

    def inspect(self):
        """The inspect answer in the shape of ledger.as_inspect."""
        status, text = self.ask("GET", f"{PREFIX}/inspect")
        if status != 200:
            raise Failure(f"inspect answered {status}: {text}")
        return shown_nodes(text)

    def verify_and_stop(self):
        """At the end of a case: it still runs, its audits found no drift, its rights sufficed, and
        SIGTERM ends it cleanly."""
        self.process.must_run()
        drift = self.metrics().get("gpushare_ledger_drift")
        if drift != 0:
            raise Failure(f"the extender's own audit found a drift of {drift}")
        log = self.process.log_text()
        if token_in(self.kubeconfig) in log:
            raise Failure("the extender's log has its token")
        for line in log.splitlines():
            if "forbidden" in line.lower() or "AddressSanitizer" in line:
                raise Failure(f"the extender's log says: {line}")
        status = self.process.stop()
        if status != 0:
            raise Failure(f"SIGTERM ended the extender with {status}: {self.process.log_tail()}")
