#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `kubectl inspect gpushare web` in a real headless Chromium, on clusters of gpushare-sim.

    tests/web/run.py BUILD [--only WORD]          every case; exit 1 when one fails
    tests/web/run.py BUILD --screenshots DIR      page-light.png, page-dark.png; page-20-…, page-500-… and page-5000-…, also -phone.png
"""

import argparse
import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import cluster
from chromium import Chromium
from servers import MayNotListNodes, Plugins

LARGE = "nodes=5000,gpus=8,mem=80,pods=104000,pod_mem=3,pending=40"
# Of the first page: 5,000 cells, 50 nodes with 400 GPUs and 1,040 pods.
LARGE_BYTES, LARGE_ELEMENTS, LARGE_RESIDENT_MIB, LARGE_START_S = 1_000_000, 15_000, 120, 60

args = None


# --- programs ---

@contextlib.contextmanager
def running(*command, line=None):
    """A program until the block ends; its first line, when one is wanted."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process, process.stdout.readline().strip() if line else ""
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


class World:
    """An API server, and the page of its cluster."""

    def __init__(self, stack, serve, *options):
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.kubeconfig = os.path.join(folder, "kubeconfig")
        program = ["tests/synthetic-api", serve]
        if not serve.startswith("nodes="):
            path = os.path.join(folder, "cluster.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(serve)
            program = ["gpushare-sim", "serve", f"--load={path}"]
        self.sim, _ = stack.enter_context(running(os.path.join(args.build, program[0]), *program[1:], "--listen=127.0.0.1:0",
                                                  f"--kubeconfig-out={self.kubeconfig}"))
        deadline = time.monotonic() + 120
        while not os.path.exists(self.kubeconfig):
            if time.monotonic() > deadline:
                raise TimeoutError("the API server does not start")
            time.sleep(0.05)
        with open(self.kubeconfig, encoding="utf-8") as file:
            self.api = re.search(r"server: (\S+)", file.read())[1]
        begun = time.monotonic()
        self.web, self.url = stack.enter_context(running(
            os.path.join(args.build, "kubectl-inspect-gpushare"), "web",
            f"--server={self.api}", *options, line=True))
        while self.ask(tail="rows")[0] == 503: # the lists are being read
            if time.monotonic() - begun > 120:
                raise TimeoutError("no page")
            time.sleep(0.05)
        self.start_s = time.monotonic() - begun

    def ask(self, method="GET", tail="", **headers):
        """(status, headers, body) of a request to the page's server."""
        parts = urllib.parse.urlsplit(self.url)
        path = tail if tail.startswith("/") else parts.path + tail
        client = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        client.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            client.putheader(name.replace("_", "-"), value)
        client.endheaders()
        answer = client.getresponse()
        body = answer.read().decode()
        client.close()
        return answer.status, dict(answer.getheaders()), body

    def rows(self, tail=""):
        return json.loads(self.ask(tail="rows" + tail)[2])

    def call(self, method, path, body=None, kind="application/json"):
        """A change in the cluster."""
        ask = urllib.request.Request(self.api + path, method=method,
                                     data=json.dumps(body).encode() if body else None,
                                     headers={"Content-Type": kind})
        with urllib.request.urlopen(ask, timeout=30) as answer:
            return answer.status

    def bind(self, ns, name, node, gpu):
        self.call("POST", f"/api/v1/namespaces/{ns}/pods/{name}/binding", {
            "apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": node},
            "metadata": {"name": name, "namespace": ns,
                         "annotations": {"ALIYUN_COM_GPU_MEM_IDX": gpu}}})


class Skipped(Exception):
    """It could not be had."""


def equal(actual, expected, what=""):
    if actual != expected:
        raise AssertionError(f"{what} is {actual!r}, not {expected!r}")


def opened(page, url):
    page.open(url)
    page.wait("document.querySelector('#age.live')")
    return page


def live(browser, world, tail=""):
    return opened(browser.page(), world.url + tail)


# --- cases ---

def a_bind_is_seen_without_reloading(browser, stack):
    world = World(stack, cluster.text())
    page = live(browser, world)
    page.run("window.stays = true")
    equal(page.run("document.querySelectorAll('#waiting tbody tr').length"), 4, "rows of who waits")
    page.run("document.querySelector('#n-t4-1 .p').focus()")
    world.bind("research", "notebook-max", "t4-1", "1")
    page.wait("document.querySelector('#n-t4-1 [aria-label^=\"research/notebook-max: 8 GiB\"]')")
    page.wait("document.querySelectorAll('#waiting tbody tr').length == 3")
    equal(page.run("document.querySelector('#n-t4-1 h3 b').textContent"), "28/32", "the node's sum")
    equal(page.run("document.activeElement.closest('article').id"), "n-t4-1", "the keyboard's place")
    equal(page.run("window.stays"), True, "the page")
    world.call("DELETE", "/api/v1/nodes/t4-2")
    page.wait("!document.getElementById('n-t4-2')")
    equal(page.complaints(), [], "what the browser complains of")


