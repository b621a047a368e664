# SPDX-License-Identifier: Apache-2.0
"""What the page has to say of a world: every figure, row and cell, of the whole, of every filter and of every view."""

import contextlib
import json
import time
import urllib.parse

from api import Served
from attack import Wrong
from programs import Web, cli, wait_for
from rows import parse
from world import GIB, calm, random_world

POLICY = {"default-src 'none'", "style-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self'", "form-action 'self'",
          "base-uri 'none'", "frame-ancestors 'none'"}
PER_PAGE = OVERVIEW = 50
LARGEST = 16 << 20
VIEWS = 4       # of each kind
COUNTS = ["podCount", "measuredPodCount", "wouldBlockPodCount", "requestedBytes"]
SUMS = [*COUNTS, "usedBytes", "peakBytes", "unusedBytes", "excessBytes", "peakExcessBytes"]


class Api(Served):
    """Its Events are the world's, too."""

    def __init__(self, world):
        super().__init__(world.objects(), world.usage)
        self.events = world.events


@contextlib.contextmanager
def opened(build, world):
    with Api(world) as api, Web(build, api) as web:
        wait_for("lists are read", lambda: web.get("rows")[0] == 200)
        yield web, api
    if web.status:
        raise Wrong(f"the page ended with {web.status}")


def gib(size):
    """As tables have it."""
    return f"{size / GIB:.1f}"


def quote(text):
    return urllib.parse.quote(text, safe="")


def headers_are_strict(path, headers):
    if {word.strip() for word in (headers["Content-Security-Policy"] or "").split(";")} != POLICY:
        raise Wrong(f"{path[:200]}: the policy is {headers['Content-Security-Policy']!r}")
    if headers["X-Content-Type-Options"] != "nosniff" or headers["Access-Control-Allow-Origin"]:
        raise Wrong(f"{path[:200]}: headers {headers.items()}")


def read(web, path, found=True):
    """The document of an address's rows."""
    got, headers, body = web.get("rows" + path)
    headers_are_strict(path, headers)
    if got != 200:
        raise Wrong(f"{path[:300]}: answered {got}: {body[:200]!r}")
    if len(body) > LARGEST:
        raise Wrong(f"{path[:300]}: {len(body)} bytes")
    doc = parse(path, body)
    if doc["found"] != found:
        raise Wrong(f"{path[:300]}: there is {'one' if doc['found'] else 'none'}")
    return doc


def names(doc):
    return [node["name"] for node in doc["nodes"]]


def table(doc, name):
    """Its rows, each a dictionary of its cells by the head before its unit."""
    found = next((one for one in doc["tables"] if one["id"] == name), {"columns": [], "rows": []})
    return [dict(zip([column["head"].split("(")[0] for column in found["columns"]], row)) for row in found["rows"]]


# ---- what a filter means ----

class Filter:
    def __init__(self, q="", ns="", model="", owner=""):
        self.q, self.ns, self.model, self.owner = q, ns, model, owner

    def __bool__(self):
        return bool(self.q or self.ns or self.model or self.owner)

    def address(self, **more):
        if self.owner:
            fields = {"owner": f"{self.ns}/{self.owner}", **more}
        else:
            fields = {key: value for key, value in {"q": self.q, "ns": self.ns, "model": self.model, **more}.items() if value}
        return "?" + urllib.parse.urlencode(fields, quote_via=urllib.parse.quote)

    def has(self, text):
        return self.q.lower() in text.lower()

    def theirs(self, pod):
        return self.ns in ("", pod.ns) and self.owner in ("", pod.owner)

    def means(self, pod):
        return self.theirs(pod) and (self.has(pod.node.name) or self.has(f"{pod.ns}/{pod.name}"))

    def means_node(self, node):
        if self.model and self.model not in [gpu.model for gpu in node.gpus]:
            return False
        by_name = not self.ns and not self.owner and self.has(node.name)
        return by_name or any(self.means(pod) for pod in node.pods)

    def means_waiting(self, world, pod, nearest):
        if not self.theirs(pod) or not (self.has(f"{pod.ns}/{pod.name}") or self.has(pod.owner) or (nearest and self.has(nearest))):
            return False
        return not self.model or any(
            gpu.model == self.model and gpu.mem >= pod.each and (not pod.model or pod.model.lower() in gpu.model.lower())
            for node in world.shown for gpu in node.gpus)


