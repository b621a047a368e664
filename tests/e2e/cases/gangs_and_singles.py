#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs and single pods at once, more than there is room for: no gang runs in part, no member is refused at
bind, and single pods hardly ever (30 to 60 s)."""

import random
import time

from harness import ledger
from harness.case import check, run
from harness.gangs import GROUPS, REFUSED, GangCluster, gang, members
from harness.objects import bound_node, pod
from harness.watch import PodWatch

KUBE = ">=1.36"
SEEDS = (1, 2)
NODES, GPUS, GANGS = 8, [16, 16], 14
CAPACITY = NODES * sum(GPUS)


def drawn(rng):
    """(gangs by name, sizes of single pods), 1.1 times of what fits."""
    gangs = {f"g{i}": [rng.randint(4, 12) for _ in range(rng.randint(2, 4))] for i in range(GANGS)}
    asked, singles = sum(map(sum, gangs.values())), []
    while asked < 1.1 * CAPACITY or len(singles) < GANGS:
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


def one_world(seed):
    gangs, singles = drawn(random.Random(seed))
    with GangCluster([GPUS] * NODES) as cluster:
        with PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())) as watch:
            for name, sizes in gangs.items():
                cluster.api.create(GROUPS, gang(name, len(sizes)))
            pods = [p for name, sizes in gangs.items() for p in members(name, sizes)]
            pods += [pod(f"s{i}", size) for i, size in enumerate(singles)]
            random.Random(seed).shuffle(pods)
            cluster.create_pods(pods)
            settled(watch, 8)
            names = {p["metadata"]["name"] for p in watch.pods.values() if bound_node(p)}
        bound = {name: sum(f"{name}-{i}" in names for i in range(len(sizes)))
                 for name, sizes in gangs.items()}
        part = {name: f"{bound[name]} of {len(sizes)}" for name, sizes in gangs.items()
                if 0 < bound[name] < len(sizes)}
        check(not part, f"seed {seed}: run in part: {part}")
        check(not cluster.refused_members(), f"seed {seed}: {cluster.refused_members()[:3]}")
        used = sum(units for p in pods if p["metadata"]["name"] in names
                   for units in [ledger.asks(p["spec"]["containers"][0])])
        return (len(pods), int(cluster.extender.metrics()[REFUSED]),
                sum(count > 0 for count in bound.values()), used)


def body():
    worlds = [one_world(seed) for seed in SEEDS]
    pods, refused = sum(w[0] for w in worlds), sum(w[1] for w in worlds)
    check(refused <= max(2, 0.031 * pods), f"{refused} of {pods} single pods were refused at bind")
    print(f"note: {len(SEEDS)} worlds of {GANGS} gangs: {pods} pods; whole gangs and units used of {CAPACITY}: "
          f"{[w[2:] for w in worlds]}; 0 gangs in part, {refused} binds of single pods refused")


run(body)
