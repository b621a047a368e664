# SPDX-License-Identifier: Apache-2.0
"""An API server for pods, nodes, PodDisruptionBudgets and Events in a thread of its own: `with Served(objects) as api`. Who
changes what it has holds its lock. Its watches may stand and say nothing, requests may get no answer, questions may be refused,
and what happened may be forgotten."""

import asyncio
import bisect
import contextlib
import json
import re
import shutil
import tempfile
import threading
import time
import urllib.parse

from programs import HOST, free_port, write_kubeconfig

OBJECT = re.compile(r"/(?:api|apis/policy)/v1/(?:namespaces/([^/]*)/)?(pods|nodes|events|poddisruptionbudgets)"
                    r"(?:/([^/]*)(/[a-z]+)?(?:/.*)?)?")
KINDS = ("pods", "nodes", "poddisruptionbudgets")
BOOKMARK_S = 8
BATCH = 500         # events of a watch that are written at once


def merge(to, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            to.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(to.get(key), dict):
                to[key] = {}
            merge(to[key], value)
        else:
            to[key] = value


def key_of(obj):
    """Of a node its name, of others namespace and name."""
    meta = obj["metadata"]
    return meta["name"] if obj["kind"] == "Node" else (meta.get("namespace", ""), meta["name"])


class Watch(asyncio.Event):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.end = kind, False


class Served:
    def __init__(self, objects=(), usage=None):
        self.rev, self.floor, self.lock = 1000, 0, threading.RLock()
        self.objects, self.events = {kind: {} for kind in KINDS}, []
        self.text = {kind: {} for kind in KINDS}            # key -> text
        self.hist = {kind: [] for kind in KINDS}            # (rev, type, text)
        self.patches = []           # what it was sent
        self.refused = {}           # kind or "" of any -> (status, words) of lists, watches and questions
        self.usage = {} if usage is None else usage         # pod of a device plugin -> its page
        self.rest = {}              # continue token -> (rev, texts)
        self.watches, self.server = set(), None
        self.calm()
        self.loop = asyncio.new_event_loop()
        for obj in objects:
            self.put(obj)
        self.folder, self.port = tempfile.mkdtemp(prefix="gpushare-world."), free_port()
        self.kubeconfig = write_kubeconfig(self.folder + "/kubeconfig", self.port)
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.wait(self.listen())

    def wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    async def cancel(self):
        self.server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def end(self):
        self.wait(self.cancel())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    # ---- what the world does

    def calm(self):
        self.hold = dict.fromkeys(KINDS, False)     # watches stand and say nothing
        self.silent = dict.fromkeys(KINDS, False)   # no request about them is answered yet

    def note(self, kind, how, obj):
        with self.lock:
            self.rev += 1
            obj["metadata"]["resourceVersion"] = str(self.rev)
            key, text = key_of(obj), json.dumps(obj)
            self.text[kind].pop(key, None)
            if how != "DELETED":
                self.text[kind][key] = text
            self.hist[kind].append((self.rev, how, text))
            for watch in list(self.watches):
                self.wake(watch)

    def wake(self, watch):
        if not watch.is_set():
            self.loop.call_soon_threadsafe(watch.set)

    def put(self, obj):
        kind = obj["kind"].lower() + "s"
        with self.lock:
            how = "MODIFIED" if key_of(obj) in self.objects[kind] else "ADDED"
            self.objects[kind][key_of(obj)] = obj
            self.note(kind, how, obj)

    def delete(self, kind, key):
        with self.lock:
            if key in self.objects[kind]:
                self.note(kind, "DELETED", self.objects[kind].pop(key))

    def forget(self, kind, key):
        """Gone, and no watch says so; gone() has to follow."""
        with self.lock:
            self.objects[kind].pop(key, None)
            self.text[kind].pop(key, None)

    def gone(self):
        """What watches know is too old, and they end: who goes on has to list."""
        with self.lock:
            self.rev += 10
            self.floor = self.rev
            for kind in KINDS:
                self.hist[kind].clear()
            for watch in list(self.watches):
                watch.end = True
                self.wake(watch)

    # ---- HTTP

    async def listen(self):
        self.server = await asyncio.start_server(self.serve, HOST, self.port, limit=1 << 22, backlog=512)

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self.one(reader, writer):
                pass
        writer.close()

    async def one(self, reader, writer):
        line = await reader.readline()
        if not line:
            return False
        method, target, _ = line.decode("latin1").split()
        length = 0
        while (head := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = head.decode("latin1").partition(":")
            if name.lower() == "content-length":
                length = int(value)
            if name.lower() == "expect":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(length) if length else b""
        url = urllib.parse.urlsplit(target)
        answer = await self.answer(method, url.path, dict(urllib.parse.parse_qsl(url.query)), body, writer)
        if answer is None:
            return False
        status, obj = answer
        text = obj if isinstance(obj, bytes) else (obj if isinstance(obj, str) else json.dumps(obj)).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
        await writer.drain()
        return True

    async def answer(self, method, path, query, body, writer):
        """(status, document); None: the connection is closed without a word."""
        match = OBJECT.fullmatch(path)
        namespace, kind, name, sub = (urllib.parse.unquote(part or "") for part in match.groups()) if match else [""] * 4
        while self.silent.get(kind):
            await asyncio.sleep(0.02)
        if path == "/version":
            return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
        if path.endswith("accessreviews"):
            return 201, {"status": {"allowed": True}}
        if refused := method == "GET" and (self.refused.get("") or not name and self.refused.get(kind)):
            return self.failure(refused[0], "X", refused[1])
        if sub == "/proxy":
            page = self.usage.get(name.split(":")[0])
            return (200, page) if page else self.failure(404, "NotFound", "no")
        if kind == "events":
            if method == "GET":
                return 200, {"metadata": {}, "items": self.events}
            self.events.append(json.loads(body))
            return 201, body
        if kind and not name and method == "GET":
            return await self.collection(kind, namespace, query, writer)
        if kind:
            return self.object(method, kind, name if kind == "nodes" else (namespace, name), sub, body)
        return self.failure(404, "NotFound", "no")

    @staticmethod
    def failure(code, reason, message):
        return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                      "reason": reason, "message": message}

    # ---- lists and watches

    async def collection(self, kind, namespace, query, writer):
        if query.get("watch") in ("1", "true"):
            return await self.watch(kind, query, writer)
        token, limit = query.get("continue", ""), int(query.get("limit") or 0)
        if token and token not in self.rest:
            return self.failure(410, "Expired", "the token is forgotten")
        rev, texts = self.rest[token] if token else self.list_of(kind, namespace, query)
        token = f"{kind}-{rev}-{len(texts)}" if 0 < limit < len(texts) else ""
        if token:
            self.rest[token] = rev, texts[limit:]
            texts = texts[:limit]
        return 200, ('{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},'
                     '"items":[%s]}' % (rev, token, ",".join(texts)))

    def list_of(self, kind, namespace, query):
        """(resourceVersion, texts)"""
        with self.lock:
            rev, texts = self.rev, sorted(self.text[kind].items())
        fields, labels = query.get("fieldSelector", ""), query.get("labelSelector", "")
        return rev, [text for key, text in texts if (not namespace or namespace == key[0]) and
                     (not fields and not labels or selected(json.loads(text), fields, labels))]

    async def watch(self, kind, query, writer):
        at = int(query.get("resourceVersion") or 0)
        if at and at < self.floor:
            return self.failure(410, "Expired", "too old resource version")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        watch = Watch(kind)
        self.watches.add(watch)
        until = time.monotonic() + int(query.get("timeoutSeconds") or 600)
        try:
            await self.stream(watch, at, until, writer)
        finally:
            self.watches.discard(watch)
        return None

    async def stream(self, watch, at, until, writer):
        kind, bookmark = watch.kind, time.monotonic() + BOOKMARK_S
        while not watch.end and not writer.is_closing():
            watch.clear()
            now = time.monotonic()
            if not self.hold[kind]:
                with self.lock:
                    begin = bisect.bisect_right(self.hist[kind], at, key=lambda event: event[0])
                    events = self.hist[kind][begin:begin + BATCH]
                lines = [line_of(how, text) for _, how, text in events]
                if events:
                    at = events[-1][0]
                elif now > bookmark:
                    bookmark = now + BOOKMARK_S
                    at = max(at, self.rev)
                    lines = [bookmark_of(kind, at)]
                if not await self.send(watch, lines, writer):
                    return
                if len(events) == BATCH:
                    continue
                if now > until:
                    writer.write(LAST)
                    return
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(watch.wait(), 0.5)

    async def send(self, watch, lines, writer):
        """False: the watch is over."""
        writer.write(b"".join(map(chunk, lines)))
        await writer.drain()
        return True

    # ---- objects

    def object(self, method, kind, key, sub, body):
        sent = json.loads(body or b"{}")
        with self.lock:
            obj = self.objects[kind].get(key)
            if method == "PATCH":
                self.patches.append((kind, key, sub, sent))
            if not obj:
                return self.failure(404, "NotFound", "no")
            if method == "GET":
                return 200, json.dumps(obj)
            if method == "POST" and sub == "/binding":
                return self.bind(obj, sent)
            return self.patch(kind, obj, sub, sent) if method == "PATCH" else self.failure(405, "MethodNotAllowed", method)

    def patch(self, kind, obj, sub, sent):
        meta, mine = sent.get("metadata") or {}, obj["metadata"]
        if meta.get("uid", mine["uid"]) != mine["uid"] or \
                meta.get("resourceVersion", mine["resourceVersion"]) != mine["resourceVersion"]:
            return self.failure(409, "Conflict", "the object has been modified")
        merge(obj, {"metadata": {k: meta[k] for k in ("annotations", "labels") if k in meta}})
        if sub == "/status":
            merge(obj, {"status": sent.get("status") or {}})
        self.note(kind, "MODIFIED", obj)
        return 200, json.dumps(obj)

    def bind(self, pod, sent):
        meta = pod["metadata"]
        if pod["spec"].get("nodeName") or sent["metadata"].get("uid", meta["uid"]) != meta["uid"]:
            return self.failure(409, "Conflict", "pod is already assigned to a node, or is another")
        pod["spec"]["nodeName"] = sent["target"]["name"]
        for part in ("annotations", "labels"):
            meta.setdefault(part, {}).update(sent["metadata"].get(part) or {})
        pod["status"].pop("nominatedNodeName", None)
        self.note("pods", "MODIFIED", pod)
        return 201, {"kind": "Status", "status": "Success", "code": 201}


LAST = b"0\r\n\r\n"


def line_of(how, text):
    return b'{"type":"%s","object":%s}\n' % (how.encode(), text.encode())


def bookmark_of(kind, version):
    return line_of("BOOKMARK", json.dumps({"kind": "Node" if kind == "nodes" else "Pod", "apiVersion": "v1",
                                           "metadata": {"resourceVersion": str(version)}}))


def chunk(line):
    return b"%x\r\n%s\r\n" % (len(line), line)


def selected(obj, fields, labels):
    """By field selectors, and by one label that is equal."""
    for part in filter(None, fields.split(",")):
        name, unequal, value = part.partition("!=")
        if not unequal:
            name, _, value = part.replace("==", "=").partition("=")
        at = obj
        for step in name.split("."):
            at = (at or {}).get(step)
        if ((at or "") == value) == bool(unequal):
            return False
    name, _, value = labels.partition("=")
    return not name or (obj["metadata"].get("labels") or {}).get(name) == value
