# SPDX-License-Identifier: Apache-2.0
"""The bind door: whoever reaches the extender's port may have bound what docs/security.md says, and nothing
else. Random pods, nodes and requests; the model below is read from docs/contract.md, docs/security.md and
kube-scheduler's own rules. The API server here looks at no name, node or UID of a Binding, as 1.20 looks at no
UID: what is judged is what it was sent."""

import decimal
import json

from answers import steers
from api import Served
from objects import CORDONED, CORES, COUNT, MEM, may_use, new_node
from programs import Extender, wait_for

OFFER = "aliyun.com/gpu-nominated"
REQUESTS = 250      # of a world
SIZE = 30000        # units of a GPU: room is not what is tried here
NODE_NAMES = ["n{}", "n{}.example.com", "N{}", "n-{}" + "x" * 200, "n {}", "n{}%2f..", "../n{}", "n{}\u202e",
              "nœud{}", "n{}\n", 'n{}"', "n{}?x=y", "n{}/binding", "n{}#", "n{}\\"]
POD_NAMES = ["p{}", "p{}.a", "p-{}" + "y" * 200, "p{}%2f..%2fx", "../p{}", "p{}?dryRun=All", "p{}/status", "p {}",
             "p{}\u202e", "p{}\x1b[2J", "p{}\"", "pœ{}"]
GOOD = ["1", "4", 8, "4000m", "2", "1k"]
BAD = ["-1", "99999999999999999999999", "NaN", "", "four", "0x10", "1e400", "4 ", "1Zi", True, [], {},
       "4294967297000000000000", "--4", "1.2.3", "9223372036854775808"]
# Numbers of which the API server lets none in as GPU memory: nothing is said of them.
HALF = ["1500m", "0.5", "4.0", 4.0, "1e1", "+4", None]
KEYS, VALUES = ["pool", "zone", "gpu"], ["a", "b", "7", "12", ""]
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
SCHEDULERS = ["gpushare-scheduler", "other", "", "gpushare-scheduler,other", "Gpushare-Scheduler", "gpushare",
              " gpushare-scheduler", "gpushare-scheduler ", "second", "default-scheduler", ","]
ALLOWED = ("gpushare-scheduler", "second")
SUFFIX = {"": 1, "k": 1000, "m": decimal.Decimal("1e-3")}


# ---- the model

def units(value):
    """As the API server would have it: (understood, units)."""
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else "?"
    digits = text.rstrip("km")
    if not (digits.isascii() and digits.isdigit()) or text[len(digits):] not in SUFFIX:
        return False, 0
    number = int(digits) * SUFFIX[text[len(digits):]]
    return number < 1 << 31, int(number)


def asks(pod):
    """"": nothing of ours; "bad"; "?": nobody says; else (units, count)."""
    spec, total, named, stays = pod["spec"], 0, False, 0
    words = {"bad": False, "?": False}
    peak, parts, compute = 0, [], False

    def of(box):
        nonlocal named, compute
        resources = box.get("resources") or {}
        found, mem, cores = [0, 0], None, None
        for part in ("requests", "limits"):
            mem = (resources.get(part) or {}).get(MEM, mem) if MEM in (resources.get(part) or {}) else mem
            cores = (resources.get(part) or {}).get(CORES, cores)
        unclear = False
        for at, (key, value) in enumerate(((MEM, mem), (CORES, cores))):
            if not any(key in (resources.get(part) or {}) for part in ("requests", "limits")):
                continue
            named = True
            if any(value is half or value == half and isinstance(value, type(half)) for half in HALF):
                words["?"] = unclear = True
                continue
            understood, found[at] = units(value)
            words["bad"] |= not understood
        if found[1] and not found[0] and not unclear:
            words["bad"] = True
        compute = compute or found[1] > 0
        parts.append(found[0])
        return found[0]

    for box in spec.get("initContainers") or []:
        mine = of(box)
        if box.get("restartPolicy") == "Always":
            stays += mine
            peak = max(peak, stays)
        else:
            peak = max(peak, stays + mine)
    total = stays + sum(of(box) for box in spec["containers"])
    peak = max(peak, total)
    if not named:
        return ""
    meta = pod["metadata"]
    text = (meta.get("labels") or {}).get(COUNT)
    text = (meta.get("annotations") or {}).get(COUNT, "1") if text is None else text
    count = int(text) if text.isascii() and text.isdigit() else 0
    if not peak and not words["bad"] and not words["?"]:
        return 0, 1
    if not 1 <= count <= 8 or any(part % count for part in parts) or count > 1 and compute:
        words["bad"] = True
    if words["bad"]:
        return "bad"
    return "?" if words["?"] else (peak, count)