class Wire:
    """Between a browser and the page's server: it can be cut. The address is as forwarded as that of
    kubectl port-forward."""

    def __init__(self, stack, port):
        self.port, self.pairs = port, []
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.port))
                self.pairs += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    @staticmethod
    def carry(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def cut(self):
        for one in self.pairs:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.pairs = []


def a_stream_that_ended_is_taken_up_again(browser, stack):
    world = World(stack, cluster.text())
    parts = urllib.parse.urlsplit(world.url)
    wire = Wire(stack, parts.port)
    page = browser.page(f"http://127.0.0.1:{wire.listener.getsockname()[1]}{parts.path}")
    page.wait("document.querySelector('#age.live')")
    wire.cut()
    world.bind("research", "notebook-max", "t4-1", "1")
    page.wait("document.querySelector('#n-t4-1 [aria-label^=\"research/notebook-max\"]')", 30)


def who_may_not_list_nodes_sees_the_pods(browser, stack):
    """A table of pods with GPU memory, a line each, as the CLI prints it; markup in names is text."""
    items = json.loads(cluster.text())
    waits = [item for item in items["items"] if item["metadata"]["name"] == "notebook-max"][0]
    world = World(stack, json.dumps(items))
    api = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), MayNotListNodes))
    api.api, address = world.api, f"http://127.0.0.1:{api.server_port}"
    threading.Thread(target=api.serve_forever, daemon=True).start()
    stack.callback(api.shutdown)
    web = stack.enter_context(running(os.path.join(args.build, "kubectl-inspect-gpushare"), "web",
                                      f"--server={address}", line=True))
    page = browser.page(web[1])
    text = "document.querySelector('pre').textContent"
    page.wait(f"document.querySelector('pre') && {text}.split('\\n').length == 34") # 32 pods, a head, the end
    equal(page.run("document.querySelectorAll('#totals, article, img').length"), 0, "what he may not see")
    equal("may not list all nodes" in page.run("document.body.textContent"), True, "the note")
    equal(page.complaints(), [], "what the browser complains of")
    equal(re.search(r"notebook-max +\S+ +\S+ +- ", page.run(text)) is not None, True, "it has no node")
    world.bind("research", waits["metadata"]["name"], "a10-2", "2")
    page.wait(f"document.querySelector('pre') && {text}.includes('a10-2') && /notebook-max +\\S+ +\\S+ +a10-2/.test({text})", 30) # by itself


def plugin_pod(node):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": f"plugin-{node}", "namespace": "gpushare-system", "uid": f"plugin-{node}",
        "labels": {"app.kubernetes.io/name": "gpushare-device-plugin"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "uid": "ds",
                             "name": "gpushare-device-plugin", "controller": True}]},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


def usage_of(items, name, gib, peak):
    pod = [item for item in items if item["metadata"]["name"] == name][0]
    given = int(pod["spec"]["containers"][0]["resources"]["limits"]["aliyun.com/gpu-mem"]) << 30
    pod = pod["metadata"]
    return {"uid": pod["uid"], "name": name, "namespace": pod["namespace"], "owner": "", "allocatedBytes": given,
            "gpus": [{"id": 0, "usedBytes": gib << 30, "peakBytes": peak << 30}]}


def what_is_used_stands_beside_what_was_given(browser, stack):
    items = json.loads(cluster.text())["items"] + [plugin_pod("a100-2")]
    world = World(stack, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    api = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Plugins))
    api.api, api.daemon_threads, api.asked = world.api, True, 0
    api.lie = b'"train-vit"', b'"train-vit\\u001b[2J\\u202e"' # no honest API server lets it through
    api.usage = {"a100-2": {"v": 1, "gpus": [{"id": 0, "usedBytes": 21 << 30}],
                            "pods": [usage_of(items, "rerank-0", 1, 3)]}}
    threading.Thread(target=api.serve_forever, daemon=True).start()
    stack.callback(api.shutdown)
    web = stack.enter_context(running(os.path.join(args.build, "kubectl-inspect-gpushare"), "web",
                                      f"--server=http://127.0.0.1:{api.server_port}", line=True))
    equal(api.asked, 0, "plugins that are asked before anybody looks")
    page = browser.page(web[1])
    pod = "document.querySelector('#n-a100-2 [aria-label^=\"search/rerank-0\"]')"
    page.wait(f"{pod} && {pod}.querySelector('s')", 30)
    equal(", uses 1.0, peak 3.0" in page.run(f"{pod}.getAttribute('aria-label')"), True,
          "what its block says")
    given = int(re.search(r": (\d+) GiB", page.run(f"{pod}.getAttribute('aria-label')"))[1])
    equal(page.run(f"Math.round({pod}.querySelector('s').offsetWidth / {pod}.clientWidth * {given})"),
          1, f"the stripe's length, of {given}")
    equal("21.0 GiB in use" in page.run("document.querySelector('#n-a100-2 .bar').title"), True,
          "what the GPU's bar says")
    equal(page.run("document.querySelectorAll('.p s').length"), 1, "pods whose use is known")
    equal(page.run("!!document.querySelector('[aria-label^=\"vision/train-vit??2J???: \"]')"), True,
          "a name that speaks to terminals, made fit to print")
    page.wait("document.querySelector('#totals').textContent.includes('21.0 GiB used')")
    equal(page.run("document.querySelector('#top-unused tbody').innerText.split(/\\s+/)"), ["rerank-0", "search", "17.0"], "waste, of 20 and a peak of 3")
    api.usage["a100-2"]["pods"] = [usage_of(items, "rerank-0", given + 1, given + 1)]
    page.wait(f"{pod} && {pod}.querySelector('s.over')", 30)
    equal(page.run("document.querySelector('#top-excess tbody').innerText.split(/\\s+/)"), ["rerank-0", "search", "1.0"], "over")
    equal("more than its request" in page.run(f"{pod}.getAttribute('aria-label')"), True, "what its block says")
    opened(page, web[1] + "?namespace=search")
    equal("21.0 GiB used, by 1 of these pods" in page.run("document.querySelector('#view').textContent"), True, "and its namespace's view")
    equal(page.complaints(), [], "what the browser complains of")


