#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods come, are scheduled, finish and go while the API server does everything wrong that it can:
one fault after the other, then all at once. After each: the ledger equals the API within 8 s of watches
that stand, every pod that fits is bound, nothing is left when all pods are gone. At the end check_log.py judges every
moment from the API's own log.

    run.py BUILD_DIR [--pods N] [--seed N] [--fault NAME]... [--keep FOLDER]
"""

import argparse
import collections
import concurrent.futures
import os
import queue
import random
import subprocess
import sys
import threading
import time

from check_log import placement
from clocks import KINDS, Clocks
from world import NODES, Failure, World, exit_status, pod, wait_until

# A bind of its own that the watch does not show is looked for in a list after 5 s (GS_TERM_BIND_NS).
SETTLE_S = 8
# A watch that failed again and again, before any event, waits so long at most (backoff_max_ns of
# include/gpushare/kube/client.h); the fourth time it is 3 to 6 s.
WATCH_S = 30
SCHEDULERS = 6
LIVE_MAX = 45
JUMPS_MIN = 8

# Chances in 1,000: tests/support/faulty_api/faults.h says what each does. A lost answer is dangerous
# while the watch lags behind, so these two come together.
PLANS = collections.OrderedDict([
    ("delay", "delay=200"),
    ("stall", "stall=100,stall_ms=1500"),
    ("drop", "drop=60"),
    ("conflict", "conflict=100"),
    ("gone", "gone=300,watch_end=30"),
    ("throttle", "throttle=60"),
    ("internal", "internal=80"),
    ("unavailable", "unavailable=80"),
    ("lost_answer", "lost_answer=250,watch_stall=60,stall_ms=700"),
    ("late_timeout", "late_timeout=250,watch_stall=60,stall_ms=700"),
    ("truncated", "truncated=80"),
    ("oversized", "oversized=30,big_mib=65"),
    ("old_list", "old_list=1000,watch_gone=30"),
    ("watch_delay", "watch_delay=200"),
    ("watch_stall", "watch_stall=30,stall_ms=1500"),
    ("watch_cut", "watch_cut=40"),
    ("watch_end", "watch_end=40"),
    ("watch_gone", "watch_gone=40"),
    ("watch_error", "watch_error=40"),
    ("watch_garbage", "watch_garbage=30"),
    ("watch_big", "watch_big=30"),
    ("watch_back", "watch_back=30"),
    ("watch_twice", "watch_twice=200"),
    ("watch_swap", "watch_swap=60"),
    ("watch_lose", "watch_lose=100"),
    # the extender's own clocks (clocks.py); a bind whose answer comes too late by them is lost
    ("clock_wall", ""),
    ("clock_pause", "delay=100,lost_answer=100,watch_stall=60,stall_ms=400"),
    ("clock_suspend", "delay=100,lost_answer=100,watch_stall=60,stall_ms=400"),
    ("all", "all=15,stall_ms=700"),
])


class Driver:
    """Users and kube-scheduler in one: creates, schedules, finishes and deletes pods."""

    def __init__(self, world, rng):
        self.world, self.rng = world, rng
        self.work = queue.Queue()
        self.lock = threading.Lock()
        self.unbound, self.bound = {}, {}
        self.errors = collections.Counter()
        self.serial = 0
        self.stopping = False
        self.broken = None
        self.threads = [threading.Thread(target=self.schedule, daemon=True)
                        for _ in range(SCHEDULERS)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()

    def create(self):
        self.serial += 1
        gpus = 2 if self.rng.random() < 0.15 else 1
        units = self.rng.choice((1, 2, 3, 4, 6, 8) if gpus == 2 else (1, 2, 4, 6, 8, 10, 16))
        made = self.world.api.json("POST", "/api/v1/namespaces/default/pods",
                                   pod(f"p{self.serial}", units, gpus))
        with self.lock:
            self.unbound[made["metadata"]["uid"]] = made
        self.work.put(made)

    def remove(self, made, finish):
        path = f"/api/v1/namespaces/default/pods/{made['metadata']['name']}"
        if finish:
            self.world.api.json("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}},
                                "application/merge-patch+json")
        self.world.api.json("DELETE", path)
        with self.lock:
            self.unbound.pop(made["metadata"]["uid"], None)
            self.bound.pop(made["metadata"]["uid"], None)

    def remove_one(self):
        with self.lock:
            pool = self.unbound if self.rng.random() < 0.15 and self.unbound else self.bound
            made = self.rng.choice(list(pool.values())) if pool else None
        if made:
            self.remove(made, self.rng.random() < 0.5)

    def attempt(self, made):
        """One scheduling cycle. "" when the pod is bound, else why not."""
        found = self.world.verb("filter", {"Pod": made, "NodeNames": list(NODES)})
        if found.get("Error") or not found.get("NodeNames"):
            return found.get("Error") or "fits nowhere"
        names = found["NodeNames"]
        scores = self.world.verb("prioritize", {"Pod": made, "NodeNames": names})
        best = max(scores, key=lambda row: row["Score"], default={"Host": names[0]})["Host"]
        meta = made["metadata"]
        return self.world.verb("bind", {"PodName": meta["name"], "PodNamespace": "default",
                                        "PodUID": meta["uid"], "Node": best})["Error"]

    def schedule(self):
        while not self.stopping:
            try:
                made = self.work.get(timeout=0.1)
            except queue.Empty:
                continue
            uid = made["metadata"]["uid"]
            if uid not in self.unbound:
                continue
            try:
                why = self.attempt(made)
            except Exception as error:  # pylint: disable=broad-except
                self.broken = error
                return
            with self.lock:
                if not why and uid in self.unbound:
                    self.bound[uid] = self.unbound.pop(uid)
            if why:
                self.errors[why.split(":")[0][:60]] += 1
                threading.Timer(0.15, self.work.put, (made,)).start()

    def churn(self, count):
        """count pods come and most of them go; more demand than room."""
        for _ in range(count):
            self.create()
            while len(self.unbound) + len(self.bound) > LIVE_MAX:
                self.remove_one()
            time.sleep(0.004)
            if self.broken:
                raise self.broken


def truth(pods):
    """The same shape as World.inspect, computed from the API's pods."""
    held = {(name, i): {} for name, sizes in NODES.items() for i in range(len(sizes))}
    for one in pods:
        where = placement(one)
        for idx in (where[1] or ()) if where else ():
            held[(where[0], idx)][one["metadata"]["uid"]] = where[2]
    return held


