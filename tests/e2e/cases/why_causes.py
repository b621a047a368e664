#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`why` of random pods beside kube-scheduler, which is asked cause by cause: twins of a pod tolerate more than it does,
and request what no node has, so that their messages count the nodes that its rules, taints and states leave."""

import os
import random
import re

from harness.api import node_path
from harness.case import check, run
from harness.cluster import Cluster
from harness.objects import bound_node, node, pod, unschedulable_message
from harness.processes import wait_for

KUBE = ">=1.20"
SEED, ROUNDS, NODES, PODS = int(os.environ.get("GPUSHARE_SEED", "61")), 6, 6, 10
NONE, STATES = "example.com/none", ("node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
PRESSURE = ("node.kubernetes.io/disk-pressure", "node.kubernetes.io/out-of-service")
SIGNS = ("the pod's", "the node has a taint", "the node is", "no GPU")
REQUIREMENTS = [{"key": "gen", "operator": operator, "values": values} for operator, *values in map(
    str.split, ("In 3 a", "NotIn 7", "Exists", "DoesNotExist", "Gt 3", "Lt 5"))]
TOLERATIONS = [{"operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}, {"key": "team", "value": "a"},
               {"key": "sla", "operator": "Exists"}, {"key": PRESSURE[0], "operator": "Exists"}]


def make_node(rng, name):
    made, state = node(name, [16, 16]), rng.choice(("", "", *STATES))
    made["metadata"]["labels"].update(rng.choice(({}, {"gen": rng.choice("a37")}, {"gen": "b", "pool": "a"})))
    taints = [{"key": rng.choice(keys), "value": rng.choice("ab"), "effect": rng.choice(EFFECTS)}
              for keys in (("team",), ("sla",), PRESSURE)]
    made["spec"] = {"unschedulable": state == STATES[0], "taints": rng.sample(taints, rng.choice((0, 0, 1, 1, 2)))}
    made["spec"]["taints"] += [{"key": state, "effect": "NoSchedule"}] * bool(state)
    made["status"]["conditions"][0]["status"] = str(state != STATES[1])
    return made


def group_of(rng, name):
    """A pod; its twins that tolerate everything, cordons and nodes that are not ready, no more than it."""
    terms = [rng.choice(({}, {"matchExpressions": rng.sample(REQUIREMENTS, 2)})) for _ in range(2)]
    rules = rng.choice(({}, {"nodeSelector": {"pool": "a"}}, {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}))
    tolerations = rng.sample(TOLERATIONS, rng.choice((0, 1, 1, 2)))
    gates = [{"name": "x.y/z"}] * (rng.random() < 0.1)
    made = [pod(name, rng.choice((1, 1, 99)), **rules, tolerations=tolerations, schedulingGates=gates)]
    for more in TOLERATIONS[:1], [{"key": state, "operator": "Exists"} for state in STATES], []:
        made.append(pod(f"{name}-{len(made)}", **rules, tolerations=tolerations + more))
        made[-1]["spec"]["containers"][0]["resources"] = {"limits": {NONE: "1"}}
    return made


def said_of(cluster, name):
    return wait_for(f"kube-scheduler on {name}", lambda: bound_node(found := cluster.pod(name)) or
                    unschedulable_message(found), 60)


def compare(cluster, nodes, name, huge):
    """Whether kube-scheduler refused it, and `why` agrees."""
    said, words = said_of(cluster, name), cluster.why(name)
    if f"0/{NODES}" not in said:
        check("ates" not in said or "has scheduling gates" in words, f"{name}: {said}")
        return False
    chosen, tolerated, left = (int((re.search(f"([0-9]+) Insufficient {NONE}", said_of(cluster, f"{name}-{twin}")) or "00")[1])
                               for twin in (1, 2, 3))
    theirs = [NODES - chosen, chosen - tolerated, tolerated - left, 0]
    theirs[2:] = [0, tolerated] if huge else theirs[2:]
    ours = [sum(int(count) for count in re.findall(f"(?m)^ *([0-9]+)  {sign}", words)) for sign in SIGNS]
    both = f"seed {SEED}, {name}: kube-scheduler {theirs} ({said}), why {ours}: {words}"
    check(ours == theirs, both)
    for count, taints in re.findall(r"(?m)^ *([0-9]+)  the node has a taint([^\n]*)", words):
        bear = sum(any(taint["key"] in taints and taint.get("value", "") + ":" in taints for taint in one["spec"]["taints"])
                   for one in nodes)
        check(int(count) <= bear, f"{both}{bear} nodes have that")
    return True


def body():
    rng, compared = random.Random(SEED), 0
    with Cluster() as cluster:
        for number in range(ROUNDS):
            nodes = [make_node(rng, f"r{number}n{i}") for i in range(NODES)]
            groups = [group_of(rng, f"r{number}p{i}") for i in range(PODS)]
            cluster.add_nodes(nodes)
            cluster.create_pods(sum(groups, []))
            compared += sum(compare(cluster, nodes, made[0]["metadata"]["name"], "99" in str(made[0])) for made in groups)
            for made in sum(groups, []):
                cluster.delete_pod(made["metadata"]["name"])
            for made in nodes:
                cluster.api.delete(node_path(made["metadata"]["name"]))
    print(f"seed {SEED}: {ROUNDS} rounds, {compared} refused pods, 0 disagreements")
    check(compared >= 20, "too few")


run(body)
