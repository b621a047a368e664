# SPDX-License-Identifier: Apache-2.0
"""An API server that believes and repeats everything: it checks no name and no UID, binds what is not bound yet, and
keeps the Bindings. Threads and the standard library."""

import http.client
import http.server
import json
import os
import re
import resource
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))
from harness.processes import free_port  # noqa: E402

HOST = "127.0.0.1"
MEMORY_MAX = 1 << 30     # address space of the CLI: 32 threads, 32 answers of 1 MiB
OBJECT = re.compile(r"/api/v1/(?:namespaces/([^/]*)/)?(pods|nodes)/([^/]*)(/[a-z]+)?(?:/(.*))?")
LISTED = re.compile(r"/api/v1/(?:namespaces/([^/]*)/)?(pods|nodes)")

TURNS = ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI")     # of the direction of writing


def matches(obj, selector):
    """Of a field selector; what this does not know matches."""
    for part in filter(None, selector.split(",")):
        name, unequal, value = part.partition("!=")
        if not unequal:
            name, _, value = part.replace("==", "=").partition("=")
        at = obj
        for step in name.split("."):
            at = (at or {}).get(step)
        if ((at or "") == value) == bool(unequal):
            return False
    return True


def labelled(obj, query):
    """Of a label selector of one equality."""
    name, _, value = query.get("labelSelector", "").partition("=")
    return not name or (obj["metadata"].get("labels") or {}).get(name) == value


def steers(text):
    """What of it a terminal does more with than show it, and is not the end of a line; "" without."""
    for at, char in enumerate(text):
        if char != "\n" and (unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") or
                             0xE0000 <= ord(char) <= 0xE0FFF or unicodedata.bidirectional(char) in TURNS):
            return f"{char!r} in {text[max(0, at - 60):at + 60]!r}"
    return ""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, status, doc):
        text = doc if isinstance(doc, bytes) else json.dumps(doc).encode()
        self.wfile.write(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                         % (status, len(text), text))

    def fails(self, status, message="no"):
        self.say(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                          "reason": "X", "message": message})

    def read_body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self):
        api = self.server.api
        body = self.read_body()
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        path = url.path
        if "/proxy/" in path:
            api.proxy(self, urllib.parse.unquote(path))
        elif path == "/version":
            self.say(200, {"major": "1", "minor": "36", "gitVersion": api.version})
        elif path.endswith("accessreviews"):
            self.say(201, {"status": {"allowed": True}})
        elif "/events" in path and self.command == "POST":
            self.say(201, body)
        elif (match := LISTED.fullmatch(path)) and self.command == "GET":
            self.collection(api, match[2], urllib.parse.unquote(match[1] or ""), query)
        elif match := OBJECT.fullmatch(path):
            key = (urllib.parse.unquote(match[1] or ""), urllib.parse.unquote(match[3]))
            self.one(api, match[2], key, match[4] or "", body)
        else:
            self.fails(404, api.message)

    do_GET = do_POST = do_PATCH = do_PUT = answer

    def collection(self, api, kind, namespace, query):
        if kind in api.hidden:
            return self.fails(403, api.message)
        if query.get("watch") not in ("1", "true"):
            with api.lock:
                items = [obj for (ns, _), obj in api.objects[kind].items()
                         if (not namespace or ns == namespace) and labelled(obj, query) and
                         matches(obj, query.get("fieldSelector", ""))]
                return self.say(200, {"kind": "List", "apiVersion": "v1", "metadata": {
                    "resourceVersion": str(api.rev)}, "items": items})
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        at = len(api.history[kind])
        since = int(query.get("resourceVersion") or 0)
        while at and api.history[kind][at - 1][0] > since:
            at -= 1
        while not api.ended:
            with api.changed:
                while at == len(api.history[kind]) and not api.ended:
                    api.changed.wait()
                events, at = api.history[kind][at:], len(api.history[kind])
            self.wfile.write(b"".join(line for _, line in events))

    def one(self, api, kind, key, sub, body):
        with api.lock:
            obj = api.objects[kind].get(key)
            if self.command == "GET":
                return self.say(200, obj) if obj else self.fails(404, api.message)
            sent = json.loads(body or b"{}")
            if self.command == "POST" and sub == "/binding":
                if obj and obj["spec"].get("nodeName"):
                    return self.fails(409)
                api.bindings.append((key, sent))
                if not obj:
                    return self.fails(404)
                obj["spec"]["nodeName"] = sent["target"]["name"]
                obj["metadata"].setdefault("annotations", {}).update(sent["metadata"].get("annotations") or {})
                api.note(kind, "MODIFIED", obj)
                return self.say(201, {"kind": "Status", "status": "Success", "code": 201})
            if self.command == "PATCH":
                api.patches.append((kind, key, sub, sent))
                if not obj:
                    return self.fails(404)
                merge(obj, {"metadata": {"annotations": (sent.get("metadata") or {}).get(
                    "annotations") or {}}})
                if sub == "/status":
                    merge(obj, {"status": sent.get("status") or {}})
                api.note(kind, "MODIFIED", obj)
                return self.say(200, obj)
            return self.fails(405)


