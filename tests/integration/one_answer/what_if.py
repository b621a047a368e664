#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `what-if` says comes true.

  what_if.py --build DIR [--seed N] [--worlds 10] [--seconds 0]

The random clusters of run.py. `what-if --pending` is asked, in some worlds with pods of a manifest, with more nodes
like one (`--add-node`), with as many as it takes (`--until-fit`), or without one (`--without-node`). Then it is done:
nodes are created or deleted in the API, the pods are created, and the extender is asked by filter,
prioritize and bind about one after the other in kube-scheduler's order. Each pod has to start or wait as what-if said:

* one that starts: filter passes the node that was named, no other has a better score (a pod that is nominated there
  needs none), and bind gives it the very GPUs;
* one that waits: filter passes no node that the pod may use;
* of `--until-fit` the same with one node less leaves somebody waiting whom an empty one would take.

Where nodes are equal kube-scheduler draws lots; here it draws what was named."""

import contextlib
import copy
import json
import sys

import run
from attack import main
from programs import wait_for


def more_pods(rng, world):
    """Pods of a manifest, in the order of the file."""
    return [run.make_pod(rng, f"m{i}", world["gib"], world["nodes"]) for i in range(rng.randint(1, 4))]


def manifest_of(pods):
    return {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]} for pod in pods]}


def a_node_more(node, number):
    """Ready, empty, open; the cluster's own taints and a cordon are not copied."""
    made = copy.deepcopy(node)
    made["metadata"]["name"] = made["metadata"]["uid"] = f"{node['metadata']['name']}-more-{number}"
    made["spec"].pop("unschedulable", None)
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return made


def real_name(name):
    node, plus, number = name.partition("+")
    return f"{node}-more-{number}" if plus else name


def known_nodes(programs):
    return {node["name"]: node for node in json.loads(programs.extender.get("/gpushare-scheduler/inspect")[1])["nodes"]}


def buy(world, programs, like, count):
    made = [a_node_more(like, number) for number in range(1, count + 1)]
    for node in made:
        programs.api.put(node)
    world["nodes"] += made
    wait_for("the nodes are known", lambda: {node["metadata"]["name"] for node in made} <= set(known_nodes(programs)))


def drain(world, programs, node):
    """Deletes it and its pods; returns the new pods that their controllers make."""
    name, moved = node["metadata"]["name"], []
    for pod in [p for p in world["pods"] if p["spec"].get("nodeName") == name]:
        world["pods"].remove(pod)
        programs.api.delete("pods", ("team", pod["metadata"]["name"]))
        if "deletionTimestamp" in pod["metadata"]:
            continue
        again = copy.deepcopy(pod)
        again["metadata"]["annotations"].pop("ALIYUN_COM_GPU_MEM_IDX", None)
        again["metadata"]["name"] += "-again"
        again["metadata"]["uid"] += "-again"
        again["spec"].pop("nodeName")
        again["status"] = {"phase": "Pending"}
        moved.append(again)
    programs.api.delete("nodes", name)
    world["nodes"].remove(node)
    wait_for("the node is gone", lambda: not known_nodes(programs).get(name, {}).get("devs"))
    return moved


# ---- in kube-scheduler's place ----

def schedule(world, programs, pod, said, judge):
    """said: what-if's entry of the pod."""
    name, nominated = pod["metadata"]["name"], pod.get("status", {}).get("nominatedNodeName")
    open_names = [n["metadata"]["name"] for n in world["nodes"] if run.open_to(world, pod, n)]
    if nominated in open_names and programs.filter(pod, [nominated]):
        open_names = [nominated]
    passed = programs.filter(pod, open_names) if open_names else []
    if not said["scheduledReplicas"]:
        judge(f"{name} waits: nodes that take it", sorted(passed), [])
        return
    place = said["placements"][0]
    node = real_name(place["node"])
    judge(f"{name} starts on {node}: it takes it", node in passed, True)
    if node not in passed:
        return
    scores = programs.scores(pod, passed)
    judge(f"{name} starts on {node}: its score is the best", scores.get(node, 0), max(scores.values(), default=0))
    judge(f"{name} starts on {node}: bind", programs.bind(pod, node), "")
    judge(f"{name} starts on {node}: its GPUs", pod["metadata"]["annotations"].get("ALIYUN_COM_GPU_MEM_IDX"), ",".join(map(str, place["gpus"])))
    if pod not in world["pods"]:
        world["pods"].append(pod)


