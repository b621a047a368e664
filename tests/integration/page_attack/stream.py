# SPDX-License-Identifier: Apache-2.0
"""Who follows a page is sent parts. Put in where the script puts them, they are the page that is answered to a new reader."""

import http.client
import json
import socket
import threading
import time
import urllib.parse

from api import HOST, wait_for
from judge import Filter, quote, read
from markup import Wrong, parse
from world import change


def parts_of(text):
    """HTML of each element of <main>, by id, in order."""
    main = parse(text).by_id("main")
    return main.attrs["data-sum"], {part.attrs["id"]: text[part.at:part.end] for part in main.parts if not isinstance(part, str)}


class Follower:
    def __init__(self, web, path):
        self.web, self.path, self.fault, self.news, self.live = web, path, "", 0, None
        status, _, body = web.get(path)
        self.status = status
        text = body.decode()
        seen, self.parts = parts_of(text)
        self.conn = http.client.HTTPConnection(HOST, web.port, timeout=60)
        query = path.removeprefix("?") + "&seen=" + seen
        self.conn.request("GET", f"{web.root}events?{query}", headers={"Host": f"{HOST}:{web.port}"})
        self.socket = self.conn.sock
        self.answer = self.conn.getresponse()
        if self.answer.status != 200:
            raise Wrong(f"events?{query[:100]}: {self.answer.status}")
        self.closed = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        event = ""
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith("event: "):
                    event = line[7:]
                elif line.startswith("data: "):
                    self.take(event, json.loads(line[6:]))
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as why:
            self.fault = self.fault or f"the stream ended: {why!r}"
        except Wrong as why:
            self.fault = f"{self.path[:200]}: a part is no HTML: {why}"

    def take(self, event, data):
        if event == "alive":
            self.live = data
            return
        self.news += 1
        root = parse(data, part=True)
        found = {part.attrs["id"]: data[part.at:part.end] for part in root.parts if not isinstance(part, str)}
        if event == "page":
            self.parts = found
        elif event == "part":
            if len(found) != 1 or not set(found) <= set(self.parts):
                raise Wrong(f"{list(found)} is no part of the page")
            self.parts.update(found)

    def same(self):
        _, want = parts_of(self.web.get(self.path)[2].decode())
        return self.fault or (list(self.parts) == list(want) and self.parts == want)

    def judge(self):
        if not wait_for_same(self) or self.fault:
            _, want = parts_of(self.web.get(self.path)[2].decode())
            differ = [key for key in {**want, **self.parts} if want.get(key) != self.parts.get(key)]
            raise Wrong(f"{self.path[:200]}: {self.fault or 'what was sent is not the page'}: parts {differ[:5]}, order {list(self.parts) == list(want)}\n"
                        f"  sent {str([self.parts.get(key) for key in differ[:2]])[:500]}\n  page {str([want.get(key) for key in differ[:2]])[:500]}")

    def close(self):
        self.closed = True
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.answer.close()
        self.conn.close()


def wait_for_same(follower):
    try:
        return wait_for("the same", follower.same, 6)
    except TimeoutError:
        return False


def some_paths(rng, world):
    yield "?"
    yield Filter(q=rng.choice(["1", "team", "web", "n", "nothing"])).address()
    yield Filter(ns=rng.choice(world.namespaces)).address(page=2)
    yield f"?namespace={quote(rng.choice(world.namespaces))}"
    for pod in rng.sample(world.live, min(3, len(world.live))):
        yield f"?pod={quote(pod.ns)}%2F{quote(pod.name)}"
        if pod.owner:
            yield f"?owner={quote(pod.ns)}%2F{quote(pod.owner)}"
    for node in rng.sample(world.shown, min(2, len(world.shown))):
        yield f"?node={quote(node.name)}&gpu=0"
        yield f"?node={quote(node.name)}"


def up_to_date(web, world, seconds=40):
    """What ended was noticed, and is mended."""
    def is_so():
        page = read(web, "")
        totals, waits = page.by_id("totals").one("div", class_="wide"), page.by_id("waiting").one("h2").text().split()[0]
        used, total = sum(node.used for node in world.shown), sum(node.total for node in world.shown)
        return not page.by_id("lost").text() and totals.one("b").text() == f"{used:,}" and \
            totals.own().startswith(f" of {total:,} ") and waits == (str(len(world.waiting)) if world.waiting else "Nobody")
    wait_for("the page is up to date", is_so, seconds)


def judge_stream(web, api, world, rng, rounds, forget=True):
    """Parts that were sent."""
    followers = [Follower(web, path) for path in some_paths(rng, world)]
    for round_ in range(rounds):
        with api.lock:
            for _ in range(rng.choice([1, 1, 5, 30])):
                change(world, api, rng)
        if forget and rng.random() < 0.3:           # a node and a pod go, and nobody says so
            with api.lock:
                change(world, api, rng, forget=True)
                api.gone()
        time.sleep(0.3)
        for follower in followers:
            follower.judge()
    news = sum(follower.news for follower in followers)
    for follower in followers:
        follower.close()
    up_to_date(web, world)
    return news
