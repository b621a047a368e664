# SPDX-License-Identifier: Apache-2.0
"""Whose word `kubectl inspect gpushare` takes, and what it prints of it: device plugins that lie about other
nodes, pods that only look like device plugins, and words that speak to a terminal in every field of every
object. The model below is read from docs/cli.md and docs/security.md."""

import asyncio
import json
import re
import unicodedata
import urllib.parse

from api import Served
from objects import COUNT, IDX, INVENTORY, MEM, PLUGIN, new_plugin
from programs import Web, cli, wait_for
from rows import parse

SYSTEM = "gpushare-system"
TURNS = ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI")     # of the direction of writing
MIB = 1 << 20
STEERS = ["\x1b[2J", "\x1b]0;x\x07", "\x9b31m", "\x90q\x9c", "\u202e", "\u2066", "\u2028", "\r", "\n", "\b", "\x7f",
          "\U000e0041", "\t", "\x00", "\u061c"]
WORDS = ["a", "œ", "%s%n", "<script>alert(1)</script>", "&amp;", "'\"", "\\", "${x}", "$(x)", "`x`", "x" * 300,
         "- a: b", "{}", "é" * 130, ""]
DEEDS = ["honest", "honest", "honest", "of other nodes", "forbidden", "silent", "large", "no JSON", "wrong types",
         "deep", "twice", "500", "cut"]
READS = [["snapshot", "-"], ["-d"], ["-o", "wide"], ["map"], ["why"], ["defrag"], ["doctor"], ["what-if", "--gpu-mem", "3"], ["--sort=free"],
         ["pods"], ["pods", "-o", "csv"], ["-o", "json"], ["-o", "yaml"], ["why", "-o", "json"],
         ["pods", "-o", "json"], ["doctor", "-o", "json"], ["what-if", "--gpu-mem", "2", "-o", "json"],
         ["what-if", "--pending"]]
SABOTAGE = ["words pass", "others are believed", "anybody is asked"]


def steers(text):
    """What of it a terminal does more with than show it, and is not the end of a line; "" without."""
    for at, char in enumerate(text):
        if char != "\n" and (unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") or
                             0xE0000 <= ord(char) <= 0xE0FFF or unicodedata.bidirectional(char) in TURNS):
            return f"{char!r} in {text[max(0, at - 60):at + 60]!r}"
    return ""


