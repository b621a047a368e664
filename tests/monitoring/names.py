#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rules, dashboard and documents name exists; what the programs show is fit for OpenMetrics.

    names.py DIR      DIR has the pages extender.prom and device-plugin.prom
"""

import glob
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# what follows a slash is an annotation's key
METRIC = re.compile(r"(?<!/)\b(?:gpushare|process)_[a-z0-9_]+\b")
# Of these a new series may come with every node or GPU; all other values are words of our own.
LABELS = {"verb", "outcome", "reason", "kind", "type", "code", "le", "version", "mode", "state",
          "node", "gpu",
          # these have a ceiling: docs/operate.md
          "namespace", "pod", "owner", "UUID"}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as text:
        return text.read()


class Page:
    """One program's metrics page."""

    def __init__(self, name, text):
        self.name = name
        self.families = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
        self.helps = re.findall(r"^# HELP (\S+) (.+)$", text, re.M)
        self.samples = re.findall(r"^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$", text, re.M)
        self.lines = [line for line in text.splitlines() if line and not line.startswith("#")]

    def problems(self):
        names = [name for name, _ in self.families]
        # OpenMetrics names a counter's family without _total
        bare = [name.removesuffix("_total") for name in names]
        yield from (f"{name}: there are two families of that name"
                    for name in sorted(set(bare)) if bare.count(name) > 1)
        if names != [name for name, _ in self.helps]:
            yield "HELP and TYPE do not go in pairs"
        for name, kind in self.families:
            if name.endswith("_total") != (kind == "counter"):
                yield f"{name} is a {kind}"
            if not name.startswith(("gpushare_", "process_")):
                yield f"{name} is not one of our names"
        yield from (f"{name}: {text!r} is no sentence" for name, text in self.helps
                    if not text.endswith("."))
        if len(self.lines) != len(self.samples):
            yield "there are lines that are no samples"
        series = [line.rsplit(" ", 1)[0] for line in self.lines]
        yield from (f"{one} is there twice" for one in set(series) if series.count(one) > 1)
        for name, labels, _ in self.samples:
            extra = set(re.findall(r'(\w+)="', labels)) - LABELS
            if extra:
                yield f"{name} has the labels {sorted(extra)}"


def names_in_use():
    """{where: metric names}"""
    rules = read("manifests", "monitoring", "rules.yaml")
    panels = json.loads(read("manifests", "monitoring", "dashboard.json"))["panels"]
    queries = "\n".join(target["expr"] for panel in panels for target in panel.get("targets", []))
    queries += read("manifests", "monitoring", "dashboard.json")
    found = {"rules.yaml": rules, "dashboard.json": queries}
    for name in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        if name.endswith(".md"):
            found[f"docs/{name}"] = read("docs", name)
    return {where: set(METRIC.findall(text)) for where, text in found.items()}


def alert_problems():
    alerts = re.findall(r"^\s*- alert: (\w+)$", read("manifests", "monitoring", "rules.yaml"), re.M)
    runbooks = re.findall(r"runbook_url: https://gpushare.invalid/docs/troubleshooting.md#(\w+)$",
                          read("manifests", "monitoring", "rules.yaml"), re.M)
    headings = re.findall(r"^### (Gpushare\w+)$", read("docs", "troubleshooting.md"), re.M)
    if headings != alerts:
        yield (f"docs/troubleshooting.md explains {sorted(set(headings) ^ set(alerts))} "
               "not as rules.yaml has them, or in another order")
    if runbooks != [alert.lower() for alert in alerts]:
        yield "a runbook of rules.yaml does not lead to its alert"


def overlap(one, other):
    return (one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"] and
            one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"])


def dashboard_problems():
    """What Grafana takes without a word and shows wrong."""
    board = json.loads(read("manifests", "monitoring", "dashboard.json"))
    variables = {one["name"] for one in board["templating"]["list"]}
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        yield "dashboard.json: an id is there twice"
    for number, panel in enumerate(board["panels"]):
        title, place = panel["title"], panel["gridPos"]
        if place["x"] + place["w"] > 24:
            yield f"dashboard.json, {title}: wider than the page"
        yield from (f"dashboard.json: {title} lies over {other['title']}"
                    for other in board["panels"][:number] if overlap(place, other["gridPos"]))
        if panel["type"] == "row":
            continue
        if not panel.get("description", "").endswith("."):
            yield f"dashboard.json, {title}: no description"
        if panel["datasource"] != {"type": "prometheus", "uid": "${datasource}"}:
            yield f"dashboard.json, {title}: not the chosen data source"
        if len({target["refId"] for target in panel["targets"]}) != len(panel["targets"]):
            yield f"dashboard.json, {title}: a refId is there twice"
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            if used - variables:
                yield f"dashboard.json, {title}: nobody knows {sorted(used - variables)}"
            if "cluster" not in used:
                yield f"dashboard.json, {title}: shows all clusters, whichever is chosen"


def scrape_problems():
    """Whoever serves metrics in a manifest has the port's name and the labels that are scraped."""
    monitors = read("manifests", "monitoring", "podmonitor.yaml")
    for path in sorted(glob.glob(os.path.join(ROOT, "manifests/**/*.yaml"), recursive=True)):
        with open(path, encoding="utf-8") as text:
            manifest = text.read()
        app = re.search(r"app.kubernetes.io/name: (gpushare-[\w-]+)", manifest)
        if "- --health-listen=" not in manifest or "/chart/" in path or not app:
            continue  # the chart renders the overlays' objects, a patch has no labels
        port = "http" if app[1] == "gpushare-device-plugin" else "health"
        if not re.search(rf"name: {port}, containerPort: ", manifest):
            yield f"{path}: no port is called {port}"
        if not re.search(rf"\b{app[1]}\b", monitors) or f"port: {port}\n" not in monitors:
            yield f"{path}: podmonitor.yaml does not select {app[1]}, port {port}"


def main():
    pages = []
    for name in ("extender", "device-plugin"):
        with open(os.path.join(sys.argv[1], f"{name}.prom"), encoding="utf-8") as text:
            pages.append(Page(name, text.read()))
    problems = [f"{page.name}: {problem}" for page in pages for problem in page.problems()]
    there = {name for page in pages for name, _, _ in page.samples}
    there |= {name for page in pages for name, _ in page.families}
    for where, names in names_in_use().items():
        problems += [f"{where}: nobody has a metric {name}" for name in sorted(names - there)
                     if not name.endswith("_")]
    problems += list(alert_problems()) + list(dashboard_problems()) + list(scrape_problems())
    print("\n".join(problems))
    families = sum(len(page.families) for page in pages)
    print(f"note: {families} families", file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