def some_filters(rng, world):
    yield Filter()
    nodes, pods = world.nodes or [world.bare], world.live
    texts = ["team", "web", "1", "N", "nothing-of-the-kind", "-", "/", rng.choice(nodes).name, rng.choice(nodes).name[1:6].upper(), "<script>", "'\"&"]
    texts += [f"{pod.ns}/{pod.name}"[:100] for pod in rng.sample(pods, min(2, len(pods)))]
    texts += [pod.owner[:20] for pod in rng.sample(world.waiting, min(2, len(world.waiting)))]
    for text in rng.sample([text[:100] for text in texts], min(5, len(texts))):
        yield Filter(q=text)
    for ns in rng.sample(world.namespaces, min(2, len(world.namespaces))) + ["waits-only", "none-such"]:
        yield Filter(ns=ns)
    models = sorted({gpu.model for node in world.nodes for gpu in node.gpus} - {""}) or ["x"]
    for model in rng.sample(models, min(2, len(models))) + ["none such"]:
        yield Filter(model=model)
    for _ in range(3):
        yield Filter(q=rng.choice(texts + ["", ""])[:100], ns=rng.choice(world.namespaces + [""]), model=rng.choice(models + [""]))
    yield Filter(ns="waits-only", model=rng.choice(models))


# ---- of everything, of what a filter means ----

