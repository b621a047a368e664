#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other nodes have room that an urgent pod cannot use: drained, tainted, of another pool, without CPU. With nominations and
without, the same victims go; only where the extender cannot see why is a node offered first. 25 s."""

import time

from harness.case import check, run
from harness.objects import bound_node, node, pod
from harness.sampling import Sampling
from harness.shapes import create_priorities, only_on, resident

KUBE = ">=1.22"
OUTSIDE = 3
EXCLUDED = {
    "drained": {"unschedulable": True},
    "tainted": {"taints": [{"key": "team", "value": "other", "effect": "NoSchedule"}]},
    "pools": {},
    "busy": {},  # no CPU is left there
}


def nodes_of(kind):
    outside = [node(f"{kind}-out{i}", [16]) for i in range(OUTSIDE)]
    for one in outside:
        one["spec"] = EXCLUDED[kind]
        if kind == "busy":
            one["status"]["capacity"]["cpu"] = "2"
    return [node(f"{kind}-low", [16]), node(f"{kind}-mid", [16]), node(f"{kind}-halves", [8, 8]), *outside]


def urgent(kind):
    names = [n["metadata"]["name"] for n in nodes_of(kind)]
    if kind == "pools":
        names = [name for name in names if "-out" not in name]
    made = pod(f"{kind}-urgent", 12, priorityClassName="high", **only_on(*names))
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4"}
    return made


def preempt(cluster, kind):
    """(where it is, who is left, how often it was refused)"""
    started = time.monotonic()
    name = f"{kind}-urgent"
    before = cluster.nominations()
    cluster.create_pods([urgent(kind)])
    where = bound_node(cluster.wait_bound(name, 60))
    took = time.monotonic() - started
    left = [v for v in ("low", "mid") if cluster.find_pod(f"{kind}-v{v}")]
    offers = cluster.nominations() - before
    print(f"note: {kind}: {took:.1f} s, offers {offers:.0f}")
    return where, left, offers


def outcome(nominates):
    nodes = [one for kind in EXCLUDED for one in nodes_of(kind)]
    with Sampling(f"nominates-{nominates}", nodes, nominates=nominates, share=None) as cluster:
        create_priorities(cluster, {"low": 10, "mid": 100, "high": 1000})
        cluster.create_pods([resident(f"{kind}-v{v}", f"{kind}-{v}", 0, 16, priorityClassName=v,
                                      terminationGracePeriodSeconds=0)
                             for kind in EXCLUDED for v in ("low", "mid")])
        cluster.wait_inspect_agrees()
        return {kind: preempt(cluster, kind) for kind in EXCLUDED}


def body():
    without, offered = outcome(False), outcome(True)
    for kind in EXCLUDED:
        check(without[kind][:2] == (f"{kind}-low", ["mid"]), f"{kind}: {without[kind]}")
        check(offered[kind][:2] == without[kind][:2], f"{kind}: with nominations {offered[kind]}")
        seen = kind != "busy"
        check((offered[kind][2] == 0) == seen, f"{kind}: offered {offered[kind][2]} times")


run(body)