def search_and_filters_leave_what_matches(browser, stack):
    world = World(stack, cluster.text())
    page = live(browser, world)
    page.key("/", "/")
    equal(page.run("document.activeElement.name"), "q", "after the key /, the keyboard's place")
    page.type("whisper")
    page.wait("document.querySelectorAll('article').length == 1")
    equal(page.run("document.querySelector('article').id"), "n-a10-2", "the node that is found")
    equal(page.run("document.querySelectorAll('.p:not(.dim)').length"), 3, "pods that are meant")
    page.wait("location.search == '?q=whisper'")
    page.run("window.before = true; location.reload()")
    page.wait("!window.before && document.querySelector('#age.live') && document.querySelectorAll('article').length == 1")
    page.run("document.querySelector('input').focus()")
    page.key("Escape")
    page.wait("document.querySelectorAll('article').length == 6")
    page.run("const asks = fetch; fetch = (url, how) => url.includes('speech') ?" # the first time, in vain
             "(fetch = asks, Promise.reject()) : asks(url, how)")
    for name, value, nodes in (("ns", "speech", 2), ("model", "Tesla T4", 2)):
        page.run(f"document.forms[0].{name}.value = {json.dumps(value)};"
                 "document.forms[0].dispatchEvent(new Event('input'))")
        page.wait(f"document.querySelectorAll('article').length == {nodes}", 6)
        page.run(f"document.forms[0].{name}.value = ''")
    page.run("document.forms[0].sort.value = 'allocated';"
             "document.forms[0].dispatchEvent(new Event('input'))")
    page.wait("document.querySelector('article').id == 'n-a100-1'")
    equal(page.complaints(), [], "what the browser complains of")


def arrow_keys_go_from_pod_to_pod(browser, stack):
    world = World(stack, cluster.text())
    page = live(browser, world)
    label = "document.activeElement.getAttribute('aria-label').split(':')[0]"
    page.run("document.querySelector('#n-a100-2 .p').focus()")
    equal(page.run(label), "search/rerank-0", "the first pod")
    for key, pod in (("ArrowRight", "vision/train-vit"), ("ArrowDown", "chat/mixtral-0"),
                     ("ArrowUp", "search/rerank-0"), ("ArrowDown", "chat/mixtral-0"),
                     ("ArrowLeft", "vision/train-vit")):
        page.key(key)
        equal(page.run(label), pod, f"after {key} the pod")
    equal(visible_tip(page, "document.activeElement"),
          "vision/train-vit: 48 GiB, since 2026-01-02 02:59 UTC", "what is shown of it")


def visible_tip(page, pod):
    """What a reader sees of a pod's tip: every line of it in the window, whole, above all else, in full colour."""
    shot = page.call("DOMSnapshot.captureSnapshot", computedStyles=[])
    tree, words = shot["documents"][0], shot["strings"]
    label = page.run(f"{pod}.getAttribute('aria-label')")
    layout, boxes = tree["layout"], tree["textBoxes"]
    at = [i for i, text in enumerate(layout["text"]) if text >= 0 and words[text] == label]
    lines = [(boxes["bounds"][i], boxes["start"][i], boxes["length"][i])
             for i, of in enumerate(boxes["layoutIndex"]) if of in at]
    for (x, y, width, height), _, _ in lines:
        x, y = x - tree["scrollOffsetX"], y - tree["scrollOffsetY"]
        for left, top in ((x + 1, y + 1), (x + width - 1, y + height - 1), (x - 10, y + height / 2)):
            if not page.run(f"document.elementFromPoint({left}, {top}) === {pod}"):
                raise AssertionError(f"{label}: not seen at {left}, {top} of its tip")
        ink = page.run("getComputedStyle(document.body).color")
        equal(page.pixel(x - 10, y + height / 2), tuple(map(int, re.findall(r"\d+", ink))), f"{label}: its tip's ground")
    seen = "".join(label[start:start + length] for _, start, length in lines)
    return label if seen.replace(" ", "") == label.replace(" ", "") else seen # a line's end takes its space


