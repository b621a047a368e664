#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs and single pods at once, more than there is room for, as soon as the extender has started: no gang runs
in part, no member is refused at bind, and few single pods are: kube-scheduler's next question may come before
the last pod's bind (60 to 120 s)."""

import random
import time

from harness import ledger
from harness.case import check, run
from harness.gangs import GROUPS, REFUSED, GangCluster, gang, members
from harness.objects import bound_node, pod
from harness.watch import PodWatch

KUBE = ">=1.36"
# Nodes, GPUs of each, gangs, seed.
WORLDS = ((8, [16, 16], 14, 1), (8, [16, 16], 14, 2), (30, [16] * 4, 24, 3))
REFUSED_MAX = 31  # of 1,000 pods


def drawn(rng, capacity, gangs):
    """(gangs by name, sizes of single pods), 1.1 times of what fits."""
    gangs = {f"g{i}": [rng.randint(4, 12) for _ in range(rng.randint(2, 4))] for i in range(gangs)}
    asked, singles = sum(map(sum, gangs.values())), []
    while asked < 1.1 * capacity or len(singles) < len(gangs):
        singles.append(rng.randint(1, 8))
        asked += singles[-1]
    return gangs, singles


def settled(watch, seconds):
    """Nothing was bound for so long."""
    bound, since = len(watch.bound_at), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.25)
        if len(watch.bound_at) != bound:
            bound, since = len(watch.bound_at), time.monotonic()


def one_world(nodes, gpus, count, seed):
    """(pods, refused binds)"""
    rng = random.Random(seed)
    gangs, singles = drawn(rng, nodes * sum(gpus), count)
    pods = [p for name, sizes in gangs.items() for p in members(name, sizes)]
    pods += [pod(f"s{i}", size) for i, size in enumerate(singles)]
    rng.shuffle(pods)
    with GangCluster([gpus] * nodes) as cluster:
        with PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())) as watch:
            for name, sizes in gangs.items():
                cluster.api.create(GROUPS, gang(name, len(sizes)))
            cluster.create_pods(pods)
            settled(watch, 8)
            names = {p["metadata"]["name"] for p in watch.pods.values() if bound_node(p)}
        check(not cluster.refused_members(), f"seed {seed}: {cluster.refused_members()[:3]}")
        refused = int(cluster.extender.metrics()[REFUSED])
    bound = {name: sum(f"{name}-{i}" in names for i in range(len(sizes))) for name, sizes in gangs.items()}
    part = {name: f"{bound[name]} of {len(sizes)}" for name, sizes in gangs.items()
            if 0 < bound[name] < len(sizes)}
    check(not part, f"seed {seed}: run in part: {part}")
    used = sum(ledger.asks(p["spec"]["containers"][0]) for p in pods if p["metadata"]["name"] in names)
    print(f"note: {nodes} nodes of {len(gpus)} GPUs: {sum(map(bool, bound.values()))} of {count} gangs whole, 0 in "
          f"part; {used} of {nodes * sum(gpus)} units used; {refused} refused binds of {len(pods)} pods")
    return len(pods), refused


def body():
    pods, refused = map(sum, zip(*(one_world(*world) for world in WORLDS)))
    said = f"{1000 * refused / pods:.0f} refused binds per 1,000 pods, 0 of members"
    print(f"note: {said}")
    check(1000 * refused <= REFUSED_MAX * pods, said)


run(body)