def has_gpus(node):
    return MEM in node["status"]["allocatable"]


def expected(world, pod, node, uid, asked):
    """True: a Binding is sent; False: none is; None: nobody says."""
    meta, spec = pod["metadata"], pod["spec"]
    if uid != meta["uid"] or node is None:
        return False
    ask = asks(pod)
    if spec.get("nodeName"):
        return False
    if ask in ("", "bad"):
        return False
    if world.names and spec.get("schedulerName") not in world.names:
        return False
    allowed = may_use(pod, node)
    if allowed is False:
        return False
    if not asked["plain"] or ask == "?" or allowed is None or meta.get("deletionTimestamp"):
        return None
    if ask[0] and not has_gpus(node):
        return False
    return True


class Api(Served):
    believes = True


# ---- the world

class World:
    def __init__(self, rng):
        self.rng = rng
        self.names = ALLOWED if rng.random() < 0.5 else ()
        self.nodes = {}
        for i in range(rng.randint(6, 12)):
            node = self.node(self.odd(NODE_NAMES, i))
            self.nodes[node["metadata"]["name"]] = node
        self.pods = [self.pod(i) for i in range(70)]

    def odd(self, names, i):
        return (self.rng.choice(names) if self.rng.random() < 0.4 else names[0]).format(i)

    def some(self, most):
        return {key: self.rng.choice(VALUES) for key in self.rng.sample(KEYS, self.rng.randint(0, most))}

    def node(self, name):
        rng = self.rng
        node = new_node(name, [SIZE] * 8 if rng.random() < 0.75 else None)
        self.change(node)
        return node

    def change(self, node):
        """What an administrator does to it."""
        rng, spec = self.rng, node["spec"]
        node["metadata"]["labels"] = self.some(3)
        spec["taints"] = [{"key": rng.choice(KEYS), "value": rng.choice(VALUES), "effect": rng.choice(EFFECTS)}
                          for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))]
        spec["unschedulable"] = rng.random() < 0.15

    def resources(self):
        rng, word = self.rng, self.rng.random()
        if word < 0.55:
            value = rng.choice(GOOD)
        elif word < 0.65:
            value = rng.choice(["0", 0, "0k", "0m"])
        elif word < 0.85:
            value = rng.choice(BAD)
        else:
            value = rng.choice(HALF)
        found = {MEM: value}
        if rng.random() < 0.07:
            found = {**(found if rng.random() < 0.7 else {}), CORES: rng.choice(["30", "0", "x", 10])}
        if rng.random() < 0.5:
            return {"limits": found, "requests": dict(found)}
        return {rng.choice(["limits", "requests"]): found}

    def decoy(self):
        """What reads like an ask and is none."""
        return {"limits": {self.rng.choice(["aliyun.com/gpu-memory", "ALIYUN.COM/gpu-mem", "gpu-mem", COUNT,
                                            "x.aliyun.com/gpu-mem", "aliyun.com/gpu-mem ", "nvidia.com/gpu",
                                            "aliyun.com/gpu-core", "aliyun.com"]): "4"}}

    def pod(self, i):
        rng = self.rng
        boxes = [{"name": f"c{k}", "image": "i"} for k in range(rng.choice([1, 1, 1, 2, 3]))]
        early = [{"name": f"i{k}", "image": "i"} for k in range(rng.choice([0, 0, 0, 1, 2]))]
        for box in early:
            if rng.random() < 0.3:
                box["restartPolicy"] = "Always"
        spec = {"containers": boxes, "schedulerName": ALLOWED[0] if rng.random() < 0.7 else rng.choice(SCHEDULERS)}
        meta = {"name": self.odd(POD_NAMES, i), "namespace": rng.choice(["team", "kube-system", "a"]),
                "uid": f"uid-{rng.randrange(1 << 40):010x}-{i}", "labels": {}, "annotations": {},
                "creationTimestamp": "2026-01-02T03:04:05Z"}
        if early:
            spec["initContainers"] = early
        if rng.random() < 0.75:
            rng.choice(boxes + early)["resources"] = self.resources()
            if rng.random() < 0.15:
                rng.choice(boxes)["resources"] = self.resources()
        else:
            rng.choice(boxes)["resources"] = self.decoy()
        self.hints(meta, spec)
        if rng.random() < 0.5:
            self.rules(spec)
        if rng.random() < 0.12:
            spec["nodeName"] = rng.choice(list(self.nodes))
            for box in boxes + early:
                if box.pop("resources", None):
                    box["resources"] = {"limits": {MEM: rng.choice(["0", "1", "4"])}}
        if rng.random() < 0.05:
            meta["deletionTimestamp"] = "2026-01-02T03:04:06Z"
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec,
                "status": {"phase": "Running" if spec.get("nodeName") else "Pending"}}

    def hints(self, meta, spec):
        """Where a tenant may write, and which is no ask."""
        rng = self.rng
        if rng.random() < 0.15:
            meta[rng.choice(["labels", "annotations"])][COUNT] = rng.choice(
                ["1", "2", "4", "8", "0", "-1", "x", "65", "3", "1" * 30, "²", ""])
        if rng.random() < 0.1:
            meta["annotations"][OFFER] = rng.choice(list(self.nodes))
        if rng.random() < 0.1:
            spec["resources"] = {"limits": {MEM: "4"}}
        if rng.random() < 0.05:
            spec["ephemeralContainers"] = [{"name": "e", "image": "i", "resources": {"limits": {MEM: "4"}}}]
        if rng.random() < 0.05:
            spec["overhead"] = {MEM: "4"}
        if rng.random() < 0.05:
            meta["annotations"].update({"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "4"})

    def rules(self, spec):
        rng = self.rng
        if rng.random() < 0.4:
            spec["nodeSelector"] = self.some(2)
        if rng.random() < 0.6:
            spec["tolerations"] = [self.toleration() for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.5:
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [self.term() for _ in range(rng.randint(1, 3))]}}}

    def toleration(self):
        rng, made = self.rng, {}
        if rng.random() < 0.8:
            made["key"] = rng.choice(KEYS + [CORDONED["key"]])
            made["operator"] = rng.choice(["Equal", "Exists", "", "Like"] + ["Equal", "Exists"] * 4)
            if made["operator"] in ("Equal", "", "Like"):
                made["value"] = rng.choice(VALUES)
        else:
            made["operator"] = "Exists"
        if rng.random() < 0.5:
            made["effect"] = rng.choice(EFFECTS)
        return made

    def term(self):
        rng, term = self.rng, {}
        for _ in range(rng.choice([0, 1, 1, 2])):
            operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"])
            values = {"Gt": ["10"], "Lt": ["10"], "Exists": [], "DoesNotExist": []}.get(
                operator, rng.sample(VALUES, 2))
            term.setdefault("matchExpressions", []).append(
                {"key": rng.choice(KEYS), "operator": operator, "values": values})
        if rng.random() < 0.3:
            term["matchFields"] = [{"key": "metadata.name", "operator": rng.choice(["In", "NotIn"]),
                                    "values": [rng.choice(list(self.nodes))]}]
        return term

    def request(self):
        """A body, the pod and node that it is about, and whether kube-scheduler could have said it so."""
        rng = self.rng
        pod, node = rng.choice(self.pods), rng.choice(list(self.nodes))
        meta = pod["metadata"]
        said = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": node}
        plain, word = True, rng.random()
        if word < 0.06:         # somebody else's identity
            said["PodUID"] = rng.choice(self.pods)["metadata"]["uid"]
        elif word < 0.10:
            said["PodUID"] = rng.choice(["", "uid", meta["uid"] + "\u0000", meta["uid"].upper()])
        elif word < 0.14:
            said["Node"] = rng.choice(["", "nowhere", node + "x", node.upper() + "?", "../" + node, "%", "a\u0000b"])
        elif word < 0.18:
            said["PodNamespace"] = rng.choice(["", "team/pods/x", "..", "default", "%2e%2e"])
        elif word < 0.22:
            plain = False
            said.update({key.lower(): rng.choice(list(said.values())) for key in rng.sample(list(said), 2)})
        return said, plain