def a_pod_is_named_by_mouse_and_by_keyboard(browser, stack):
    items = json.loads(cluster.text())["items"]
    for item in items:
        if item["metadata"]["name"] == "rerank-0":
            item["metadata"]["name"] += "-of-a-very-long-name" * 9
    world = World(stack, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    page = browser.page()
    page.call("Emulation.setFocusEmulationEnabled", enabled=True)
    for width, scheme, query in ((1400, "light", ""), (1400, "dark", "?ns=vision"),
                                 (390, "light", ""), (390, "dark", "?ns=vision")):
        page.size(width, 800)
        page.scheme(scheme)
        opened(page, world.url + query)
        for start in ("search/rerank", "vision/train-vit", "chat/llama-70b-0"):
            pod = f"document.querySelector('.p[aria-label^=\"{start}\"]')"
            if not page.run(f"!!{pod}"):
                continue # its node is not among those of the namespace
            name = page.run(f"{pod}.getAttribute('aria-label')")
            page.run(f"{pod}.scrollIntoView({{block: 'center'}}); {pod}.focus()")
            equal(visible_tip(page, pod), name, f"by keyboard, {width} wide, {scheme}")
            page.run("document.activeElement.blur()")
            page.hover(*page.run(f"(r => [r.left + r.width / 2, r.top + r.height / 2])({pod}.getBoundingClientRect())"))
            equal(visible_tip(page, pod), name, f"by mouse, {width} wide, {scheme}")
            page.hover(0, 0)


def without_a_script_there_is_a_sentence(browser, stack):
    world = World(stack, cluster.text())
    page = browser.page()
    page.scripts(allowed=False)
    page.open(world.url)
    equal("needs JavaScript" in page.run("document.body.innerText"), True, "the sentence")


def who_may_not_look_is_refused(_, stack):
    """What tests/integration/page does not ask."""
    world = World(stack, cluster.text())
    port = urllib.parse.urlsplit(world.url).port
    for what, status, request in (
            ("the address", 200, {}),
            ("its head", 200, {"method": "HEAD"}),
            ("a name that ends as loopback's", 403, {"Host": f"gpus.localhost:{port}"}),
            ("a port that is forwarded", 200, {"Host": "localhost:8080"}),
            ("another port's page", 403, {"Origin": "http://127.0.0.1:1"}),
            ("POST", 405, {"method": "POST"}),
            ("DELETE", 405, {"method": "DELETE"}),
            ("no such page", 404, {"tail": "nodes"})):
        equal(world.ask(**request)[0], status, what)
    headers = world.ask()[1]
    policy = headers["Content-Security-Policy"]
    if "unsafe" in policy or not policy.startswith("default-src 'none'"):
        raise AssertionError(policy)
    equal((headers["Referrer-Policy"], headers["Cache-Control"]), ("no-referrer", "no-store"))
    page = world.ask()[2]
    equal(re.findall(r"(?:src|href)=\"?(?!style\.css|app\.js|icon\.svg|\?)[^\"> ]+", page), [],
          "what the page loads from elsewhere")


def without_a_token_the_way_is_the_login(_, stack):
    world = World(stack, cluster.text(), "--no-token")
    equal(urllib.parse.urlsplit(world.url).path, "/", "the address's path")
    equal(world.ask()[0], 200)
    equal(world.ask(Host="gpus.example")[0], 403, "another name")
    refused = subprocess.run([os.path.join(args.build, "kubectl-inspect-gpushare"), "web",
                              "--listen=0.0.0.0:0", f"--server={world.api}"],
                             capture_output=True, text=True, check=False)
    equal(refused.returncode, 2, "serving to all")


def words_of_others_are_no_markup(browser, stack):
    nasty = "</title><script>1</script><img src=x onerror=alert(1)>\"'&4090"
    items = json.loads(cluster.text())
    inventory = json.loads(items["items"][0]["metadata"]["annotations"]["aliyun.com/gpu-inventory"])
    inventory["gpus"][0]["model"] = nasty
    items["items"][0]["metadata"]["annotations"]["aliyun.com/gpu-inventory"] = json.dumps(inventory)
    world = World(stack, json.dumps(items))
    page = live(browser, world)
    equal(page.run("document.querySelectorAll('img, script:not([src])').length"), 0, "injected elements")
    equal(page.run("document.querySelector('#n-a100-1 .bar').title"), nasty, "the model")
    equal(page.complaints(), [], "what the browser complains of")
    opened(page, world.url + "?" + urllib.parse.urlencode({"q": nasty, "ns": nasty}))
    equal(page.run("[...document.forms[0].elements].map((one) => one.value)"), [nasty, nasty, "", ""], "what is searched for")
    equal(page.run(f"[...document.forms[0].model.options].some((one) => one.textContent == {json.dumps(nasty)})"), True, "the model among the choices")
    name, owner = "x" + nasty, f"{nasty}/{nasty}"
    items["items"][6]["metadata"]["ownerReferences"] = [{"kind": nasty, "name": nasty, "uid": "o", "controller": True}]
    waits = [item for item in items["items"] if item["metadata"]["name"] == "llama-405b"][0]
    waits["metadata"]["ownerReferences"] = items["items"][6]["metadata"]["ownerReferences"]
    waits["spec"]["schedulerName"] = nasty
    waits["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": nasty}]
    world = World(stack, json.dumps(items))
    for tail in ("", "?node=a100-1", "?node=a100-1&gpu=0", "?namespace=chat", "?pod=chat/llama-70b-0", "?pod=chat/llama-405b",
                 "?" + urllib.parse.urlencode({"owner": f"chat/{owner}"}),
                 *("?" + urllib.parse.urlencode({view: f"chat/{name}"}) for view in ("node", "namespace", "owner", "pod"))):
        opened(page, world.url + tail)
        equal(page.run("document.querySelectorAll('img, script:not([src])').length"), 0, f"injected elements of {tail}")
        if "gpu=0" in tail:
            equal(page.run(f"[...document.querySelectorAll('#gpus td')].some((one) => one.textContent == {json.dumps(nasty)})"), True, "the model in a table")
        if "chat%2Fx" not in tail:
            equal(world.rows(tail)["found"], True, tail)
            equal(page.run("[...document.querySelectorAll('code')].some((one) => one.textContent.includes('<'))"), False,
                  f"a command that is an author's, of {tail}")
    for text in ("%C3%A4" * 100, "%FF", "%C3"): # cut within a character, and none at all; a body that is no UTF-8 is not read
        equal(world.rows("?q=" + text)["nodes"], [], f"what {text[:9]} finds")


