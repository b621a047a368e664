#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pods come, are scheduled, finish and go while the API server does one thing wrong, or all. Then the ledger equals the API within
8 s of watches that stand, every pod that fits is bound, nothing is left when all pods are gone, and at no moment between two of
the API's events was a GPU over its size.

    run.py --build DIR [--only FAULT] [--seed N]
"""

import collections
import functools
import json
import os
import queue
import sys
import threading
import time
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
import attack  # noqa: E402
from attack import Wrong  # noqa: E402
from clocks import KINDS, Clocks  # noqa: E402
from faulty import Faulty  # noqa: E402
from ledger import NODES, OFTEN, SIZES, asked, difference, held_by, judge_moments, new_nodes, pods_of, settle  # noqa: E402
from objects import Pod  # noqa: E402
from programs import Extender  # noqa: E402

# A bind of its own that the watch does not show is looked for in a list after 5 s (GS_TERM_BIND_NS).
SETTLE_S = 8
# A watch that failed again and again, before any event, waits so long at most (backoff_max_ns of
# include/gpushare/kube/client.h); the fourth time it is 3 to 6 s.
WATCH_S = 30
SCHEDULERS, LIVE_MAX, PODS, JUMPS_MIN = 6, 45, 120, 8
LOST = {"lost_answer": 100, "watch_stall": 60, "stall_ms": 400, "delay": 100}
EMPTY = ("ledger_drift", "ledger_repairs_total", "allocated_pods", "binding_pods", "unresolved_binds", "overcommitted_gpus")

# Of 1,000 (faulty.py). A lost answer is dangerous while the watch lags behind, so these two come together.
PLANS = {
    "delay": {"delay": 200}, "stall": {"stall": 100, "stall_ms": 1500}, "drop": {"drop": 60}, "conflict": {"conflict": 100},
    "gone": {"gone": 300, "watch_end": 30}, "throttle": {"throttle": 60}, "internal": {"internal": 80}, "unavailable": {"unavailable": 80},
    "lost_answer": {"lost_answer": 250, "watch_stall": 60, "stall_ms": 700},
    "late_timeout": {"late_timeout": 250, "watch_stall": 60, "stall_ms": 700},
    "truncated": {"truncated": 80}, "oversized": {"oversized": 30, "big_mib": 65}, "old_list": {"old_list": 1000, "watch_gone": 30},
    "watch_delay": {"watch_delay": 200}, "watch_stall": {"watch_stall": 30, "stall_ms": 1500}, "watch_cut": {"watch_cut": 40},
    "watch_end": {"watch_end": 40}, "watch_gone": {"watch_gone": 40}, "watch_error": {"watch_error": 40},
    "watch_garbage": {"watch_garbage": 30}, "watch_big": {"watch_big": 30, "big_mib": 17}, "watch_back": {"watch_back": 30},
    "watch_twice": {"watch_twice": 200}, "watch_swap": {"watch_swap": 60}, "watch_lose": {"watch_lose": 100},
    # the extender's own clocks (clocks.py); a bind whose answer comes too late by them is lost
    "clock_wall": {}, "clock_pause": LOST, "clock_suspend": LOST,
}
PLANS["all"] = {**dict.fromkeys(PLANS, 15), "watch_lose": 0, "stall_ms": 700, "big_mib": 17}


class Driver:
    """Users and kube-scheduler in one: creates, schedules, finishes and deletes pods."""

    def __init__(self, api, one, rng):
        self.api, self.one, self.rng, self.work, self.made = api, one, rng, queue.Queue(), 0
        self.refusals, self.broken, self.over = collections.Counter(), None, threading.Event()
        self.threads = [threading.Thread(target=self.schedule, daemon=True) for _ in range(SCHEDULERS)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def create(self):
        self.made += 1
        count = 2 if self.rng.random() < 0.15 else 1
        units = self.rng.choice((1, 2, 3, 4, 6, 8) if count == 2 else (1, 2, 4, 6, 8, 10, 16))
        pod = Pod(f"p{self.made}", units * count, count=count)
        asked_of = json.loads(json.dumps(pod.obj))
        self.api.put(pod.obj)
        self.work.put((pod.key, asked_of))

    def remove_one(self):
        """Seldom one that waits."""
        with self.api.lock:
            waiting, bound = [], []
            for key, pod in self.api.objects["pods"].items():
                (bound if pod["spec"].get("nodeName") else waiting).append(key)
            key = self.rng.choice(waiting if not bound or waiting and self.rng.random() < 0.15 else bound)
            pod = self.api.objects["pods"][key]
            if self.rng.random() < 0.5:
                pod["status"]["phase"] = "Succeeded"
                self.api.put(pod)
            self.api.delete("pods", key)

    def verb(self, name, said):
        status, text = self.one.ask(name, said, 120)
        if status != 200:
            raise Wrong(f"{name}: {status} {text[:300]}")
        return json.loads(text)

    def attempt(self, pod):
        """One scheduling cycle. "" when the pod is bound, else why not."""
        found = self.verb("filter", {"Pod": pod, "NodeNames": list(NODES)})
        if found.get("Error") or not found.get("NodeNames"):
            return found.get("Error") or "fits nowhere"
        names = found["NodeNames"]
        scores = self.verb("prioritize", {"Pod": pod, "NodeNames": names})
        best = max(scores, key=lambda row: row["Score"], default={"Host": names[0]})["Host"]
        meta = pod["metadata"]
        return self.verb("bind", {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": best})["Error"]

    def schedule(self):
        while not self.over.is_set():
            try:
                key, pod = self.work.get(timeout=0.1)
                why = self.attempt(pod) if key in self.api.objects["pods"] else ""
            except queue.Empty:
                continue
            except OSError as error:    # by its clock the client took too long
                why = str(error)
            except Exception as error:  # pylint: disable=broad-except
                self.broken = error
                return
            if why:
                self.refusals[why.split(":")[0][:60]] += 1
                threading.Timer(0.15, self.work.put, ((key, pod),)).start()

    def churn(self, count):
        """count pods come and most of them go; more demand than room."""
        for _ in range(count):
            self.create()
            while len(self.api.objects["pods"]) > LIVE_MAX:
                self.remove_one()
            time.sleep(0.004)
            if self.broken:
                raise self.broken


def metrics(one):
    lines = one.get("/metrics")[1].splitlines()
    return {name.removeprefix("gpushare_"): float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}


def left_behind(api):
    """An unbound pod that would fit, or ""."""
    pods = pods_of(api)
    free = {key: SIZES[key] - sum(uses.values()) for key, uses in held_by(pods).items()}
    for pod in pods:
        units, count = asked(pod)
        for name, sizes in NODES.items():
            if not pod["spec"].get("nodeName") and sum(free[name, idx] >= units for idx in range(len(sizes))) >= count:
                return f"{pod['metadata']['name']} waits for {count} x {units}: {name}"
    return ""


def misbehave(api, clocks, driver, name):
    """Until it did so often enough; what it did."""
    kinds = KINDS if name == "all" else [name] if name in KINDS else []
    api.plan, stop = PLANS[name], clocks.start(kinds) if kinds else lambda: None
    try:
        driver.churn(PODS * (4 if name == "all" else 1))
        for _ in range(10):     # a rare fault may need more pods
            if name == "all" or {**api.counts, **clocks.counts}[name] >= (JUMPS_MIN if kinds else 1):
                break
            driver.churn(PODS)
        time.sleep(0.5)
    finally:
        stop()
    api.plan, did = {}, {fault: count for fault, count in {**api.counts, **clocks.counts}.items() if count}
    if name != "all" and name not in did:
        raise Wrong(f"it was never injected: {did}")
    return did


def one_world(name, build, rng, *_):
    with Faulty(new_nodes(), rng) as api:
        clocks = Clocks(api.folder, rng)
        with Extender(build, api, program=OFTEN, env=clocks.environment(build, OFTEN)) as one:
            clocks.pid, driver = one.process.pid, Driver(api, one, rng)
            try:
                did = misbehave(api, clocks, driver, name)
                settle("watches stand", lambda: [kind for kind in ("nodes", "pods") if not metrics(one)[f'watch_connected{{kind="{kind}"}}']], WATCH_S)
                settle("ledger equals API", lambda: difference(api, one), SETTLE_S)
                settle("nobody is left behind", lambda: left_behind(api), SETTLE_S)
                settle("ledger equals API, still", lambda: difference(api, one), SETTLE_S)
                for key in list(api.objects["pods"]):
                    api.delete("pods", key)
                settle("an empty ledger", lambda: difference(api, one), SETTLE_S)
                settle("metrics of an empty ledger", lambda: [what for what in EMPTY if metrics(one)[what]], SETTLE_S)
            except Exception as error:
                raise Wrong(f"{error}\n{one.said()[-3000:]}") from error
            finally:
                driver.stop()
        judge_moments(api)
        if one.status:
            raise Wrong(f"the extender ended with {one.status}")
    print(f"{name:14} {did} in {driver.made} pods; {sum(driver.refusals.values())} refusals", flush=True)
    return {"pods": driver.made, "faults": sum(did.values())}


if __name__ == "__main__":
    sys.exit(attack.main(__doc__, {name: types.SimpleNamespace(one_world=functools.partial(one_world, name)) for name in PLANS}))
