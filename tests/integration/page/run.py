# SPDX-License-Identifier: Apache-2.0
"""Who may see the page of `kubectl inspect gpushare web`, and that names stay text in it.

  run.py --build DIR

The API server is a stand-in with three nodes, a pod on one and two that wait; the second one refuses to list
nodes, and so gets the page of one namespace, whose name is markup.
"""
import argparse
import asyncio
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "world"))
from api import Served  # noqa: E402
from objects import Pod, new_node, new_plugin  # noqa: E402
from programs import Web, ask, wait_for  # noqa: E402

MARKUP = "<b>&\""
NODES = ["n0", "n1", "n2"]


def new_pods(namespace=None):
    """(one that waits, one on a node, one in a namespace where none runs)"""
    waits = Pod("p", 4, namespace or "default")
    waits.obj["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": MARKUP}]
    return waits.obj, Pod("b", 4, namespace or "default").bind("n0", 1).obj, Pod("w", 4, namespace or "waits").obj


def event(kind, name, reason, at, message="of the GPU", namespace="default"):
    source = {"component": {"Rebooted": "kubelet", "GpuOvercommitted": "gpushare-extender"}.get(reason, "gpushare-device-plugin")}
    return {"involvedObject": {"kind": kind, "name": name, "namespace": namespace}, "reason": reason, "type": "Warning", "source": source,
            "lastTimestamp": at, "message": message}


# Whoever knows no selector answers with all.
EVENTS = [event("Node", "n0", "GpuRemoved", "2026-01-01T00:00:00Z"), event("Pod", "b", "GpuStartBlocked", "2026-01-02T00:00:00Z", MARKUP),
          event("Node", "n0", "GpuHealthy", "2026-01-03T00:00:00Z", "l1\nl2"), event("Node", "n0", "Rebooted", "2026-01-04T00:00:00Z"),
          event("Pod", "n0", "GpuStartBlocked", "2026-01-05T00:00:00Z"), event("Node", "n1", "GpuOvercommitted", "2026-03-01T00:00:00Z"),
          event("Pod", "w", "GpuStartBlocked", "2026-01-06T00:00:00Z", namespace="waits"),
          {**event("Node", "n0", "GpuRemoved", "2026-01-07T00:00:00Z"), "x": "x" * 70000},
          *(event("Node", "n1", "GpuHealthy", f"2026-02-{day:02}T00:00:00Z") for day in range(1, 12))]
SEEN = {"?node=n0": "2026-01-03T00:00:00Z  Warning  GpuHealthy  l1 l2\n2026-01-01T00:00:00Z  Warning  GpuRemoved  of the GPU\n",
        "?pod=default/b": "2026-01-02T00:00:00Z  Warning  GpuStartBlocked  <b>&\"\n",
        "?node=n1": "2026-03-01T00:00:00Z  Warning  GpuOvercommitted  of the GPU\n2026-02-11", "?pod=waits/w": "2026-01-06",
        "?node=n2": "none; by default the API server keeps Events for one hour\n",
        "?pod=default/p": "cannot be read: "}


class Api(Served):
    def __init__(self, refuses_nodes):
        self.pods = new_pods(MARKUP if refuses_nodes else None)
        super().__init__([*(new_node(name, [16, 16]) for name in NODES), *self.pods])
        self.fails = self.failed = False
        if refuses_nodes:
            self.refused["nodes"] = 403, "nodes is forbidden"

    async def answer(self, method, path, query, body, writer):
        """The watch of nodes fails, and then hangs; then a pod has an owner."""
        fields = query.get("fieldSelector", "")
        if path.endswith("/events"):
            return self.failure(403, "X", "no Events") if fields.endswith("=p") else \
                (200, {"items": [one for one in EVENTS if f"/{one['involvedObject']['namespace']}/" in path and "source=gpushare-" in fields]})
        if self.fails and "/pods/" in path:
            return self.failure(500, "X", "busy")
        if path.endswith("/nodes") and query.get("watch") and not self.refused:
            if self.failed:
                self.pods[1]["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
                self.put(self.pods[1])
                await asyncio.sleep(600)
            self.failed = True
            return self.failure(500, "X", "no nodes")
        return await super().answer(method, path, query, body, writer)


def rows_of(web, query=""):
    return json.loads(web.get("rows" + query)[2])


def other(token, at):
    digit = "0" if token[at] != "0" else "1"
    return token[:at] + digit + token[at + 1:]


def rows(port, token):
    """What, path, headers, status."""
    end = len(token) - 1
    yield "the page", f"/{token}/", {}, 200
    for host in ("localhost", f"localhost:{port}", "LOCALHOST", "[::1]:1", "[::1]", "127.0.0.1:1"):
        yield f"Host {host}", f"/{token}/", {"Host": host}, 200
    for host in ("localhost.evil.example", "127.0.0.1.evil.example:80", "evil.example", "localhostx", "127.1", "0.0.0.0",
                 "[::ffff:127.0.0.1]", "evil.example:8080", ""):
        yield f"Host {host}", f"/{token}/", {"Host": host}, 403
    for path in ("/", f"/{token}", f"/{token}x", f"/{token[:-1]}/", f"/{other(token, 0)}/", f"/{other(token, end)}/",
                 f"//{token}/", "/../"):
        yield f"path {path}", path, {}, 403
    yield "path unknown", f"/{token}/x", {}, 404
    yield "its own script", f"/{token}/app.js", {}, 200
    yield "rows without a token", "/rows", {}, 403
    for origin, status in ((f"http://127.0.0.1:{port}", 200), (f"http://127.0.0.1:{port}.evil.example", 403),
                           (f"http://127.0.0.1:{port}0", 403), (f"https://127.0.0.1:{port}", 403), ("null", 403),
                           (f"http://127.0.0.1:{port}/", 403), (f"127.0.0.1:{port}", 403)):
        yield f"Origin {origin}", f"/{token}/", {"Origin": origin}, status
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403),
                         ("Same-Origin", 403), ("", 403)):
        yield f"Sec-Fetch-Site {site}", f"/{token}/", {"Sec-Fetch-Site": site}, status