def cli(world, *words):
    return subprocess.run([os.path.join(args.build, "kubectl-inspect-gpushare"), *words, f"--server={world.api}"],
                          capture_output=True, text=True, check=True).stdout


def everything_has_an_address(browser, stack):
    world = World(stack, cluster.listed(cluster.many(20)))
    page = live(browser, world)

    def follow(link, view):
        before = json.dumps(page.run("location.href"))
        page.run(f"document.querySelector({json.dumps(link)}).click()")
        page.wait(f"location.href != {before} && location.search.startsWith('?{view}=') && "
                  "document.querySelector('#age.live') && document.querySelector('#view')")
        return page.run("document.querySelector('#view').textContent")

    name = page.run("document.querySelector('article h3 a').textContent")
    equal(f"Node {name}" in follow("article h3 a", "node"), True, "the node's view")
    rows = page.run("document.querySelectorAll('#pods tbody tr').length")
    equal(rows > 4, True, "rows of its pods")
    follow(".g > b a", "node")
    equal(page.run("[document.title.split(' - ')[0], document.querySelectorAll('.g').length]"), [f"GPU0 of node {name}", 1], "the GPU's view")
    equal(page.run("document.querySelectorAll('#pods tbody tr').length") < rows, True, "of which fewer pods are")
    pod = page.run("document.querySelector('.p').getAttribute('aria-label').split(':')[0]")
    told = follow(".p", "pod")
    why = cli(world, "why", pod)
    equal(page.run("document.querySelector('pre').textContent"), why, "what it says is why's, word for word")
    equal(f"kubectl inspect gpushare why {pod} copy" in told, True, "its command, to copy")
    follow("#view a[href*=owner]", "owner")
    equal(page.run(f"[...document.querySelectorAll('#pods td:nth-child(2)')].some((one) => one.textContent == '{pod.split('/')[1]}')"),
          True, "the pod among its owner's")
    follow("#view p a[href*=namespace]", "namespace")
    given = page.run("document.querySelector('#view .fig b').textContent")
    told = json.loads(cli(world, "-o", "json", "-n", pod.split("/")[0]))
    equal(int(given), told["namespaces"][0]["usedGPU"], "what the namespace has")
    equal(page.complaints(), [], "what the browser complains of")
    for tail in ("?node=none", f"?node={name}&gpu=7x", f"?node={name}&gpu=63", "?namespace=none", "?owner=a/b/c", "?owner=x", "?pod=a/b",
                 "?pod=/", "?pod=" + "x" * 3000, "?namespace=%FF", "?pod=kube-system/coredns", "?pod=default/none"):
        equal(world.rows(tail)["found"], False, tail[:40])


def a_pods_view_follows_it(browser, stack):
    said = "0/6 nodes are available: <b>none</b>"
    items = json.loads(cluster.text())
    waits = [item for item in items["items"] if item["metadata"]["name"] == "notebook-max"][0]
    waits["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": said}]
    world = World(stack, json.dumps(items))
    page = live(browser, world, "?pod=research/notebook-max")
    text = "document.querySelector('pre').textContent"
    equal(page.run(text), cli(world, "why", "research/notebook-max"), "why, of one that waits")
    equal(f"kube-scheduler reports: {said}" in page.run(text), True, "the words of kube-scheduler")
    world.bind("research", "notebook-max", "t4-1", "1")
    page.wait(f"{text}.startsWith('research/notebook-max is on node t4-1')")
    equal(page.run(text), cli(world, "why", "research/notebook-max"), "why, of one that has its place")
    world.call("DELETE", "/api/v1/namespaces/research/pods/notebook-max")
    page.wait("document.querySelector('#view').textContent.includes('There is no pod')")
    equal(page.complaints(), [], "what the browser complains of")


