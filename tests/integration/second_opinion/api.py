# SPDX-License-Identifier: Apache-2.0
"""An API server for pods, nodes and Leases that can do everything wrong: one listener for each
client, so that each has faults of its own. It remembers what each client was told, and when: the
oracle excuses nobody who was told.

Versions may fall (restore()); `seq` never does, and is what this program itself counts by."""

import asyncio
import bisect
import copy
import json
import re
import time
import urllib.parse

POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/binding|/status)?")
LEASE = re.compile(r"/apis/coordination.k8s.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")
KINDS = ("pods", "nodes")
SNAPSHOTS = 6
BOOKMARK_S = 8


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


class Client:
    """One listener, its faults, and the process behind it."""

    def __init__(self, name, port):
        self.name, self.port = name, port
        self.calm()
        self.begin(0)

    def calm(self):
        self.hold = dict.fromkeys(KINDS, False)     # watches stand and say nothing
        self.down = dict.fromkeys(KINDS, False)     # neither watch nor list is answered
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
    def __init__(self, rng, release, checks_uid=True):
        self.rng, self.release, self.checks_uid = rng, release, checks_uid
        self.rev, self.seq = 1000, 0
        self.pods, self.nodes, self.leases = {}, {}, {}
        self.text = {kind: {} for kind in KINDS}            # key -> (seq, text)
        self.last = dict.fromkeys(KINDS, 0)                 # seq of the last change
        self.hist = {kind: [] for kind in KINDS}            # (rev, seq, type, text, object)
        self.floor = self.restored = 0
        self.away, self.back_at = False, 0          # no request is answered until then
        self.snapshots = {kind: [] for kind in KINDS}
        self.clients, self.watches = {}, set()
        self.late = 0                                       # Bindings still to be carried out
        self.tasks, self.calls = set(), {}
        self.on_binding = self.on_fate = self.on_bound = self.on_patch = lambda *a: None
        self.trace = lambda *a: None

    # ---- what the world does

    def note(self, kind, how, obj):
        self.rev += 1
        self.seq += 1
        self.last[kind] = self.seq
        meta = obj["metadata"]
        meta["resourceVersion"] = str(self.rev)
        key = (meta.get("namespace"), meta["name"])
        text = json.dumps(obj)
        self.text[kind].pop(key, None)
        if how != "DELETED":
            self.text[kind][key] = text
        self.hist[kind].append((self.rev, self.seq, how, text, gist(obj)))
        if len(self.hist[kind]) > 60000:
            self.floor = max(self.floor, self.hist[kind][20000][0])
            del self.hist[kind][:20000]
        for watch in self.watches:
            watch.set()
        return self.seq

    def add_pod(self, pod):
        meta = pod["metadata"]
        self.pods[(meta["namespace"], meta["name"])] = pod
        return self.note("pods", "ADDED", pod)

    def touch(self, pod):
        """False if it is gone, or another has its name."""
        meta = pod["metadata"]
        if self.pods.get((meta["namespace"], meta["name"])) is not pod:
            return False
        self.note("pods", "MODIFIED", pod)
        return True

    def del_pod(self, pod):
        meta = pod["metadata"]
        if self.pods.get((meta["namespace"], meta["name"])) is pod:
            del self.pods[(meta["namespace"], meta["name"])]
            self.note("pods", "DELETED", pod)

    def put_node(self, node):
        name = node["metadata"]["name"]
        how = "MODIFIED" if name in self.nodes else "ADDED"
        self.nodes[name] = node
        return self.note("nodes", how, node)

    def del_node(self, name):
        self.note("nodes", "DELETED", self.nodes.pop(name))

    def restore(self, back):
        """From a backup: versions fall, the history is gone; who watches is cut, but for those
        whose watch stands frozen. etcd is not restored while API servers run: nobody answers for
        some seconds (kubernetes.io/docs, "Restoring an etcd cluster")."""
        self.away, seconds = True, self.rng.choice([6, 12])
        self.back_at = time.monotonic() + seconds
        self.later(seconds, setattr, self, "away", False)
        self.rev = max(1000, self.rev - back)
        for kind in KINDS:
            self.hist[kind].clear()
            self.snapshots[kind].clear()
        for kind, objects in (("pods", self.pods), ("nodes", self.nodes)):
            for obj in list(objects.values()):
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
                watch.set()

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
        await asyncio.start_server(lambda r, w: self.serve(client, r, w), "127.0.0.1", client.port,
                                   limit=1 << 22)

    async def serve(self, client, reader, writer):
        try:
            while await self.one(client, reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def one(self, client, reader, writer):
        line = await reader.readline()
        if not line:
            return False
        method, target, _ = line.decode().split()
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
        text = obj if isinstance(obj, str) else json.dumps(obj)
        extra = "Retry-After: 1\r\n" if status == 429 else ""
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}"
                     f"Content-Length: {len(text.encode())}\r\n\r\n{text}".encode())
        await writer.drain()
        return True

    async def answer(self, client, method, path, query, body, writer):
        if self.away:
            match = POD.fullmatch(path)
            if match and match[3] == "/binding":
                self.on_fate((match[1], match[2]), json.loads(body)["target"]["name"])
            return None
        if path == "/version":
            major, minor, _ = self.release.split(".")
            return 200, {"major": major, "minor": minor, "gitVersion": "v" + self.release}
        if path.endswith("/selfsubjectaccessreviews"):
            return 201, {"status": {"allowed": True}}
        if path.endswith("/events") or "/events/" in path:
            return (201 if method == "POST" else 200), json.loads(body or b"{}")
        if path.startswith("/api/v1/") and path[8:] in KINDS and method == "GET":
            return await self.collection(client, path[8:], query, writer)
        if match := POD.fullmatch(path):
            return await self.pod(client, method, (match[1], match[2]), match[3] or "", body)
        if match := LEASE.fullmatch(path):
            if client.lease_fails:
                return self.failure(500, "InternalError", "etcdserver: leader changed")
            return self.lease(method, match[1], match[2], body)
        return self.failure(404, "NotFound", "path not found " + path)

    @staticmethod
    def failure(code, reason, message):
        return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                      "reason": reason, "message": message}

    # ---- lists and watches

    async def collection(self, client, kind, query, writer):
        if query.get("watch") in ("1", "true"):
            return await self.watch(client, kind, query, writer)
        if client.down[kind]:
            return None
        process, version = client.process, query.get("resourceVersion", "")
        rev, seq, texts = self.rev, self.seq, dict(self.text[kind])
        if version == "0" and client.stale_list and self.snapshots[kind]:
            rev, seq, texts = self.rng.choice(self.snapshots[kind])
        elif version not in ("", "0") and int(version) > self.rev:
            return self.failure(504, "Timeout", "Too large resource version")
        if selector := query.get("fieldSelector"):
            texts = {key: text for key, text in texts.items() if selected(text, selector)}
        await asyncio.sleep(client.slow.get("list", 0) * self.rng.random())
        if not query.get("fieldSelector"):
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
                begin = bisect.bisect_right(hist, at, key=lambda event: event[0])
                events = hist[begin:begin + 500]
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
                    if len(events) == 500:
                        continue
                elif now > bookmark:
                    bookmark = now + BOOKMARK_S
                    at = max(at, self.rev)
                    writer.write(chunk("BOOKMARK", json.dumps(
                        {"kind": "Pod" if kind == "pods" else "Node", "apiVersion": "v1",
                         "metadata": {"resourceVersion": str(at)}})))
                    await writer.drain()
                if at >= self.floor and (not hist or hist[-1][0] <= at):
                    process.tell(kind, self.last[kind])
            if now > until and not client.hold[kind]:
                writer.write(b"0\r\n\r\n")
                return
            try:
                await asyncio.wait_for(watch.wait(), 0.5)
            except asyncio.TimeoutError:
                pass
        if watch.last_words and not writer.is_closing():
            writer.write(watch.last_words)
            await writer.drain()

    # ---- pods

    async def pod(self, client, method, key, sub, body):
        if method == "GET":
            pod = self.pods.get(key)
            text = json.dumps(pod) if pod else None
            await asyncio.sleep(client.slow.get("get", 0) * self.rng.random())
            return (200, text) if text else self.failure(404, "NotFound", "pods not found")
        sent = json.loads(body)
        if method == "POST" and sub == "/binding":
            return await self.binding(client, key, sent)
        if method != "PATCH":
            return self.failure(405, "MethodNotAllowed", method)
        await asyncio.sleep(client.slow.get("patch", 0))
        if self.rng.random() < client.patch_fails:
            return self.failure(500, "InternalError", "etcdserver: request timed out")
        pod = self.pods.get(key)
        if not pod:
            return self.failure(404, "NotFound", "pods not found")
        meta = sent.get("metadata") or {}
        mine = pod["metadata"]
        if meta.get("uid", mine["uid"]) != mine["uid"] or \
                meta.get("resourceVersion", mine["resourceVersion"]) != mine["resourceVersion"]:
            return self.failure(409, "Conflict", "the object has been modified")
        self.on_patch(client, pod, sub, sent)
        merge(pod, {"metadata": {k: meta[k] for k in ("annotations", "labels") if k in meta}})
        if sub == "/status":
            merge(pod, {"status": sent.get("status") or {}})
        self.note("pods", "MODIFIED", pod)
        return 200, pod

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
        pod = self.pods.get(key)
        if not pod:
            return self.failure(404, "NotFound", "pods not found")
        uid = (sent.get("metadata") or {}).get("uid")
        other = bool(uid and uid != pod["metadata"]["uid"])
        if other and self.checks_uid:
            return self.failure(409, "Conflict", "the UID in the precondition does not match")
        if pod["metadata"].get("deletionTimestamp"):
            return self.failure(409, "Conflict", "pod %s is being deleted" % key[1])
        if pod["spec"].get("nodeName"):
            return self.failure(409, "Conflict", "pod %s is already assigned to node \"%s\"" % (
                key[1], pod["spec"]["nodeName"]))
        if pod["spec"].get("schedulingGates"):
            return self.failure(422, "Invalid", "pod has scheduling gates")
        before = copy.deepcopy(pod)
        pod["spec"]["nodeName"] = sent["target"]["name"]
        for part in ("annotations", "labels"):
            pod["metadata"].setdefault(part, {}).update(sent["metadata"].get(part) or {})
        pod["status"].pop("nominatedNodeName", None)
        seq = self.note("pods", "MODIFIED", pod)
        self.on_bound(client, pod, before, arrived, seq, other)
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


def gist(obj):
    """What the oracle asks of an event: the object itself changes later."""
    meta = obj["metadata"]
    return (meta.get("uid"), obj["spec"].get("nodeName"),
            (meta.get("annotations") or {}).get("ALIYUN_COM_GPU_MEM_IDX"))


def chunk(how, text):
    line = b'{"type":"%s","object":%s}\n' % (how.encode(), text.encode())
    return b"%x\r\n%s\r\n" % (len(line), line)


def selected(text, selector):
    pod = json.loads(text)
    for part in selector.split(","):
        name, unequal, value = part.partition("!=")
        if not unequal:
            name, _, value = part.replace("==", "=").partition("=")
        at = pod
        for step in name.split("."):
            at = (at or {}).get(step)
        if ((at or "") == value) == bool(unequal):
            return False
    return True
