# SPDX-License-Identifier: Apache-2.0
"""Who asks for the page in ways that no browser does, while its API server restarts, freezes, forgets and says 410: everybody is
answered, in time, with a page that is whole; and what it takes of the machine does not grow."""

import http.client
import random
import socket
import threading
import time

from attack import Wrong
from judge import headers_are_strict, judge_world, opened, quote, read
from programs import HOST, wait_for
from rows import parse
from stream import up_to_date
from world import change, random_world

REQUESTS = 5000

KEYS = ["q", "ns", "model", "sort", "page", "node", "gpu", "namespace", "owner", "pod", "seen", "x", "", "Q", "q[]", "__proto__"]
VALUES = [b"", b"a", b"%", b"%%", b"%0", b"%zz", b"%00", b"%ff", b"%c3", b"%C3%A9", b"%e2%80%ae", b"\xff\xfe", b"\xc3(", b"%3Cscript%3E", b"<script>", b"'\"", b"+",
          b"a" * 99, b"a" * 127, b"%C3%A9" * 64, b"x%C3%A9" * 60, b"/", b"//", b"a/b/c", b"%2F", b"0", b"-1", b"1e9", b"4294967295", b"4294967296",
          b"99999999999999999999", b"100000", b"100001", b"free", b"stranded", b"name%00", b"..%2f..", b"%f0%9f%98%80" * 20, b"&&", b"=", b";", b"#", b"?"]
POOL_BYTES = 7000       # of libmicrohttpd's memory for a request; beyond it the connection may be reset before its 414 is read
ANSWERED_S = 5          # on a busy machine
FROZEN_SAID_S = 15      # the promise


def raw(web, request, seconds=10):
    """All that comes back."""
    with socket.create_connection((HOST, web.port), timeout=seconds) as sock:
        sock.sendall(request)
        answer = b""
        while more := sock.recv(1 << 16):
            answer += more
            head, _, body = answer.partition(b"\r\n\r\n")
            length = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            if length and len(body) >= int(length[0]):
                break
        return answer


def line_of(web, path, method=b"GET", more=b""):
    return b"%s %s%s HTTP/1.1\r\nHost: %s:%d\r\n%s\r\n" % (method, web.root.encode(), path, HOST.encode(), web.port, more)