def a_filter_filters_sums_and_who_waits(browser, stack):
    world = World(stack, cluster.text())
    page = live(browser, world)
    whole = page.run("document.querySelector('#totals').textContent")
    opened(page, world.url + "?ns=speech")
    totals = page.run("document.querySelector('#totals').textContent")
    told = json.loads(cli(world, "-o", "json", "-n", "speech"))
    equal(f"{told['cluster']['usedGPU']:,} of {told['cluster']['totalGPU']:,} GiB" in totals, True, "allocated there")
    equal(f"{told['namespaces'][0]['usedGPU']:,} GiB of pods that match" in totals, True, "and by its pods")
    equal(page.run("document.querySelector('#waiting').textContent"), "No pending pod matches (4 pending in the cluster)", "who waits")
    opened(page, world.url + "?q=llama")
    equal(page.run("document.querySelectorAll('#waiting tbody tr').length"), 2, "who waits and is called so")
    equal(page.run("document.querySelector('#waiting h2').textContent").startswith("2 pending pods, 540 GiB requested"), True, "their sum")
    opened(page, world.url + "?model=Tesla+T4")
    equal(page.run("document.querySelectorAll('#waiting tbody tr').length"), 1, "who waits and could be taken by such a GPU")
    opened(page, world.url + "?q=nobody")
    equal(page.run("document.querySelector('#pager').textContent.startsWith('Nothing matches')"), True, "an empty result")
    page.run("document.querySelector('#pager a').click()")
    page.wait(f"document.querySelector('#totals')?.textContent == {json.dumps(whole)}")


def who_waits_stands_by_owner(browser, stack):
    world = World(stack, cluster.listed(cluster.many(20)))
    page = live(browser, world)
    rows = page.run("[...document.querySelectorAll('#waiting tbody tr')].map((one) => one.textContent)")
    equal(len(rows), 6, "rows of 35 pods")
    equal("StatefulSet/llama-405b-pretraining-worker" in rows[0], True, "the oldest first, of one owner")
    world.call("DELETE", "/api/v1/namespaces/robotics-notebooks/pods/jupyter-3")
    page.wait("document.querySelectorAll('#waiting tbody tr').length == 5")
    page.run("document.querySelector('#waiting a[href*=owner]').click()")
    page.wait("document.querySelectorAll('#waiting a[href*=pod]').length == 30") # each leads to its view


def many_nodes_have_a_map(browser, stack):
    world = World(stack, cluster.listed(cluster.many(500)))
    page = live(browser, world)
    told = json.loads(cli(world, "-o", "json"))
    gpus = {f"{node['name']} GPU{dev['id']}": (f"{dev['usedGPU']}/{dev['totalGPU']}", node, dev)
            for node in told["nodes"] for dev in node["devs"]}
    cells = dict(page.run("[...document.querySelectorAll('.cells a')].map((one) => "
                          "[one.getAttribute('aria-label').split(':')[0], [one.getAttribute('aria-label'), one.className, one.search]])"))
    equal(set(cells), set(gpus), "cells")
    for name, (label, look, search) in cells.items():
        figures, node, dev = gpus[name]
        equal(label.split(": ")[1].split(",")[0], figures, name)
        equal(search, f"?node={node['name']}&gpu={dev['id']}", name)
        shut = not node["ready"] or node["unschedulable"] or not dev["healthy"] or not dev["schedulable"]
        equal(("off" in look.split(), "accepts no new pods" in label), (shut, shut), f"{name} takes no pods")
        equal(f"l{-(-10 * dev['usedGPU'] // dev['totalGPU'])}" in look.split(), True, f"how high {name} is")
    models = {}
    for node in told["nodes"]:
        of = models.setdefault(node["model"], [0, 0, 0, 0])
        for at, number in enumerate((1, len(node["devs"]), node["usedGPU"], node["totalGPU"])):
            of[at] += number
    heads = page.run("[...document.querySelectorAll('.map h2')].map((one) => one.textContent.split(' GiB')[0])")
    equal(heads, [f"{name} {nodes:,} nodes, {of:,} GPUs: {used:,} of {total:,}" for name, (nodes, of, used, total) in sorted(models.items())], "models")
    page.run("document.activeElement.blur()")
    for stop in range(1, 11):
        page.key("Tab")
        if page.run("!!document.activeElement.closest('#pager')"):
            break
    else:
        raise AssertionError("the pager is not among the first ten stops")
    equal(page.complaints(), [], "what the browser complains of")


