# SPDX-License-Identifier: Apache-2.0
"""An API server that takes long over each PATCH, while the extender has many pods to wake: what filter keeps for a member
of a group ends in its time all the same."""

import json
import time

import model
from model import Pod
from stand_in import Api, Extender, wait_for

SABOTAGE = ["kept on"]
PATCH_S = 3.5       # a call is given up after four
INSPECT = "/gpushare-scheduler/inspect/"


def bound_on_n1(pod):
    pod.obj["spec"]["nodeName"] = "n1"
    pod.obj["metadata"]["annotations"][model.IDX] = "0"
    return pod


def kept(one):
    return json.loads(one.get(INSPECT + "n0")[1])["nodes"][0].get("promised")


def one_world(build, rng, judge, sabotage=None, log=None):
    api = Api(rng, [model.node("n0", [16]), model.node("n1", [16])])
    full, member = bound_on_n1(Pod("full", 16)), Pod("m0", rng.randint(1, 16), spec_group="g")
    waiters = [Pod(f"w{at}", 1) for at in range(rng.randint(8, 12))]
    for pod in (full, member, *waiters):
        api.put(pod.obj)
    try:
        with Extender(build, api, *(["--nominate=false"] if rng.random() < 0.5 else []), log=log) as one:
            wait_for("the bound pod to be heard", lambda: '"full"' in one.get(INSPECT + "n1")[1])
            for pod in waiters:
                one.ask("filter", {"Pod": pod.obj, "NodeNames": ["n1"]})
            api.patch_s = PATCH_S
            began = time.monotonic()
            one.ask("filter", {"Pod": member.obj, "NodeNames": ["n0"]})
            if not kept(one):
                judge("no place is kept")
            api.delete("pods", full.key)
            end = began + 2 * model.KEPT_S          # where the patches held it up, it was 15 to 20 s
            while (sabotage or kept(one)) and time.monotonic() < end:
                time.sleep(0.05)
            if sabotage or kept(one):
                judge(f"a place is kept for more than {end - began} s beside a slow API server")
            api.patch_s = 0
    finally:
        api.end()
    return {"late": 1}
