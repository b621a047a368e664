# SPDX-License-Identifier: Apache-2.0
"""What the API's pods hold of the GPUs, by the documented rules alone, and what the extender says that they hold."""

import json

from attack import Wrong
from objects import COUNT, IDX, MEM, new_node
from programs import wait_for

NODES = {"n1": [16, 16, 24, 8], "n2": [16, 16], "n3": [32], "n4": [8, 8, 8, 8]}
SIZES = {(name, idx): size for name, sizes in NODES.items() for idx, size in enumerate(sizes)}
OFTEN = "tests/extender_reconciling_often"      # compares its ledger with the API each second


def new_nodes():
    return [new_node(name, sizes) for name, sizes in NODES.items()]


def pods_of(api):
    with api.lock:
        return [json.loads(text) for text in api.text["pods"].values()]


def asked(pod):
    """(units on each GPU, GPUs)"""
    count = int(pod["metadata"]["labels"].get(COUNT, 1))
    return int(pod["spec"]["containers"][0]["resources"]["limits"][MEM]) // count, count


def placement(pod):
    """{(node, GPU): units}; {}: it holds nothing now."""
    node, text = pod["spec"].get("nodeName"), pod["metadata"]["annotations"].get(IDX)
    if not node or pod["status"]["phase"] == "Succeeded":
        return {}
    where = {(node, int(idx)): asked(pod)[0] for idx in (text or "99").split(",")}
    if len(where) != asked(pod)[1] or not set(where) <= set(SIZES):
        raise Wrong(f"{pod['metadata']['name']} is bound to {node}, GPU {text}")
    return where


def held_by(pods):
    """{(node, GPU): {UID: units}}"""
    held = {key: {} for key in SIZES}
    for pod in pods:
        for key, units in placement(pod).items():
            held[key][pod["metadata"]["uid"]] = units
    return held


def difference(api, one):
    """Of the extender's ledger from the API, or ""."""
    try:
        status, text = one.get("/gpushare-scheduler/inspect")
    except OSError as error:
        return str(error)
    shown = {(node["name"], dev["id"]): {pod["uid"]: pod["usedGPU"] for pod in dev["pods"]}
             for node in json.loads(text)["nodes"] for dev in node["devs"]} if status == 200 else {}
    real = held_by(pods_of(api))
    return "".join(f"{key}: API {real[key]}, ledger {shown.get(key)}; " for key in real if real[key] != shown.get(key))


def judge_moments(api):
    """Was any GPU over its size between two events, or a pod moved?"""
    used, held, first = dict.fromkeys(SIZES, 0), {}, {}
    for _, how, text in api.hist["pods"]:
        pod = json.loads(text)
        uid = pod["metadata"]["uid"]
        for key, units in held.pop(uid, {}).items():
            used[key] -= units
        where = placement(pod) if how != "DELETED" else {}
        if where and first.setdefault(uid, where) != where:
            raise Wrong(f"{pod['metadata']['name']} moved from {first[uid]} to {where}")
        held[uid] = where
        for key, units in where.items():
            used[key] += units
            if used[key] > SIZES[key]:
                raise Wrong(f"GPU {key} holds {used[key]} of {SIZES[key]} units")
    if not first:
        raise Wrong("no pod held memory")


def settle(what, missing, seconds):
    """Waits until missing() is empty."""
    try:
        wait_for(what, lambda: not missing(), seconds)
    except TimeoutError as error:
        raise Wrong(f"{what}: not within {seconds} s: {missing()}") from error