def an_api_server_that_hangs_is_told(browser, stack):
    world = World(stack, cluster.text())
    page = live(browser, world, "?pod=chat/llama-8b-0")
    world.sim.send_signal(signal.SIGSTOP)
    stack.callback(world.sim.send_signal, signal.SIGCONT)
    page.wait("document.querySelector('#age.stale') && document.querySelector('#lost').textContent.includes('does not answer')", 15)
    said = page.run("document.querySelector('#age').textContent")
    status, _, _ = world.ask(tail="rows?pod=chat/llama-8b-0")
    equal((status, page.run("document.querySelector('#age').textContent")), (200, said), "a pod's view meanwhile, and the time of what is shown")
    world.sim.send_signal(signal.SIGCONT)
    page.wait("document.querySelector('#age.live') && !document.querySelector('#lost').textContent", 30)


def a_phone_shows_who_waits_and_why(browser, stack):
    world = World(stack, cluster.listed(cluster.many(20)))
    page = browser.page()
    page.size(390, 844)
    for tail in ("", "?namespace=robotics-notebooks", "?pod=robotics-notebooks/jupyter-1",
                 "?owner=foundation-models-research/StatefulSet/llama-405b-pretraining-worker",
                 "?node=" + json.loads(cli(world, "-o", "json"))["nodes"][0]["name"]):
        opened(page, world.url + tail)
        equal(page.run("document.documentElement.scrollWidth"), 390, f"the width of {tail}")
    opened(page, world.url)
    seen = page.run("""[...document.querySelectorAll('#waiting tbody tr:first-child td')].map((one) => {
        const box = one.getBoundingClientRect();
        return [one.textContent, box.left >= 0 && box.right <= 390 && box.bottom <= 844 && one.scrollWidth <= one.clientWidth];
    })""")
    equal([fits for _, fits in seen[:2]], [True, True], "reason and name, on the first screen")
    equal("fits on no GPU" in seen[0][0] or "multiple of" in seen[0][0], True, "the reason")
    equal("llama-405b-pretraining-worker" in seen[1][0], True, "the name")


def no_tile_is_alone_in_its_row(browser, stack):
    page = live(browser, World(stack, cluster.listed(cluster.many(20))))
    for width in range(360, 1800, 80):
        page.size(width, 900)
        rows = page.run("[...document.querySelectorAll('.fig')].map((one) => Math.round(one.getBoundingClientRect().top))")
        equal([row for row in rows[1:] if rows.count(row) == 1], [], f"rows of one tile, {width} wide")


def on_paper_nothing_is_cut(browser, stack):
    world = World(stack, cluster.listed(cluster.many(20)))
    page = live(browser, world)
    page.call("Emulation.setEmulatedMedia", media="print")
    equal(page.run("[getComputedStyle(document.querySelector('form')).display, "
                   "[...document.querySelectorAll('.scroll')].every((one) => one.scrollHeight <= one.clientHeight + 1)]"),
          ["none", True], "the form, and the list of who waits")
    page.call("Emulation.setEmulatedMedia", media="")


def a_command_is_copied(browser, stack):
    world = World(stack, cluster.text())
    page = live(browser, world, "?pod=chat/llama-405b")
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.run("document.querySelector('.copy').click()")
    page.wait("window.copied == 'kubectl inspect gpushare why chat/llama-405b'")


def axe_finds_nothing(browser, stack):
    if not args.axe:
        raise Skipped("no axe-core (tests/web/axe_fetch.sh)")
    with open(args.axe, encoding="utf-8") as file:
        axe = file.read()
    world, huge = World(stack, cluster.listed(cluster.many(60))), World(stack, "nodes=600,gpus=8,mem=80,pods=900,pod_mem=8")
    node = json.loads(cli(world, "-o", "json"))["nodes"][0]["name"]
    views = [world.url + tail for tail in (
        "", "?ns=chat-staging", "?q=nothing", f"?node={node}", f"?node={node}&gpu=0", "?namespace=chat-staging",
        "?owner=foundation-models-research/StatefulSet/llama-405b-pretraining-worker", "?pod=chat-staging/by-hand", "?pod=a/b")]
    page = browser.page()
    for width, scheme in ((1400, "light"), (390, "dark")):
        page.size(width, 900)
        page.scheme(scheme)
        for view in (*views, huge.url):
            opened(page, view)
            page.run(axe) # past the page's own policy
            found = page.run("axe.run(document).then((all) => all.violations.map((one) => one.id + ': ' + "
                             "one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120) + ' ' + node.failureSummary).join(' | ')))")
            equal(found, [], f"what axe-core finds in {view}, {width} wide, {scheme}")


def what_keeps_pods_to_their_share_is_told(_, stack):
    words = ("dmem", "mps", "mig", "none")
    items = json.loads(cluster.text())
    annotations = items["items"][0]["metadata"]["annotations"]
    inventory = json.loads(annotations["aliyun.com/gpu-inventory"])
    for gpu, word in zip(inventory["gpus"], words):
        gpu["enforced"] = word
    annotations["aliyun.com/gpu-inventory"] = json.dumps(inventory)
    rows = World(stack, json.dumps(items)).rows("?node=a100-1")
    equal([gpu["enforced"] in rows["limits"] for gpu in rows["nodes"][0]["devs"]], [True, True, True, False], "what limits its GPUs is explained")


