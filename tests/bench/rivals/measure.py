#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same burst of pods through one real kube-scheduler with each scheduler extender in turn: without
one, with one that decides nothing, with ours, and with those of others that are given. Pods are equal,
of many sizes, or members of groups that are to run as a whole. Rounds alternate; an extender has five
seconds from when it answers. Beside the rate: processor per pod, the extender's memory, and whether
what it wrote on the pods is right.

Started by tests/bench/rivals/run.sh."""

import argparse
import collections
import contextlib
import os
import platform
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../e2e_rate"), os.path.join(HERE, "../../e2e")]
from dialects import GIB, GPUS, Dialect, Hami, Original, gpu_id  # noqa: E402
from harness import release  # noqa: E402
from harness.case import run  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.gangs import GROUPS, gang  # noqa: E402
from harness.objects import bound_node, node  # noqa: E402
from rounds import FIRST_BIND_S, PROGRAMS, burst, noop, ours, per_pod, processor_ms, ratio  # noqa: E402

GANG = 4
CAN_GANG = release.MINOR >= 36
KINDS = ("equal", "mixed", "gangs")


class Ours(Dialect):
    program = "gpushare-extender"

    def edit(self, config, url):
        return config

    @contextlib.contextmanager
    def started(self, cluster):
        with ours(cluster) as url:
            self.process = cluster.extender.process
            self.flags = self.process.argv[1:]
            yield url


class Noop(Ours):
    decides = False

    @contextlib.contextmanager
    def started(self, cluster):
        with noop(cluster) as url:
            self.process = cluster.processes.started[-1]
            time.sleep(FIRST_BIND_S)
            yield url


class Nobody(Ours):
    decides = False

    @contextlib.contextmanager
    def started(self, cluster):
        yield None


@contextlib.contextmanager
def started(dialect, cluster):
    if isinstance(dialect, Ours):
        with dialect.started(cluster) as url:
            yield url
        return
    url = dialect.start(cluster)
    time.sleep(FIRST_BIND_S)
    try:
        yield url
        dialect.process.must_run()
    finally:
        dialect.process.stop()


def sizes_of(kind, count, units):
    rng = random.Random(1)
    if kind == "equal":
        return [units] * count
    if kind == "mixed":
        return [rng.randint(1, GIB // 2) for _ in range(count)]
    return [size for _ in range(count // GANG) for size in [rng.randint(1, GIB // 2)] * GANG]


def pods_of(cluster, dialect, kind, turn, options):
    """A round's groups have names of their own, and stay."""
    sizes = sizes_of(kind, options.pods, options.mem)
    made = [dialect.pod(f"p{i}", size) for i, size in enumerate(sizes)]
    if kind == "gangs":
        names = [f"{dialect.name}-{turn}-{i}" for i in range(len(made) // GANG)]
        cluster.api.create_many((GROUPS, gang(name, GANG)) for name in names)
        for i, member in enumerate(made):
            member["spec"]["schedulingGroup"] = {"podGroupName": names[i // GANG]}
    return made


def resident_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def groups_in_part(pods):
    groups = collections.defaultdict(list)
    for made in pods:
        group = made["spec"].get("schedulingGroup", {}).get("podGroupName")
        groups[group].append(bool(bound_node(made)))
    groups.pop(None, None)
    return sum(any(bound) and not all(bound) for bound in groups.values())


def judge(dialect, pods):
    """{what is wrong: how often} by what stands on the pods that are bound."""
    wrong, used = collections.Counter({"groups in part": groups_in_part(pods)}), collections.Counter()
    for made in pods if dialect.decides else ():
        if not bound_node(made):
            continue
        placed = dialect.placed(made)
        wrong["without a GPU"] += not placed
        wrong["on a GPU of another node"] += any(
            gpu not in {gpu_id(bound_node(made), i) for i in range(GPUS)} for gpu in placed)
        used.update(placed)
    wrong["GPUs over their size"] += sum(units > GIB for units in used.values())
    return {what: count for what, count in wrong.items() if count}


def one_round(cluster, dialect, kind, turn, options):
    with started(dialect, cluster) as url:
        name = dialect.process.name if dialect.process else ""
        pods = pods_of(cluster, dialect, kind, turn, options)
        done = burst(cluster, url, pods, lambda config: url and dialect.edit(config, url) or config,
                     release.gang_flags()[1] if CAN_GANG else (), options.limit, {*PROGRAMS, name},
                     dialect.watching)
        done.mib = resident_mib(dialect.process) if dialect.process else 0
    done.wrong, done.pods = judge(dialect, done.pods), []
    print(f"{kind:6} {dialect.name:14} {done.rate:7.1f} pods/s, {done.bound} of {len(pods)} bound; load "
          f"{os.getloadavg()[0]:.1f}; {done.wrong or ''}", flush=True)
    return done


def print_table(kind, rounds, count):
    print(f"\n{kind:16} {'pods/s':>7} {'from':>7} {'to':>7} {'/ no-op':>8} {'bound':>8}   ms of processor "
          "per pod: scheduler  API server  etcd  extender   all / no-op   extender's MiB   wrong")
    for dialect, values in rounds.items():
        rates = [r.rate for r in values]
        same = next(other for other in rounds if type(other) is Noop)
        wrong = sum((collections.Counter(r.wrong) for r in values), collections.Counter())
        extender = dialect.process.name if dialect.process else ""
        print(f"{dialect.name:16} {statistics.median(rates):7.1f} {min(rates):7.1f} {max(rates):7.1f} "
              f"{ratio(rounds, dialect, same, lambda r: r.rate):8.3f} "
              f"{min(r.bound for r in values):>4}/{count:<4} "
              f"{per_pod(values, 'kube-scheduler'):>36} {per_pod(values, 'kube-apiserver'):>11} "
              f"{per_pod(values, 'etcd'):>5} {per_pod(values, extender):>9} "
              f"{ratio(rounds, dialect, same, processor_ms):>13.2f} "
              f"{max(r.mib for r in values):>16.0f}   {dict(wrong) or '-'}")


def tell_programs(dialects):
    print("\nwhat was run:")
    for dialect in dialects:
        if isinstance(dialect, Ours):
            continue
        print(f"{dialect.name}: {dialect.version()}")
        print(f"  started with: {' '.join(map(str, dialect.flags)) or '-'}")
        for favour in dialect.favours:
            print(f"  favour: {favour}")


def rivals(options):
    if options.hami:
        for policy in options.hami_policy.split(","):
            yield Hami(f"hami-{policy}", options.hami, policy)
    if options.original:
        yield Original("original", options.original)


def measure(options):
    dialects = [Nobody("none"), Noop("no-op"), Ours("ours"), *rivals(options)]
    nodes = [node(f"node-{i:04}", [GIB] * GPUS) for i in range(options.nodes)]
    for made in nodes:
        for dialect in dialects:
            dialect.tell_node(made)
    kinds = [kind for kind in options.kinds.split(",") if kind != "gangs" or CAN_GANG]
    rounds = {kind: {dialect: [] for dialect in dialects} for kind in kinds}
    cluster = Cluster(nodes=nodes, scheduler=None, extender=False)
    if CAN_GANG:
        cluster.control_plane.flags = release.gang_flags()[0]
    with cluster:
        for turn in range(options.rounds):
            for kind in kinds:
                first = turn % len(dialects)
                for dialect in dialects[first:] + dialects[:first]:
                    rounds[kind][dialect].append(one_round(cluster, dialect, kind, turn, options))
    return dialects, rounds


def body():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--hami", metavar="PROGRAM", help="HAMi's scheduler (cmd/scheduler)")
    parser.add_argument("--hami-policy", default="binpack,spread",
                        help="its --node-scheduler-policy: its chart's, and one that locks more nodes")
    parser.add_argument("--original", metavar="PROGRAM", help="gpushare-scheduler-extender (cmd)")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=400, help="pods per round")
    parser.add_argument("--mem", type=int, default=2, help="GiB of each of equal pods")
    parser.add_argument("--kinds", default=",".join(KINDS), help="what is asked for")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a round ends")
    options = parser.parse_args()
    options.pods -= options.pods % GANG
    print(f"{options.nodes} nodes of {GPUS} GPUs of {GIB} GiB, {options.pods} pods, Kubernetes "
          f"{os.environ['KUBE_VERSION']}, {os.cpu_count()} processors, Linux {platform.release()}, "
          f"load {os.getloadavg()[0]:.1f} at the start", flush=True)
    dialects, rounds = measure(options)
    for kind, values in rounds.items():
        print_table(kind, values, options.pods)
    tell_programs(dialects)


run(body)