def difference(world):
    shown, real = world.inspect(), truth(world.pods())
    keys = [key for key in real if real[key] != shown.get(key)]
    return f"{keys[0]}: API {real[keys[0]]}, ledger {shown.get(keys[0])}" if keys else None


def watch_away(world):
    found = world.metrics()
    return next((kind for kind in ("nodes", "pods")
                 if not found[f'gpushare_watch_connected{{kind="{kind}"}}']), None)


def left_behind(world):
    """An unbound pod that would fit, or None."""
    pods = world.pods()
    held = truth(pods)
    free = {key: NODES[key[0]][key[1]] - sum(uses.values()) for key, uses in held.items()}
    for one in pods:
        if one["spec"].get("nodeName"):
            continue
        count = int((one["metadata"].get("labels") or {}).get("aliyun.com/gpu-count", 1))
        units = int(one["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"])
        for name, sizes in NODES.items():
            if sum(free[(name, i)] >= units // count for i in range(len(sizes))) >= count:
                return f"{one['metadata']['name']} waits for {count} x {units // count}: {name}"
    return None


def metrics_wrong(world):
    """After everything is gone."""
    found = world.metrics()
    names = ("ledger_drift", "ledger_repairs_total", "allocated_pods", "binding_pods", "unresolved_binds", "overcommitted_gpus")
    wrong = {name: found[f"gpushare_{name}"] for name in names if found[f"gpushare_{name}"]}
    return str(wrong) if wrong else None


def one_phase(world, driver, name, count):
    began = time.monotonic()
    before = world.plan(f"agent=gpushare-extender,{PLANS[name]}")
    driver.errors.clear()
    kinds = KINDS if name == "all" else [name] if name in KINDS else []
    if kinds:
        world.clocks.start(kinds)
    driver.churn(count)
    pods = count
    for _ in range(10):  # a rare fault may need more pods than were asked for
        if name == "all" or world.counts()[name] >= before[name] + (JUMPS_MIN if kinds else 1):
            break
        driver.churn(count)
        pods += count
    time.sleep(0.5)
    world.clocks.stop()
    after = world.plan("")
    injected = {key: after[key] - before[key] for key in after if after[key] > before[key]}
    if name != "all" and not injected.get(name):
        raise Failure(f"{name} was never injected: {injected}")
    over = time.monotonic()
    settled = {}
    for what, probe, limit_s in (("watches stand", watch_away, WATCH_S),
                                 ("ledger equals API", difference, SETTLE_S),
                                 ("nobody left behind", left_behind, SETTLE_S)):
        wait_until(what, lambda probe=probe: probe(world), limit_s)
        settled[what] = time.monotonic() - over
    wait_until("ledger equals API, still", lambda: difference(world), SETTLE_S)
    for made in [*driver.unbound.values(), *driver.bound.values()]:
        driver.remove(made, False)
    wait_until("an empty ledger", lambda: difference(world), SETTLE_S)
    wait_until("metrics of an empty ledger", lambda: metrics_wrong(world), SETTLE_S)
    checks = ", ".join(f"{what} {s:.1f} s" for what, s in settled.items())
    print(f"{name:14} {injected} in {pods} pods, {over - began:.1f} s; {checks}; all freed; "
          f"refusals {sum(driver.errors.values())}: {dict(driver.errors.most_common(3))}",
          flush=True)


def one_world(options, names, folder):
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(options.seed)
    clocks = Clocks(os.path.join(folder, "clocks"), options.seed)
    with World(options.build, folder, options.seed, (), clocks, often=True) as world:
        driver = Driver(world, rng)
        try:
            for name in names:
                one_phase(world, driver, name, options.pods * (4 if name == "all" else 1))
        finally:
            clocks.stop()
            driver.stop()
        final = int(world.api.json("GET", "/api/v1/pods")["metadata"]["resourceVersion"])
        wait_until("the whole log",
                   lambda: None if world.log.version >= final else world.log.version, 10)
        judged = subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__),
                                                              "check_log.py"),
                                 world.path("nodes.json"), world.path("watch.log")],
                                capture_output=True, text=True, check=False)
        print(f"check_log.py: {judged.stdout.strip()}{judged.stderr.strip()}")
        if judged.returncode:
            raise Failure("the API's log shows it")


def body(options, folder):
    """Two worlds side by side, each with every other fault: most of the time is waiting."""
    names = options.fault or list(PLANS)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(one_world, options, names[at::2], os.path.join(folder, str(at)))
                     for at in range(min(2, len(names)))]:
            done.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--pods", type=int, default=120, help="per fault; four times as many for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", action="append", choices=list(PLANS))
    parser.add_argument("--keep", help="where logs go, and stay")
    options = parser.parse_args()
    return exit_status("faults", lambda folder: body(options, folder), options.keep)


if __name__ == "__main__":
    sys.exit(main())
