# SPDX-License-Identifier: Apache-2.0
"""Measures each row of docs/performance.md on the embedded cluster and prints target and figure."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import hostile
import scale

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from harness.processes import free_port  # noqa: E402

WEB = "nodes=5000,gpus=8,mem=80,pods=50000,pod_mem=8,pending=40"
FULL = "nodes=5000,gpus=8,mem=80,pods=100000,other=400000"
PARTS = ("start", "filter", "growth", "prioritize", "bind", "concurrency", "hostile", "web",
         "scale")
APART = {"hostile", "web", "scale"}  # parts with a cluster of their own, or none
P50_MS = {100: 0.08, 1000: 0.15, 5000: 0.6}


class Bench:
    def __init__(self, args, scratch):
        self.args = args
        self.build = pathlib.Path(args.build)
        self.scratch = pathlib.Path(scratch)
        self.rows = []
        self.prefix = hostile.REALTIME if args.realtime else ()
        self.stack = contextlib.ExitStack()

    # --- programs ---

    def start(self, *command, cwd=None):
        log = self.stack.enter_context(open(self.scratch / "log", "ab"))
        words = [str(word) for word in (*self.prefix, *command)]
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=cwd)
        self.stack.callback(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @staticmethod
    def status_kib(pid, field):
        text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return int(re.search(rf"^{field}:\s+(\d+) kB", text, re.M).group(1))

    @staticmethod
    def answers(port, path, host="x"):
        """True when the server says 200; http.client would cost more than what is waited for."""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as conn:
                conn.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                return conn.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def wait(self, process, holds):
        began = time.monotonic()
        while not holds():
            if process.poll() is not None or time.monotonic() - began > 300:
                sys.exit((self.scratch / "log").read_text(encoding="utf-8")[-2000:])
            time.sleep(0.002)

    def serve(self, spec, *flags):
        """(port, kubeconfig) of an API server with that cluster."""
        port = free_port()
        config = self.scratch / f"kubeconfig-{port}"
        process = self.start(self.build / "tests/synthetic-api", spec, "--listen",
                             f"127.0.0.1:{port}", "--kubeconfig-out", config, *flags)
        self.wait(process, config.exists)
        return port, config

    def extend(self, config, *flags):
        """(process, port, seconds from its start until it is ready). What is measured is what it
        can do, not the rate that it allows itself by default: 300 binds/s."""
        port = free_port()
        began = time.monotonic()
        process = self.start(self.build / "gpushare-extender", "--kubeconfig", config, "--listen",
                             f"127.0.0.1:{port}", "--kube-api-qps", 0, *flags)
        self.wait(process, lambda: self.answers(port, "/readyz"))
        return process, port, time.monotonic() - began

    def load(self, port, *options, api=None):
        command = [*self.prefix, self.build / "tests/bench_load", "--extender",
                   f"127.0.0.1:{port}"]
        command += ["--api", f"http://127.0.0.1:{api}"] if api else []
        done = subprocess.run([str(word) for word in (*command, *options)], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            sys.exit(f"bench_load {' '.join(map(str, options))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def alternate(self, *runs):
        """Medians over rounds of what each of the functions returns, called in turn."""
        rounds = [[run() for run in runs] for _ in range(self.args.rounds)]
        return [statistics.median(column) for column in zip(*rounds)]

    # --- rows ---

    def row(self, what, measured, target, unit="", least=False):
        """target None: reported only."""
        bound = f"{'>=' if least else '<='} {target:<7g}" if target is not None else f"{'-':<10}"
        met = target is None or (measured >= target if least else measured <= target)
        word = "" if target is None else "met" if met else "NOT MET"
        self.rows.append({"what": what, "target": target, "measured": round(measured, 4),
                          "unit": unit, "least": least, "met": met})
        if not self.args.json:
            print(f"{what:<58} {bound} {measured:>9.4g} {unit:<5} {word}".rstrip(), flush=True)

    def verb(self, port, verb, *options, quantile="p50_ms"):
        took = ["--duration", self.args.duration] if "--duration" not in options else []
        return self.load(port, "--verb", verb, *took, *options)["verbs"][verb][quantile]

    def latency(self, what, most_ms, port, verb, *options, api=None):
        """The rows of a verb's p50 and p99, medians over rounds."""
        seen = [self.load(port, "--verb", verb, *options, api=api)["verbs"][verb]
                for _ in range(self.args.rounds)]
        p50 = statistics.median(run["p50_ms"] for run in seen)
        p99 = statistics.median(run["p99_ms"] for run in seen)
        self.row(f"{what} p50", p50, most_ms, "ms")
        self.row(f"{what} p99 / p50", p99 / p50, 3)

    def filters(self, ours, floor):
        for names, target in P50_MS.items():
            self.latency(f"filter({names})", target, ours, "filter", "--names", names,
                         "--duration", self.args.duration)
        whole = ("--names", 5000, "--node-bytes", 3200, "--warmup", 1, "--duration", "3s")
        mine, public = self.alternate(lambda: self.verb(ours, "filter", *whole),
                                      lambda: self.verb(floor, "filter", *whole))
        self.row(f"5000 Node objects / floor ({public:.0f} ms)", mine / public, 0.3)

    def prioritizes(self, ours):
        for classes in (1, 50):
            options = ("--names", 5000, "--classes", classes)
            mine, filters = self.alternate(lambda: self.verb(ours, "prioritize", *options),
                                           lambda: self.verb(ours, "filter", *options))
            self.row(f"prioritize(5000) / filter(5000), {classes} classes in turn", mine / filters,
                     1.6)

    def create(self, ours, api, classes, count):
        self.load(ours, "--verb", "create", "--classes", classes, "--requests", count, "--duration",
                  0, "--warmup", 0, api=api)

    def binds(self, ours, api):
        options = ("--verb", "bind,direct", "--requests", 600, "--duration", 0, "--names", 5000)

        def once():
            verbs = self.load(ours, *options, api=api)["verbs"]
            return verbs["bind"]["p50_ms"] - verbs["direct"]["p50_ms"]
        self.row("bind beyond the API server's own time", self.alternate(once)[0], 0.3, "ms")

    @staticmethod
    def events_seen(port):
        done = subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}/metrics"], check=True,
                              capture_output=True, text=True)
        return sum(map(int, re.findall(r"^gpushare_watch_events_total.* (\d+)", done.stdout, re.M)))

    def settle(self, port):
        """Until what was created has been taken in: the watch tells little more than the events
        that are sent on purpose."""
        while True:
            before = self.events_seen(port)
            time.sleep(0.5)
            if self.events_seen(port) - before < 2500:
                return

    def concurrency(self, ours, api):
        """Clients, API server and extender share the machine's processors, as they are."""
        mix = ("--verb", "filter,prioritize,bind", "--names", 1000)
        events = self.start(self.build / "tests/bench_load", "--api", f"http://127.0.0.1:{api}",
                            "--verb", "event", "--rate", 2000, "--duration", "600s")

        def rate(clients):
            return self.load(ours, *mix, "--clients", clients, "--duration", self.args.duration,
                             api=api)["per_s"]
        seen, began = self.events_seen(ours), time.monotonic()
        many = self.alternate(lambda: rate(16))[0]
        per_s = (self.events_seen(ours) - seen) / (time.monotonic() - began)
        self.create(ours, api, 6, 60000)  # the rounds before may have bound them all
        self.settle(ours)
        half = max(1, int(many / 2))
        p99 = self.alternate(lambda: self.load(
            ours, *mix, "--clients", 16, "--rate", half, "--duration", self.args.duration,
            api=api)["verbs"]["filter"]["p99_ms"])[0]
        self.row(f"filter(1000) p99, 16 clients, {half}/s, {per_s:.0f} events/s", p99, 3, "ms")
        self.stop(events)

    def start_to_ready(self, config, api):
        """curl and extender fetch the same lists from the same API server."""
        def ready():
            process, _, seconds = self.extend(config)
            self.stop(process)
            return seconds

        def download():
            urls = [word for kind in ("nodes", "pods")
                    for word in ("-o", "/dev/null", f"http://127.0.0.1:{api}/api/v1/{kind}")]
            began = time.monotonic()
            subprocess.run(["curl", "-sf", *urls], check=True)
            return time.monotonic() - began
        mine, curls = self.alternate(ready, download)
        self.row(f"start to ready ({mine:.2f} s) / curl, API server ({curls:.2f} s)", mine / curls,
                 1.3)

    def growth(self, crowded):
        """Pods: crowded cluster over an empty."""
        _, empty_config = self.serve("nodes=5000,gpus=8,mem=80")
        _, empty, _ = self.extend(empty_config)
        busy, idle = self.alternate(*[lambda p=p: self.verb(p, "filter", "--names", 5000)
                                      for p in (crowded, empty)])
        self.row("filter(5000): 500000 pods / none", busy / idle, 1.2)

    def web(self):
        """The live page of the CLI, of a large cluster."""
        api, _ = self.serve(WEB)
        port = free_port()
        began = time.monotonic()
        process = self.start(self.build / "kubectl-inspect-gpushare", "web", "--no-token",
                             f"--listen=127.0.0.1:{port}", f"--server=http://127.0.0.1:{api}")
        self.wait(process, lambda: self.answers(port, "/rows", "localhost"))
        self.row("web: start to first page, 5,000 nodes, 50,000 pods", time.monotonic() - began, 5,
                 "s")

        def page():
            began = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/rows?page=13", timeout=60) as answer:
                answer.read()
            return (time.monotonic() - began) * 1000

        page()
        self.row("web: a page of 200 nodes", statistics.median(page() for _ in range(10)), 150, "ms")
        self.row("web: resident memory", self.status_kib(process.pid, "VmRSS") / 1024, 64, "MiB")

    def on_cluster(self, script, ratio, *options):
        """What a measurement on a real control plane prints as "RATIO: number", by ratio."""
        command = [ROOT / "tests/bench" / script / "run.sh", "--rounds", max(1, self.args.rounds),
                   *options]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              check=False)
        found = dict(re.findall(rf"^({ratio}): ([0-9.]+)", done.stdout, re.M))
        if done.returncode or not found:
            sys.exit(f"{script}: {(done.stdout + done.stderr)[-2000:]}")
        return {name: float(number) for name, number in found.items()}

    def cluster(self):
        share = self.on_cluster("e2e_rate", "(?:ours|one) / (?:noop|none)", "--least", 0)
        self.row("scheduling rate / no-op extender", share["ours / noop"], 0.95, least=True)
        self.row("scheduling rate, filter names one / no extender", share["one / none"], 0.9, least=True)
        share = self.on_cluster("e2e_start", "ready / curl")
        self.row("start to ready / curl, real API server", share["ready / curl"], 1.3)

    def measure(self):
        parts = self.args.only or PARTS
        with self.stack:
            if "hostile" in parts:
                hostile.rows(self)
            if "web" in parts:
                self.web()
            if "scale" in parts:
                scale.rows(self)
            if set(parts) <= APART:
                return
            api, config = self.serve(FULL)
            if "start" in parts:
                self.start_to_ready(config, api)
            process, ours, _ = self.extend(config)
            if "start" in parts:
                self.row("resident memory once ready", self.status_kib(process.pid, "VmRSS") / 1024, 64,
                         "MiB")
            if "filter" in parts:
                floor = free_port()
                program = self.start(self.build / "tests" / "noop_extender", floor)
                self.wait(program, lambda: self.listening(floor))
                self.filters(ours, floor)
            if "growth" in parts:
                self.growth(ours)
            if "prioritize" in parts:
                self.create(ours, api, 50, 1000)
                self.prioritizes(ours)
            self.create(ours, api, 5, 60000)  # small: the cluster is not to be full of them
            if "bind" in parts:
                self.binds(ours, api)
            if "concurrency" in parts:
                self.concurrency(ours, api)
        if self.args.cluster or (self.args.cluster is None and not self.args.only and
                                 self.have_kubernetes()):
            self.cluster()

    @staticmethod
    def listening(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    @staticmethod
    def have_kubernetes():
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        return "KUBE_BIN_DIR" in os.environ or any(cache.glob("gpushare/kube-*/bin"))


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", description=__doc__)
    parser.add_argument("--json", action="store_true", help="JSON instead of the table")
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--rounds", type=int, help="of which the median counts (5)")
    parser.add_argument("--only", metavar="PART", action="append", choices=PARTS,
                        help=f"one of {', '.join(PARTS)}; may be repeated")
    parser.add_argument("--cluster", action=argparse.BooleanOptionalAction,
                        help="what needs a real control plane (default: when its "
                             "programs are there)")
    parser.add_argument("--realtime", action="store_true",
                        help="all programs at a real-time priority (root), for a machine that "
                             "has other work")
    parser.add_argument("--trace", metavar="DIR", help="then packing, with the openb trace in DIR")
    parser.add_argument("--build", default=ROOT / "build", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.duration = "500ms" if args.quick else "2s"
    return args


def main():
    args = arguments()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="gpushare-bench-") as scratch:
        bench = Bench(args, scratch)
        if not args.json:
            print(f"{'what':<58} {'target':<10} {'measured':>9}")
        bench.measure()
    if args.json:
        print(json.dumps({"rows": bench.rows, "load_before": load_before,
                          "processors": os.cpu_count()}))
    else:
        with_target = [row["met"] for row in bench.rows if row["target"] is not None]
        print(f"{sum(with_target)} of {len(with_target)} met; {os.cpu_count()} processors, "
              f"load average before {load_before:.1f}")
    if args.trace:
        command = [ROOT / "tools/packing/bench/packing.sh", "--trace", args.trace, "--lab",
                   pathlib.Path(args.build) / "gpushare-packing", *(["--quick"] if args.quick else [])]
        # its tables are no part of the JSON
        return subprocess.run([str(word) for word in command], check=False,
                              stdout=sys.stderr if args.json else None).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