class Judge:
    def __init__(self, web, world, rng):
        self.web, self.world, self.rng = web, world, rng
        code, out, err = cli(web.build, web.api, "-o", "json")
        if code:
            raise Wrong(f"-o json ended with {code}: {err[:200]}")
        self.json = json.loads(out)
        self.items = {(item["namespace"], item["name"]): item for item in self.json["pending"]["items"]}
        self.pods = {(pod.ns, pod.name): pod for pod in world.live}
        self.pages = 0

    def same(self, what, got, want):
        if got == want:
            return
        if isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
            got, want = next((a, b) for a, b in zip(got, want) if a != b)
        raise Wrong(f"{what}: {str(got)[:600]}, not {str(want)[:600]}")

    def page(self, path, found=True):
        self.pages += 1
        return read(self.web, path, found)

    def waits(self, some):
        return [pod for pod in self.world.waiting
                if some.means_waiting(self.world, pod, (self.items.get((pod.ns, pod.name), {}).get("closest") or {}).get("node"))]

    def cluster(self):
        """The command's own sums are those of the world; who has seen an older version is told the newest."""
        page = self.page("")
        self.same("an older version", self.web.get(f"rows?seen={page['version'] - 1}")[0], 200)
        first, free = names(page), [node["freeGPU"] for node in self.page("?sort=free")["nodes"]]
        self.same("sorted, and no longer", (free, names(self.page(""))), (sorted((node.free for node in self.world.shown), reverse=True)[:PER_PAGE], first))
        self.same("ways to limit", sorted(page["limits"]), ["dmem", "driver", "hook", "mig", "mps"])
        self.same("models to choose", sorted(page["models"]), sorted({gpu.model for node in self.world.shown for gpu in node.gpus} - {""}))
        spaces = {pod.ns for pod in self.world.bound + self.world.waiting}
        self.same("namespaces to choose", spaces.issuperset(page["namespaces"]) and len(page["namespaces"]), min(200, len(spaces)))
        shown, sums = self.world.shown, self.json["cluster"]
        want = {"nodeCount": len(shown), "gpuCount": sum(len(node.gpus) for node in shown), "podCount": len(self.world.bound),
                "totalGPU": sum(node.total for node in shown), "usedGPU": sum(node.used for node in shown),
                "freeGPU": sum(node.free for node in shown), "unusableGPU": sum(node.unusable for node in shown),
                "overcommittedGPU": sum(node.over for node in shown), "largestFreeGPU": max([node.largest for node in shown], default=0)}
        self.same("-o json: cluster", {key: sums[key] for key in want}, want)
        self.same("-o json: who waits", sorted(self.items), sorted((pod.ns, pod.name) for pod in self.world.waiting))
        self.same("-o json: for how much", self.json["pending"]["requestedGPU"], sum(pod.units for pod in self.world.waiting))

    def filtered(self, some):
        path = some.address()
        page, where = self.page(path), f"{path[:300]}: "
        nodes = [node for node in self.world.shown if some.means_node(node)]
        waits, meant = self.waits(some), [pod for node in nodes for pod in node.pods if some.means(pod)]
        self.totals(where, page, some, nodes, meant)
        self.waiting(where, page, some, waits)
        self.cards(where, page, some, nodes)
        self.models(where, page, nodes)
        self.top(where, page, waits, meant)
        self.same(where + "a filter is on", page["narrowed"], bool(some))

    def totals(self, where, page, some, nodes, meant):
        total = page["total"]
        want = {"usedGPU": sum(node.used for node in nodes), "totalGPU": sum(node.total for node in nodes), "freeGPU": sum(node.free for node in nodes),
                "unusableGPU": sum(node.unusable for node in nodes), "nodeCount": len(nodes), "gpuCount": sum(len(node.gpus) for node in nodes),
                "largestFreeGPU": max([node.largest for node in nodes], default=0), "podCount": len(meant),
                "unusableGPUCount": sum(not gpu.usable for node in nodes for gpu in node.gpus),
                "overcommittedGPUCount": sum(gpu.charged > gpu.mem for node in nodes for gpu in node.gpus)}
        want["wouldBlockPodCount"] = sum(pod.figures()["wouldBlockPodCount"] for node in nodes for pod in node.pods)
        want["usedBytes"] = sum(gpu.bytes for node in nodes if node.told for gpu in node.gpus) if any(node.told for node in nodes) else None
        most = max([gpu.mem for node in nodes for gpu in node.gpus], default=0)
        if most:
            want["wouldFit"] = [{"requestedGPU": size, "podCount": sum(min(node.free // size, sum(gpu.free // size for gpu in node.gpus)) for node in nodes)}
                                for size in (self.world.scale << n for n in range(8)) if size <= most]
        self.same(where + "totals", {key: total.get(key) for key in want}, want)
        known = [pod for pod in meant if pod.known and some]
        self.same(where + "of the pods that match", page["meant"],
                  {"usedGPU": sum(pod.units for pod in meant), "usedBytes": sum(sum(pod.used) for pod in known), "podCount": len(known)})
        self.same(where + "of so many plugins", (page["askedCount"], page["answeredCount"]), (len(self.world.usage), len(self.world.usage)))
        if not some and "strandedGPU" in self.json["cluster"]:
            self.same(where + "stranded", total["strandedGPU"], self.json["cluster"]["strandedGPU"])
        spaces = {}
        for pod in meant:
            pods, units = spaces.get(pod.ns, (0, 0))
            spaces[pod.ns] = pods + 1, units + pod.units
        self.same(where + "by namespace", {share["name"]: (share["podCount"], share["usedGPU"]) for share in page["shares"]}, spaces)

    def waiting(self, where, page, some, waits):
        pending = page["pending"]
        self.same(where + "who waits, of how many, and for how much", (pending["podCount"], pending["allPodCount"], pending["requestedGPU"]),
                  (len(waits), len(self.world.waiting), sum(pod.units for pod in waits)))
        want, shown, all_of, never = {}, {}, len(self.world.waiting), sum(self.items[pod.ns, pod.name]["unresolvable"] for pod in waits)
        self.same(where + "title", next(one["title"] for one in page["tables"] if one["id"] == "waiting"),
                  f"{len(waits)} pending pod{'s' * (len(waits) > 1)}, {pending['requestedGPU']} {page['unit']} requested"
                  + f"; {never} of them fit{'s' * (never == 1)} on no GPU of this cluster" * (never > 0) if waits else
                  f"No pending pod matches ({all_of} pending in the cluster)" if all_of else "No pod with GPU memory is pending")
        for pod in waits:
            item = self.items[pod.ns, pod.name]
            near = item.get("closest", {})
            key = (item["message"], near.get("node", "-"), str(near.get("missingGPU", "-")), pod.ns, pod.owner or pod.name, pod.asks)
            want.setdefault(key, []).append(pod)
        rows = table(page, "waiting")
        each = page["kind"] == "owner"
        for at, row in enumerate(rows):             # those that differ in priority, or in what they say of nodes, stand by themselves
            name = self.pods[row["NAMESPACE"], row["POD"]].owner if (row["NAMESPACE"], row["POD"]) in self.pods else row["POD"]
            key = (row["MESSAGE"], row["CLOSEST"], row["MISSING"], row["NAMESPACE"], name or row["POD"], row["REQUEST"])
            shown[key] = shown.get(key, 0) + int(row["PODS"])
            if key not in want or "/" not in row["POD"] and row["POD"] not in [pod.name for pod in want[key]] or (each and row["PODS"] != "1"):
                raise Wrong(f"{where}nobody waits as {str(row)[:500]}; {list(want)[:5]}")
            self.same_age(where, row["AGE"], [pod.created for pod in want[key]] if at else [min(pod.created for pod in waits)])
        if len(rows) < 100:
            self.same(where + "pods of the rows", shown, {key: len(pods) for key, pods in want.items()})
        if each:
            oldest = [self.pods[row["NAMESPACE"], row["POD"]].created for row in rows]
            self.same(where + "the oldest first", oldest, sorted(oldest))

    def same_age(self, where, since, created):
        """That of one of them."""
        now, may = int(time.time()), set()
        for at in range(now - 90, now + 3):     # the page is as old as the last change
            for age in [max(0, at - second) for second in created]:
                may.add(f"{age}s" if age < 120 else f"{age // 60}m" if age < 3 * 3600 else f"{age // 3600}h" if age < 48 * 3600 else f"{age // 86400}d")
        if since not in may:
            raise Wrong(f"{where}since {since!r}, not {sorted(may)}")

    def cards(self, where, page, some, nodes):
        shown, want, known = names(page), [node.name for node in nodes], {node.name: node for node in nodes}
        pages = max(1, (len(nodes) + PER_PAGE - 1) // PER_PAGE)
        self.same(where + "cards of the first page", (len(shown), page["page"], page["pages"]), (min(PER_PAGE, len(nodes)), 1, pages))
        for card in self.rng.sample(page["nodes"], min(5, len(shown))):
            self.card(where, card, known[card["name"]], some)
        for number in range(2, pages + 1):
            shown += names(self.page(some.address(page=number)))
        self.same(where + "cards of all pages", sorted(shown), sorted(want))
        self.same(where + "a page behind the last one is the last", self.page(some.address(page=pages + 2))["page"], pages)

    def card(self, where, card, node, some=None, gpu=None):
        where += f"card {node.name[:40]}: "
        self.same(where + "sums", [card[key] for key in ("usedGPU", "totalGPU", "freeGPU", "largestFreeGPU", "unusableGPU", "overcommittedGPU", "invalidIndexGPU",
                                                         "podCount", "ready", "unschedulable", "inventory")],
                  [node.used, node.total, node.free, node.largest, node.unusable, node.over, sum(pod.units for pod in node.pods if not pod.gpus),
                   len(node.pods), node.ready, node.cordoned, node.inventory])
        gpus = [gpu] if gpu else node.gpus
        self.same(where + "GPUs", [[one[key] for key in ("usable", "id", "usedGPU", "totalGPU", "freeGPU", "healthy", "schedulable", "overcommitted")]
                                   for one in card["devs"]],
                  [[one.usable, one.idx, one.used, one.mem, one.free, one.healthy, one.schedulable, one.charged > one.mem] for one in gpus])
        self.same(where + "what GPUs are", [(one.get("model", ""), one.get("uuid", ""), one.get("usedBytes")) for one in card["devs"]],
                  [(one.model, calm(one.uuid), one.bytes if node.told else None) for one in gpus])
        for gpu, dev in zip(gpus, card["devs"]):
            self.pods_of(where, dev["pods"], [pod for pod in node.pods if gpu.idx in pod.gpus], some, gpu.idx)
        self.pods_of(where, card["invalidIndexPods"], [pod for pod in node.pods if not pod.gpus], some)

    def pods_of(self, where, got, pods, some, idx=None):
        got = [(pod["namespace"], pod["name"], pod["uid"], pod.get("owner", ""), pod["createdUnix"], pod["usedGPU"], pod.get("gpuCount", 1),
                pod.get("matches", True), pod.get("usedBytes", ""), pod.get("peakBytes", "")) for pod in got]
        self.same(where + "pods of a GPU", sorted(got), sorted(
            (pod.ns, pod.name, pod.uid, pod.owner, pod.created, pod.each, pod.count, not some or some.means(pod),
             *(sizes[pod.gpus.index(idx)] if pod.known else "" for sizes in (pod.used, pod.peak))) for pod in pods))

    # ---- the map, the five ----

    def models(self, where, page, nodes):
        self.same(where + "a map of many nodes", "map" in page, len(nodes) > OVERVIEW)
        if len(nodes) <= OVERVIEW:
            return
        want = {}
        for node in nodes:
            models = {gpu.model for gpu in node.gpus}
            want[node.name] = [models.pop() if len(models) == 1 else "mixed GPUs", node.name, node.used, node.total, node.free, node.unusable, node.over,
                               *([gpu.idx, gpu.used, gpu.mem, *("!" if gpu.charged > gpu.mem else "" if gpu.usable else "x")] for gpu in node.gpus)]
        self.same(where + "the map", {cell[1]: cell[:5] + cell[6:] for cell in page["map"]}, want)

    def top(self, where, page, waits, meant):
        oldest = [self.pods[row["NAMESPACE"], row["POD"]].created for row in table(page, "top-pending")]
        self.same(where + "wait longest", oldest, sorted(pod.created for pod in waits)[:5])
        told = [pod for pod in meant if pod.known]
        for key, sizes in (("top-unused", [pod.figures()["unusedBytes"] for pod in told]),
                           ("top-excess", [max(0, max(pod.used) - pod.given) for pod in told])):
            self.same(where + key, [row["GiB"] for row in table(page, key)],
                      [gib(size) for size in sorted((size for size in sizes if size), reverse=True)[:5]])

    # ---- `pods`: each row and the total are the sums of their pods ----

    def uses(self):
        rng, world = self.rng, self.world
        for by, key in (("pod", ("namespace", "name", "node")), ("owner", ("namespace", "owner")), ("namespace", ("namespace",)), ("node", ("node",))):
            ns, node = rng.choice(world.namespaces), rng.choice(world.nodes + [world.bare]).name
            for words, pods in (([], world.bound), (["-n", ns], [pod for pod in world.bound if pod.ns == ns]), ([node], [pod for pod in world.bound if pod.node.name == node]),
                                (["--over-request"], [pod for pod in world.bound if pod.figures()["wouldBlockPodCount"]])):
                rows = {}
                for pod in pods:
                    what = {"namespace": pod.ns, "name": pod.name, "node": pod.node.name, "owner": pod.owner or f"Pod/{pod.name}"}
                    rows.setdefault(tuple(what[name] for name in key), []).append(pod.figures())
                if by == "node" and words in ([], [node]):
                    rows |= {(one.name,): [] for one in world.shown if not one.pods and words in ([], [one.name])}
                self.sums(f"pods --by {by} {' '.join(words)}: ", by, key, rows, json.loads(cli(self.web.build, self.web.api, "pods", "--by", by, "-o", "json", *words)[1]))

    def sums(self, where, by, key, rows, got):
        names = SUMS[3 * (by == "pod"):]
        want = {row: {name: sum(pod.get(name, 0) for pod in pods) for name in names if name in COUNTS or any(name in pod for pod in pods)}
                for row, pods in [*rows.items(), ((), sum(rows.values(), []))]}
        if by in ("pod", "owner"):
            for row, pods in rows.items():
                want[row] |= {name: size for name, size in [("recommendedBytes", max((pod.get("recommendedBytes", 0) for pod in pods)))] if size}
        shown = {tuple(item[name] for name in key): {name: item[name] for name in [*names, "recommendedBytes"] if name in item} for item in got["items"]}
        self.same(where + "rows", sorted(shown.items()), sorted((row, want[row]) for row in rows))
        self.same(where + "the total", {name: got["total"][name] for name in names if name in got["total"]}, want[()])
        order = [[item.get(name, -1) for name in ("excessBytes", "peakExcessBytes", "unusedBytes")] for item in got["items"]]
        self.same(where + "what is over, and wastes most, first", order, sorted(order, reverse=True))

    # ---- views ----

    def node_view(self, node, gpu=None):
        path = f"?node={quote(node.name)}" + (f"&gpu={gpu.idx}" if gpu else "")
        page, where = self.page(path), f"{path[:200]}: "
        self.same(where + "what it is of", (page["kind"], page["name"], names(page), page.get("gpu")),
                  ("node", node.name, [node.name], gpu.idx if gpu else None))
        self.card(where, page["nodes"][0], node, gpu=gpu)
        on = [[one.idx for one in node.gpus if (not gpu or one is gpu) and one.idx in pod.gpus] for pod in node.pods]
        want = [(pod.ns, pod.name, str(idx)) for pod, all_of in zip(node.pods, on) for idx in all_of]
        self.same(where + "rows of pods", sorted((row["NAMESPACE"], row["POD"], row["GPU"]) for row in table(page, "pods") if row["GPU"] != "-"), sorted(want))
        self.same(where + "rows of GPUs", [row["GPU"] for row in table(page, "gpus")], [str(one.idx) for one in node.gpus if not gpu or one is gpu])
        self.told_events(where, page, "Node", node.name)

    def told_events(self, where, page, kind, name):
        """The last ten of ours."""
        ours = [event for event in self.world.events if event["involvedObject"] == {"kind": kind, "name": name} and event["source"]["component"] == "gpushare-device-plugin"]
        ours = sorted(ours, key=lambda event: event["lastTimestamp"], reverse=True)[:10]
        want = "".join(f"{e['lastTimestamp']}  Warning  GpuRemoved  {calm(e['message'])}\n" for e in ours)
        if len({event["lastTimestamp"] for event in ours}) < len(ours):
            return                              # of two pods of one name
        if page["events"] != want if want else not page["events"].startswith("none; "):
            raise Wrong(f"{where}Events {page['events']!r}, not {want!r}")

    def theirs(self, ns, owner=""):
        """A namespace's, an owner's view."""
        some = Filter(ns=ns, owner=owner)
        path = f"?owner={quote(ns)}%2F{quote(owner)}" if owner else f"?namespace={quote(ns)}"
        where = f"{path[:300]}: "
        nodes = [node for node in self.world.shown if some.means_node(node)]
        meant, waits = [pod for node in nodes for pod in node.pods if some.means(pod)], self.waits(some)
        if not meant and not waits:
            self.missing(path)
            return
        page = self.page(path)
        self.same(where + "what it is of", (page["kind"], page["name"], page["namespace"]), ("owner", owner, ns) if owner else ("namespace", ns, ns))
        self.totals(where, page, some, nodes, meant)
        self.waiting(where, page, some, waits)
        self.cards(where, page, some, nodes)
        if owner:
            rows = sorted((row["NAMESPACE"], row["POD"], row["NODE"], row["REQUEST"]) for row in table(page, "pods"))
            want = sorted((pod.ns, pod.name, pod.node.name, gib(pod.given * pod.count)) for pod in meant)
            self.same(where + "rows of pods", rows, want if len(rows) < 500 else rows)
            return
        by = {}
        for pod in meant:
            entry = by.setdefault(pod.owner or f"Pod/{pod.name}", [0, 0])
            entry[0] += 1
            entry[1] += pod.given * pod.count
        got = [(row["OWNER"], row["PODS"], row["REQUEST"]) for row in table(page, "owners")]
        self.same(where + "owners", sorted(got), sorted((name, str(pods), gib(size)) for name, (pods, size) in by.items()))

    def pod_view(self, pod):
        path = f"?pod={quote(pod.ns)}%2F{quote(pod.name)}"
        page, where = self.page(path), f"{path[:300]}: "
        self.same(where + "what it is of", (page["kind"], page["namespace"], page["name"], page["owner"], names(page)),
                  ("pod", pod.ns, pod.name, pod.owner, [pod.node.name] if pod.node else []))
        code, out, err = cli(self.web.build, self.web.api, "why", f"{pod.ns}/{pod.name}")
        if code:
            raise Wrong(f"{where}why ended with {code}: {err}")
        self.same(where + "why, word for word", *(self.in_order(text, pod) for text in (page["why"], out.decode())))
        self.told_events(where, page, "Pod", pod.name)

    @staticmethod
    def in_order(text, pod):
        """Those who share a GPU stand in the order in which they came to be known. The command asks for a bound pod's node alone, which may not
        show the unit, nor who places most pods."""
        lines = text.split("\n")
        if pod.node:
            lines = [line.replace(" units", " GiB") for line in lines if not line.startswith("its schedulerName is")]
        return [*(line for line in lines if not line.startswith("  shares")), *sorted(line for line in lines if line.startswith("  shares"))]

    def missing(self, path):
        self.page(path, False)

    def views(self, most):
        rng, world = self.rng, self.world
        for node in rng.sample(world.shown, min(most, len(world.shown))):
            self.node_view(node)
            self.node_view(node, rng.choice(node.gpus))
        for ns in rng.sample(world.namespaces, min(most, len(world.namespaces))):
            self.theirs(ns)
        placed = world.bound + world.waiting
        for pod in rng.sample(placed, min(most, len(placed))):
            if pod.owner:
                self.theirs(pod.ns, pod.owner)
            self.pod_view(pod)
        for pod in [pod for pod in world.pods if pod not in world.live][:2]:
            self.missing(f"?pod={quote(pod.ns)}%2F{quote(pod.name)}")
        for path in ("?node=bare", "?node=none", "?namespace=none", "?pod=none", "?pod=a/b", "?pod=/", "?pod=team-0/", "?owner=/", "?owner=team-0/",
                     "?owner=Job/none", "?owner=team-0/Job", "?owner=none/Job/x", "?pod=team-0/no-gpu", "?namespace=" + "%C3%A9" * 90,
                     "?owner=" + "x" + "%C3%A9" * 90 + "/y", "?pod=" + "x" + "%C3%A9" * 90 + "/y"):
            self.missing(path)
        for node in world.shown[:1]:
            for gpu in ("99", "x", "-1", "4294967296", "0x0"):
                self.missing(f"?node={quote(node.name)}&gpu={gpu}")
            for pod in node.pods[:1]:           # an owner is one of its namespace, or none
                if pod.owner:
                    self.missing(f"?owner=%2F{quote(pod.owner)}")
                    self.missing(f"?owner={quote(pod.owner)}")


def judge_world(web, world, rng):
    """Pages read."""
    judge = Judge(web, world, rng)
    judge.cluster()
    for some in some_filters(rng, world):
        judge.filtered(some)
    judge.uses()
    judge.views(VIEWS)
    return judge.pages


def seed_of(seed, number):
    return f"figures {seed + number}"


def one_world(build, rng, *_):
    world = random_world(rng)
    with opened(build, world) as (web, _):
        wait_for("device plugins have told", lambda: not world.usage or "usedBytes" in read(web, "")["total"])
        return {"pages": judge_world(web, world, rng)}
