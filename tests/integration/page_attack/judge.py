# SPDX-License-Identifier: Apache-2.0
"""What the page has to say of a world: every figure, row, link and cell, of the whole, of every filter and of every view."""

import json
import re
import urllib.parse

from markup import Wrong, parse
from world import GIB, tenths

POLICY = {"default-src 'none'", "style-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self'", "form-action 'self'",
          "base-uri 'none'", "frame-ancestors 'none'"}
PER_PAGE, OVERVIEW, CELLS = 50, 50, 4000
LARGEST = 16 << 20


def number(text):
    return int(text.replace(",", ""))


def quote(text):
    return urllib.parse.quote(text, safe="")


def headers_are_strict(path, headers):
    if {word.strip() for word in (headers["Content-Security-Policy"] or "").split(";")} != POLICY:
        raise Wrong(f"{path[:200]}: the policy is {headers['Content-Security-Policy']!r}")
    if headers["X-Content-Type-Options"] != "nosniff" or headers["Access-Control-Allow-Origin"]:
        raise Wrong(f"{path[:200]}: headers {headers.items()}")


def read(web, path, status=200):
    """The tree of a page; path may have been decoded from a link."""
    got, headers, body = web.get(path)
    headers_are_strict(path, headers)
    if got != status:
        raise Wrong(f"{path[:300]}: answered {got}, not {status}: {body[:200]!r}")
    if len(body) > LARGEST:
        raise Wrong(f"{path[:300]}: {len(body)} bytes")
    try:
        return parse(body.decode())
    except (UnicodeDecodeError, Wrong) as why:
        raise Wrong(f"{path[:120]}: {why}") from why


# ---- what stands on a page ----

def figures(part):
    """By name: number and unit."""
    found = {}
    for fig in part.all("div", class_="fig"):
        name, bold = fig.one("span").own(), fig.one("b").text()
        found[name.split(",")[0]] = (bold, fig.own().strip(), name)
    return found


def card_names(page):
    return [card.one("h3").one("a").text() for card in page.all("article")]


def rows(part):
    body = part.one("tbody") if part else None
    return [[cell for cell in row.parts if getattr(cell, "tag", "") == "td"] for row in body.all("tr")] if body else []


