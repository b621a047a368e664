# SPDX-License-Identifier: Apache-2.0
"""An API server for pods, nodes, PodDisruptionBudgets, Leases and Events that can do everything wrong: one listener for
each client, so that each has faults of its own. It remembers what each client was told, and when: an oracle excuses
nobody who was told. Api is for a world in an event loop; Served runs in a thread of its own, for who asks in turn.

Versions may fall (restore()); `seq` never does, and is what this program itself counts by."""

import asyncio
import bisect
import contextlib
import copy
import json
import random
import re
import shutil
import tempfile
import threading
import time
import urllib.parse

from programs import HOST, free_port, write_kubeconfig

OBJECT = re.compile(r"/(?:api|apis/policy)/v1/(?:namespaces/([^/]*)/)?(pods|nodes|events|poddisruptionbudgets)"
                    r"(?:/([^/]*)(/[a-z]+)?(?:/.*)?)?")
LEASE = re.compile(r"/apis/coordination.k8s.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")
KINDS = ("pods", "nodes", "poddisruptionbudgets")
SNAPSHOTS = 6
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


class Client:
    """One listener, its faults, and the process behind it."""

    def __init__(self, name, port):
        self.name, self.port = name, port
        self.calm()
        self.begin(0)

    def calm(self):
        self.hold = dict.fromkeys(KINDS, False)     # watches stand and say nothing
        self.down = dict.fromkeys(KINDS, False)     # neither watch nor list is answered
        self.silent = dict.fromkeys(KINDS, False)   # no request about them is answered yet
        self.lag = 0
        self.slow = {}                              # "list", "get", "patch", "bind": seconds
        self.fates = {}                             # of a Binding: what may happen to it
        self.patch_fails = 0
        self.stale_list = False
        self.lease_fails = False

    def begin(self, seq):
        self.process = Process(seq)


class Process:
    """What it was told. What was so before it began, its first lists tell it, before it binds."""

    def __init__(self, seq):
        self.told = {kind: [(0, seq)] for kind in KINDS}    # (time, seq)
        self.heard = set()          # kinds of which it has had a list
        self.late = None            # what it is told while it is stopped
        self.seen = {}              # UID -> the record with which it first saw the pod bound

    def stop(self):
        self.late = {}

    def go_on(self):
        late, self.late = self.late or {}, None
        for kind, seq in late.items():
            self.tell(kind, seq)

    def see(self, uid, node, record):
        if uid and node:
            self.seen.setdefault(uid, record)

    def tell(self, kind, seq):
        self.heard.add(kind)
        if self.late is not None:
            self.late[kind] = max(seq, self.late.get(kind, 0))
        elif seq > self.told[kind][-1][1]:
            self.told[kind].append((time.monotonic(), seq))
            del self.told[kind][:-5000]

    def told_at(self, kind, moment):
        """The last seq of a kind that it had been told at a moment."""
        at = bisect.bisect_right(self.told[kind], (moment, float("inf")))
        return self.told[kind][max(at, 1) - 1][1]

    def up_to_date(self, kind, seq):
        return kind in self.heard and self.told[kind][-1][1] >= seq


