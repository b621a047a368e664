#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups of pods that kube-scheduler schedules as a whole: filter keeps a place for each member, so none is
refused at bind, and a group that does not fit does not run in part, though the sums of nodes say it would
(60 to 120 s)."""

import random
import time

from harness.case import check, run
from harness.gangs import PROMISED, REFUSED, GangCluster, fits
from harness.objects import IDX, pod, unschedulable_message
from harness.processes import wait_for

KUBE = ">=1.36"
RANDOM, SEED = 40, 35
REASON = "a nominated pod or a pod group"


def never_in_part(cluster, name, sizes, seconds):
    """kube-scheduler thinks that it fits, and it does not."""
    cluster.create_gang(name, sizes)
    cluster.wait_judged(name, len(sizes))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        bound = cluster.bound(name)
        check(bound == 0, f"{bound} of the {len(sizes)} of {name} run, and all do not fit")
        time.sleep(0.5)
    said = {unschedulable_message(p) for p in cluster.members(name)}
    cluster.remove(name)
    return said


def one_that_does_not_fit(nodes, size):
    with GangCluster(nodes) as cluster:
        said = never_in_part(cluster, "g", [10] * size, 10)
        check(any(REASON in text for text in said), f"nobody is told why: {said}")
        wait_for("no place is kept for it",
                 lambda: cluster.extender.metrics()[PROMISED] == 0, 10)
        cluster.create_gang("g-fits", [10] * (size - 1))
        cluster.wait_whole("g-fits", size - 1)
        check(not cluster.refused_members(), f"refused: {cluster.refused_members()[:3]}")


def random_ones():
    rng = random.Random(SEED)
    counts = {"whole": 0, "do not fit": 0, "not found": 0}
    slowest = 0
    with GangCluster([[16, 16]] * 3) as cluster:
        for i in range(RANDOM):
            sizes = [rng.randint(4, 14) for _ in range(rng.randint(2, 4))]
            filled = [rng.choice((0, 3, 6, 9)) for _ in range(6)]
            blockers = block(cluster, i, filled)
            name, began = f"g{i}", time.monotonic()
            if not fits([16 - units for units in filled], sizes):
                never_in_part(cluster, name, sizes, 2)
                counts["do not fit"] += 1
            else:
                cluster.create_gang(name, sizes)
                cluster.wait_judged(name, len(sizes))
                # each in its turn takes the best place, which may leave none for the last
                whole = cluster.bound(name) == len(sizes)
                check(whole or cluster.bound(name) == 0, f"{name} runs in part")
                counts["whole" if whole else "not found"] += 1
                slowest = max(slowest, time.monotonic() - began)
                cluster.remove(name)
            for blocker in blockers:
                cluster.delete_pod(blocker)
            wait_for("all have gone", lambda: not cluster.api.pods(), 10)
        refused = cluster.extender.metrics()[REFUSED]
        check(refused == 0, f"{refused:.0f} binds refused: {cluster.refused_members()[:3]}")
        check(counts["not found"] <= RANDOM // 10, f"too many found no place: {counts}")
        print(f"note: {RANDOM} random gangs: {counts}; slowest {slowest:.2f} s, 0 refused binds, 0 in part")


def block(cluster, turn, filled):
    """Pods that take so much of each GPU."""
    made = [pod(f"b{turn}-{i}", units, node_name=f"n{i // 2}", annotations={IDX: str(i % 2)})
            for i, units in enumerate(filled) if units]
    cluster.create_pods(made)
    cluster.wait_inspect_agrees()
    return [p["metadata"]["name"] for p in made]


def body():
    one_that_does_not_fit([[16, 6]], 2)
    one_that_does_not_fit([[16, 6]] * 3, 4)
    random_ones()


run(body)
