#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs and single pods at once, more than there is room for: no gang runs in part, no member is refused at
bind, and single pods no more often than all of them are where the same pods name no group (60 to 120 s)."""

import math
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


def refused_binds(seed, pods, gangs=None):
    """(refused binds, names of who runs); with gangs the pods are their members, or single."""
    with GangCluster([GPUS] * NODES) as cluster:
        with PodWatch(cluster.api, ledger.never_overfull(cluster.api.nodes())) as watch:
            for name, sizes in (gangs or {}).items():
                cluster.api.create(GROUPS, gang(name, len(sizes)))
            cluster.create_pods(pods)
            settled(watch, 8)
            names = {p["metadata"]["name"] for p in watch.pods.values() if bound_node(p)}
        if gangs:
            check(not cluster.refused_members(), f"seed {seed}: {cluster.refused_members()[:3]}")
        return int(cluster.extender.metrics()[REFUSED]), names


def one_world(seed):
    """(pods, refused binds, refused without groups, whole gangs, units used)."""
    gangs, singles = drawn(random.Random(seed))
    alone = [pod(f"alone-{name}-{i}", size) for name, sizes in gangs.items() for i, size in enumerate(sizes)]
    both = ([p for name, sizes in gangs.items() for p in members(name, sizes)], alone)
    for pods in both:
        pods += [pod(f"s{i}", size) for i, size in enumerate(singles)]
        random.Random(seed).shuffle(pods)
    refused, names = refused_binds(seed, both[0], gangs)
    control, _ = refused_binds(seed, both[1])
    bound = {name: sum(f"{name}-{i}" in names for i in range(len(sizes))) for name, sizes in gangs.items()}
    part = {name: f"{bound[name]} of {len(sizes)}" for name, sizes in gangs.items()
            if 0 < bound[name] < len(sizes)}
    check(not part, f"seed {seed}: run in part: {part}")
    used = sum(ledger.asks(p["spec"]["containers"][0]) for p in both[0] if p["metadata"]["name"] in names)
    return len(alone), refused, control, sum(count > 0 for count in bound.values()), used


def by_chance(refused, control):
    """How likely it is that so many or more of all are on this side, where both sides are alike."""
    total = refused + control
    return sum(math.comb(total, k) for k in range(refused, total + 1)) / 2 ** total


def body():
    worlds = [one_world(seed) for seed in SEEDS]
    pods, refused, control = (sum(world[i] for world in worlds) for i in range(3))
    said = f"of {pods} pods {refused} binds of single pods were refused, {control} where nobody names a group"
    check(by_chance(refused, control) > 0.01, said)
    print(f"note: {len(SEEDS)} worlds of {GANGS} gangs; whole gangs and units used of {CAPACITY}: "
          f"{[w[3:] for w in worlds]}; 0 gangs in part; {said} ({1000 * refused / pods:.0f} and "
          f"{1000 * control / pods:.0f} per 1,000)")


run(body)
