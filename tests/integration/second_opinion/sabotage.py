# SPDX-License-Identifier: Apache-2.0
"""What must turn the world red: an API server that does what none may do, and an extender that
answers, patches or dies as it must not, seen from outside. `run.py PROGRAM --sabotage all`. Each
goes on until it is found, for QUIET_MOMENTS at most: how long that takes is the machine's."""

import json
import signal
import time

from api import key_of
from objects import IDX, SPLIT, UNITS, WAKE, charged

QUIET_MOMENTS = 30


def unseen(hidden, act):
    """act(world) whenever it becomes quiet; no watch and no list shows what is hidden of it."""
    def sabotage(world):
        whole, calm, acts = world.api.note, world.faults.calm, []

        def note(kind, how, obj):
            seq = whole(kind, how, obj)
            if acts and how == hidden:
                world.api.hist[kind].pop()
                world.api.text[kind].pop(key_of(obj), None)
            return seq

        def calmed():
            calm()
            acts.append(act)
            act(world)
            acts.pop()
        world.api.note, world.faults.calm = note, calmed
    return sabotage


def end_one(world):
    if pod := next(filter(charged, world.api.pods.values()), None):
        world.api.del_pod(pod)


def bind_by_hand(world):
    """Until the record of one is right: of the others the plugin tells."""
    for _ in range(100):
        bound = world.tenants.by_hand()
        if bound and bound[3] == str(bound[2]):
            break


def on_binding(change):
    """change(annotations) before the API server stores them."""
    def sabotage(world):
        whole = world.api.bind

        def bind(client, key, sent, arrived):
            change(sent["metadata"].setdefault("annotations", {}), world)
            return whole(client, key, sent, arrived)
        world.api.bind = bind
    return sabotage


def other_gpu(notes, _):
    if notes.get(IDX) == "1":
        notes[IDX], notes[SPLIT] = "0", notes[SPLIT].replace('"1":', '"0":')


def one_gpu(notes, _):
    notes[IDX] = "0" if "," not in notes.get(IDX, ",") else notes[IDX]


def more_gpus(notes, _):
    if notes.get(IDX) == "0":
        notes[IDX] = "0,1"


def other_units(notes, _):
    notes[UNITS] = "1"


def no_record(notes, world):
    if world.rng.random() < 0.1:
        notes.clear()


def answers(verb, change):
    """change(answer) on its way to kube-scheduler. Without troubles: while a bind is open nothing is
    asked at quiet moments."""
    def sabotage(world):
        world.troubles = []
        whole = world.service.verb

        async def asked(name, body, seconds=5):
            answer = await whole(name, body, seconds)
            if name == verb and answer is not None:
                change(answer, body, world)
            return answer
        world.service.verb = asked
    return sabotage


def says_yes(answer, body, world):
    if world.quiet and answer.get("FailedNodes") and answer.get("NodeNames") is not None:
        name = next(iter(answer["FailedNodes"]))
        del answer["FailedNodes"][name]
        answer.get("FailedAndUnresolvableNodes", {}).pop(name, None)
        answer["NodeNames"] = [one for one in body["NodeNames"]
                               if one in answer["NodeNames"] + [name]]


def says_no(answer, _, world):
    """Of all of them: what is said of a single one is not always judged."""
    while world.quiet and answer.get("NodeNames"):
        answer["FailedNodes"][answer["NodeNames"].pop()] = "insufficient free GPU memory"


def refuses(answer, _, world):
    if world.bursting:
        answer["Error"] = "insufficient"


def forgets_binds(answer, body, world):
    if world.bursting:
        answer.update(NodeNames=body["NodeNames"], FailedNodes={}, FailedAndUnresolvableNodes={})


def binds(error):
    """What bind says, without asking it."""
    def sabotage(world):
        world.troubles = []
        whole = world.service.verb

        async def asked(name, body, seconds=5):
            return {"Error": error} if name == "bind" else await whole(name, body, seconds)
        world.service.verb = asked
    return sabotage