def merge(to, patch):
    for key, value in patch.items():
        if value is None:
            to.pop(key, None)
        elif isinstance(value, dict):
            merge(to.setdefault(key, {}), value)
        else:
            to[key] = value


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, request_queue_size = True, 512

    def handle_error(self, *_):
        pass


class Api:
    handler = Handler

    def __init__(self, objects=(), version="v1.36.3"):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.objects, self.history = {"pods": {}, "nodes": {}}, {"pods": [], "nodes": []}
        self.rev, self.version, self.message = 1, version, "no"
        self.bindings, self.patches, self.ended = [], [], False
        self.hidden = set()     # kinds of which nobody may list all
        self.proxy = lambda handler, _: handler.fails(404)
        for obj in objects:
            self.put(obj)
        self.folder = tempfile.mkdtemp(prefix="hostile_surface.")
        self.listen(0)
        self.kubeconfig = os.path.join(self.folder, "kubeconfig")
        with open(self.kubeconfig, "w", encoding="ascii") as out:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                       "clusters": [{"name": "c", "cluster": {"server": f"http://{HOST}:{self.port}"}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "users": [{"name": "u", "user": {"token": "t"}}]}, out)

    def listen(self, port):
        self.server = Server((HOST, port), self.handler)
        self.server.api = self
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def note(self, kind, how, obj):
        self.rev += 1
        obj["metadata"]["resourceVersion"] = str(self.rev)
        self.history[kind].append((self.rev, json.dumps({"type": how, "object": obj}).encode() + b"\n"))
        self.changed.notify_all()

    def put(self, obj):
        kind = obj["kind"].lower() + "s"
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        with self.lock:
            how = "MODIFIED" if key in self.objects[kind] else "ADDED"
            self.objects[kind][key] = obj
            self.note(kind, how, obj)

    def delete(self, kind, key):
        with self.lock:
            if key in self.objects[kind]:
                self.note(kind, "DELETED", self.objects[kind].pop(key))

    def end(self):
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def wait_for(what, question, seconds=30):
    until = time.monotonic() + seconds
    while not (found := question()):
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.02)
    return found


def request(port, method, path, body=None, headers=None, seconds=30):
    """(status, text)."""
    conn = http.client.HTTPConnection(HOST, port, timeout=seconds)
    try:
        conn.connect()
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn.request(method, path, None if body is None else json.dumps(body), headers or {})
        answer = conn.getresponse()
        return answer.status, answer.read().decode("utf-8", "surrogateescape")
    finally:
        conn.close()


class Extender:
    """The built program beside an Api."""

    def __init__(self, build, api, *flags):
        self.port, self.log = free_port(), os.path.join(api.folder, f"extender-{free_port()}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(build, "gpushare-extender"), "--kubeconfig", api.kubeconfig, "--listen",
                 f"{HOST}:{self.port}", "--log-level", "debug", *flags], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})

    def __enter__(self):
        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended: {self.said()[-2000:]}")
            try:
                return self.get("/readyz")[0] == 200
            except OSError:
                return False
        wait_for("the extender is ready", ready)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.status = self.process.wait(30)

    def get(self, path):
        return request(self.port, "GET", path)

    def ask(self, verb, said):
        return request(self.port, "POST", f"/gpushare-scheduler/{verb}", said)

    def bind(self, said):
        return self.ask("bind", said)

    def said(self):
        with open(self.log, encoding="utf-8", errors="surrogateescape") as log:
            return log.read()


class Web:
    """The page of the built program beside an Api."""

    def __init__(self, build, api, *flags):
        self.build = build
        self.log = open(os.path.join(api.folder, "web.log"), "wb")     # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [os.path.join(build, "kubectl-inspect-gpushare"), "web", "--server", f"http://{HOST}:{api.port}", *flags],
            stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL,
            preexec_fn=self.limit,
            env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})
        said = self.process.stdout.readline().decode()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(.*)\n", said)
        if not found:
            self.process.wait(30)
            raise RuntimeError(f"said {said!r}")
        self.port, self.root = int(found[1]), "/" + found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.status = self.process.wait(60)
        self.process.stdout.close()
        self.log.close()

    def limit(self):
        limit_memory(self.build)


def limit_memory(build):
    """A sanitizer maps more than any program may take."""
    if not re.search(r"build-(asan|tsan)", build):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


def cli(build, api, *words):
    """(exit status, stdout, stderr) of kubectl inspect gpushare."""
    done = subprocess.run(
        [os.path.join(build, "kubectl-inspect-gpushare"), *words, "--server", f"http://{HOST}:{api.port}"],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
        preexec_fn=lambda: limit_memory(build), env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})
    return done.returncode, done.stdout, done.stderr