def judge_raw(what, answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 "):
        raise Wrong(f"no answer, {answer[:100]!r}, to {what!r}")
    status = int(head.split()[1])
    headers = http.client.parse_headers(__import__("io").BytesIO(head.partition(b"\r\n")[2] + b"\r\n\r\n"))
    if status in (200, 204, 403, 404, 503):
        headers_are_strict(what.decode("latin1"), headers)
    elif status not in (400, 405, 413, 414, 431):
        raise Wrong(f"{what!r}: answered {status}")
    if status == 200:
        parse(repr(what), body)
    return status


def some_query(rng):
    pairs = [rng.choice(KEYS).encode() + rng.choice([b"=", b"=", b"=", b"", b"=="]) + rng.choice(VALUES) * rng.choice([1, 1, 1, 3]) for _ in range(rng.choice([1, 2, 3, 10, 100, 500]))]
    if rng.random() < 0.1:
        pairs = [b"q=" + b"x" * rng.choice([1000, 4000, 8000, 20000])]
    if rng.random() < 0.1:
        pairs = [bytes(rng.randrange(33, 256) for _ in range(rng.randrange(1, 300)))]
    return b"?" + rng.choice([b"&", b"&", b"&&", b";"]).join(pairs)[:30000]


def odd_queries(web, rng, count):
    for _ in range(count):
        query = some_query(rng)
        begun = time.monotonic()
        try:
            answer = raw(web, line_of(web, b"rows" + query))
        except OSError as why:
            answer = repr(why).encode()
        if len(query) < POOL_BYTES or answer.startswith(b"HTTP"):
            judge_raw(query[:2000], answer)
        if time.monotonic() - begun > ANSWERED_S:
            raise Wrong(f"{query[:200]!r}: answered after {time.monotonic() - begun:.1f} s")
    return count


def duplicates(web, world):
    """Of two equal keys one counts; which of them does not depend on the day."""
    name = world.shown[0].name if world.shown else "none"
    first = [web.get(f"rows?node={quote(name)}&node=none")[2] for _ in range(3)] if world.shown else []
    if len(set(first)) > 1:
        raise Wrong(f"of two nodes: {[doc[:300] for doc in first]}")
    for method, status in ((b"POST", b"405"), (b"PUT", b"405"), (b"DELETE", b"405"), (b"OPTIONS", b"405")):
        answer = raw(web, line_of(web, b"", method, b"Content-Length: 0\r\n"))
        if answer.split()[1] != status:
            raise Wrong(f"{method}: {answer[:100]!r}")
    answer = raw(web, line_of(web, b"", b"HEAD", b"Connection: close\r\n"))
    if answer.split()[1] != b"200" or answer.partition(b"\r\n\r\n")[2]:
        raise Wrong(f"HEAD: {answer[:300]!r}")
    return 8


def answers_in_time(web, path="", seconds=ANSWERED_S):
    begun = time.monotonic()
    page = read(web, path)
    if time.monotonic() - begun > seconds:
        raise Wrong(f"{path[:200]}: answered after {time.monotonic() - begun:.1f} s")
    return page


def half_sent(web, rng, count):
    """Connections that say half of it, or nothing, keep nobody out; nor do readers who read nothing."""
    socks = []
    whole = line_of(web, b"rows")
    for i in range(count):
        try:
            sock = socket.create_connection((HOST, web.port), timeout=5)
            sock.sendall(rng.choice([b"", whole[:rng.randrange(1, len(whole))], whole, line_of(web, b"rows?q=1")]))
            socks.append(sock)
        except OSError:
            pass
        if i % 20 == 0:
            answers_in_time(web)
    answers_in_time(web)
    for sock in socks:
        sock.close()
    return count


def in_parallel(web, rng, world, count):
    paths, wrong = [""] + [f"?pod={quote(pod.ns)}%2F{quote(pod.name)}" for pod in world.waiting[:20] + world.bound[:20]], []

    def ask(seed):
        own = random.Random(seed)
        for _ in range(count // 16):
            path = own.choice(paths)
            try:
                status, headers, body = web.get("rows" + path)
                headers_are_strict(path, headers)
                if status == 503:
                    continue                    # "too many concurrent requests"
                parse(path, body)
                if status != 200 or b"could not be asked" in body:
                    wrong.append(f"{path}: {status}, in parallel: {body[-400:]!r}")
            except (OSError, Wrong, http.client.HTTPException) as why:
                wrong.append(f"{path}: {why!r}")
    threads = [threading.Thread(target=ask, args=(rng.random(),)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise Wrong(f"{len(wrong)} of {count} in parallel, {wrong[0]}")
    return count


def while_deleted(web, api, rng, world, seconds):
    """Pages are asked for while things go: each is whole, and none is an error."""
    stop, wrong, asked = threading.Event(), [], [0]

    def ask(seed):
        own = random.Random(seed)
        while not stop.is_set():
            with api.lock:
                things = [f"?pod={quote(pod.ns)}%2F{quote(pod.name)}" for pod in own.sample(world.pods, min(3, len(world.pods)))]
                things += [f"?node={quote(node.name)}" for node in own.sample(world.nodes, min(2, len(world.nodes)))] + ["", "?q=1", "?page=2"]
            path = own.choice(things)
            try:
                status, headers, body = web.get("rows" + path)
                asked[0] += 1
                headers_are_strict(path, headers)
                parse(path, body)
                if status != 200:
                    wrong.append(f"{path}: {status} {body[:100]!r}")
            except (OSError, Wrong, http.client.HTTPException) as why:
                wrong.append(f"{path}: {why!r}")
    threads = [threading.Thread(target=ask, args=(rng.random(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with api.lock:
            change(world, api, rng)
        time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    if wrong:
        raise Wrong(f"while things go: {len(wrong)} of {asked[0]}, {wrong[0]}")
    up_to_date(web, world)
    return asked[0]


def frozen(web, api, world, rng):
    """It says so within 15 s, goes on answering, and takes up what happened meanwhile."""
    pods = world.waiting[:1] + world.bound[:1]
    read(web, "")
    what = rng.choice([["nodes", "pods", "events"], ["nodes"], ["pods"]])
    api.client.silent = api.client.hold = dict.fromkeys([*api.client.hold, "events"], False) | dict.fromkeys(what, True)
    api.gone()
    begun = time.monotonic()
    try:
        while not answers_in_time(web)["lost"]:
            if time.monotonic() - begun > FROZEN_SAID_S:
                raise Wrong(f"{what} is frozen, and it is not said after {FROZEN_SAID_S} s")
            time.sleep(0.5)
        for pod in pods:
            answers_in_time(web, f"?pod={quote(pod.ns)}%2F{quote(pod.name)}", 20)
        with api.lock:
            for _ in range(5):
                change(world, api, rng)
    finally:
        api.client.calm()
    up_to_date(web, world, 60)
    return 1


def broken(web, api, world, words):
    """The API server refuses, in its own words."""
    pods = looked_at(world)
    api.refused[""] = (500, words)
    api.gone()
    wait_for("that it refuses is said", lambda: read(web, "")["lost"], 20)
    for path in pods:
        page = read(web, path)
        if "could not be asked" not in page.get("why", "") and "cannot be read" not in page["events"]:
            raise Wrong(f"{path}: the API server refuses: {page.get('why')!r} {page['events']!r}")
    api.refused.clear()
    up_to_date(web, world, 60)


def looked_at(world):
    """Of a pod that has a place, one that waits, a node."""
    return [f"?pod={quote(pod.ns)}%2F{quote(pod.name)}" for pod in world.waiting[:1] + world.bound[:1]] + [f"?node={quote(node.name)}" for node in world.shown[:1]]


def restarted(web, api, world, rng):
    with api.lock:
        for _ in range(5):
            change(world, api, rng)
            change(world, api, rng, forget=True)
    api.restart(1)
    up_to_date(web, world, 60)
    with api.lock:
        change(world, api, rng, forget=True)
        api.gone()
        for _ in range(3):
            change(world, api, rng)
    up_to_date(web, world, 60)
    for words in ("<script>alert(1)</script>\u202e</p>\x1b[2J", "\u00e9" * 400, "x" + "\u00e9" * 400, "\U0001f600" * 200):
        broken(web, api, world, words)
    return 6


def grows(web, rng, world, count):
    """Requests of all kinds leave nothing behind."""
    paths = ["", "?q=1", "?page=2", "?node=none"] + [f"?node={quote(node.name)}" for node in world.shown[:40]]
    paths += [f"?namespace={quote(ns)}" for ns in world.namespaces[:20]] + [f"?pod={quote(pod.ns)}%2F{quote(pod.name)}" for pod in world.live[:60]]

    def some(number):
        for _ in range(number):
            raw(web, line_of(web, b"rows" + rng.choice(paths).encode() if rng.random() < 0.9 else some_query(rng))) \
                if rng.random() < 0.9 else socket.create_connection((HOST, web.port)).close()

    some(count // 5)
    before, files = web.memory_kib(), web.files()
    some(count)
    after = web.memory_kib()
    if after - before > 4096 or web.files() > files + 8:
        raise Wrong(f"{count} requests: {before} KiB before, {after} after; {files} files, {web.files()} after")
    return count


def seed_of(seed, number):
    return f"rude {seed + number}"


def one_world(build, rng, *_):
    world = random_world(rng, rng.choice(["small", "small", "wide"]))
    with opened(build, world) as (web, api):
        done = odd_queries(web, rng, REQUESTS // 10) + duplicates(web, world) + half_sent(web, rng, 200)
        done += in_parallel(web, rng, world, REQUESTS // 10) + while_deleted(web, api, rng, world, REQUESTS / 500)
        done += restarted(web, api, world, rng) + frozen(web, api, world, rng) + grows(web, rng, world, REQUESTS)
        return {"requests": done, "pages": judge_world(web, world, rng, exact=False)}
