# SPDX-License-Identifier: Apache-2.0
"""One round: pods wait, a kube-scheduler starts, and is timed until they are bound."""

import contextlib
import operator
import statistics
import time
from dataclasses import dataclass, field

from harness.control_plane import HOST, built_program
from harness.processes import Failure, free_port
from harness.watch import PodWatch
from processors import Processors

PROGRAMS = ("kube-scheduler", "kube-apiserver", "etcd", "gpushare-extender", "noop_extender")
FIRST_BIND_S = 5  # one that just started lets binds of the one before it arrive first


@dataclass
class Round:
    rate: float
    used: dict  # ms of processor per pod by program
    bound: int
    pods: list = field(default_factory=list)  # as they were at the end


class Noop:
    """The no-op extender, which binds with the administrator's token."""

    def __init__(self, cluster):
        self.port = free_port()
        plane = cluster.control_plane
        self.process = cluster.processes.start("noop_extender", [
            built_program("tests/noop_extender"), self.port, plane.kubeconfig("admin")])

    @property
    def url(self):
        return f"http://{HOST}:{self.port}"


@contextlib.contextmanager
def noop(cluster):
    extender = Noop(cluster)
    try:
        yield extender.url
    finally:
        extender.process.stop()


def tell_refused_binds(metrics):
    """kube-scheduler chose a node for which the ledger knew better by then."""
    attempts = {outcome: metrics[f'gpushare_bind_attempts_total{{outcome="{outcome}"}}']
                for outcome in ("bound", "rejected", "conflict")}
    per_1000 = 1000 * (attempts["rejected"] + attempts["conflict"]) / attempts["bound"]
    print(f"{'':32} {per_1000:8.1f} binds refused per 1,000 pods", flush=True)


@contextlib.contextmanager
def ours(cluster, flags=()):
    """Our extender as shipped. It runs in its own rounds only, so that its watches slow nobody."""
    cluster.extender_flags = flags
    cluster.start_extender()
    time.sleep(FIRST_BIND_S)
    try:
        yield cluster.extender.url
        tell_refused_binds(cluster.extender.metrics())
        cluster.wait_inspect_agrees(60)
        cluster.extender.verify_and_stop()
    finally:
        cluster.extender = None


def delete_all(cluster, watch):
    cluster.api.call("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
    if not watch.wait(lambda w: not w.pods, 60):
        raise Failure("the pods of the last round are still there")
    watch.bound_at.clear()


def running(cluster, programs):
    return {p.name: p.pid for p in cluster.processes.started if p.name in programs and p.running()}


def burst(cluster, url, pods, edit, flags=(), limit_s=None, programs=PROGRAMS, watching=PodWatch):
    """Pods wait first, then kube-scheduler starts: the rate is its own, not that of their creation. From
    the first binding to the last, as the watch sees them. limit_s: what is not bound by then is left."""
    with watching(cluster.api) as watch:
        cluster.create_pods(pods)
        cluster.scheduler.flags = flags
        cluster.scheduler.start(url, fast_client=True, edit=edit)
        try:
            with Processors(running(cluster, programs)) as processors:
                started = time.monotonic()
                whole = watch.wait(lambda w: len(w.bound_at) == len(pods), limit_s or 300)
            if not whole and not limit_s:
                raise Failure(f"only {len(watch.bound_at)} of {len(pods)} pods were bound")
            with watch.condition:
                times, seen = sorted(watch.bound_at.values()), list(watch.pods.values())
        finally:
            cluster.scheduler.stop()
        delete_all(cluster, watch)
    if len(times) < 2:
        return Round(0, {}, len(times), seen)
    start = max(started, times[0])
    while_counted = max(1, sum(at > start for at in times))
    return Round((len(times) - 1) / (times[-1] - times[0]),
                 {name: used / while_counted
                  for name, used in processors.between(start, times[-1]).items()}, len(times), seen)


def per_pod(rounds, name):
    """The median in ms of processor time, as text."""
    used = [r.used[name] for r in rounds if name in r.used]
    return f"{statistics.median(used):.2f}" if used else "-"


def processor_ms(done):
    """Of all programs together, per pod."""
    return sum(done.used.values())


def ratio(rounds, one, other, figure):
    figures = [[figure(r) for r in rounds[cell]] for cell in (one, other)]
    return statistics.median(map(operator.truediv, *figures))
