# SPDX-License-Identifier: Apache-2.0
"""hostile_surface's API server, which here answers for device plugins too, and is made to freeze, to restart, to forget what
it had and to say 410 Gone."""

import http.client
import json
import os
import re
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile_surface"))
import fake  # noqa: E402
from fake import HOST, wait_for  # noqa: E402,F401

PATH = re.compile(r"/api/v1/(?:namespaces/([^/]*)/)?(pods|nodes|events)(?:/([^/:]*)(:[^/]*)?)?(/proxy/.*)?")
GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}}


class Handler(fake.Handler):
    def do_POST(self):
        self.read_body()
        self.fails(403)

    def do_GET(self):
        api = self.server.api
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        match = PATH.fullmatch(urllib.parse.unquote(url.path))
        if not match:
            return self.fails(404)
        namespace, kind, name, _, proxy = match.groups()
        api.wait_while_frozen(kind)
        if api.broken:
            return self.fails(500, api.broken)
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
            return self.collection(api, kind, namespace, {})
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
            api.wait_while_frozen(kind)
            self.wfile.write(b"".join(line for _, line in news))


class Api(fake.Api):
    handler = Handler

    def __init__(self, objects=(), events=(), usage=None):
        self.oldest, self.era, self.frozen, self.broken = 0, 0, "", ""
        self.events, self.usage = events, usage or {}
        super().__init__(objects)

    def wait_while_frozen(self, kind):
        while self.frozen in (kind, "everything") and not self.ended:
            time.sleep(0.05)

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
        self.listen(self.port)


class Web(fake.Web):
    def __init__(self, build, api):
        self.api = api
        super().__init__(build, api)

    def limit(self):
        """None: how much it takes is judged."""

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
        code, out, err = fake.cli(self.build, self.api, *words)
        return code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
