# SPDX-License-Identifier: Apache-2.0
"""The other three verbs of the scheduling port: whoever reaches it may say there what he likes of any pod, in
its own name, in another's UID, with another spec. What may come of it is read from docs/security.md ("Who
writes which key") and docs/performance.md: an answer about what was asked; and of what the API server is sent, wakes and
nominations of pods of ours that wait, as the API server itself has them."""

import copy
import json

import door
from door import Api
from objects import INVENTORY, MEM, may_use
from programs import Extender, wait_for

WAKE, OFFER = "aliyun.com/gpu-requeue", "aliyun.com/gpu-nominated"
REQUESTS = 120      # of a world
SABOTAGE = ["anybody is woken", "another annotation", "nominated anywhere", "a node of nobody's", "a score of 11"]


def forged(world, rng):
    """A pod as somebody tells it: true, or with words of another."""
    pod = copy.deepcopy(rng.choice(world.pods))
    other, word = copy.deepcopy(rng.choice(world.pods)), rng.random()
    if word < 0.35:         # it asks for memory, whatever it is
        pod["spec"]["containers"][0]["resources"] = {"limits": {MEM: rng.choice(["1", "4", "29999"])}}
        pod["spec"]["schedulerName"] = door.ALLOWED[0]
        pod["spec"].pop("initContainers", None)
        pod["metadata"]["labels"], pod["metadata"]["annotations"] = {}, {}
    elif word < 0.5:
        pod["metadata"]["uid"] = other["metadata"]["uid"]
    elif word < 0.6:
        pod["spec"] = other["spec"]
    elif word < 0.65:
        pod["metadata"].update({key: other["metadata"][key] for key in ("name", "namespace")})
    if rng.random() < 0.5:
        pod["spec"].pop("nodeName", None)
    if rng.random() < 0.1:
        pod.setdefault("status", {})["nominatedNodeName"] = rng.choice(list(world.nodes))
    return pod


def names(world, rng):
    found = rng.sample(list(world.nodes), rng.randint(0, len(world.nodes)))
    return found + rng.sample(["nowhere", "", "../n0", "%s%n", "n\u0000", "x" * 5000], rng.choice([0, 0, 1, 3])) \
        if rng.random() < 0.6 else ["nowhere"]


def request(world, rng):
    """(verb, body)"""
    pod, verb = forged(world, rng), rng.choice(["filter", "filter", "filter", "prioritize", "preempt"])
    if verb == "preempt":
        return verb, {"Pod": pod, "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": rng.choice(world.pods)["metadata"]["uid"]}], "NumPDBViolations": 0}
            for name in names(world, rng)}}
    if rng.random() < 0.15:
        return verb, {"Pod": pod, "Nodes": {"items": [rng.choice(list(world.nodes.values()))]}}
    return verb, {"Pod": pod, "NodeNames": names(world, rng)}


