#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets count for the victims that the extender adds: a node with one loses against a node
without, and on a node the GPU is cleared where none is violated."""

from harness import release
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import NAMESPACE, bound_node, node, pod
from harness.processes import wait_for
from harness.shapes import create_priorities, only_on, resident, start_preempting_scheduler

KUBE = ">=1.21"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
LARGE, LARGE_BYTES = 140, 255 << 10  # a tenant's, more than a page may be
NODES = ("a0", "a1", "b0", "b1", "alone")
# kube-scheduler proposes both pods of low priority of a node, one of each GPU; a third has to go with them.
# By priority alone it would be a guarded one.
GUARDED = {"a0-mid0", "a0-mid1", "b1-mid0", "b1-mid1", "alone-mid0"}


def residents():
    for name in NODES:
        for gpu in (0, 1):
            for priority in ("low", "mid"):
                pod_name = f"{name}-{priority}{gpu}"
                guarded = pod_name in GUARDED
                made = resident(pod_name, name, gpu, 8, terminationGracePeriodSeconds=0,
                                priorityClassName="mild" if guarded else priority)
                made["metadata"]["labels"] = {"guarded": str(guarded).lower()}
                yield made


def fragmented():
    """The sum fits and no GPU does: of two pods the more important one has no budget."""
    for gpu, priority in enumerate(("low", "mid")):
        made = resident(f"split-{priority}", "split", gpu, 10, terminationGracePeriodSeconds=0,
                        priorityClassName=priority)
        made["metadata"]["labels"] = {"guarded": str(priority == "low").lower()}
        yield made


def budget(name, labels, ns=NAMESPACE):
    """Nobody counts who is healthy: no disruption is allowed."""
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": ns},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}


def large_budgets():
    for i in range(LARGE):
        made = budget(f"a{i}", {"app": "none"})
        made["metadata"]["annotations"] = {"large": "x" * LARGE_BYTES}
        yield BUDGETS, made


def wait_counted(cluster, count, seconds):
    wait_for(f"the extender knows {count} budgets",
             lambda: cluster.extender.metrics()["gpushare_disruption_budgets"] == count, seconds)


def preempts(cluster, nodes):
    """(where a pod of 12 goes, who had to go)"""
    before = {p["metadata"]["name"] for p in cluster.api.pods()}
    name = f"urgent-{nodes[0]}"
    cluster.create_pods([pod(name, 12, priorityClassName="urgent", **only_on(*nodes))])
    found = cluster.wait_bound(name)
    gone = before - {p["metadata"]["name"] for p in cluster.api.pods()
                     if not p["metadata"].get("deletionTimestamp")}
    print(f"note: {name}: {bound_node(found)}, victims {' '.join(sorted(gone))}")
    return bound_node(found), gone


def body():
    with Cluster(nodes=[node(name, [16, 16]) for name in (*NODES, "split")], scheduler=None) as cluster:
        create_priorities(cluster, {"low": 10, "mild": 90, "mid": 100, "urgent": 500})
        cluster.create_pods([*residents(), *fragmented()])
        cluster.wait_inspect_agrees()
        cluster.api.create(BUDGETS, budget("guard", {"guarded": "true"}))
        cluster.api.create(BUDGETS, budget("nobody", {"app": "none"}))
        wait_counted(cluster, 2, 10)
        cluster.api.create_many(large_budgets())
        wait_counted(cluster, LARGE + 2, 60)
        start_preempting_scheduler(cluster)
        where, gone = preempts(cluster, ("a0", "a1"))
        check(where == "a1" and not gone & GUARDED, f"a1 has no budget: {where}, {gone}")
        where, gone = preempts(cluster, ("b0", "b1"))
        check(where == "b0" and not gone & GUARDED, f"b0 has no budget: {where}, {gone}")
        where, gone = preempts(cluster, ("alone",))
        check(gone == {"alone-low0", "alone-low1", "alone-mid1"}, f"GPU 1 is to be cleared: {gone}")
        if release.PREEMPTS_WHEN_THE_SUM_FITS:
            where, gone = preempts(cluster, ("split",))
            check(gone == {"split-mid"}, f"split-low has a budget: {gone}")
        cluster.api.delete(f"{BUDGETS}/nobody", 0)
        wait_counted(cluster, LARGE + 1, 60)


run(body)