def about(world, said):
    """The pod that the request's names are of, by the API server's reading."""
    for pod in world.pods:
        meta = pod["metadata"]
        if (meta["namespace"], meta["name"]) == (said["PodNamespace"], said["PodName"]):
            return pod
    return None


def judge(world, api, said, plain, words):
    """What is wrong with what the API server was sent, if anything."""
    sent, api.bindings = api.bindings, []
    if len(sent) > 1:
        return f"{len(sent)} Bindings of one request"
    pod = about(world, said)
    want = expected(world, pod, world.nodes.get(said["Node"]), said["PodUID"],
                    {"plain": plain}) if pod else False
    if not plain and sent:      # said twice: whichever was read, what was sent has to be in order
        (namespace, name), binding = sent[0]
        uid, node = binding["metadata"].get("uid"), binding["target"]["name"]
        pod = about(world, {"PodNamespace": namespace, "PodName": name})
        want = expected(world, pod, world.nodes.get(node), uid, {"plain": True}) if pod else False
    if sent and want is False:
        return f"bound to {sent[0][1]['target']['name']!r}, and must not be"
    if not sent and want is True:
        return f"not bound, and must be: {words}"
    if sent and plain:
        key, binding = sent[0]
        if key != (said["PodNamespace"], said["PodName"]) or binding["target"]["name"] != said["Node"] or \
                binding["metadata"].get("uid") != said["PodUID"]:
            return f"asked for {said}, sent {key} {binding}"
    return ""