def judge_answer(verb, said, status, text):
    """Of what was asked about, and with no word that a format string would take for its own."""
    if status not in (200, 400):
        return f"{verb}: answered {status} {text[:200]}"
    if status == 400:
        return "" if "%" not in text else f"{verb}: % in {text[:200]}"
    answer = json.loads(text)
    asked = set(said.get("NodeNames") or said.get("NodeNameToMetaVictims") or
                [node["metadata"]["name"] for node in (said.get("Nodes") or {}).get("items", [])])
    asked |= {name.replace("\0", "\ufffd") for name in asked}
    if verb == "prioritize":
        named = {one["Host"] for one in answer}
        if any(not 0 <= one["Score"] <= 10 for one in answer):
            return f"prioritize: {answer}"
    elif verb == "filter":
        failed = {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
        named = set(answer.get("NodeNames") or []) | set(failed) | {
            node["metadata"]["name"] for node in (answer.get("Nodes") or {}).get("items") or []}
        if "%" in "".join([answer.get("Error") or "", *failed.values()]):
            return f"filter: % in {text[:300]}"
    else:
        named = set(answer.get("NodeNameToMetaVictims") or {})
    return f"{verb}: {named - asked} was not asked about" if named - asked else ""


def judge_patch(world, patch):
    """Of what the API server was sent beside Bindings."""
    kind, key, sub, sent = patch
    pod = next((pod for pod in world.pods if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == key), None)
    if kind != "pods" or sub not in ("", "/status") or pod is None:
        return f"{key}{sub} was patched"
    if door.asks(pod) == "" or pod["spec"].get("nodeName"):
        return (f"{pod['metadata']['name']!r} was patched, which is not ours or does not wait: {sent}\n"
                f"    pod {json.dumps(pod)}")
    meta, status = sent.get("metadata") or {}, sent.get("status") or {}
    if set(sent) - {"metadata", "status"} or set(meta) - {"uid", "resourceVersion", "annotations"} or \
            set(meta.get("annotations") or {}) - {WAKE, OFFER} or set(status) - {"nominatedNodeName"}:
        return f"{pod['metadata']['name']!r} was patched with {sent}"
    if meta.get("uid") != pod["metadata"]["uid"]:
        return f"{pod['metadata']['name']!r} was patched, whoever it is by now: {sent}"
    node = world.nodes.get(status.get("nominatedNodeName") or "")
    if status.get("nominatedNodeName") and (not node or may_use(pod, node) is False):
        return f"{pod['metadata']['name']!r} was nominated: {sent}"
    return ""


def sabotaged(world, patches, said, verb, text, deed):
    pod = next(pod for pod in world.pods if not pod["spec"].get("nodeName") and
               (door.asks(pod) == "") == (deed == "anybody is woken"))["metadata"]
    key = (pod["namespace"], pod["name"])
    if deed == "anybody is woken":
        patches = [("pods", key, "", {"metadata": {"uid": pod["uid"], "annotations": {WAKE: "1"}}})]
    elif deed == "another annotation":
        patches = [("pods", key, "", {"metadata": {"uid": pod["uid"], "annotations": {"a": "1"}}})]
    elif deed == "nominated anywhere":
        patches = [("pods", key, "/status", {"metadata": {"uid": pod["uid"]},
                                             "status": {"nominatedNodeName": "nowhere"}})]
    elif deed == "a node of nobody's" and verb == "filter" and "NodeNames" in said:
        text = json.dumps({"NodeNames": ["elsewhere"], "FailedNodes": {}, "Error": ""})
    elif deed == "a score of 11" and verb == "prioritize":
        text = json.dumps([{"Host": name, "Score": 11} for name in said.get("NodeNames") or []])
    return patches, text


def gain(world, api, number):
    """Every node gains room, and the tick that follows has been: a pod of ours that was refused is woken."""
    name = f"fence-{number}"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": name, "namespace": "fence", "uid": f"uid-{name}", "annotations": {}},
        "spec": {"schedulerName": door.ALLOWED[0], "tolerations": [{"operator": "Exists"}], "containers": [
            {"name": "c", "resources": {"limits": {MEM: "1"}}}]}, "status": {"phase": "Pending"}}
    world.pods.append(pod)
    api.put(pod)
    return {"Pod": pod, "NodeNames": ["nowhere"]}


def let_wake(world, api, extender, number):
    said = gain(world, api, number)
    key = ("fence", said["Pod"]["metadata"]["name"])
    grown = [node for node in world.nodes.values() if door.has_gpus(node)]
    if not grown:
        return

    def woken():
        extender.ask("filter", said)
        for node in grown:
            gpus = json.loads(node["metadata"]["annotations"][INVENTORY])
            gpus["gpus"][0]["mem"] += 1
            node["metadata"]["annotations"][INVENTORY] = json.dumps(gpus)
            api.put(node)
        wait_for_some(api, key)
        return any(patch[1] == key for patch in api.patches)
    wait_for("a pod is woken", woken)


def wait_for_some(api, key):
    try:
        wait_for("", lambda: any(patch[1] == key for patch in api.patches), 1)
    except TimeoutError:
        pass


def one_world(build, rng, wrong, deed):
    """What was asked, and what was patched."""
    world, patched = door.World(rng), 0
    known = [pod for pod in world.pods if rng.random() < 0.8]
    flags = ["--kube-api-qps=0"] + ([f"--scheduler-name={','.join(world.names)}"] if world.names else [])
    with Api([*world.nodes.values(), *known]) as api, Extender(build, api, *flags) as extender:
        for pod in world.pods:
            api.objects["pods"].setdefault((pod["metadata"]["namespace"], pod["metadata"]["name"]), pod)
        for number in range(REQUESTS):
            verb, said = request(world, rng)
            status, text = extender.ask(verb, said)
            if number % 40 == 39:
                let_wake(world, api, extender, number)
            patches, api.patches = api.patches, []
            if deed:
                patches, text = sabotaged(world, patches, said, verb, text, deed)
            patched += len(patches)
            faults = [judge_answer(verb, said, status, text)] + [judge_patch(world, patch) for patch in patches]
            for fault in filter(None, faults):
                wrong(f"{fault}\n    last request {verb} {json.dumps(said)[:1500]}")
        if api.bindings:
            wrong(f"bound: {api.bindings}")
    if extender.status != 0:
        wrong(f"the extender ended with {extender.status}")
    return {"verbs asked": REQUESTS, "patches": patched}
