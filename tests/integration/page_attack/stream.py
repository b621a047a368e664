# SPDX-License-Identifier: Apache-2.0
"""Who follows a page asks by the number that he has seen: while he is told nothing, what he has is what a new reader gets."""

import json
import time

from attack import Wrong
from judge import Filter, judge_world, opened, quote, read
from programs import wait_for
from world import change, random_world

ROUNDS = 6


class Follower:
    def __init__(self, web, path):
        self.web, self.path, self.doc, self.news = web, path, {}, 0

    def is_up_to_date(self):
        """He was told nothing, and nobody else knows more."""
        status, _, body = self.web.get(f"rows{self.path}&seen={self.doc.get('version', '')}")
        if status not in (200, 204):
            raise Wrong(f"{self.path[:200]}: {status} {body[:200]!r}")
        if status == 200:
            self.doc = json.loads(body)
            self.news += 1
            return False
        fresh = json.loads(self.web.get("rows" + self.path)[2])
        changed = {key for key in fresh if fresh[key] != self.doc.get(key)} - {"why", "events"}     # asked again every 3 s, which no number counts
        if fresh["version"] == self.doc["version"] and changed:
            raise Wrong(f"{self.path[:200]}: not told of {changed}")
        return fresh["version"] == self.doc["version"]


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
        return (page["lost"], page["total"]["usedGPU"], page["total"]["totalGPU"], page["pending"]["podCount"]) == \
            ("", sum(node.used for node in world.shown), sum(node.total for node in world.shown), len(world.waiting))
    wait_for("the page is up to date", is_so, seconds)


def seed_of(seed, number):
    return f"stream {seed + number}"


def one_world(build, rng, *_):
    world = random_world(rng, rng.choice(["small", "small", "wide", "waits"]))
    with opened(build, world) as (web, api):
        followers = [Follower(web, path) for path in some_paths(rng, world)]
        for _ in range(ROUNDS):
            with api.lock:
                for _ in range(rng.choice([1, 1, 5, 30])):
                    change(world, api, rng)
            if rng.random() < 0.3:                  # a node and a pod go, and nobody says so
                with api.lock:
                    change(world, api, rng, forget=True)
                    api.gone()
            time.sleep(0.3)
            for follower in followers:
                wait_for(f"{follower.path[:200]}: there is no more news", follower.is_up_to_date, 10)
        up_to_date(web, world)
        for node in world.nodes:
            node.told = False
        return {"news": sum(follower.news for follower in followers), "pages": judge_world(web, world, rng, exact=False)}
