# SPDX-License-Identifier: Apache-2.0
"""An API server that a script leads: it lists, watches, answers for device plugins, and is made to freeze, to restart, to
forget what it had and to say 410 Gone. Threads and the standard library."""

import http.client
import http.server
import json
import os
import re
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
import urllib.parse

HOST = "127.0.0.1"
PATH = re.compile(r"/api/v1/(?:namespaces/([^/]*)/)?(pods|nodes|events)(?:/([^/:]*)(:[^/]*)?)?(/proxy/.*)?")
GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, status, doc):
        text = json.dumps(doc).encode()
        self.wfile.write(b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text))

    def fails(self, status, message="no"):
        self.say(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": message})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.fails(403)

    def do_GET(self):
        api = self.server.api
        api.wait_while_frozen()
        if api.broken:
            return self.fails(500, api.broken)
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        match = PATH.fullmatch(urllib.parse.unquote(url.path))
        if not match:
            return self.fails(404)
        namespace, kind, name, _, proxy = match.groups()
        if proxy:
            page = api.usage.get(name)
            return self.say(200, page) if page else self.fails(404)
        if kind == "events":
            return self.say(200, {"metadata": {}, "items": list(api.events)})
        if name:
            with api.lock:
                found = api.objects[kind].get((namespace or "", name))
            return self.say(200, found) if found else self.fails(404)
        if query.get("watch") not in ("1", "true"):
            with api.lock:
                items = [obj for (ns, _), obj in api.objects[kind].items() if not namespace or ns == namespace]
                return self.say(200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": str(api.rev)}, "items": items})
        return self.watch(api, kind, int(query.get("resourceVersion") or 0))

    def watch(self, api, kind, since):
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        era = api.era
        if since < api.oldest:
            self.wfile.write(json.dumps(GONE).encode() + b"\n")
            return
        while not api.ended and era == api.era:
            with api.changed:
                news = [(rev, line) for rev, line in api.history[kind] if rev > since]
                if not news:
                    api.changed.wait(1)
                    continue
            since = news[-1][0]
            api.wait_while_frozen()
            self.wfile.write(b"".join(line for _, line in news))


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, request_queue_size, allow_reuse_address = True, 512, True

    def handle_error(self, *_):
        pass


class Api:
    def __init__(self, objects=(), events=(), usage=None):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.objects, self.history = {"pods": {}, "nodes": {}}, {"pods": [], "nodes": []}
        self.rev, self.oldest, self.era, self.ended, self.frozen, self.broken = 1, 0, 0, False, False, ""
        self.events, self.usage = events, usage or {}
        for obj in objects:
            self.put(obj)
        self.folder = tempfile.mkdtemp(prefix="page_attack.")
        self.port = 0
        self.listen()
        self.kubeconfig = os.path.join(self.folder, "kubeconfig")
        with open(self.kubeconfig, "w", encoding="ascii") as out:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                       "clusters": [{"name": "c", "cluster": {"server": f"http://{HOST}:{self.port}"}}],
                       "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"token": "t"}}]}, out)

    def listen(self):
        self.server = Server((HOST, self.port), Handler)
        self.server.api = self
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def wait_while_frozen(self):
        while self.frozen and not self.ended:
            time.sleep(0.05)

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

    def forget(self, kind, key):
        """Gone, and no watch says so; gone() has to follow."""
        with self.lock:
            self.objects[kind].pop(key, None)

    def gone(self):
        """What watches know is too old, and they end: who goes on has to list."""
        with self.changed:
            self.rev += 10
            self.oldest, self.history = self.rev, {"pods": [], "nodes": []}
            self.era += 1
            self.changed.notify_all()

    def restart(self, seconds):
        self.gone()
        self.server.shutdown()
        self.server.server_close()
        time.sleep(seconds)
        self.listen()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)


class Web:
    """The program beside an Api, as users start it, with a token."""

    def __init__(self, build, api):
        self.program, self.api = os.path.join(build, "kubectl-inspect-gpushare"), api
        self.log = open(os.path.join(api.folder, "web.log"), "wb")     # pylint: disable=consider-using-with
        self.process = subprocess.Popen([self.program, "web", "--kubeconfig", api.kubeconfig], stdout=subprocess.PIPE, stderr=self.log,
                                        stdin=subprocess.DEVNULL, env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)\n", self.process.stdout.readline().decode())
        if not found:
            raise RuntimeError("the page did not start")
        self.port, self.root = int(found[1]), found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.status = self.process.wait(60)
        self.process.stdout.close()
        self.log.close()

    def get(self, path, seconds=40):
        """(status, headers, bytes)"""
        conn = http.client.HTTPConnection(HOST, self.port, timeout=seconds)
        try:
            conn.putrequest("GET", self.root + path, skip_host=True, skip_accept_encoding=True)
            conn.putheader("Host", f"{HOST}:{self.port}")
            conn.endheaders()
            answer = conn.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            conn.close()

    def cli(self, *words):
        done = subprocess.run([self.program, *words, "--kubeconfig", self.api.kubeconfig], capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=60, check=False, env={**os.environ, "GPUSHARE_INVARIANTS": "fatal"})
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def wait_for(what, question, seconds=30):
    until = time.monotonic() + seconds
    while not (found := question()):
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.02)
    return found