def what_would_fit_is_what_if(_, stack):
    world = World(stack, cluster.text())
    shown = {fit["requestedGPU"]: fit["podCount"] for fit in world.rows()["total"]["wouldFit"]}
    for size in (4, 8, 16, 32):
        told = subprocess.run([os.path.join(args.build, "kubectl-inspect-gpushare"), "what-if",
                               f"--server={world.api}", f"--gpu-mem={size}",
                               "--replicas=1000", "--ignore-pending"], capture_output=True, text=True, check=True).stdout
        equal(shown[size], int(told.split()[0]), f"how many of {size} GiB fit")


def resident_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) // 1024


def a_page_of_5000_nodes_stays_small(browser, stack):
    world = World(stack, LARGE)
    size = len(world.ask(tail="rows")[2])
    begun = time.monotonic()
    page = live(browser, world)
    open_s = time.monotonic() - begun
    elements = page.run("document.querySelectorAll('*').length")
    begun = time.monotonic()
    for _ in range(5):
        world.ask(tail="rows?page=13")
    answer_ms = (time.monotonic() - begun) * 200
    begun = time.monotonic()
    for _ in range(5):
        world.ask(tail="rows?q=node-04950")
    search_ms = (time.monotonic() - begun) * 200
    resident = resident_mib(world.web)
    print(f"    5,000 nodes, 104,000 pods: {size} bytes, {elements} elements, first page after "
          f"{world.start_s:.1f} s, in the browser {open_s:.1f} s, a page {answer_ms:.0f} ms, "
          f"a search {search_ms:.0f} ms, {resident} MiB")
    equal(page.run("document.querySelectorAll('article').length"), 50, "nodes of a page")
    equal(page.run("document.querySelectorAll('.cells a').length"), 5000, "cells, each a node of so many")
    if size > LARGE_BYTES or elements > LARGE_ELEMENTS:
        raise AssertionError("the page is too large")
    if resident > LARGE_RESIDENT_MIB or world.start_s > LARGE_START_S:
        raise AssertionError("the program is too large, or too late")
    page.run("document.querySelector('#pager a:last-child').click()")
    page.wait("document.querySelector('article')?.id == 'n-node-04950'")
    equal(page.complaints(), [], "what the browser complains of")


CASES = [a_bind_is_seen_without_reloading, a_stream_that_ended_is_taken_up_again,
         who_may_not_list_nodes_sees_the_pods, what_is_used_stands_beside_what_was_given,
         search_and_filters_leave_what_matches, arrow_keys_go_from_pod_to_pod,
         a_pod_is_named_by_mouse_and_by_keyboard, without_a_script_there_is_a_sentence, who_may_not_look_is_refused,
         without_a_token_the_way_is_the_login, words_of_others_are_no_markup, everything_has_an_address, a_pods_view_follows_it,
         a_filter_filters_sums_and_who_waits, who_waits_stands_by_owner, many_nodes_have_a_map,
         an_api_server_that_hangs_is_told, a_phone_shows_who_waits_and_why, no_tile_is_alone_in_its_row, on_paper_nothing_is_cut, a_command_is_copied,
         axe_finds_nothing,
         what_keeps_pods_to_their_share_is_told, what_would_fit_is_what_if, a_page_of_5000_nodes_stays_small]


def screenshots(folder):
    """The pictures of the documents, all the test's own doing. Of many nodes the dark one is of the map."""
    looks = {"light": ("light", 1400, 1060, 0.8), "dark": ("dark", 1400, 1060, 0.8), "phone": ("dark", 390, 700, 1)}
    with Chromium() as browser, contextlib.ExitStack() as stack:
        page = browser.page()
        for size in ("", "20-", "500-", "5000-"):
            few = cluster.text(recent=True)
            world = World(stack, cluster.listed(cluster.many(int(size[:-1]))) if size else few)
            for look, (scheme, width, height, scale) in looks.items():
                if not size and look == "phone":
                    continue
                page.size(width, height, scale)
                page.scheme(scheme)
                opened(page, world.url)
                page.run("document.querySelector('.server').textContent = 'https://cluster.example:6443'")
                if size and look == "dark":
                    page.run("document.querySelector('.map')?.scrollIntoView()")
                page.screenshot(os.path.join(folder, f"page-{size}{look}.png"))


def main():
    global args
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--screenshots")
    parser.add_argument("--axe", help="axe-core's axe.min.js (tests/web/axe_fetch.sh)")
    args = parser.parse_args()
    if args.screenshots:
        screenshots(args.screenshots)
        return 0
    failed = 0
    with Chromium() as browser:
        for case in CASES:
            if args.only not in case.__name__:
                continue
            try:
                with contextlib.ExitStack() as stack:
                    case(browser, stack)
                print(f"ok    {case.__name__}", flush=True)
            except Skipped as why:
                print(f"not run: {case.__name__}: {why}", flush=True)
            except Exception as error: # pylint: disable=broad-except  # the others are run all the same
                failed += 1
                print(f"FAIL  {case.__name__}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