class Cluster:
    def __init__(self, rng):
        self.rng, self.asked, self.truth, self.objects = rng, [], {}, []
        self.plugins = {}       # by pod name: (node, deed); those who may be asked
        self.pods = []          # (uid, node)
        self.nodes = [self.word(f"n{i}") for i in range(rng.randint(2, 6))]
        for i, node in enumerate(self.nodes):
            self.node(i, node)
        for i in range(rng.randint(3, 12)):
            self.pod(i)
        for i, node in enumerate(self.nodes):
            if rng.random() < 0.9:
                self.plugin(f"plugin-{i}", node, rng.choice(DEEDS))
        for i in range(rng.randint(0, 4)):
            self.impostor(i)
        self.objects.sort(key=lambda obj: obj["metadata"]["name"])      # as etcd has them

    def word(self, head=""):
        rng = self.rng
        return head + (rng.choice(STEERS + WORDS) if rng.random() < 0.5 else "") + \
            (rng.choice(STEERS) if rng.random() < 0.1 else "")

    def node(self, i, name):
        rng = self.rng
        gpus = [{"idx": k, "uuid": self.word(f"GPU-{i}-{k}"), "mem": 16, "model": self.word("A100"), "healthy": rng.random() < 0.9,
                 "schedulable": True, "enforced": self.word("dmem"), "enforcedReason": self.word()} for k in range(2)]
        have = {MEM: "32", COUNT: "2", "cpu": "99", "pods": "110"}
        self.objects.append({"kind": "Node", "metadata": {
            "name": name, "uid": self.word(f"node-{i}"), "labels": {self.word("l"): self.word()},
            "annotations": {INVENTORY: json.dumps({"v": 1, "unit": "GiB", "gpus": gpus}) if rng.random() < 0.9 else self.word()}},
            "spec": {"taints": [{"key": self.word("k"), "value": self.word(), "effect": "PreferNoSchedule"}]},
            "status": {"capacity": have, "allocatable": have, "conditions": [
                {"type": "Ready", "status": "True", "reason": self.word(), "message": self.word()}],
                "addresses": [{"type": "InternalIP", "address": self.word("10.0.0.1")}]}})

    def pod(self, i):
        rng, uid = self.rng, f"uid-{i}"
        node = rng.choice(self.nodes) if rng.random() < 0.7 else ""
        pod = {"kind": "Pod", "metadata": {
            "name": self.word(f"p{i}"), "namespace": self.word("team"), "uid": uid,
            "creationTimestamp": rng.choice(["2026-01-02T03:04:05Z", self.word("2026")]),
            "labels": {}, "annotations": {IDX: rng.choice(["0", "1", self.word()])},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": self.word("ReplicaSet"), "name": self.word("o"),
                                 "uid": "o", "controller": True}]},
            "spec": {"schedulerName": self.word("gpushare-scheduler"), "containers": [
                {"name": self.word("c"), "image": self.word("i"), "resources": {"limits": {MEM: rng.choice(["1", "4", "99"])}}}]},
            "status": {"phase": "Running" if node else "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": self.word(), "message": self.word("0/3 nodes")}],
                "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": self.word(), "message": self.word()}}}]}}
        if node:
            pod["spec"]["nodeName"] = node
            self.pods.append((uid, node))
        self.objects.append(pod)

    def told(self, uids):
        """The page of a device plugin, and what it says of each."""
        rng = self.rng
        said = {uid: rng.randrange(1 << 34) for uid in uids}
        return said, {"v": 1, "gpus": [{"id": 0, "usedBytes": 5}], "pods": [
            {"namespace": self.word("team"), "name": self.word("p"), "uid": uid, "owner": self.word("Job/j"),
             "enforced": self.word("dmem"), "enforcedMessage": self.word(), "allocatedBytes": 1 << 34,
             "gpus": [{"id": 0, "usedBytes": used, "peakBytes": used}]} for uid, used in said.items()]}

    def plugin(self, name, node, deed):
        mine = [uid for uid, at in self.pods if at == node]
        others = [uid for uid, at in self.pods if at != node]
        said, page = self.told(mine if deed != "of other nodes" else others + mine)
        if deed in ("honest", "of other nodes"):    # of other nodes it may say what it likes
            self.truth.update({(node, uid): said[uid] for uid in said})
        elif deed == "twice":                       # the first word counts
            self.truth.update({(node, uid): said[uid] for uid in said})
            page["pods"] += self.told(mine)[1]["pods"]
        self.plugins[name] = (node, deed, page)
        self.objects.append(new_plugin(name, node))

    def impostor(self, i):
        rng, name = self.rng, f"0-impostor-{i}"
        other = rng.choice([
            {"namespace": "team"}, {"controller": False}, {"ready": "False"},
            {"name": rng.choice([PLUGIN + "x", PLUGIN.upper(), "", PLUGIN + "\x00"])},
            {"kind": rng.choice(["ReplicaSet", "daemonset", ""])}, {"apiVersion": rng.choice(["v1", "evil/v1", "apps/v1beta1"])}])
        made = new_plugin(name, rng.choice(self.nodes))
        made["metadata"]["namespace"] = other.pop("namespace", SYSTEM)
        made["status"]["conditions"][0]["status"] = other.pop("ready", "True")
        made["metadata"]["ownerReferences"][0].update(other)
        self.objects.append(made)

    async def answer(self, path):
        self.asked.append(path)
        name = path.split("/pods/")[-1].split(":")[0]
        node, deed, page = self.plugins.get(name, (None, "honest", self.told([uid for uid, _ in self.pods])[1]))
        text = json.dumps(page).encode()
        if deed == "forbidden":
            return Served.failure(403, "X", self.word("forbidden"))
        if deed == "500":
            return Served.failure(500, "X", self.word("broken"))
        if deed == "silent":
            return await asyncio.sleep(3)
        if deed == "large":
            text = text[:-1] + b', "x": "' + b"x" * MIB + b'"}'
        elif deed == "no JSON":
            text = self.word("{").encode("utf-8", "surrogatepass") + text
        elif deed == "wrong types":
            text = json.dumps({"v": [], "gpus": [1, None, {"id": "0", "usedBytes": -1}, {"id": 1e99}], "pods": [
                5, {}, {"uid": {}, "namespace": 7}, [[]]]}).encode()
        elif deed == "deep":
            text = b'{"pods":' + b"[" * 200000
        elif deed == "cut":
            text = text[:len(text) // 2]
        return 200, text


def judge_words(words, code, out, err):
    where = f"{' '.join(words)}: "
    if code not in (0, 1, 2):
        return where + f"ended with {code}: {err[-300:]!r}"
    for name, stream in (("stdout", out), ("stderr", err)):
        try:
            text = stream.decode()
        except UnicodeDecodeError as why:
            return where + f"{name} is no UTF-8: {why}"
        if words[0] == "snapshot":      # DEL moves nothing, and no writer of JSON escapes it
            text = text.replace("\x7f", "")
        if seen := steers(text):
            return where + f"{name} has {seen}"
    if words[-1] == "json" and code == 0:
        try:
            json.loads(out)
        except ValueError as why:
            return where + f"no JSON: {why}"
    return ""


def judge_asked(cluster, words):
    for path in cluster.asked:
        name = path.split("/pods/")[-1].split(":")[0]
        if name not in cluster.plugins or f"/namespaces/{SYSTEM}/" not in path:
            return f"{' '.join(words)}: asked {path}"
        if cluster.plugins[name][1] not in ("500", "silent", "cut") and cluster.asked.count(path) > 1:
            return f"{' '.join(words)}: asked {path} twice"
    return ""


def judge_use(cluster, out):
    """Of pods --by pod -o json: each figure is that of the plugin of the node that it names; nothing is known of a
    node whose name no API server takes."""
    shown = sorted(item["usedBytes"] for item in json.loads(out)["items"] if "usedBytes" in item)
    said = sorted(used for (node, uid), used in cluster.truth.items() if (uid, node) in cluster.pods and re.fullmatch(r"[\w.:-]+", node, re.A))
    return "" if shown == said else f"pods: {shown}, but they say {said}"


def judge_shares(cluster, out):
    """Of -o json: a pod has the figure that its own node's plugin told, or none."""
    for node in json.loads(out)["nodes"]:
        for pod in [pod for gpu in node.get("devs", []) for pod in gpu.get("pods", [])]:
            used = pod.get("usedBytes")
            if used is not None and used not in [
                    said for (at, uid), said in cluster.truth.items() if (uid, at) in cluster.pods]:
                return f"-o json: {used} of {pod} was told by no plugin of its node"
    return ""


def views(objects):
    """Addresses of what the cluster calls its own."""
    for item in objects:
        meta = item["metadata"]
        ns, owner = meta.get("namespace", ""), (meta.get("ownerReferences") or [{}])[0]
        for view, name in (("node", meta["name"]),) if item["kind"] == "Node" else (
                ("namespace", ns), ("pod", f"{ns}/{meta['name']}"), ("owner", f"{ns}/{owner.get('kind')}/{owner.get('name')}")):
            yield "?" + urllib.parse.urlencode({view: name})


def one_world(build, rng, wrong, deed):
    """Commands, and what device plugins were asked."""
    cluster, asked = Cluster(rng), 0
    with Served(cluster.objects) as api:
        api.proxy = cluster.answer
        reads = rng.sample(READS, 5) + [["pods", "--by", "pod", "-o", "json"], ["-o", "json"]]
        waiting = [obj for obj in cluster.objects if obj["metadata"]["uid"].startswith("uid-")]
        one = rng.choice(waiting)["metadata"]
        if "\x00" not in one["name"] + one["namespace"]:
            reads.append(["why", "-n", one["namespace"], "--", one["name"]])
        for words in reads:
            cluster.asked = []
            at = len(words) if "--" not in words else words.index("--")
            code, out, err = cli(build, api, *words[:at], "--timeout=20s", *words[at:]) \
                if words[0] == "pods" or words[0].startswith("-") else cli(build, api, *words)
            out, asked_now = sabotaged(cluster, words, out, deed)
            cluster.asked += asked_now
            asked += len(cluster.asked)
            fault = judge_words(words, code, out, err) or judge_asked(cluster, words)
            if not fault and words[-1] == "json" and code == 0:
                fault = judge_use(cluster, out) if words[0] == "pods" and "pod" in words else \
                    judge_shares(cluster, out) if words == ["-o", "json"] else ""
            if fault:
                wrong(f"{fault}\n    plugins {[(name, one[0], one[1]) for name, one in cluster.plugins.items()]}\n"
                      f"    {err[:300]!r}")
        with Web(build, api) as web:
            wait_for("the cluster is read", lambda: web.get("rows")[0] == 200)
            for view in ("", *rng.sample(list(views(cluster.objects)), 12)):
                status, _, text = web.get("rows" + view)
                if status not in (200, 404, 414):
                    wrong(f"{view} is answered {status}: {text[:200]}")
                elif status == 200:
                    parse(view, text.replace("\ufffd".encode(), b"") + (b"{" if deed == "words pass" else b""))
    return {"commands": len(reads), "plugins asked": asked}


def sabotaged(cluster, words, out, deed):
    """What a faulty product would have printed or asked."""
    if deed == "words pass":
        return out + b"\x1b[2J", []
    if deed == "anybody is asked":
        return out, ["/api/v1/namespaces/team/pods/0-impostor-0:29997/proxy/usage"]
    if deed == "others are believed" and words == ["pods", "--by", "pod", "-o", "json"]:
        return json.dumps({"items": [*json.loads(out)["items"], {"usedBytes": 1}]}).encode(), []
    return out, []