def ledger(change):
    """change(GPU's account) in what inspect says."""
    def sabotage(world):
        for one in world.extenders:
            def inspect(whole=one.inspect):
                async def asked():
                    answer = await whole()
                    for node in answer["nodes"]:
                        for gpu in node["devs"]:
                            change(gpu)
                    return answer
                return asked()
            one.inspect = inspect
    return sabotage


def one_less(gpu):
    gpu["usedGPU"] -= gpu["usedGPU"] == 1 or gpu["usedGPU"] > 5


def forgets(gpu):
    if len(gpu["pods"]) > 1:
        gpu["pods"].pop()


def every_second(act):
    """act(world, a client) once a second, as if the extender did it."""
    def sabotage(world):
        due = [0]
        whole = world.nodes.tell_all

        def tell_all():
            whole()
            if time.monotonic() > due[0] and not world.quiet:
                due[0] = time.monotonic() + 1
                act(world, world.extenders[0].client)
        world.nodes.tell_all = tell_all
    return sabotage


def patches(world, client, which, sub, sent):
    for pod in list(world.api.pods.values()):
        if which(pod):
            world.api.spawn(world.api.object(client, "PATCH", "pods", key_of(pod), sub, json.dumps(sent)))


def wakes_gated(world, client):
    patches(world, client, lambda pod: pod["spec"].get("schedulingGates"), "",
            {"metadata": {"annotations": {WAKE: "1"}}})


def wakes_often(world, client):
    for _ in range(20):
        patches(world, client, world.scheduler.waits, "",
                {"metadata": {"annotations": {WAKE: str(time.monotonic())}}})


def overwrites(world, client):
    patches(world, client, lambda pod: pod["metadata"]["uid"] in world.oracle.nominated,
            "/status", {"status": {"nominatedNodeName": "n0"}})


def nominates_bound(world, client):
    patches(world, client, lambda pod: pod["metadata"]["uid"] in world.oracle.places, "/status",
            {"status": {"nominatedNodeName": "n1"}})


def keeps_offers(world, client):
    """Of pods that nobody binds. Without troubles: an offer of who was killed may stand longer."""
    world.troubles = []
    patches(world, client, lambda pod: pod["spec"].get("schedulerName") == "other-scheduler" and
            pod["metadata"]["uid"] not in world.oracle.offers, "/status",
            {"status": {"nominatedNodeName": "n1"}})


def dies(world, _):
    if time.monotonic() - world.began > 3:
        world.extenders[0].process.send_signal(signal.SIGKILL)


LEDGER = "is not the API's"
# name: what is wrong, and the words in which it must be found
ALL = {
    "unseen_end": (unseen("DELETED", end_one), LEDGER),
    "unseen_hand": (unseen("ADDED", bind_by_hand), LEDGER),
    "other_gpu": (on_binding(other_gpu), LEDGER),
    "more_gpus": (on_binding(more_gpus), "another number of GPUs"),
    "no_record": (on_binding(no_record), "without a record"),
    "says_yes": (answers("filter", says_yes), "filter says yes, and it does not fit"),
    "says_no": (answers("filter", says_no), "filter says no, and it fits"),
    "refuses": (answers("bind", refuses), "refused, though it fits wherever the others are"),
    "forgets_binds": (answers("filter", forgets_binds), "filter names a node whose memory binds hold"),
    "other_units": (on_binding(other_units), "other units"),
    "never_binds": (binds("no"), "filter says yes, bind says no"),
    "binds_nothing": (binds(""), "and it is not so"),
    "one_less": (ledger(one_less), LEDGER), "forgets": (ledger(forgets), LEDGER),
    "wakes_gated": (every_second(wakes_gated), "scheduling gates"),
    "wakes_often": (every_second(wakes_often), "wakes in"),
    "overwrites": (every_second(overwrites), "nomination is overwritten"),
    "nominates_bound": (every_second(nominates_bound), "a bound pod is nominated"),
    "keeps_offers": (every_second(keeps_offers), "offers that are not taken back"),
    "dies": (every_second(dies), "the process died"),
    "one_gpu": (on_binding(one_gpu), "OVER-BOOKED"),
}