def shown_groups(page):
    """(reason, nearest, namespace, owner, pods, asks, since) as they stand."""
    groups = []
    for reason, who, asks, since in rows(page.by_id("waiting")):
        nearest = reason.one("small")
        links = [(link.attrs["href"], link.text()) for link in who.all("a")]
        owner = [text for href, text in links if href.startswith("?owner=")]
        pods = [text for href, text in links if href.startswith("?pod=")]
        count = who.one("summary")
        said = int(count.text().split()[0]) if count else 1
        if said != len(pods) and not (len(pods) == 50 and f"and {said - 50} more" in who.text()):
            raise Wrong(f"a group says {said} pods and names {len(pods)}")
        groups.append((reason.own(), nearest.text().removeprefix("nearest: ") if nearest else "", links[0][1], owner[0] if owner else "", said,
                       tuple(pods), asks.text(), since.text().strip()))
    return groups


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
    def __init__(self, web, world, rng, exact=True):
        self.web, self.world, self.rng, self.exact = web, world, rng, exact
        code, out, err = web.cli("-o", "json")
        if code:
            raise Wrong(f"-o json ended with {code}: {err[:200]}")
        self.json = json.loads(out)
        self.items = {(item["namespace"], item["name"]): item for item in self.json["waiting"]["items"]}
        self.pods = {(pod.ns, pod.name): pod for pod in world.live}
        self.visited, self.links, self.pages = set(), {}, 0

    def same(self, what, got, want):
        if got == want:
            return
        if isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
            got, want = next((a, b) for a, b in zip(got, want) if a != b)
        raise Wrong(f"{what}: {str(got)[:600]}, not {str(want)[:600]}")

    def page(self, path, status=200):
        page = read(self.web, path, status)
        self.pages += 1
        for link in page.all("a"):
            self.links.setdefault(link.attrs["href"], (path, link.text() or link.attrs.get("aria-label", "")))
        return page

    def waits(self, some):
        return [pod for pod in self.world.waiting
                if some.means_waiting(self.world, pod, (self.items.get((pod.ns, pod.name), {}).get("nearest") or {}).get("node"))]

    def cluster(self):
        """The command's own sums are those of the world."""
        shown, sums = self.world.shown, self.json["cluster"]
        want = {"nodes": len(shown), "gpus": sum(len(node.gpus) for node in shown), "pods": len(self.world.bound),
                "totalGPU": sum(node.total for node in shown), "usedGPU": sum(node.used for node in shown),
                "freeGPU": sum(node.free for node in shown), "unusableGPU": sum(node.unusable for node in shown),
                "overGPU": sum(node.over for node in shown), "largestGPU": max([node.largest for node in shown], default=0)}
        self.same("-o json: cluster", {key: sums[key] for key in want}, want)
        self.same("-o json: who waits", sorted(self.items), sorted((pod.ns, pod.name) for pod in self.world.waiting))
        self.same("-o json: for how much", self.json["waiting"]["requestedGPU"], sum(pod.units for pod in self.world.waiting))

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
        self.form(where, page, some)
        self.stops(where, page)
        pager = page.by_id("pager").text()
        if some and not nodes:
            self.same(where + "an empty answer says so", pager, ("No node matches. " if waits else "Nothing matches: no node, and no pod. ") + "Show all")

    def totals(self, where, page, some, nodes, meant):
        part = page.by_id("totals")
        fig = figures(part)
        used, total = sum(node.used for node in nodes), sum(node.total for node in nodes)
        whole = part.one("div", class_="wide")
        self.same(where + "given", whole.one("b").text(), f"{used:,}")
        if not re.fullmatch(rf" of {total:,} [A-Za-z0-9]+( \(.*\))?", whole.own()):
            raise Wrong(f"{where}the total is {whole.own()!r}, not {total}")
        words = f"allocated, {int(used / total * 100) if total else 0}%" + (", of the nodes that match" if some else "")
        self.same(where + "share", whole.one("span").text(), words)
        want = {"free": sum(node.free for node in nodes), "not usable": sum(node.unusable for node in nodes), "nodes": len(nodes),
                "largest free piece": max([node.largest for node in nodes], default=0), "GPUs": sum(len(node.gpus) for node in nodes),
                "GPUs not usable": sum(not gpu.usable for node in nodes for gpu in node.gpus),
                "GPUs overfull": sum(gpu.charged > gpu.mem for node in nodes for gpu in node.gpus), "pods": len(meant)}
        if some:
            want["of pods that match"] = sum(pod.units for pod in meant)
        for name, count in want.items():
            got = number(fig[name][0]) if name in fig else 0
            if name in fig or name not in ("GPUs not usable", "GPUs overfull"):
                self.same(where + name, got, count)
            else:
                self.same(where + name, 0, count)
        if not some and self.exact and "strandedGPU" in self.json["cluster"]:
            self.same(where + "stranded", number(fig["stranded"][0]), self.json["cluster"]["strandedGPU"])
        spaces = {}
        for pod in meant:
            spaces[pod.ns] = spaces.get(pod.ns, 0) + pod.units
        shares = next((part for part in part.all("div", class_="fits") if part.one("span").text() == "By namespace"), None)
        got = {div.one("a").text(): number(div.one("b").text()) for div in shares.all("div") if div.one("a")} if shares else {}
        self.same(where + "by namespace", got, spaces)

    def waiting(self, where, page, some, waits):
        part, every = page.by_id("waiting"), len(self.world.waiting)
        units, title = sum(pod.units for pod in waits), part.one("h2").text()
        if not every:
            self.same(where + "nobody waits", title, "Nobody waits for GPU memory")
        elif not waits:
            self.same(where + "none of those who wait", title, f"None of the {every} pods that wait is meant")
        else:
            found = re.match(r"(\d+) pods? waits? for ([0-9,]+) ", title)
            self.same(where + "who waits, and for how much", found and (int(found[1]), number(found[2])), (len(waits), units))
            if some:
                self.same(where + "of how many", f" of {every}" in title, True)
        groups = {}
        for pod in waits:
            item = self.items[pod.ns, pod.name]
            near = item.get("nearest")
            miss = f" GPU{near['id']}: {near['freeGPU']} free, {near['missingGPU']} missing" if near and near.get("missingGPU") else ""
            key = (item["message"], near["node"] + miss if near else "", pod.ns, pod.owner or pod.name, pod.asks)
            groups.setdefault(key, []).append(pod)
        want = {key: sorted(pods, key=lambda pod: pod.created) for key, pods in groups.items()}
        got, last = shown_groups(page), 0
        self.same(where + "groups of pods that wait", len(got), min(100, len(want)))
        for reason, nearest, ns, owner, count, names, asks, since in got:
            pods = want.get((reason, nearest, ns, owner or names[0], asks))
            if not pods or len(pods) != count or not set(names) <= {pod.name for pod in pods}:
                raise Wrong(f"{where}nobody waits as {(reason, nearest, ns, owner, count, names[:3], asks)}; {list(want)[:5]}")
            ages = [pod.created for pod in pods if pod.name in names]
            if ages[0] < last or [self.pods[ns, name].created for name in names] != ages or ages[0] != pods[0].created:
                raise Wrong(f"{where}the oldest does not stand first: {owner or names[0]}")
            last = ages[0]
            self.same_age(where, since, pods[0].created)

    def same_age(self, where, since, created):
        import time                             # pylint: disable=import-outside-toplevel
        now, may = int(time.time()), set()
        for at in range(now - 90, now + 3):     # the page is as old as the last change
            age = max(0, at - created)
            may.add(f"{age}s" if age < 120 else f"{age // 60}m" if age < 3 * 3600 else f"{age // 3600}h" if age < 48 * 3600 else f"{age // 86400}d")
        if since not in may:
            raise Wrong(f"{where}since {since!r}, not {sorted(may)}")

    def cards(self, where, page, some, nodes):
        names = card_names(page)
        want = {node.name for node in nodes}
        self.same(where + "cards of the first page", (len(names), len(set(names)), set(names) <= want), (min(PER_PAGE, len(nodes)),) * 2 + (True,))
        known = {node.name: node for node in nodes}
        for card in self.rng.sample(list(page.all("article")), min(5, len(names))):
            self.card(where, card, known[card.one("h3").one("a").text()], some)
        for number_ in range(2, (len(nodes) + PER_PAGE - 1) // PER_PAGE + 1):
            names += card_names(self.page(some.address(page=number_)))
        self.same(where + "cards of all pages", sorted(names), sorted(want))
        beyond = self.page(some.address(page=len(nodes) // PER_PAGE + 3))
        if nodes and not card_names(beyond):
            raise Wrong(f"{where}a page behind the last one is empty, and does not say so")

    def card(self, where, card, node, some=None, gpu=None):
        where += f"card {node.name[:40]}: "
        self.same(where + "sums", card.one("h3").one("b").text(), f"{node.used}/{node.total}")
        words = [em.text() for em in card.one("h3").all("em")]
        self.same(where + "state", ("not ready" in words, "cordoned" in words), (not node.ready, node.cordoned))
        rest = card.one("p").text()
        found = re.search(r"(\d+) free", rest)
        self.same(where + "free", int(found[1]), node.free)
        found = re.search(r", (\d+) not usable", rest)
        self.same(where + "not usable", int(found[1]) if found else 0, node.unusable)
        bars = [bar for bar in card.all("div", class_="g") if "pend" not in bar.attrs["class"]]
        gpus = [gpu] if gpu else node.gpus
        self.same(where + "GPUs", [(bar.one("b").text(), bar.one("span").text()) for bar in bars],
                  [(f"GPU{gpu.idx}", f"{gpu.used}/{gpu.mem}") for gpu in gpus])
        for bar, one in zip(bars, gpus):
            self.same(where + "pods of a GPU", sorted(link.attrs["href"] for link in bar.all("a", class_="p")),
                      sorted(f"?pod={quote(pod.ns)}%2F{quote(pod.name)}" for pod in node.pods if one.idx in pod.gpus))
            for link in bar.all("a", class_="p"):
                pod = self.pods[tuple(urllib.parse.unquote(link.attrs["href"][5:]).split("/"))]
                self.same(where + "a block's words", link.attrs["aria-label"].startswith(f"{pod.ns}/{pod.name}: {pod.each} "), True)
                if some is not None:
                    self.same(where + f"{pod.name} is grey", "dim" in link.attrs["class"].split(), not some.means(pod))
            em = " ".join(em.text() for em in bar.all("em"))
            self.same(where + "words of a GPU", ("unhealthy" in em, "cordoned" in em, "overfull" in em),
                      (not one.healthy, not one.schedulable, one.charged > one.mem))
        pending = [] if gpu else [pod for pod in node.pods if not pod.gpus]
        shown = card.one("div", class_="pend")
        self.same(where + "pods without a GPU", len(list(shown.all("a"))) if shown else 0, len(pending))

    # ---- the map, the five, the form ----

    def models(self, where, page, nodes):
        cells = [cell for cell in page.all("a", class_="c")]
        if len(nodes) <= OVERVIEW:
            self.same(where + "no map of few nodes", len(cells), 0)
            return
        per_gpu = sum(len(node.gpus) for node in nodes) <= CELLS
        want = {}
        for node in nodes:
            for gpu in node.gpus if per_gpu else [None]:
                word = f"{node.name} GPU{gpu.idx}: {gpu.used}/{gpu.mem}" if gpu else f"{node.name}: {node.used}/{node.total}"
                usable = gpu.usable if gpu else any(gpu.usable for gpu in node.gpus)
                over = gpu.charged > gpu.mem if gpu else any(gpu.charged > gpu.mem for gpu in node.gpus)
                href = f"?node={quote(node.name)}" + (f"&gpu={gpu.idx}" if gpu else "")
                want[href] = (word, "overfull" if over else "" if usable else "takes no pods",
                              "l%d" % (tenths(gpu.used, gpu.mem) if gpu else tenths(node.used, node.total)))
        self.same(where + "cells of the map", len(cells), len(want))
        for cell in cells:
            word, state, height = want.pop(cell.attrs["href"], ("", "", ""))
            label, _, more = cell.attrs["aria-label"].partition(", ")
            classes = cell.attrs["class"].split()
            self.same(where + "a cell", (label, "" if "stranded" in more else more, height in classes, "full" in classes, "off" in classes),
                      (word, state, True, state == "overfull", state == "takes no pods"))
            if not per_gpu:
                node = next(node for node in nodes if node.name == label.rpartition(": ")[0])
                self.same(where + "bars of a cell", [char in "!×" for char in cell.text()],
                          [gpu.charged > gpu.mem or not gpu.usable for gpu in node.gpus])
        titles = {}
        for section in page.all("section", class_="map"):
            if heading := section.one("h2"):
                titles[heading.own().strip()] = heading.one("small").text()
        by = {}
        for node in nodes:
            models = {gpu.model for gpu in node.gpus}
            by.setdefault((models.pop() if len(models) == 1 else "mixed GPUs") or "model not known", []).append(node)
        if len(by) <= 24:
            self.same(where + "models", sorted(titles), sorted(name.strip() for name in by))
            for name, some in by.items():
                text, gpus = titles[name.strip()], sum(len(node.gpus) for node in some)
                want_text = f"{len(some):,} nodes, {gpus:,} GPUs: {sum(n.used for n in some):,} of {sum(n.total for n in some):,} "
                free, off = sum(n.free for n in some), sum(n.unusable for n in some)
                if not text.strip().startswith(want_text) or f", {free:,} free" not in text or (f", {off:,} not usable" in text) != bool(off):
                    raise Wrong(f"{where}{name}: {text!r}, not {want_text!r}, {free} free, {off} not usable")

    def top(self, where, page, waits, meant):
        lists = {part.one("h2").text(): [item for item in part.all("li")] for part in page.by_id("top").all("div")}
        oldest = [self.pods[ns, name].created for ns, name in self.who(lists.get("Wait longest", []))]
        self.same(where + "wait longest", oldest, sorted(pod.created for pod in waits)[:5] if len(waits) > 5 else [])
        told = [pod for pod in meant if pod.node.told and pod.gpus]
        if self.exact and page.by_id("totals") and "truly used" not in page.by_id("totals").text():
            told = []
        waste = sorted((max(0, pod.each * GIB - pod.peak) * pod.count for pod in told), reverse=True)
        over = sorted((max(0, pod.used - pod.each * GIB) for pod in told), reverse=True)
        for title, want in (("Never used most of their share", waste), ("Above their share", over)):
            want = [f"{size / GIB:.1f} GiB" for size in want if size][:5]
            self.same(where + title, [item.text().rpartition(": ")[2].strip() for item in lists.get(title, [])], want)

    @staticmethod
    def who(items):
        return [tuple(urllib.parse.unquote(item.hrefs()[0].removeprefix("?pod=")).split("/")) for item in items]

    def form(self, where, page, some):
        """What is asked for stands in the form, so that the next change does not lose it."""
        form = page.one("form")
        said = {"q": form.one("input").attrs["value"]}
        for select in form.all("select"):
            chosen = [option.attrs["value"] for option in select.all("option") if "selected" in option.attrs]
            said[select.attrs["name"]] = chosen[0] if chosen else ""
        self.same(where + "the form", said, {"q": some.q, "ns": some.ns, "model": some.model, "sort": "name"})

    def stops(self, where, page):
        """The pager within ten stops of the keyboard."""
        stops = [node for node in page.all() if node.tag in ("a", "input", "select", "button", "summary")]
        pager = list(page.by_id("pager").all("a"))
        if pager and stops.index(pager[0]) >= 10:
            raise Wrong(f"{where}the pager comes after {stops.index(pager[0])} stops")

    # ---- views ----

    def node_view(self, node, gpu=None):
        path = f"?node={quote(node.name)}" + (f"&gpu={gpu.idx}" if gpu else "")
        page, where = self.page(path), f"{path[:200]}: "
        view = page.by_id("view")
        self.same(where + "title", view.one("h2").text(), f"Node {node.name}")
        text, gpus = view.text(), [gpu] if gpu else node.gpus
        lines = [part.text() for part in view.all("p") if re.match(r"GPU\d+ ", part.text())]
        self.same(where + "lines of GPUs", [re.sub(r"( free).*", r"\1", line, flags=re.S) for line in lines], [
            f"GPU{one.idx} {one.model} {self.uuid(one)}: {one.used} of {one.mem} {node.unit} given, {one.free} free" for one in gpus])
        self.same(where + "state", ("the kubelet does not answer" in text, "no new pods" in text), (not node.ready, node.cordoned))
        self.same(where + "card", card_names(page), [node.name])
        self.card(where, next(page.all("article")), node, gpu=gpu)
        self.pod_rows(where, page, [pod for pod in node.pods if not gpu or gpu.idx in pod.gpus])
        self.told_events(where, view, "Node", node.name)

    @staticmethod
    def uuid(gpu):
        from world import calm                  # pylint: disable=import-outside-toplevel
        return calm(gpu.uuid)

    def told_events(self, where, view, kind, name):
        """The last ten of ours."""
        from world import calm                  # pylint: disable=import-outside-toplevel
        ours = [event for event in self.world.events if event["involvedObject"] == {"kind": kind, "name": name} and event["reason"] == "GpuGone"]
        ours = sorted(ours, key=lambda event: event["lastTimestamp"], reverse=True)[:10]
        part = next((pre for pre in view.all("pre", class_="events")), None)
        want = "".join(f"{e['lastTimestamp']}  Warning  GpuGone  {calm(e['message'])}\n" for e in ours)
        if len({event["lastTimestamp"] for event in ours}) < len(ours):
            return                              # of two pods of one name
        if part is None or (part.text() != want if want else not part.text().startswith("none; ")):
            raise Wrong(f"{where}Events {part and part.text()!r}, not {want!r}")

    def pod_rows(self, where, page, pods):
        got = []
        for cells in rows(page.by_id("pods")):
            ns, name, owner, node, gpus, given = [cell.text() for cell in cells[:6]]
            got.append((ns, name, owner, node, gpus, given))
        want = [(pod.ns, pod.name, pod.owner, pod.node.name, ",".join(map(str, pod.gpus)) or "?",
                 f"{pod.each}" + (" each" if pod.count > 1 else "")) for pod in pods]
        self.same(where + "rows of pods", sorted(got), sorted(want) if len(want) <= 500 else sorted(got))

    def sums(self, where, page, meant, waits):
        fig = figures(page.by_id("view"))
        got = {name: number(fig[name][0]) for name in ("given", "pods that have a place", "asked for by pods that wait", "pods that wait")}
        self.same(where + "sums", got, {"given": sum(pod.units for pod in meant), "pods that have a place": len(meant),
                                        "asked for by pods that wait": sum(pod.units for pod in waits), "pods that wait": len(waits)})

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
        self.same(where + "title", page.by_id("view").one("h2").text(), f"Owner {owner}" if owner else f"Namespace {ns}")
        self.sums(where, page, meant, waits)
        self.waiting(where, page, some, waits)
        self.same(where + "cards", len(card_names(page)), min(PER_PAGE, len(nodes)))
        self.same(where + "cards of", set(card_names(page)) <= {node.name for node in nodes}, True)
        self.stops(where, page)
        if owner:
            self.pod_rows(where, page, meant)
            return
        self.same(where + "a bill", f'{{namespace="{ns}"}}[30d]' in page.by_id("view").text(), True)
        by = {}
        for pod in meant:
            entry = by.setdefault(pod.owner or pod.name, [0, 0])
            entry[0] += 1
            entry[1] += pod.units
        got = [(cells[0].text(), int(cells[1].text()), int(cells[2].text())) for cells in rows(page.by_id("owners"))]
        self.same(where + "owners", sorted(got), sorted((name, *entry) for name, entry in by.items()))
        self.same(where + "most first", [row[2] for row in got], sorted((row[2] for row in got), reverse=True))

    def pod_view(self, pod):
        path = f"?pod={quote(pod.ns)}%2F{quote(pod.name)}"
        page, where = self.page(path), f"{path[:300]}: "
        view = page.by_id("view")
        self.same(where + "title", view.one("h2").text(), f"Pod {pod.name}")
        hrefs = view.hrefs()
        self.same(where + "its namespace, owner and node", [
            f"?namespace={quote(pod.ns)}" in hrefs, not pod.owner or f"?owner={quote(pod.ns)}%2F{quote(pod.owner)}" in hrefs,
            not pod.node or f"?node={quote(pod.node.name)}" in hrefs], [True] * 3)
        code, out, err = self.web.cli("why", f"{pod.ns}/{pod.name}")
        if code:
            raise Wrong(f"{where}why ended with {code}: {err}")
        said = next(pre for pre in view.all("pre") if "class" not in pre.attrs).text()
        self.same(where + "why, word for word", self.in_order(said), self.in_order(out))
        self.told_events(where, view, "Pod", pod.name)

    @staticmethod
    def in_order(text):
        """Those who share a GPU stand in the order in which they came to be known."""
        lines = text.split("\n")
        return [*(line for line in lines if not line.startswith("  shares")), *sorted(line for line in lines if line.startswith("  shares"))]

    def missing(self, path):
        page = self.page(path, 404)
        title = page.by_id("view").one("h2").text()
        self.same(f"{path}: there is none", title.startswith("There is no "), True)

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

    def crawl(self, most):
        """Every link leads to a page that names what it is of."""
        todo = sorted(self.links)
        for href in self.rng.sample(todo, min(most, len(todo))):
            where, text = self.links[href]
            page = read(self.web, href)
            self.pages += 1
            fields = dict(urllib.parse.parse_qsl(href[1:]))
            view = page.by_id("view")
            for kind in ("node", "namespace", "owner", "pod"):
                if kind in fields:
                    name = fields[kind].partition("/")[2] if kind in ("owner", "pod") else fields[kind]
                    self.same(f"{where[:200]} links to {href[:200]} ({text})", view and view.one("h2").text(), f"{kind.capitalize()} {name}")
                    if "gpu" in fields:
                        self.same(f"{href[:200]}: the GPU", view.one("h3").text(), f"GPU{fields['gpu']} of {name}")


def judge_world(web, world, rng, most, crawl, exact=True):
    """Pages read."""
    judge = Judge(web, world, rng, exact)
    judge.cluster()
    for some in some_filters(rng, world):
        judge.filtered(some)
    judge.views(most)
    judge.crawl(crawl)
    return judge.pages