class Api:
    """release: its own; checks_uid: of a Binding."""

    def __init__(self, rng, release="1.36.3", checks_uid=True):
        self.rng, self.release, self.checks_uid = rng, release, checks_uid
        self.rev, self.seq, self.loop, self.lock = 1000, 0, None, threading.RLock()
        self.objects = {kind: {} for kind in KINDS}
        self.pods, self.nodes, self.leases, self.events = self.objects["pods"], self.objects["nodes"], {}, []
        self.bindings, self.patches = [], []                # what it was sent
        self.text = {kind: {} for kind in KINDS}            # key -> text
        self.last = dict.fromkeys(KINDS, 0)                 # seq of the last change
        self.hist = {kind: [] for kind in KINDS}            # (rev, seq, type, text, gist)
        self.floor = self.restored = 0
        self.away, self.back_at = False, 0                  # no request is answered until then
        self.refused = {}           # kind or "" of any -> (status, words) of lists, watches and questions
        self.snapshots = {kind: [] for kind in KINDS}
        self.clients, self.watches, self.servers = {}, set(), {}
        self.late = 0                                       # Bindings still to be carried out
        self.tasks, self.calls = set(), {}
        self.on_binding = self.on_fate = self.on_bound = self.on_patch = lambda *a: None
        self.trace = lambda *a: None

    async def proxy(self, _):
        """(status, document) of a request through the API server."""
        return self.failure(404, "NotFound", "no")

    # ---- what the world does

    def note(self, kind, how, obj):
        with self.lock:
            self.rev += 1
            self.seq += 1
            self.last[kind] = self.seq
            obj["metadata"]["resourceVersion"] = str(self.rev)
            key, text = key_of(obj), json.dumps(obj)
            self.text[kind].pop(key, None)
            if how != "DELETED":
                self.text[kind][key] = text
            self.hist[kind].append((self.rev, self.seq, how, text, gist(obj)))
            if len(self.hist[kind]) > 60000:
                self.floor = max(self.floor, self.hist[kind][20000][0])
                del self.hist[kind][:20000]
            for watch in list(self.watches):
                self.wake(watch)
            return self.seq

    def wake(self, watch):
        if self.loop and not watch.is_set():
            self.loop.call_soon_threadsafe(watch.set)
        elif not self.loop:
            watch.set()

    def put(self, obj):
        kind = obj["kind"].lower() + "s"
        with self.lock:
            how = "MODIFIED" if key_of(obj) in self.objects[kind] else "ADDED"
            self.objects[kind][key_of(obj)] = obj
            return self.note(kind, how, obj)

    def touch(self, pod):
        """False if it is gone, or another has its name."""
        if self.pods.get(key_of(pod)) is not pod:
            return False
        self.note("pods", "MODIFIED", pod)
        return True

    def delete(self, kind, key):
        with self.lock:
            if key in self.objects[kind]:
                self.note(kind, "DELETED", self.objects[kind].pop(key))

    def del_pod(self, pod):
        if self.pods.get(key_of(pod)) is pod:
            self.delete("pods", key_of(pod))

    def forget(self, kind, key):
        """Gone, and no watch says so; gone() has to follow."""
        with self.lock:
            self.objects[kind].pop(key, None)
            self.text[kind].pop(key, None)

    def gone(self):
        """What watches know is too old, and they end: who goes on has to list."""
        with self.lock:
            self.rev += 10
            self.expire()
            for kind in KINDS:
                self.hist[kind].clear()

    def expire(self):
        self.floor = self.rev
        self.cut(lambda *_: True)

    def restore(self, back):
        """From a backup: versions fall, the history is gone; who watches is cut, but for those
        whose watch stands frozen. etcd is not restored while API servers run: nobody answers for
        some seconds (kubernetes.io/docs, "Restoring an etcd cluster")."""
        self.away, seconds = True, self.rng.choice([6, 12])
        self.back_at = time.monotonic() + seconds
        self.later(seconds, setattr, self, "away", False)
        self.rev = max(1000, self.rev - back)
        for kind in KINDS:
            self.snapshots[kind].clear()
            for obj in list(self.objects[kind].values()):
                self.note(kind, "MODIFIED", obj)
            self.hist[kind].clear()
        for lease in self.leases.values():
            self.rev += 1
            lease["metadata"]["resourceVersion"] = str(self.rev)
        self.floor = self.rev
        self.restored += 1
        self.cut(lambda client, kind: not client.hold[kind])

    def cut(self, which):
        for watch in list(self.watches):
            if which(watch.client, watch.kind):
                watch.end = True
                self.wake(watch)

    def snapshot(self):
        for kind in KINDS:
            self.snapshots[kind].append((self.rev, self.last[kind], dict(self.text[kind])))
            del self.snapshots[kind][:-SNAPSHOTS]

    def later(self, seconds, what, *args):
        async def wait():
            await asyncio.sleep(seconds)
            what(*args)
        self.spawn(wait())

    def spawn(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    # ---- HTTP

    async def listen(self, client):
        self.clients[client.name] = client
        self.servers[client.name] = await asyncio.start_server(
            lambda r, w: self.serve(client, r, w), HOST, client.port, limit=1 << 22, backlog=512)

    async def serve(self, client, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self.one(client, reader, writer):
                pass
        writer.close()

    async def one(self, client, reader, writer):
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
        query = dict(urllib.parse.parse_qsl(url.query))
        what = (method, re.sub(r"(pods|leases)/[^/]+", r"\1/X", url.path), bool(query.get("watch")))
        self.calls[what] = self.calls.get(what, 0) + 1
        answer = await self.answer(client, method, url.path, query, body, writer)
        if answer is None:
            return False
        status, obj = answer
        text = obj if isinstance(obj, bytes) else (obj if isinstance(obj, str) else json.dumps(obj)).encode()
        extra = "Retry-After: 1\r\n" if status == 429 else ""
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}"
                     f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
        await writer.drain()
        return True

    async def answer(self, client, method, path, query, body, writer):
        """(status, document); None: the connection is closed without a word."""
        match = OBJECT.fullmatch(path)
        namespace, kind, name, sub = (urllib.parse.unquote(part or "") for part in match.groups()) if match else [""] * 4
        key = name if kind == "nodes" else (namespace, name)
        while client.silent.get(kind):
            await asyncio.sleep(0.02)
        if self.away:
            if sub == "/binding":
                self.on_fate(key, json.loads(body)["target"]["name"])
            return None
        if path == "/version":
            major, minor, _ = self.release.split(".")
            return 200, {"major": major, "minor": minor, "gitVersion": "v" + self.release}
        if path.endswith("accessreviews"):
            return 201, {"status": {"allowed": True}}
        if refused := method == "GET" and (self.refused.get("") or not name and self.refused.get(kind)):
            return self.failure(refused[0], "X", refused[1])
        if sub == "/proxy":
            return await self.proxy(urllib.parse.unquote(path))
        if kind == "events":
            if method == "GET":
                return 200, {"metadata": {}, "items": self.events}
            self.events.append(json.loads(body))
            return 201, body
        if kind and not name and method == "GET":
            return await self.collection(client, kind, namespace, query, writer)
        if kind:
            return await self.object(client, method, kind, key, sub, body)
        if match := LEASE.fullmatch(path):
            if client.lease_fails:
                return self.failure(500, "InternalError", "etcdserver: leader changed")
            return self.lease(method, match[1], match[2], body)
        return self.failure(404, "NotFound", "no")

    @staticmethod
    def failure(code, reason, message):
        return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                      "reason": reason, "message": message}

    # ---- lists and watches

    async def collection(self, client, kind, namespace, query, writer):
        if query.get("watch") in ("1", "true"):
            return await self.watch(client, kind, query, writer)
        if client.down[kind]:
            return None
        process, version = client.process, query.get("resourceVersion", "")
        with self.lock:
            rev, seq, texts = self.rev, self.seq, dict(self.text[kind])
        if version == "0" and client.stale_list and self.snapshots[kind]:
            rev, seq, texts = self.rng.choice(self.snapshots[kind])
        elif version not in ("", "0") and int(version) > self.rev:
            return self.failure(504, "Timeout", "Too large resource version")
        fields, labels = query.get("fieldSelector", ""), query.get("labelSelector", "")
        if namespace or fields or labels:
            texts = {key: text for key, text in texts.items() if namespace in ("", key[0]) and
                     (not fields and not labels or selected(json.loads(text), fields, labels))}
        await asyncio.sleep(client.slow.get("list", 0) * self.rng.random())
        if not fields:
            process.tell(kind, seq)
            if kind == "pods":
                for text in texts.values():
                    process.see(*gist(json.loads(text)))
        return 200, ('{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d"},'
                     '"items":[%s]}' % (rev, ",".join(texts.values())))

    async def watch(self, client, kind, query, writer):
        if client.down[kind]:
            return None
        at = int(query.get("resourceVersion") or 0)
        if at and at < self.floor:
            return self.failure(410, "Expired", "too old resource version")
        if at > self.rev:
            return self.failure(504, "Timeout", "Too large resource version")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        watch = Watch(client, kind, self.restored)
        self.watches.add(watch)
        until = time.monotonic() + int(query.get("timeoutSeconds") or 600)
        try:
            await self.stream(watch, at, until, writer)
        finally:
            self.watches.discard(watch)
        return None

    async def stream(self, watch, at, until, writer):
        client, kind, process = watch.client, watch.kind, watch.process
        bookmark = time.monotonic() + BOOKMARK_S
        while not watch.end and not writer.is_closing() and not client.down[kind]:
            watch.clear()
            now = time.monotonic()
            hist = self.hist[kind]
            if not client.hold[kind]:
                if watch.restored != self.restored:     # its server is not there any more
                    return
                with self.lock:
                    begin = bisect.bisect_right(hist, at, key=lambda event: event[0])
                    events = hist[begin:begin + BATCH]
                if events and client.lag:
                    await asyncio.sleep(client.lag * self.rng.random())
                    if watch.end or client.hold[kind]:
                        continue
                if events:
                    writer.write(b"".join(chunk(how, text) for _, _, how, text, _ in events))
                    await writer.drain()
                    at = events[-1][0]
                    for event in events:
                        process.see(*event[4])
                    process.tell(kind, events[-1][1])
                    if len(events) == BATCH:
                        continue
                elif now > bookmark:
                    bookmark = now + BOOKMARK_S
                    at = max(at, self.rev)
                    writer.write(chunk("BOOKMARK", json.dumps(
                        {"kind": "Node" if kind == "nodes" else "Pod", "apiVersion": "v1",
                         "metadata": {"resourceVersion": str(at)}})))
                    await writer.drain()
                if at >= self.floor and (not hist or hist[-1][0] <= at):
                    process.tell(kind, self.last[kind])
            if now > until and not client.hold[kind]:
                writer.write(b"0\r\n\r\n")
                return
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(watch.wait(), 0.5)
        if watch.last_words and not writer.is_closing():
            writer.write(watch.last_words)
            await writer.drain()

    # ---- objects

    async def object(self, client, method, kind, key, sub, body):
        missing = self.failure(404, "NotFound", "no")
        if method == "GET":
            with self.lock:
                text = json.dumps(self.objects[kind][key]) if key in self.objects[kind] else None
            await asyncio.sleep(client.slow.get("get", 0) * self.rng.random())
            return (200, text) if text else missing
        sent = json.loads(body or b"{}")
        if method == "POST" and sub == "/binding":
            return await self.binding(client, key, sent)
        if method != "PATCH":
            return self.failure(405, "MethodNotAllowed", method)
        await asyncio.sleep(client.slow.get("patch", 0))
        if self.rng.random() < client.patch_fails:
            return self.failure(500, "InternalError", "etcdserver: request timed out")
        with self.lock:
            self.patches.append((kind, key, sub, sent))
            obj = self.objects[kind].get(key)
            return self.patch(client, kind, obj, sub, sent) if obj else missing

    def patch(self, client, kind, obj, sub, sent):
        meta, mine = sent.get("metadata") or {}, obj["metadata"]
        if meta.get("uid", mine["uid"]) != mine["uid"] or \
                meta.get("resourceVersion", mine["resourceVersion"]) != mine["resourceVersion"]:
            return self.failure(409, "Conflict", "the object has been modified")
        self.on_patch(client, obj, sub, sent)
        merge(obj, {"metadata": {k: meta[k] for k in ("annotations", "labels") if k in meta}})
        if sub == "/status":
            merge(obj, {"status": sent.get("status") or {}})
        self.note(kind, "MODIFIED", obj)
        return 200, json.dumps(obj)

    async def binding(self, client, key, sent):
        arrived = (time.monotonic(), client.process)
        self.on_binding(client, key)
        fate, chance = "done", self.rng.random()
        for name, share in client.fates.items():
            if chance < share:
                fate = name
                break
            chance -= share
        if fate != "done":
            self.trace("binding", client.name, key[1], fate)
            self.on_fate(key, sent["target"]["name"])
        if fate == "error":
            return self.failure(500, "InternalError", "etcdserver: request timed out")
        if fate == "conflict":
            return self.failure(409, "Conflict", "Operation cannot be fulfilled on pods")
        if fate == "throttled":
            return self.failure(429, "TooManyRequests", "too many requests")
        if fate == "dropped":
            return None
        if fate == "late":
            self.late += 1
            self.later(self.rng.random() * client.slow.get("late", 2), self.bind_late, client, key,
                       sent, arrived)
            return None
        if slow := client.slow.get("bind", 0):
            await asyncio.sleep(slow * self.rng.random())
        failed = self.bind(client, key, sent, arrived)
        if fate == "lost":
            return None
        if fate == "error_after":
            return self.failure(500, "InternalError", "etcdserver: request timed out")
        return failed or (201, {"kind": "Status", "status": "Success", "code": 201})

    def bind_late(self, client, key, sent, arrived):
        self.late -= 1
        self.bind(client, key, sent, arrived)

    def bind(self, client, key, sent, arrived):
        with self.lock:
            pod, uid = self.pods.get(key), (sent.get("metadata") or {}).get("uid")
            if pod and pod["spec"].get("nodeName"):
                return self.failure(409, "Conflict", "pod %s is already assigned to node \"%s\"" % (
                    key[1], pod["spec"]["nodeName"]))
            self.bindings.append((key, sent))
            if not pod:
                return self.failure(404, "NotFound", "pods not found")
            other = bool(uid and uid != pod["metadata"]["uid"])
            if other and self.checks_uid:
                return self.failure(409, "Conflict", "the UID in the precondition does not match")
            if pod["metadata"].get("deletionTimestamp"):
                return self.failure(409, "Conflict", "pod %s is being deleted" % key[1])
            if pod["spec"].get("schedulingGates"):
                return self.failure(422, "Invalid", "pod has scheduling gates")
            before = copy.deepcopy(pod)
            pod["spec"]["nodeName"] = sent["target"]["name"]
            for part in ("annotations", "labels"):
                pod["metadata"].setdefault(part, {}).update(sent["metadata"].get(part) or {})
            pod["status"].pop("nominatedNodeName", None)
            self.on_bound(client, pod, before, arrived, self.note("pods", "MODIFIED", pod), other)
            return None

    # ---- Leases

    def lease(self, method, namespace, name, body):
        if method == "GET":
            found = self.leases.get((namespace, name))
            return (200, found) if found else self.failure(404, "NotFound", "no such lease")
        sent = json.loads(body)
        key = (namespace, sent["metadata"]["name"])
        old = self.leases.get(key)
        version = sent["metadata"].get("resourceVersion")
        if method == "POST" and old:
            return self.failure(409, "AlreadyExists", "it exists")
        if method == "PUT" and not old:
            return self.failure(404, "NotFound", "no such lease")
        if method == "PUT" and version and version != old["metadata"]["resourceVersion"]:
            return self.failure(409, "Conflict", "the object has been modified")
        self.put_lease(key, sent)
        return (201 if method == "POST" else 200), sent

    def put_lease(self, key, lease):
        self.rev += 1
        lease["metadata"]["resourceVersion"] = str(self.rev)
        self.leases[key] = lease


class Watch(asyncio.Event):
    def __init__(self, client, kind, restored):
        super().__init__()
        self.client, self.kind, self.restored = client, kind, restored
        self.process = client.process
        self.end, self.last_words = False, b""


class Served(Api):
    """In a thread of its own, with one client: `with Served(objects) as api`. Who changes what it has holds its lock."""

    def __init__(self, objects=(), rng=None):
        super().__init__(rng or random.Random(0))
        for obj in objects:
            self.put(obj)
        self.folder, self.port = tempfile.mkdtemp(prefix="gpushare-world."), free_port()
        self.kubeconfig = write_kubeconfig(self.folder + "/kubeconfig", self.port)
        self.client, self.loop = Client("client", self.port), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.wait(self.listen(self.client))

    def wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    async def cancel(self):
        self.servers["client"].close()
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


def gist(obj):
    """What an oracle asks of an event: the object itself changes later."""
    meta = obj["metadata"]
    return (meta.get("uid"), (obj.get("spec") or {}).get("nodeName"),
            (meta.get("annotations") or {}).get("ALIYUN_COM_GPU_MEM_IDX"))


def chunk(how, text):
    line = b'{"type":"%s","object":%s}\n' % (how.encode(), text.encode())
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
