#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The independent ledger itself counts as documented, and notices what it is there for."""

import json

from harness import ledger
from harness.case import check, run
from harness.objects import MOVED, container, node, original_annotations, pod

SIDECARS = pod("sidecars", containers=[2])
SIDECARS["spec"]["initContainers"] = [container("first", 9), container("sidecar", 3, "Always"),
                                      container("second", 5)]
# (row, pod, units on each of its GPUs)
PEAKS = (
    ("nothing", pod("p"), 0),
    ("one container", pod("p", 4), 4),
    ("several containers add up", pod("p", containers=[4, 0, 2]), 6),
    ("a larger init container rules", pod("p", 4, init=[7, 1]), 7),
    ("a smaller init container does not", pod("p", 4, init=[3]), 4),
    ("a restartable init container stays", SIDECARS, 9),
    ("over two GPUs", pod("p", 12, gpu_count=2), 6),
)


def bound(name, units, gpu_idx, phase="Running"):
    made = pod(name, units, node_name="n", annotations=original_annotations(gpu_idx, units, 16))
    made["status"] = {"phase": phase}
    return made


def waiting(name, units, gpu_count=None):
    made = pod(name, units, gpu_count=gpu_count)
    made["status"] = {"phase": "Pending"}
    return made


# (row, pods on a node of 16 + 16, GPUs over their size, pods left behind)
CLUSTERS = (
    ("empty", [], 0, 0),
    ("exactly full", [bound("a", 10, 0), bound("b", 6, 0), bound("c", 16, 1)], 0, 0),
    ("one unit too much", [bound("a", 10, 0), bound("b", 7, 0)], 1, 0),
    ("a finished pod is not charged", [bound("a", 10, 0), bound("b", 7, 0, "Failed")], 0, 0),
    ("left behind", [bound("a", 10, 0), waiting("b", 16)], 0, 1),
    ("fits the sum only", [bound("a", 10, 0), bound("b", 10, 1), waiting("c", 8)], 0, 0),
    ("two GPUs left behind", [bound("a", 8, 0), waiting("b", 16, 2)], 0, 1),
    ("two GPUs, one too small", [bound("a", 9, 0), waiting("b", 16, 2)], 0, 0),
    ("not divisible", [waiting("a", 15, 2)], 0, 0),
    ("an unknown index is charged everywhere", [bound("a", 12, 7), waiting("b", 8)], 0, 0),
)


# (row, pods on a node of 8 + 16, the node's list of moved pods, used on each GPU)
MOVED_PODS = (
    ("nobody", [bound("a", 8, 0)], {}, (8, 0)),
    ("both partners of an exchange", [bound("a", 8, 0), bound("b", 8, 1)], {"a": [1], "b": [0]},
     (8, 8)),
    ("divided by the GPUs it names", [bound("a", 8, 0)], {"a": [0, 1]}, (4, 4)),
    ("a GPU that is too small", [bound("a", 16, 0)], {}, (16, 16)),
    ("a GPU that is too small, by the plugin's word", [bound("a", 16, 1)], {"a": [0]}, (16, 0)),
    ("too large for all of them", [bound("a", 20, 7)], {}, (20, 20)),
)


QUANTITIES = ((8, 8), ("8", 8), ("1k", 1000), ("2Ki", 2048), ("8000m", 8), ("1e3", 1000),
              ("1M", 10**6), ("1Gi", 2**30))


def body():
    for text, expected in QUANTITIES:
        check(ledger.quantity(text) == expected, f"{text} is {ledger.quantity(text)}")
    for row, made, expected in PEAKS:
        check(ledger.per_gpu(made) == expected, f"{row}: {ledger.per_gpu(made)}, not {expected}")
    for with_inventory in (True, False):
        nodes = [node("n", [16, 16], with_inventory)]
        for row, pods, over, left in CLUSTERS:
            state = ledger.build(nodes, pods)
            found = (len(ledger.overfull(state)), len(ledger.placeable(state, pods)))
            check(found == (over, left), f"{row}: {found}, not {(over, left)}")
    for row, pods, moved, expected in MOVED_PODS:
        made = node("n", [8, 16])
        made["metadata"]["annotations"][MOVED] = json.dumps(moved)
        for held in pods:
            held["metadata"]["uid"] = held["metadata"]["name"]
        state = ledger.build([made], pods)["n"]
        found = tuple(gpu.used for gpu in state.gpus.values())
        check(found == expected, f"{row}: {found}, not {expected}")


run(body)