def question(rng, world):
    """The options, and what is done to the cluster."""
    like, doing = rng.choice(world["nodes"]), rng.choice(["nothing", "buy", "until", "drain"])
    name = like["metadata"]["name"]
    if doing == "buy":
        count = rng.randint(1, 3)
        return doing, like, ["--add-node", f"{name}={count}"]
    if doing == "until":
        return doing, like, ["--add-node", name, "--until-fit"]
    return doing, like, ["--without-node", name] if doing == "drain" else []


def policy_of(rng, world, manifest, like):
    """rollout learns from 16 pods on: with fewer in all, those that are created meanwhile change nothing."""
    moved = sum(pod["spec"].get("nodeName") == like["metadata"]["name"] for pod in world["pods"])
    learns = len(world["pods"]) + len(manifest) + moved >= 16
    return rng.choice(["binpack", "spread"] if learns else ["binpack", "spread", "rollout"])


def leaves_somebody(told):
    return any(not entry["scheduledReplicas"] for kind in (told["pods"], told["pending"]["items"]) for entry in kind)


def ask(programs, policy, options, manifest):
    files = ["-f", programs.file("asked.json", manifest_of(manifest))] if manifest else []
    return json.loads(programs.inspect("what-if", "--policy", policy, "--pending", "-o", "json", *options, *files))


seed_of = run.seed_of


def one_world(build, rng, wrong):
    world = run.make_world(rng)
    manifest = more_pods(rng, world) if rng.random() < 0.5 else []
    doing, like, options = question(rng, world)
    policy = policy_of(rng, world, manifest, like)
    judge = run.Judge(lambda text: wrong(f"{policy}: {text}"))
    with contextlib.ExitStack() as stack:
        programs = run.Programs(stack, build, world, policy=policy)
        waiting = [pod for pod in world["pods"] if "nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"]]
        told = ask(programs, policy, options, manifest)
        if doing in ("buy", "until"):
            count = told["addedNodes"]["nodeCount"]
            if doing == "until" and count:
                name = like["metadata"]["name"]
                fewer = ask(programs, policy, ["--add-node", f"{name}={count - 1}"] if count > 1 else [], manifest)
                judge(f"{count} nodes like {name}: fewer leave somebody waiting", leaves_somebody(fewer), True)
            buy(world, programs, like, count)
        moved = drain(world, programs, like) if doing == "drain" else []
        entries = {entry["name"]: entry for entry in told["pending"]["items"]}
        entries.update({entry["name"] + "-again": entry for entry in told.get("evicted", {}).get("items", [])})
        entries.update({entry["name"].removeprefix("Pod "): entry for entry in told["pods"]})
        for pod in moved + manifest:
            programs.api.put(pod)
        queue = sorted(waiting, key=run.turn) + moved + manifest
        judge("who was told of", sorted(entries), sorted(pod["metadata"]["name"] for pod in queue))
        order = {pod["metadata"]["name"]: number for number, pod in enumerate(queue)}
        if doing == "drain":  # they are told in the API's order, and placed in it
            told_order = [entry["name"] + "-again" for entry in told["evicted"]["items"]]
            queue.sort(key=lambda pod: told_order.index(pod["metadata"]["name"]) + len(waiting)
                       if pod["metadata"]["name"] in told_order else order[pod["metadata"]["name"]] +
                       (len(told_order) if pod["metadata"]["name"] in {p["metadata"]["name"] for p in manifest} else 0))
        for pod in sorted(queue, key=lambda pod: -pod["spec"].get("priority", 0)):
            schedule(world, programs, pod, entries[pod["metadata"]["name"]], judge)
    return {"questions": judge.asked}


if __name__ == "__main__":
    sys.exit(main(__doc__, {"what-if": sys.modules[__name__]}))