def fence(api, extender, number):
    """The watch of nodes has shown all that was before this."""
    name = f"fence-{number}"
    api.put(new_node(name, [1]))
    wait_for("a node is shown", lambda: extender.get(f"/gpushare-scheduler/inspect/{name}")[0] == 200)


def sabotaged(sent, said, deed):
    """What a faulty product would have sent."""
    binding = {"metadata": {"uid": said["PodUID"]}, "target": {"name": said["Node"]}}
    if deed == "everything is bound":
        return sent or [((said["PodNamespace"], said["PodName"]), binding)]
    if deed == "nothing is bound":
        return []
    if deed == "bound twice":
        return sent * 2
    return [(key, {**one, "target": {"name": one["target"]["name"] + "x"}}) for key, one in sent]


SABOTAGE = ["everything is bound", "nothing is bound", "bound twice", "bound elsewhere"]


def attempt(world, api, extender, deed, wrong):
    """Whether it was bound."""
    said, plain = world.request()
    pod = about(world, said)
    waits = pod and not pod["spec"].get("nodeName")
    status, words = extender.ask("bind", said)
    where = pod["spec"].pop("nodeName", None) if waits else None     # judged by what was so before
    if deed:
        api.bindings = sabotaged(api.bindings, said, deed)
    fault = judge(world, api, said, plain, words)
    if where:
        pod["spec"]["nodeName"] = where
    if status not in (200, 400) or "%" in words:
        fault = fault or f"answered {status} {words}"
    if fault:
        wrong(f"{fault}\n    request {json.dumps(said)}\n    pod {json.dumps(pod)}\n"
              f"    node {shown(world.nodes.get(said['Node']))}\n    answer {status} {words}\n"
              f"    --scheduler-name {world.names}")
    return bool(where)


def shown(node):
    return node and json.dumps({**node["metadata"].get("labels", {}), **node["spec"], "gpus": has_gpus(node)})


def one_world(build, rng, wrong, deed):
    """What was asked for, and what was bound."""
    world, sent = World(rng), 0
    known = [pod for pod in world.pods if rng.random() < 0.9]
    flags = ["--kube-api-qps=0"] + ([f"--scheduler-name={','.join(world.names)}"] if world.names else [])
    with Api([*world.nodes.values(), *known]) as api, Extender(build, api, *flags, log="debug") as extender:
        for pod in world.pods:      # the watch has not shown these: bind reads them
            if pod not in known:
                api.objects["pods"][(pod["metadata"]["namespace"], pod["metadata"]["name"])] = pod
        for number in range(REQUESTS):
            if number % 50 == 49:
                node = rng.choice(list(world.nodes.values()))
                world.change(node)
                api.put(node)
                fence(api, extender, number)
            sent += attempt(world, api, extender, deed, wrong)
        for what, text in (("metrics", extender.get("/metrics")[1]), ("log", extender.said()),
                           ("inspect", extender.get("/gpushare-scheduler/inspect")[1])):
            if seen := steers(text):
                wrong(f"{what} has {seen}")
    if extender.status != 0:
        wrong(f"the extender ended with {extender.status}")
    return {"Bindings asked for": REQUESTS, "bound": sent}