def judge(build, refuses_nodes):
    wrong = []
    with Api(refuses_nodes) as api, Web(build, api, *(["-n", MARKUP] if refuses_nodes else [])) as web:
        wait_for("the lists are read", lambda: web.get("rows?sort=free")[0] == 200)
        for what, path, headers, status in rows(web.port, web.root.strip("/")):
            got = ask(web.port, "GET", path, headers=headers)[0]
            if got != status:
                wrong.append(f"{what}: {got}, not {status}")
        if "frame-ancestors 'none'" not in web.get("")[1]["Content-Security-Policy"]:
            wrong.append("the page may be framed")
        if refuses_nodes:
            whole = rows_of(web)
            if re.findall(r"^\S+ +(\S+) +4 +\S+ +(\S+) +(\S+)$", whole["own"], re.M)[:2] != [("b", "n0", "1"), ("p", "-", "-")] \
                    or MARKUP not in whole["lost"]:
                wrong.append(f"pods of one's own namespace: {whole}")
            return wrong
        wait_for("its new owner", lambda: rows_of(web, "?pod=default/b&sort=free")["owner"] == "Job/j")
        if rows_of(web, "?sort=free")["nodes"][-1]["name"] != "n0":
            wrong.append("nodes are sorted until something changes")
        if rows_of(web)["lost"] != "no nodes":
            wrong.append("that nodes are not watched is not said")
        for view, lines in SEEN.items():
            shown = rows_of(web, view)["events"]
            if not shown.startswith(lines):
                wrong.append(f"Events of {view}: {shown}")
        for api.fails in (True, False): # what failed is forgotten
            if ("could not be asked" in rows_of(web, "?pod=waits/w")["why"]) != api.fails:
                wrong.append(f"a question fails: {api.fails}")
    return wrong


def judge_new(build):
    """Who has seen the rows is told of what is new; what a plugin told is forgotten with it."""
    usage = {"plugin": {"v": 1, "gpus": [{"id": 0, "usedBytes": 5}]}}
    with Served([new_node("n0", [16]), new_plugin("plugin", "n0")], usage) as api, Web(build, api, "--no-token") as web:
        wait_for("the lists are read, without a token", lambda: ask(web.port, "GET", "/rows")[0] == 200)
        wait_for("what is used is known", lambda: rows_of(web)["total"].get("usedBytes") == 5)
        wait_for("nothing is new", lambda: web.get(f"rows?seen={rows_of(web)['version']}")[0] == 204)
        seen = f"rows?seen={rows_of(web)['version']}"
        api.put(Pod("new", 4).obj)
        wait_for("a pod is new", lambda: web.get(seen)[0] == 200)
        usage.clear()
        wait_for("nobody tells what is used", lambda: "usedBytes" not in rows_of(web)["total"])


def judge_frozen(build, kind):
    """That the API server answers no question about KIND alone is said within 15 s, and no longer when it does again."""
    with Served([new_node("n0", [16])]) as api, Web(build, api) as web:
        wait_for("the lists are read", lambda: web.get("rows")[0] == 200)
        api.silent[kind] = api.hold[kind] = True
        wait_for(f"that {kind} cannot be asked is said", lambda: rows_of(web)["lost"], 15)
        wait_for("nobody is asked about a node", lambda: "does not answer" in rows_of(web, "?node=n0").get("why", ""))
        api.calm()
        wait_for("the page is up to date", lambda: not rows_of(web)["lost"])
        api.refused[kind] = 500, "not now"
        api.gone()
        wait_for(f"that {kind} are not watched is said", lambda: rows_of(web)["lost"] == "not now")
        api.refused.clear()
        wait_for(f"{kind} are watched again", lambda: not rows_of(web)["lost"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    with ThreadPoolExecutor() as pool:
        others = [pool.submit(judge_new, build), *(pool.submit(judge_frozen, build, kind) for kind in ("pods", "nodes"))]
        wrong = judge(build, False) + judge(build, True)
        for other in others:
            other.result()
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
