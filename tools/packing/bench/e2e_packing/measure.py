#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a cluster's GPUs a real kube-scheduler allocates: stock placement, binpack, rollout; and
rollout where kube-scheduler looks at a sample of the nodes, or is named one node.

The first arrivals of the trace's default workload, seed 42, in their order, each a real pod; a GPU
has 1000 units. Nodes are as many as asked for, of each kind (CPU, memory, GPUs, model) the share
that it has in the trace, largest remainders first. Started by tools/packing/bench/e2e_packing/run.sh."""

import argparse
import collections
import csv
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../e2e"))
from harness import packing  # noqa: E402
from harness.api import pod_path  # noqa: E402
from harness.case import check, run  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.objects import (  # noqa: E402
    IDX, NAMESPACE, annotation, bound_node, node, pod, unschedulable_message)
from harness.processes import wait_for  # noqa: E402
from harness.scheduler import all_nodes, sampled, without_prioritize  # noqa: E402

CARD = 1000
BACKLOG = 8  # pods that may wait at once: few, so that they are placed in their order


def rows(path):
    with open(path, encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def sample_nodes(folder, count):
    """[(cpu_milli, memory_mib, gpus)]; kinds in proportion, mixed evenly as they are in no order."""
    listed = rows(os.path.join(folder, "openb_node_list_gpu_node.csv"))
    kinds = collections.Counter(
        (int(r["cpu_milli"]), int(r["memory_mib"]), int(r["gpu"]), r["model"]) for r in listed)
    exact = {kind: number * count / len(listed) for kind, number in kinds.items()}
    taken = {kind: int(share) for kind, share in exact.items()}
    rest = sorted(kinds, key=lambda kind: (taken[kind] - exact[kind], kind))
    for kind in rest[:count - sum(taken.values())]:
        taken[kind] += 1
    return [kind[:3] for kind in sorted(taken) for _ in range(taken[kind])]


def make_node(name, cpu_milli, memory_mib, gpus):
    made = node(name, [CARD] * gpus, unit="MiB", pods=1001)
    made["status"]["capacity"].update(cpu=f"{cpu_milli}m", memory=f"{memory_mib}Mi")
    return made


def arrivals(folder, count, seed):
    """[(cpu_milli, memory_mib, gpus, units per GPU)]"""
    listed = rows(os.path.join(folder, "openb_pod_list_default.csv"))
    with open(os.path.join(folder, "seq", f"default_{seed}.txt"), encoding="utf-8") as source:
        order = source.read().splitlines()[2].split()
    made = []
    for index in order[:count]:
        row = listed[int(index)]
        check(not row["gpu_spec"], "the default workload ties no pod to a model")
        gpus = int(row["num_gpu"])
        units = min(int(row["gpu_milli"]), CARD) if gpus else 0
        made.append((int(row["cpu_milli"]), int(row["memory_mib"]), gpus, units))
    return made


def make_pod(name, cpu_milli, memory_mib, gpus, units):
    made = pod(name, gpus * units, gpu_count=gpus if gpus > 1 else None)
    resources = made["spec"]["containers"][0].setdefault("resources", {})
    resources["requests"] = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    return made


def settled(found):
    return bool(bound_node(found) or unschedulable_message(found))


def check_gpus(cluster, asks):
    """No GPU has more than it holds. (The harness's ledger does not read "8k", as 8000 comes back.)
    """
    used = collections.Counter()
    for found in cluster.api.pods():
        _cpu, _memory, gpus, units = asks[int(found["metadata"]["name"][1:])]
        for idx in annotation(found, IDX).split(",") if gpus and bound_node(found) else ():
            used[bound_node(found), idx] += units
    check(max(used.values(), default=0) <= CARD, "a GPU is over its size")


def place_all(cluster, asks):
    """Creates pod after pod. Nothing ever leaves, so who is refused once is refused for good."""
    waiting = collections.deque()
    for i, ask in enumerate(asks):
        name = f"p{i:05}"
        cluster.api.create(pod_path(NAMESPACE), make_pod(name, *ask))
        waiting.append(name)
        while len(waiting) >= BACKLOG and not settled(cluster.pod(waiting[0])):
            time.sleep(0.002)
        if len(waiting) >= BACKLOG:
            waiting.popleft()
    wait_for("every pod is bound or refused",
             lambda: all(settled(p) for p in cluster.api.pods()), 120)
    check_gpus(cluster, asks)
    return {p["metadata"]["name"] for p in cluster.api.pods() if bound_node(p)}


def allocation(asks, bound, capacity):
    """Per cent of all GPUs: when as much has arrived as there is, and at the end; pods refused."""
    arrived = used = 0
    full = None
    for i, (_cpu, _memory, gpus, units) in enumerate(asks):
        arrived += gpus * units
        used += gpus * units if f"p{i:05}" in bound else 0
        if full is None and arrived >= capacity:
            full = 100 * used / capacity
    return full, 100 * used / capacity, len(asks) - len(bound)


BINPACK, ROLLOUT = ["--policy", "binpack"], ["--policy", "rollout"]
# name: (the extender's flags, at which nodes kube-scheduler looks)
WAYS = {
    "rollout": (ROLLOUT, all_nodes),
    "binpack": (BINPACK, all_nodes),
    "stock": (BINPACK, all_nodes),  # and the extender is not asked for scores
    "sampled": (ROLLOUT, sampled),
    "one": ([*ROLLOUT, "--filter-names=one"], sampled),
}


def one_run(way, profile, nodes, asks):
    flags, edit = WAYS[way]
    run_dir = tempfile.mkdtemp(prefix=f"{way}-", dir=os.environ["GPUSHARE_RUN_DIR"])
    with Cluster(nodes=nodes, scheduler=None, extender_flags=flags,
                 run_dir=run_dir) as cluster:
        wait_for("all nodes are known", lambda: len(cluster.extender.inspect()) == len(nodes))
        if way == "stock":
            cluster.scheduler.start(cluster.extender.url, fast_client=True,
                                    edit=lambda text: edit(without_prioritize(text)))
        elif profile == "shipped":
            cluster.scheduler.start(cluster.extender.url, fast_client=True, edit=edit)
        else:
            packing.start_scheduler(cluster, fast_client=True, edit=edit)
        return place_all(cluster, asks)


def body():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--trace", required=True, metavar="DIR")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--arrivals", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["rollout", "binpack", "stock"])
    parser.add_argument("--profile", choices=("packing", "shipped"), default="packing",
                        help="config/packing, or config/ (its scores count as much as kube-scheduler's)")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    shapes = sample_nodes(options.trace, options.nodes)
    nodes = [make_node(f"node-{i:04}", *shape) for i, shape in enumerate(shapes)]
    asks = arrivals(options.trace, options.arrivals, options.seed)
    capacity = CARD * sum(gpus for _cpu, _memory, gpus in shapes)
    demand = sum(gpus * units for _cpu, _memory, gpus, units in asks)
    print(f"{len(nodes)} nodes, {capacity // CARD} GPUs, {len(asks)} pods that ask for "
          f"{100 * demand / capacity:.1f} % of them", flush=True)
    print("placement  at 100 %  at the end  refused  GPUs left  time", flush=True)
    end = {}
    for way in options.ways * options.rounds:
        started = time.monotonic()
        bound = one_run(way, options.profile, nodes, asks)
        full, end[way], refused = allocation(asks, bound, capacity)
        left = capacity / CARD * (1 - end[way] / 100)
        full_text = "-" if full is None else f"{full:.2f}"
        print(f"{way:10} {full_text:>8}  {end[way]:10.2f}  {refused:7}  {left:9.1f}  "
              f"{time.monotonic() - started:.0f} s", flush=True)
    if {"rollout", "binpack", "stock"} <= set(end):
        check(end["rollout"] > max(end["binpack"], end["stock"]),
              "rollout is not above both others")


run(body)
